//! Aliases of the programs, each with its arguments.
//!
//! Slurm before 26.05 cannot pass options to its programs, so `startnode-failed` means `startnode --failed`. The other
//! aliases are the names of the tools that these programs replace.

use std::ffi::{OsStr, OsString};
use std::path::Path;

/// Another name of a program.
pub struct Alias {
    /// The name, as a file name.
    pub name: &'static str,
    /// The program that it runs.
    pub program: &'static str,
    /// Arguments that come before those of the call.
    pub arguments: &'static [&'static str],
}

/// All aliases; `install` makes a hard link for each.
pub const ALL: [Alias; 8] = [
    Alias { name: "startnode-failed", program: "startnode", arguments: &["--failed"] },
    Alias { name: "slurm-openstack-resume", program: "startnode", arguments: &[] },
    Alias { name: "slurm-openstack-resumefail", program: "startnode", arguments: &["--failed"] },
    Alias { name: "slurm-openstack-suspend", program: "stopnode", arguments: &[] },
    Alias { name: "slurm-openstack-rebuild", program: "rebuild", arguments: &[] },
    Alias { name: "kill_all_nodes", program: "stopnode", arguments: &["--all"] },
    Alias { name: "update_config", program: "finish", arguments: &["--no-restart"] },
    Alias { name: "list_nodes", program: "listnodes", arguments: &[] },
];

/// Replaces an alias at the start of a command line with its program and arguments.
///
/// Only the last part of the path counts: Slurm 24.11 passes the whole path, 22.05 and 26.05 only the last part. A second
/// argument from slurmctld is a list of features, never StackHPC's `debug`.
#[must_use]
pub fn expand(arguments: impl IntoIterator<Item = OsString>, by_slurmctld: bool) -> Vec<OsString> {
    let mut arguments = arguments.into_iter();
    let first = arguments.next().unwrap_or_default();
    let name = Path::new(&first).file_name().map(OsStr::to_owned).unwrap_or_default();
    let mut rest: Vec<OsString> = arguments.collect();
    let Some(alias) = ALL.iter().find(|alias| name == alias.name) else {
        rest.insert(0, first);
        return rest;
    };
    // `slurm-openstack-resume HOSTLIST debug` is a dry run.
    let is_option = |argument: &OsString| argument.as_encoded_bytes().starts_with(b"-");
    let dry_run = alias.name == "slurm-openstack-resume"
        && !by_slurmctld
        && matches!(&rest[..], pair @ [_, _] if !pair.iter().any(is_option));
    if dry_run {
        rest.truncate(1);
    }
    let first = alias.arguments.iter().copied().chain(dry_run.then_some("--dry-run"));
    let program = OsString::from(alias.program);
    std::iter::once(program).chain(first.map(OsString::from)).chain(rest).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(words: &str, by_slurmctld: bool) -> String {
        let words = expand(words.split(' ').map(OsString::from), by_slurmctld);
        words.iter().map(|word| word.to_str().unwrap()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn an_alias_stands_for_a_program_and_arguments() {
        let cases = [
            ("startnode n[1-2]", "startnode n[1-2]"),
            ("/usr/local/bin/startnode n1", "/usr/local/bin/startnode n1"),
            ("/usr/local/bin/startnode-failed n1", "startnode --failed n1"),
            ("startnode-failed n1", "startnode --failed n1"),
            ("slurm-openstack-resume n1", "startnode n1"),
            ("slurm-openstack-resume n1 debug", "startnode --dry-run n1"),
            ("slurm-openstack-resume -v n1", "startnode -v n1"),
            ("slurm-openstack-resume --config=/x n[1-4]", "startnode --config=/x n[1-4]"),
            ("kill_all_nodes --force", "stopnode --all --force"),
            ("/opt/slurm-tools/bin/slurm-openstack-rebuild n1,n2", "rebuild n1,n2"),
        ];
        for (from, to) in cases {
            assert_eq!(written(from, false), to);
        }
        assert_eq!(expand([], false), [OsString::new()]);
    }

    #[test]
    fn a_rebuild_job_with_features_is_no_dry_run() {
        let call = "/opt/slurm-tools/bin/slurm-openstack-resume n[1-2] knl,flat";
        assert_eq!(written(call, true), "startnode n[1-2] knl,flat");
    }
}

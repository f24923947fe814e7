//! Names that programs are also called by, each standing for arguments.
//!
//! Slurm before 26.05 gives its programs no arguments of ours, and operators' scripts know the names of the tools that
//! these programs replace; so a symbolic link says what is meant.

use std::ffi::{OsStr, OsString};
use std::path::Path;

/// A name, the program it stands for, and the arguments it puts first.
pub struct Alias {
    /// The name of the link.
    pub name: &'static str,
    /// The program that it links to.
    pub program: &'static str,
    /// What it stands for.
    pub arguments: &'static [&'static str],
}

/// All of them; `install` makes the links.
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

/// The arguments with the alias, if they begin with one, written out.
///
/// The name is the last part of the path: 24.11 gives the whole of it, 22.05 and 26.05 the last part alone. What slurmctld
/// says behind a host list are features, and never that it wants a rehearsal.
#[must_use]
pub fn written_out(
    arguments: impl IntoIterator<Item = OsString>,
    by_slurmctld: bool,
) -> Vec<OsString> {
    let mut arguments = arguments.into_iter();
    let first = arguments.next().unwrap_or_default();
    let name = Path::new(&first).file_name().map(OsStr::to_owned).unwrap_or_default();
    let mut rest: Vec<OsString> = arguments.collect();
    let Some(alias) = ALL.iter().find(|alias| name == alias.name) else {
        rest.insert(0, first);
        return rest;
    };
    // `slurm-openstack-resume HOSTLIST debug` only says what it would do.
    let is_option = |word: &OsString| word.as_encoded_bytes().starts_with(b"-");
    let rehearsal = alias.name == "slurm-openstack-resume"
        && !by_slurmctld
        && matches!(&rest[..], words @ [_, _] if !words.iter().any(is_option));
    if rehearsal {
        rest.truncate(1);
    }
    let words = alias.arguments.iter().copied().chain(rehearsal.then_some("--dry-run"));
    let program = OsString::from(alias.program);
    std::iter::once(program).chain(words.map(OsString::from)).chain(rest).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(words: &str, by_slurmctld: bool) -> String {
        let words = written_out(words.split(' ').map(OsString::from), by_slurmctld);
        words.iter().map(|word| word.to_str().unwrap()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_name_stands_for_its_arguments() {
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
        assert_eq!(written_out([], false), [OsString::new()]);
    }

    #[test]
    fn a_rebuild_job_with_features_was_only_rehearsed() {
        let call = "/opt/slurm-tools/bin/slurm-openstack-resume n[1-2] knl,flat";
        assert_eq!(written(call, true), "startnode n[1-2] knl,flat");
    }
}

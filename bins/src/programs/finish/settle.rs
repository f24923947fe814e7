//! After slurmctld was told: does it run with the new file, and if not, back to the one before.

use super::inputs::Marked;
use crate::context::Context;
use crate::output::chain;
use crate::trouble::Trouble;
use hostlist::{Hostlist, NodeName};
use provision::Report;
use provision::exec::{Expected, Patience};
use provision::plan::{File, Plan, Step};
use provision::state::replace_whole;
use slurmconf::{Config, Markers};
use slurmctl::Controller as _;
use std::io::Write as _;
use std::path::Path;

/// Writes the new text beside the file and removes it: a full disk or a directory that may not be written is found before
/// anything is changed.
pub(super) fn rehearse(marked: &Marked, text: &str) -> Result<(), Trouble> {
    let path = std::fs::canonicalize(&marked.path).unwrap_or_else(|_| marked.path.clone());
    let folder = path.parent().unwrap_or(Path::new("/"));
    let trial = || {
        let mut file = tempfile::Builder::new().prefix(".slurm-elastic-").tempfile_in(folder)?;
        file.write_all(text.as_bytes())?;
        file.as_file().sync_all()
    };
    trial().map_err(|error| {
        Trouble::new(format!(
            "cannot write {}: {error}; nothing is changed: make room in {} or let it be written, and run it again",
            marked.path.display(),
            folder.display()
        ))
    })
}

/// Makes sure that slurmctld runs: with the new file, or else with the one before. False if it is the latter.
pub(super) async fn settle(
    context: &Context,
    marked: &Marked,
    (plan, section): (&Plan, &str),
    report: &Report,
) -> bool {
    let told = plan.steps().any(|step| matches!(step, Step::TellSlurm(_)));
    if !(told && is_written(plan, &marked.path))
        || !report.slurm_refused && runs(context, marked, section).await
    {
        return true;
    }
    put_back(context, marked).await;
    false
}

/// True if the file holds what the plan was to write: neither what was there before, nor what somebody has written since.
fn is_written(plan: &Plan, path: &Path) -> bool {
    let now = std::fs::read(path).ok();
    plan.steps().any(|step| match step {
        Step::WriteFile { which: File::SlurmConf, text, .. } => {
            now.as_deref() == Some(text.as_bytes())
        }
        _ => false,
    })
}

/// True once slurmctld runs with the nodes of the new file.
async fn runs(context: &Context, marked: &Marked, section: &str) -> bool {
    // It was read back when it was planned.
    let nodes = Config::parse(section).map(|config| config.nodes).unwrap_or_default();
    let new = Config { nodes, ..Config::default() };
    let wanted: Hostlist = new.nodes.iter().flat_map(|def| def.names.iter()).collect();
    let old = marked.document.section(Markers::NODES).ok();
    let old = old.and_then(|section| Config::parse(&section).ok());
    let old = old.iter().flat_map(|config| &config.nodes).flat_map(|def| def.names.iter());
    let gone = old.filter(|name| !wanted.contains(name)).filter_map(|it| NodeName::new(&it).ok());
    Expected::new(&new, gone).runs(&context.slurm.controller, Patience::USUAL).await
}

/// Puts a text back into its file. The version that was kept is it, so that what was refused is kept nowhere.
fn restore(path: &Path, text: &[u8]) -> provision::state::Result<()> {
    let real = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let mut kept = real.clone().into_os_string();
    kept.push(".previous");
    let same = std::fs::read(&kept).is_ok_and(|before| before == text);
    if same && std::fs::rename(&kept, &real).is_ok() {
        return Ok(());
    }
    replace_whole(path, text)
}

/// Puts the previous file back where slurmctld did not take the new one, and starts it again if it does not answer.
async fn put_back(context: &Context, marked: &Marked) {
    let (slurm, output) = (&context.slurm.controller, &context.output);
    output.complain("slurmctld refuses the new file; putting the previous one back");
    if let Err(error) = restore(&marked.path, marked.document.as_bytes()) {
        let beside = "the previous version is beside it";
        output.complain(format_args!("{}: {beside}", chain(&error)));
        return;
    }
    // It may have read some of the new one; a slurmctld before 23.11 dies of other nodes if it is only told to read again.
    if slurm.version().reconfigures_nodes() && slurm.ping().await.unwrap_or(false) {
        if let Err(error) = slurm.reconfigure().await {
            output.complain(chain(&error));
        }
        if slurm.ping().await.unwrap_or(false) {
            output.complain("slurmctld runs on with the previous file");
            return;
        }
    }
    match slurm.restart().await {
        Ok(()) => output.complain("slurmctld runs again with the previous file"),
        Err(error) => output.complain(format_args!(
            "slurmctld does not start with the previous file either: {}",
            chain(&error)
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use provision::plan::{Operation, Stage};

    #[test]
    fn what_somebody_wrote_during_a_long_wait_was_taken_for_ours_and_put_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("slurm.conf");
        let (which, summary, drops) = (File::SlurmConf, String::new(), Vec::new());
        let (before, text) = ("old".to_owned(), "new".to_owned());
        let write = Step::WriteFile { which, before, text, summary, drops };
        let plan = Plan::new(Operation::Resize).stage(Stage::new("write", vec![write]));
        for (text, ours) in [("old", false), ("somebody's", false), ("new", true)] {
            std::fs::write(&path, text).unwrap();
            assert_eq!(is_written(&plan, &path), ours, "{text}");
        }
    }

    #[test]
    fn a_file_that_was_refused_is_not_kept_as_the_previous_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("slurm.conf");
        let names = || {
            let names = std::fs::read_dir(folder.path()).unwrap();
            let mut names: Vec<_> = names.map(|entry| entry.unwrap().file_name()).collect();
            names.sort();
            names
        };
        std::fs::write(&path, "good").unwrap();
        replace_whole(&path, b"refused").unwrap();
        assert_eq!(names(), ["slurm.conf", "slurm.conf.previous"]);
        restore(&path, b"good").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"good");
        assert_eq!(names(), ["slurm.conf"]);
        restore(&path, b"other").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"other");
    }
}

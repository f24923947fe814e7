//! After slurmctld was told: does it run with the new file, and if not, back to the one before.

use super::inputs::Marked;
use crate::context::Context;
use crate::output::chain;
use crate::trouble::Trouble;
use hostlist::{Hostlist, NodeName};
use provision::Report;
use provision::exec::{Expected, Patience};
use provision::plan::{File, Operation, Plan, Step, TellSlurm};
use provision::state::{Document, rehearse_whole, replace_whole};
use slurmconf::{Changes, Config, Markers, diff};
use slurmctl::Controller as _;
use std::path::Path;

/// Writes the new text beside the file and removes it: a full disk, a directory that may not be written or an owner whom
/// the file cannot be given to is found before anything is changed.
pub(super) fn rehearse(marked: &Marked, text: &[u8]) -> Result<(), Trouble> {
    rehearse_whole(&marked.path, text).map_err(|error| {
        let path = std::fs::canonicalize(&marked.path).unwrap_or_else(|_| marked.path.clone());
        let folder = path.parent().unwrap_or(Path::new("/"));
        Trouble::new(format!(
            "cannot {}; nothing is changed: make room in {} or let it be written, by root if the file is another's, \
             and run it again",
            chain(&error),
            folder.display()
        ))
    })
}

/// Makes sure that slurmctld runs: with the new file, or else with the one before. What was wrong and what was done about
/// it, if it is the latter.
pub(super) async fn settle(
    context: &Context,
    marked: &Marked,
    (plan, section): (&Plan, &str),
    report: &Report,
) -> Vec<String> {
    let how = plan.steps().find_map(|step| match step {
        Step::TellSlurm(how) => Some(*how),
        _ => None,
    });
    let Some(how) = how.filter(|_| is_written(plan, &marked.path)) else { return Vec::new() };
    let why = if report.slurm_refused {
        let answers = context.slurm.controller.ping().await.unwrap_or(false);
        Some(refused(how, answers, plan.operation))
    } else {
        amiss(context, marked, section).await
    };
    let Some(why) = why else { return Vec::new() };
    let mut said = vec![format!("{why}; putting the previous one back")];
    said.extend(put_back(context, marked).await);
    said.extend(left(plan, &context.slurm.config));
    said
}

/// What it means that slurmctld did not do as told; its own words are told already.
fn refused(how: TellSlurm, answers: bool, operation: Operation) -> String {
    let finish = operation == Operation::Finish;
    let by_hand = if finish { ", and finish --no-restart leaves it to you" } else { "" };
    match how {
        TellSlurm::Reconfigure if answers => "slurmctld refuses the new file".to_owned(),
        TellSlurm::Reconfigure => {
            "slurmctld does not answer with the new file: its log says why".to_owned()
        }
        TellSlurm::Restart => format!(
            "slurmctld could not be started again with the new file: its log says whether it refuses it; if not, \
             restart_command has to name what starts it here{by_hand}"
        ),
    }
}

/// The machines that were launched for nodes which slurm.conf does not have after all: the file was written, so all came.
fn left(plan: &Plan, before: &Config) -> Option<String> {
    let known = before.index();
    let launched = plan.steps().filter_map(|step| match step {
        Step::Launch { wanted, .. } => Some(wanted.node.as_str()),
        _ => None,
    });
    let nodes: Hostlist = launched.filter(|node| known.get(node).is_none()).collect();
    (!nodes.is_empty()).then(|| {
        format!(
            "these machines were launched and are left, and slurm.conf does not have them: {nodes}; run it again when \
             slurmctld can take the file, or reconcile --apply ends them"
        )
    })
}

/// True if slurmctld last took up other lines than stand between the markers: whoever wrote these did not come to tell. It does
/// not say so itself, but for nodes that it has or has not.
pub(in crate::programs) fn is_untold(context: &Context, marked: &Marked) -> bool {
    let told = context.state.load(Document::Told).ok().flatten();
    let now = marked.document.section(Markers::NODES).ok();
    told.zip(now).is_some_and(|(told, now)| !means_the_same(&told, &now))
}

/// True if slurmctld reads the same in both, be the nodes folded in one of them.
fn means_the_same(told: &str, now: &str) -> bool {
    match (Config::parse(told), Config::parse(now)) {
        (Ok(told), Ok(now)) => diff(&told, &now) == Changes::default(),
        (Err(_), _) | (_, Err(_)) => told == now,
    }
}

/// Remembers what slurmctld has taken up, if the file still has it; at worst it is told once more.
pub(super) fn remember(context: &Context, marked: &Marked, section: &str) {
    let now = std::fs::read(&marked.path).map(slurmconf::Document::parse);
    let now = now.ok().and_then(|file| file.section(Markers::NODES).ok());
    if now.as_deref() == Some(section) {
        let _ = context.state.change(Document::Told, &mut |_| section.to_owned());
    }
}

/// True if the file holds what the plan was to write: neither what was there before, nor what somebody has written since.
pub(super) fn is_written(plan: &Plan, path: &Path) -> bool {
    let now = std::fs::read(path).ok();
    plan.steps().any(|step| match step {
        Step::WriteFile { which: File::SlurmConf, text, .. } => now.as_ref() == Some(text),
        _ => false,
    })
}

/// What is not as it should be in a slurmctld that was told of the new file, if that is so until it is waited for no longer.
async fn amiss(context: &Context, marked: &Marked, section: &str) -> Option<String> {
    // It was read back when it was planned.
    let nodes = Config::parse(section).map(|config| config.nodes).unwrap_or_default();
    let new = Config { nodes, ..Config::default() };
    let wanted: Hostlist = new.nodes.iter().flat_map(|def| def.names.iter()).collect();
    let old = marked.document.section(Markers::NODES).ok();
    let old = old.and_then(|section| Config::parse(&section).ok()).unwrap_or_default();
    let names = old.nodes.iter().flat_map(|def| def.names.iter());
    let gone = names.filter(|name| !wanted.contains(name)).filter_map(|it| NodeName::new(&it).ok());
    let all = Expected::new(&new, gone);
    let slurm = &context.slurm.controller;
    match all.clone().but_for_kept(&old).differing(slurm, Patience::USUAL).await {
        Ok(differing) if differing.is_empty() => {
            // What the previous file would not bring back is no reason to go back to it.
            let left = all.differing_now(slurm).await.unwrap_or_default();
            if let Some(left) = unlike(&left, &new) {
                context.warn(&left);
            }
            None
        }
        Ok(differing) => unlike(&differing, &new),
        Err(error) => {
            Some(format!("slurmctld does not answer with the new file: {}", chain(&error)))
        }
    }
}

/// What is said of nodes that a slurmctld which runs lacks, or still has.
fn unlike(differing: &Hostlist, new: &Config) -> Option<String> {
    let index = new.index();
    let (mut unresolved, mut lacking, mut kept) =
        (Hostlist::new(), Hostlist::new(), Hostlist::new());
    for name in differing {
        match index.get(&name) {
            // It has to know the address of each when it starts.
            Some(node) if !node.line.is_cloud() => unresolved.extend([name]),
            Some(_) => lacking.extend([name]),
            None => kept.extend([name]),
        }
    }
    let said = [
        (unresolved, "not with", "it may not be able to resolve the name; see hosts_file or DNS"),
        (lacking, "not with", "see its log"),
        (kept, "still with", "see its log"),
    ];
    let said = said.iter().filter(|(nodes, _, _)| !nodes.is_empty());
    let said: Vec<String> =
        said.map(|(nodes, with, why)| format!("{with} {nodes}: {why}")).collect();
    (!said.is_empty()).then(|| format!("slurmctld runs, but {}", said.join("; and ")))
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

/// Puts the previous file back where slurmctld did not take the new one, and starts it again if it does not answer. What
/// came of it.
async fn put_back(context: &Context, marked: &Marked) -> Vec<String> {
    let slurm = &context.slurm.controller;
    if let Err(error) = restore(&marked.path, marked.document.as_bytes()) {
        return vec![format!("{}: the previous version is beside it", chain(&error))];
    }
    let mut said = Vec::new();
    // It may have read some of the new one; a slurmctld before 23.11 dies of other nodes if it is only told to read again.
    if slurm.version().reconfigures_nodes() && slurm.ping().await.unwrap_or(false) {
        if let Err(error) = slurm.reconfigure().await {
            said.push(chain(&error));
        }
        if slurm.ping().await.unwrap_or(false) {
            said.push("slurmctld runs on with the previous file".to_owned());
            return said;
        }
    }
    said.push(match slurm.restart().await {
        Ok(()) => "slurmctld runs again with the previous file".to_owned(),
        Err(error) if slurm.ping().await.unwrap_or(false) => {
            format!("slurmctld runs, and could not be started again: {}", chain(&error))
        }
        Err(error) => {
            format!("slurmctld does not start with the previous file either: {}", chain(&error))
        }
    });
    said
}

#[cfg(test)]
mod tests {
    use super::*;
    use provision::plan::Stage;

    #[test]
    fn a_slurmctld_that_cannot_resolve_a_node_was_said_to_refuse_the_file() {
        let new = Config::parse("NodeName=web-[1-2]\nNodeName=web-[3-9] State=CLOUD\n").unwrap();
        let said = |nodes: &str| unlike(&nodes.parse().unwrap(), &new).unwrap();
        assert_eq!(
            said("web-1"),
            "slurmctld runs, but not with web-1: it may not be able to resolve the name; see hosts_file or DNS"
        );
        assert_eq!(said("web-[3-4]"), "slurmctld runs, but not with web-[3-4]: see its log");
        let both = said("web-2,old-1");
        assert!(both.contains("not with web-2: it may"), "{both}");
        assert!(both.contains("; and still with old-1: see its log"), "{both}");
        assert_eq!(unlike(&Hostlist::new(), &new), None);
    }

    #[test]
    fn a_restart_command_that_failed_was_said_to_be_a_file_that_is_refused() {
        let said = refused(TellSlurm::Restart, false, Operation::Finish);
        assert!(said.contains("restart_command") && said.contains("--no-restart"), "{said}");
        let said = refused(TellSlurm::Restart, false, Operation::Resize);
        assert!(said.contains("restart_command") && !said.contains("--no-restart"), "{said}");
        let reconfigured = |answers| refused(TellSlurm::Reconfigure, answers, Operation::Finish);
        assert!(reconfigured(true).contains("refuses"));
        assert!(reconfigured(false).contains("does not answer"));
    }

    #[test]
    fn what_somebody_wrote_during_a_long_wait_was_taken_for_ours_and_put_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("slurm.conf");
        let (which, summary, drops) = (File::SlurmConf, String::new(), Vec::new());
        let (before, text) = (b"old".to_vec(), b"new".to_vec());
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

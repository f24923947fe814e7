//! Verifies that slurmctld runs with a new slurm.conf, and rolls it back if not.

use super::MarkedFile;
use super::{Expected, Patience};
use crate::failure::chain;
use crate::plan::{
    FileStep, MachineStep, Notification, Operation, Plan, Reload, Step, WrittenFile,
};
use crate::report::Report;
use crate::state::{self, State, StateFile, atomic_write};
use hostlist::{Hostlist, NodeName};
use slurmconf::{Changes, Config, Markers, diff};
use slurmctl::Controller;
use std::path::Path;

/// An applied slurm.conf, and the previous one.
#[derive(Clone, Copy, Debug)]
pub struct Applied<'a> {
    /// The controller.
    pub slurm: &'a dyn Controller,
    /// The previous slurm.conf with its includes.
    pub before: &'a Config,
    /// The file with the markers, before the change.
    pub marked: &'a MarkedFile,
    /// The plan that was carried out.
    pub plan: &'a Plan,
    /// The new node section.
    pub section: &'a str,
}

/// The result of the verification.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verification {
    /// Why the file was rolled back, and the result; empty if slurmctld runs with the new file.
    pub rolled_back: Vec<String>,
    /// A problem that a rollback would not solve.
    pub warning: Option<String>,
}

impl Applied<'_> {
    /// Verifies that slurmctld runs with the new file, or else restores the previous one.
    pub async fn verify_or_roll_back(&self, report: &Report) -> Verification {
        let how = self.plan.steps().find_map(|step| match step.notification() {
            Some(Notification::Reload(how)) => Some(*how),
            _ => None,
        });
        let Some(how) = how.filter(|_| self.is_written()) else { return Verification::default() };
        let mut verdict = Verification::default();
        let why = if report.slurm_refused {
            let answers = self.slurm.ping().await.unwrap_or(false);
            Some(refused(how, answers, self.plan.operation))
        } else {
            self.amiss(&mut verdict.warning).await
        };
        if let Some(why) = why {
            verdict.rolled_back = vec![format!("{why}; restoring the previous file")];
            verdict.rolled_back.extend(self.roll_back().await);
            verdict.rolled_back.extend(left_running(self.plan, self.before));
        }
        verdict
    }

    /// True if the file has the text of the plan: neither the previous one nor a later change.
    #[must_use]
    pub fn is_written(&self) -> bool {
        let now = std::fs::read(&self.marked.path).ok();
        self.plan.steps().any(|step| match step {
            Step::File(FileStep::Write { which: WrittenFile::SlurmConf, text, .. }) => {
                now.as_ref() == Some(text)
            }
            _ => false,
        })
    }

    /// Stores the applied node section, if the file still has it. At worst slurmctld reloads once more.
    pub fn remember(&self, state: &dyn State) {
        let now = std::fs::read(&self.marked.path).map(slurmconf::Document::parse);
        let now = now.ok().and_then(|file| file.section(Markers::NODES).ok());
        if now.as_deref() == Some(self.section) {
            let _ = state.change(StateFile::AppliedConf, &mut |_| self.section.to_owned());
        }
    }

    /// The problem of a slurmctld with the new file, if it lasts until the timeout.
    async fn amiss(&self, warning: &mut Option<String>) -> Option<String> {
        // The planner has already parsed it.
        let nodes = Config::parse(self.section).map(|config| config.nodes).unwrap_or_default();
        let new = Config { nodes, ..Config::default() };
        let wanted: Hostlist = new.nodes.iter().flat_map(|def| def.names.iter()).collect();
        let old = self.marked.parsed();
        let names = old.nodes.iter().flat_map(|def| def.names.iter());
        let gone = names.filter(|name| !wanted.contains(name));
        let all = Expected::new(&new, gone.filter_map(|name| NodeName::new(&name).ok()));
        match all.clone().but_for_kept(&old).differing(self.slurm, Patience::USUAL).await {
            Ok(differing) if differing.is_empty() => {
                // A rollback would not bring these nodes back.
                let left = all.differing_now(self.slurm).await.unwrap_or_default();
                *warning = unlike(&left, &new);
                None
            }
            Ok(differing) => unlike(&differing, &new),
            Err(error) => {
                Some(format!("slurmctld does not answer with the new file: {}", chain(&error)))
            }
        }
    }

    /// Restores the previous file, and restarts slurmctld if it does not answer. Returns messages about the result.
    async fn roll_back(&self) -> Vec<String> {
        if let Err(error) = restore(&self.marked.path, self.marked.document.as_bytes()) {
            return vec![format!("{}: the previous version is beside it", chain(&error))];
        }
        let (slurm, mut messages) = (self.slurm, Vec::new());
        // It may have read part of the new file. A slurmctld before 23.11 would die of a reconfigure with other nodes.
        if slurm.version().reconfigures_nodes() && slurm.ping().await.unwrap_or(false) {
            messages.extend(slurm.reconfigure().await.err().map(|error| chain(&error)));
            if slurm.ping().await.unwrap_or(false) {
                messages.push("slurmctld keeps running with the previous file".to_owned());
                return messages;
            }
        }
        messages.push(match slurm.restart().await {
            Ok(()) => "slurmctld runs again with the previous file".to_owned(),
            Err(error) if slurm.ping().await.unwrap_or(false) => {
                format!("slurmctld runs, but could not be restarted: {}", chain(&error))
            }
            Err(error) => {
                format!("slurmctld does not start with the previous file either: {}", chain(&error))
            }
        });
        messages
    }
}

/// True if slurmctld last applied another node section than that of the file. slurmctld itself only shows which nodes it
/// has.
#[must_use]
pub fn is_unapplied(state: &dyn State, marked: &MarkedFile) -> bool {
    let applied = state.load(StateFile::AppliedConf).ok().flatten();
    applied.zip(marked.section().ok()).is_some_and(|(applied, now)| !is_same(&applied, &now))
}

/// True if both mean the same to slurmctld, even if only one is folded.
fn is_same(applied: &str, now: &str) -> bool {
    match (Config::parse(applied), Config::parse(now)) {
        (Ok(applied), Ok(now)) => diff(&applied, &now) == Changes::default(),
        (Err(_), _) | (_, Err(_)) => applied == now,
    }
}

/// Explains that slurmctld did not reload, in addition to its own message.
fn refused(how: Reload, answers: bool, operation: Operation) -> String {
    let finish = operation == Operation::Finish;
    let by_hand = if finish { ", or use finish --no-restart and restart it yourself" } else { "" };
    match how {
        Reload::Reconfigure if answers => "slurmctld refuses the new file".to_owned(),
        Reload::Reconfigure => {
            "slurmctld does not answer with the new file; see its log".to_owned()
        }
        Reload::Restart => format!(
            "slurmctld could not be restarted with the new file; see its log; if the log is clean, set restart_command to \
             what restarts it here{by_hand}"
        ),
    }
}

/// Machines that were launched for nodes that the rollback removed from slurm.conf.
fn left_running(plan: &Plan, before: &Config) -> Option<String> {
    let known = before.index();
    let launched = plan.steps().filter_map(|step| match step {
        Step::Machine(MachineStep::Launch { wanted, .. }) => Some(wanted.node.as_str()),
        _ => None,
    });
    let nodes: Hostlist = launched.filter(|node| !known.contains_key(*node)).collect();
    (!nodes.is_empty()).then(|| {
        format!(
            "machines launched for nodes that slurm.conf does not have are still running: {nodes}; run this again when \
             slurmctld can take the file, or let reconcile --apply terminate them"
        )
    })
}

/// Describes the nodes that a running slurmctld lacks, or still has.
fn unlike(differing: &Hostlist, new: &Config) -> Option<String> {
    let index = new.index();
    let (mut unresolved, mut lacking, mut kept) =
        (Hostlist::new(), Hostlist::new(), Hostlist::new());
    for name in differing {
        match index.get(&name) {
            // slurmctld must resolve each name when it starts.
            Some(node) if !node.is_cloud() => unresolved.extend([name]),
            Some(_) => lacking.extend([name]),
            None => kept.extend([name]),
        }
    }
    let messages = [
        (unresolved, "without", "it may not be able to resolve the name; see hosts_file or DNS"),
        (lacking, "without", "see its log"),
        (kept, "still with", "see its log"),
    ];
    let messages = messages.iter().filter(|(nodes, _, _)| !nodes.is_empty());
    let messages: Vec<String> =
        messages.map(|(nodes, with, why)| format!("{with} {nodes}: {why}")).collect();
    (!messages.is_empty()).then(|| format!("slurmctld runs, but {}", messages.join("; and ")))
}

/// Writes a text back into its file. It is also the kept previous version, so that the refused text is not kept.
fn restore(path: &Path, text: &[u8]) -> state::Result<()> {
    let real = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let kept = atomic_write::previous(&real);
    let same = std::fs::read(&kept).is_ok_and(|before| before == text);
    if same && std::fs::rename(&kept, &real).is_ok() {
        return Ok(());
    }
    atomic_write::replace(path, text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Stage;
    use slurmctl::memory::{MemorySlurm, MemorySlurmSettings};

    #[test]
    fn a_slurmctld_that_cannot_resolve_a_node_is_not_said_to_refuse_the_file() {
        let new = Config::parse("NodeName=web-[1-2]\nNodeName=web-[3-9] State=CLOUD\n").unwrap();
        let messages = |nodes: &str| unlike(&nodes.parse().unwrap(), &new).unwrap();
        assert_eq!(
            messages("web-1"),
            "slurmctld runs, but without web-1: it may not be able to resolve the name; see hosts_file or DNS"
        );
        assert_eq!(messages("web-[3-4]"), "slurmctld runs, but without web-[3-4]: see its log");
        let both = messages("web-2,old-1");
        assert!(both.contains("without web-2: it may"), "{both}");
        assert!(both.contains("; and still with old-1: see its log"), "{both}");
        assert_eq!(unlike(&Hostlist::new(), &new), None);
    }

    #[test]
    fn a_restart_command_that_fails_is_not_a_file_that_is_refused() {
        let messages = refused(Reload::Restart, false, Operation::Finish);
        assert!(
            messages.contains("restart_command") && messages.contains("--no-restart"),
            "{messages}"
        );
        let messages = refused(Reload::Restart, false, Operation::Resize);
        assert!(
            messages.contains("restart_command") && !messages.contains("--no-restart"),
            "{messages}"
        );
        let reconfigured = |answers| refused(Reload::Reconfigure, answers, Operation::Finish);
        assert!(reconfigured(true).contains("refuses"));
        assert!(reconfigured(false).contains("does not answer"));
    }

    #[test]
    fn what_somebody_else_wrote_is_not_rolled_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("slurm.conf");
        let (which, summary, drops) = (WrittenFile::SlurmConf, String::new(), Vec::new());
        let (before, text) = (b"old".to_vec(), b"new".to_vec());
        let write = Step::File(FileStep::Write { which, before, text, summary, drops });
        let plan = Plan::new(Operation::Resize).stage(Stage::new("write", vec![write]));
        for (text, ours) in [("old", false), ("somebody's", false), ("new", true)] {
            std::fs::write(&path, text).unwrap();
            let document = slurmconf::Document::parse("old");
            let marked = MarkedFile { path: path.clone(), document };
            let slurm = MemorySlurm::new(MemorySlurmSettings::cloud(&"n1".parse().unwrap()));
            let before = Config::default();
            let applied = Applied {
                slurm: &slurm,
                before: &before,
                marked: &marked,
                plan: &plan,
                section: "",
            };
            assert_eq!(applied.is_written(), ours, "{text}");
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
        atomic_write::replace(&path, b"refused").unwrap();
        assert_eq!(names(), ["slurm.conf", "slurm.conf.previous"]);
        restore(&path, b"good").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"good");
        assert_eq!(names(), ["slurm.conf"]);
        restore(&path, b"other").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"other");
    }
}

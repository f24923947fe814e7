//! After slurmctld was told: does it run with the new file, and if not, back to the one before.

use super::inputs::Inputs;
use crate::context::Context;
use crate::output::chain;
use crate::trouble::Trouble;
use provision::Report;
use provision::plan::{Plan, Step};
use provision::state::replace_whole;
use slurmconf::{Config, Markers, NodeDef, NodeState};
use slurmctl::{Controller as _, Node};
use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::Path;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// How long slurmctld may take to read its file and answer.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long it may say nothing at all, while it makes way for itself.
const SILENCE: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(500);

/// Writes the new text beside the file and removes it: a full disk or a directory that may not be written is found before
/// anything is changed.
pub(super) fn rehearse(inputs: &Inputs) -> Result<(), Trouble> {
    let path = std::fs::canonicalize(&inputs.path).unwrap_or_else(|_| inputs.path.clone());
    let folder = path.parent().unwrap_or(Path::new("/"));
    let trial = || {
        let mut file = tempfile::Builder::new().prefix(".slurm-elastic-").tempfile_in(folder)?;
        file.write_all(inputs.document.as_bytes())?;
        file.write_all(inputs.cluster.to_string().as_bytes())?;
        file.as_file().sync_all()
    };
    trial().map_err(|error| {
        Trouble::new(format!(
            "cannot write {}: {error}; nothing is changed: make room in {} or let it be written, and run finish again",
            inputs.path.display(),
            folder.display()
        ))
    })
}

/// Makes sure that slurmctld runs: with the new file, or else with the one before. False if it is the latter.
pub(super) async fn settle(
    context: &Context,
    inputs: &Inputs,
    plan: &Plan,
    report: &Report,
) -> bool {
    let told = plan.steps().any(|step| matches!(step, Step::TellSlurm(_)));
    let written = std::fs::read(&inputs.path).is_ok_and(|now| now != inputs.document.as_bytes());
    if !(told && written) || !report.slurm_refused && runs(context, inputs).await {
        return true;
    }
    put_back(context, inputs).await;
    false
}

/// True once slurmctld answers with the nodes of the new file, twice: it says that it has taken a file before it reads it,
/// and ends if the file is no good.
async fn runs(context: &Context, inputs: &Inputs) -> bool {
    let wanted: BTreeSet<String> =
        inputs.cluster.nodes.iter().flat_map(|def| def.names.to_vec()).collect();
    let old = inputs.document.section(Markers::NODES).ok();
    let old = old.and_then(|section| Config::parse(&section).ok());
    let old = old.iter().flat_map(|config| &config.nodes).flat_map(|def| def.names.to_vec());
    let gone: BTreeSet<String> = old.filter(|name| !wanted.contains(name)).collect();
    let version = context.slurm.controller.version();
    let until = Instant::now() + PATIENCE;
    let mut good = 0;
    let mut answered = Instant::now();
    while good < 2 && Instant::now() < until && answered.elapsed() < SILENCE {
        sleep(PAUSE).await;
        let Ok(nodes) = context.slurm.controller.nodes(None).await else {
            good = 0;
            continue;
        };
        answered = Instant::now();
        let asleep = |node: &Node| node.state.is_cloud() && node.state.is_powered_down();
        let has = Shown {
            names: nodes.iter().map(|node| node.name.as_str()).collect(),
            all: !version.needs_cloud_parameters() || nodes.iter().any(asleep),
        };
        let fits = has.fits(&inputs.cluster.nodes, &gone)
            && context.slurm.controller.ping().await.unwrap_or(false);
        good = if fits { good + 1 } else { 0 };
    }
    good == 2
}

/// What slurmctld shows of its nodes.
struct Shown<'a> {
    names: BTreeSet<&'a str>,
    /// False if elastic nodes may be hidden while they are powered down: before 23.11 they are, without
    /// `PrivateData=cloud`.
    all: bool,
}

impl Shown<'_> {
    /// True if nothing of it speaks against these nodes and none of those that are gone.
    fn fits(&self, wanted: &[NodeDef], gone: &BTreeSet<String>) -> bool {
        let mut needed = wanted.iter().filter(|def| match def.state {
            Some(NodeState::Future) => false,
            Some(NodeState::Cloud) => self.all,
            _ => true,
        });
        let there = |name: String| self.names.contains(name.as_str());
        needed.all(|def| def.names.to_vec().into_iter().all(there))
            && !gone.iter().any(|name| self.names.contains(name.as_str()))
    }
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
async fn put_back(context: &Context, inputs: &Inputs) {
    let (slurm, output) = (&context.slurm.controller, &context.output);
    output.complain("slurmctld refuses the new file; putting the previous one back");
    if let Err(error) = restore(&inputs.path, inputs.document.as_bytes()) {
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

    #[test]
    fn an_old_slurmctld_that_hides_what_is_powered_down_has_taken_the_file() {
        let text = "NodeName=n[1-3] State=CLOUD\nNodeName=p1\nNodeName=nonesuch State=FUTURE\n";
        let nodes = Config::parse(text).unwrap().nodes;
        let none = BTreeSet::new();
        let gone = BTreeSet::from(["n4".to_owned()]);
        let shown =
            |names: &[&'static str], all| Shown { names: names.iter().copied().collect(), all };
        assert!(shown(&["p1"], false).fits(&nodes, &none));
        assert!(!shown(&["p1"], true).fits(&nodes, &none), "nothing is hidden here");
        assert!(
            !shown(&["n1"], false).fits(&nodes, &none),
            "a node that is always there is missing"
        );
        assert!(!shown(&["p1", "n4"], false).fits(&nodes, &gone));
        assert!(shown(&["p1", "n1", "n2", "n3"], true).fits(&nodes, &gone));
    }
}

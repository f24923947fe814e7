//! After slurmctld was told: does it run with the new file, and if not, back to the one before.

use super::inputs::Inputs;
use crate::context::Context;
use crate::output::chain;
use crate::trouble::Trouble;
use provision::Report;
use provision::plan::{Plan, Step};
use provision::state::replace_whole;
use slurmconf::{Config, Markers};
use slurmctl::Controller as _;
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
        let has: BTreeSet<&str> = nodes.iter().map(|node| node.name.as_str()).collect();
        let fits = wanted.iter().all(|name| has.contains(name.as_str()))
            && !gone.iter().any(|name| has.contains(name.as_str()))
            && context.slurm.controller.ping().await.unwrap_or(false);
        good = if fits { good + 1 } else { 0 };
    }
    good == 2
}

/// Puts the previous file back where slurmctld did not take the new one, and starts it again if it does not answer.
async fn put_back(context: &Context, inputs: &Inputs) {
    let (slurm, output) = (&context.slurm.controller, &context.output);
    output.complain("slurmctld refuses the new file; putting the previous one back");
    if let Err(error) = replace_whole(&inputs.path, inputs.document.as_bytes()) {
        let beside = "the previous version is beside it";
        output.complain(format_args!("{}: {beside}", chain(&error)));
        return;
    }
    if slurm.ping().await.unwrap_or(false) {
        // It may have read some of the new one.
        if let Err(error) = slurm.reconfigure().await {
            output.complain(chain(&error));
        }
        output.complain("slurmctld runs on with the previous file");
        return;
    }
    match slurm.restart().await {
        Ok(()) => output.complain("slurmctld runs again with the previous file"),
        Err(error) => output.complain(format_args!(
            "slurmctld does not start with the previous file either: {}",
            chain(&error)
        )),
    }
}

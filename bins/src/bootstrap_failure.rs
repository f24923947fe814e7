//! What becomes of nodes that Slurm waits for when a program cannot start its work.

use crate::bootstrap::Bootstrap;
use crate::diagnostic::Diagnostic;
use crate::log::Level;
use crate::wiring::{self, Slurm};
use hostlist::{Hostlist, NodeName};
use provision::plan::{self, Operation};
use provision::run::{self, Run};
use provision::state::MemoryState;
use provision::{Cancel, Files, Tools};
use provision::{Cause, Identity, NodeReport, Outcome, Report, Roster, Site, UnstartedNodes};
use std::time::SystemTime;
use tokio::time::Instant;

/// Returns nodes to Slurm whose start could not begin: their jobs need not wait for ResumeTimeout.
pub async fn return_nodes(
    bootstrap: &Bootstrap,
    nodes: &Hostlist,
    why: &Diagnostic,
    begun: Instant,
) {
    // No node has such a name, and Slurm is not asked for it.
    if nodes.node_names().is_err() {
        return;
    }
    match returned(bootstrap, nodes, why, begun).await {
        Ok(nodes) if nodes.is_empty() => {}
        Ok(nodes) => bootstrap.note(Level::Info, &format!("returned to Slurm: {nodes}")),
        Err(why) => {
            let text = format!("not returned to Slurm, which waits for them: {why}");
            bootstrap.note(Level::Error, &text);
        }
    }
}

async fn returned(
    bootstrap: &Bootstrap,
    nodes: &Hostlist,
    why: &Diagnostic,
    begun: Instant,
) -> Result<Hostlist, Diagnostic> {
    let slurm = slurm(bootstrap).await?;
    let settings = bootstrap.settings.as_ref().ok();
    let state = settings.map(|settings| bootstrap.state(settings, &slurm.config).state);
    let unstarted = UnstartedNodes {
        slurm: &slurm.controller,
        state: state.as_deref(),
        nodes,
        // By our mark reconcile knows that no administrator has said so, and returns the node to service.
        reason: plan::our_reason(&reason(bootstrap, why)),
        begun,
    };
    let deadline = begun + provision::before_timeout(&slurm.config, nodes);
    unstarted.return_to_slurm(deadline).await.map_err(Diagnostic::from)
}

/// Tells Slurm why nodes are not rebuilt: neither they nor their jobs need wait for ResumeTimeout.
pub async fn report_not_rebuilt(bootstrap: &Bootstrap, names: &[NodeName], why: &Diagnostic) {
    let warnings = match not_rebuilt(bootstrap, names, why).await {
        Ok(warnings) => warnings,
        Err(why) => vec![format!("Slurm could not be told why nodes are not rebuilt: {why}")],
    };
    for text in &warnings {
        bootstrap.note(Level::Error, text);
    }
}

/// What could not be told.
async fn not_rebuilt(
    bootstrap: &Bootstrap,
    names: &[NodeName],
    why: &Diagnostic,
) -> Result<Vec<String>, Diagnostic> {
    let slurm = slurm(bootstrap).await?;
    let (cloud, state, files) = (wiring::unreachable(why), MemoryState::new(), Files::default());
    let (site, roster) = (Site::new(Identity::by_name()), Roster::new(&slurm.config));
    let run = Run {
        tools: Tools {
            cloud: &cloud,
            slurm: &slurm.controller,
            state: &state,
            clock: &SystemTime::now,
            progress: &(),
            files: &files,
            run: "",
            cancel: Cancel::never(),
        },
        site: &site,
        conf: &roster,
    };
    let failed = NodeReport::new(Outcome::Failed).because(Cause::Refused, reason(bootstrap, why));
    let mut report = Report::new(Operation::Rebuild);
    report.nodes.extend(names.iter().map(|name| (name.clone(), failed.clone())));
    run::tell_not_rebuilt(&run, &mut report).await;
    Ok(report.warnings)
}

async fn slurm(bootstrap: &Bootstrap) -> Result<Slurm, Diagnostic> {
    wiring::slurm(&bootstrap.common, &bootstrap.paths, &bootstrap.environment).await
}

fn reason(bootstrap: &Bootstrap, why: &Diagnostic) -> String {
    let before = if bootstrap.settings.is_err() { "configuration: " } else { "" };
    format!("{before}{}", why.messages().first().map_or("", String::as_str))
}

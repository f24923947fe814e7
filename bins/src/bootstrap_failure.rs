//! What becomes of nodes that Slurm waits for when a program cannot start its work.

use crate::bootstrap::Bootstrap;
use crate::diagnostic::Diagnostic;
use crate::log::Level;
use crate::wiring::{self, Slurm};
use hostlist::{Hostlist, NodeName};
use provision::UnstartedNodes;
use provision::plan;
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
    let untold = match slurm(bootstrap).await {
        Ok(Slurm { controller, config, .. }) => {
            let reason = reason(bootstrap, why);
            provision::report_not_rebuilt(&controller, &config, names, &reason).await
        }
        Err(why) => vec![format!("Slurm could not be told why nodes are not rebuilt: {why}")],
    };
    for text in &untold {
        bootstrap.note(Level::Error, text);
    }
}

async fn slurm(bootstrap: &Bootstrap) -> Result<Slurm, Diagnostic> {
    wiring::slurm(&bootstrap.common, &bootstrap.paths, &bootstrap.environment).await
}

fn reason(bootstrap: &Bootstrap, why: &Diagnostic) -> String {
    let before = if bootstrap.settings.is_err() { "configuration: " } else { "" };
    format!("{before}{}", why.messages().first().map_or("", String::as_str))
}

//! Returns nodes to Slurm, or gives them a reason, when a program cannot start its work.

use crate::bootstrap::Bootstrap;
use crate::diagnostic::Diagnostic;
use crate::log::Level;
use crate::wiring::Slurm;
use hostlist::{Hostlist, NodeName};
use provision::UnstartedNodes;
use provision::plan;
use tokio::time::Instant;

/// Returns nodes to Slurm whose start could not begin, so that their jobs do not wait for ResumeTimeout.
pub async fn return_nodes(
    bootstrap: &Bootstrap,
    nodes: &Hostlist,
    why: &Diagnostic,
    begun: Instant,
) {
    // Slurm has no node with an invalid name.
    if nodes.node_names().is_err() {
        return;
    }
    match try_return(bootstrap, nodes, why, begun).await {
        Ok(nodes) if nodes.is_empty() => {}
        Ok(nodes) => bootstrap.note(Level::Info, &format!("returned to Slurm: {nodes}")),
        Err(why) => {
            let text = format!("not returned to Slurm, which waits for them: {why}");
            bootstrap.note(Level::Error, &text);
        }
    }
}

async fn try_return(
    bootstrap: &Bootstrap,
    nodes: &Hostlist,
    why: &Diagnostic,
    begun: Instant,
) -> Result<Hostlist, Diagnostic> {
    let slurm = bootstrap.slurm().await?;
    let settings = bootstrap.settings.as_ref().ok();
    let state = settings.map(|settings| bootstrap.state(settings, &slurm.config).state);
    let unstarted = UnstartedNodes {
        slurm: &slurm.controller,
        state: state.as_deref(),
        nodes,
        // The mark in the reason tells reconcile that no administrator set it, so that it returns the node to service.
        reason: plan::our_reason(&reason(bootstrap, why)),
        begun,
    };
    let deadline = begun + provision::before_timeout(&slurm.config, nodes);
    unstarted.return_to_slurm(deadline).await.map_err(Diagnostic::from)
}

/// Sets the reason in Slurm why nodes are not rebuilt, so that neither they nor their jobs wait for ResumeTimeout.
pub async fn report_not_rebuilt(bootstrap: &Bootstrap, names: &[NodeName], why: &Diagnostic) {
    let unreported = match bootstrap.slurm().await {
        Ok(Slurm { controller, config, .. }) => {
            let reason = reason(bootstrap, why);
            provision::report_not_rebuilt(&controller, &config, names, &reason).await
        }
        Err(why) => vec![format!("cannot report to Slurm why nodes are not rebuilt: {why}")],
    };
    for text in &unreported {
        bootstrap.note(Level::Error, text);
    }
}

fn reason(bootstrap: &Bootstrap, why: &Diagnostic) -> String {
    let prefix = if bootstrap.settings.is_err() { "configuration: " } else { "" };
    format!("{prefix}{}", why.messages().first().map_or("", String::as_str))
}

//! Which image each node has, and which it should have.

use super::submit::image;
use super::target_files;
use crate::args::nodes;
use crate::context::Context;
use crate::diagnostic::Diagnostic;
use crate::process::SOME_FAILED;
use crate::table;
use crate::wiring;
use clap::Args;
use cloud_core::ImageId;
use hostlist::{Hostlist, NodeName};
use provision::listing::ImageRow;
use provision::plan::{Rollout, Target};
use provision::run::{Observation, Run};
use provision::state::rollouts_under_way;
use provision::targets::Targets;
use serde_json::json;

/// Which image each node has, and which it should have.
#[derive(Args, Debug)]
pub(super) struct Status {
    /// The nodes [default: all that have a machine].
    #[arg(value_name = "HOSTLIST", value_parser = nodes)]
    nodes: Option<Hostlist>,

    /// Target image, by name or id [default: the one of each node's file, rollout in progress, features or the
    /// configuration].
    #[arg(long, value_name = "IMAGE")]
    image: Option<String>,
}

const HEAD: [&str; 5] = ["NODE", "IMAGE", "TARGET", "STATE", "SINCE"];

pub(super) async fn show(context: &Context<'_>, status: &Status) -> Result<u8, Diagnostic> {
    let given = status.nodes.as_ref().map(Hostlist::node_names).transpose()?;
    context
        .with_run(async |run: &Run<'_>| {
            let (mut targets, observation) =
                observe(context, run, (given.as_deref(), status)).await?;
            let world = observation.world(run);
            let unknown = context.unknown(given.as_deref().unwrap_or_default(), world);
            targets.known.retain(|target| !unknown.contains(&target.node));
            targets.failed.retain(|node, _| !unknown.contains(node));
            let rows: Vec<ImageRow> =
                targets.known.iter().map(|target| ImageRow::of(target, world)).collect();
            for (node, why) in &targets.failed {
                context.warn(&format!("{node}: {why}"));
            }
            print(context, &rows);
            let code = context.report_unobserved(&observation);
            Ok(if unknown.is_empty() { code } else { SOME_FAILED })
        })
        .await
}

fn print(context: &Context<'_>, rows: &[ImageRow]) {
    if context.json() {
        context.output.print(json!(rows));
        return;
    }
    let text = |value: &Option<String>| value.clone().unwrap_or_else(|| "-".to_owned());
    let cells = |row: &ImageRow| {
        let ImageRow { node, image, target, state, since } = row;
        [node.clone(), text(image), text(target), (*state).to_owned(), text(since)]
    };
    for line in table::lines(HEAD, &rows.iter().map(cells).collect::<Vec<_>>()) {
        context.output.print(line);
    }
}

/// The target images, from the same sources as for a rollout, and the current ones.
async fn observe(
    context: &Context<'_>,
    run: &Run<'_>,
    (given, status): (Option<&[NodeName]>, &Status),
) -> Result<(Targets, Observation), Diagnostic> {
    let names = given.map_or_else(|| run.conf.nodes(), <[NodeName]>::to_vec);
    let (files, rules) = (target_files(context), wiring::image_rules(context.settings));
    let mut targets = if let Some(name) = &status.image {
        files.targets_of(&names, &image(name, rules, run).await?)
    } else {
        let rollouts = rollouts_under_way(&context.state_path);
        files.targets(run, rules, &names, &rollouts).await
    };
    let mut request = Rollout::new(ImageId::new(""));
    let machines =
        targets.known.iter().filter_map(|it| Some((it.node.clone(), it.named()?.clone())));
    request.named = machines.collect();
    let observation = run.observe_rollout(&request).await;
    if given.is_none() {
        let fleet = &observation.fleet;
        // The cloud still lists terminated machines for a while.
        let is_live = |node: &NodeName| fleet.of(node).iter().any(|it| !it.state.is_leaving());
        let has = |node: &NodeName| is_live(node) || fleet.named(node).is_some();
        targets.known.retain(|target| has(&target.node));
        targets.failed.retain(|node, _| has(node));
        // Machines of nodes that are no longer in slurm.conf.
        let unknown = fleet.nodes().into_iter();
        let unknown = unknown.filter(|node| run.conf.get(node).is_none() && is_live(node));
        targets.known.extend(unknown.map(Target::new));
    }
    Ok((targets, observation))
}

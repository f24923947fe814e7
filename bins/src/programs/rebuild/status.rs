//! Which image each node has, and which it should have.

use super::submit::image;
use super::target_files;
use crate::args::{Common, nodes};
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
    /// The nodes; all that have a machine if none is given.
    #[arg(value_name = "HOSTLIST", value_parser = nodes)]
    nodes: Option<Hostlist>,

    /// The image, by name or id; if none is given each node's own: by its file, a rollout that is under way, its features or the configuration.
    #[arg(long, value_name = "IMAGE")]
    image: Option<String>,
}

const HEAD: [&str; 5] = ["NODE", "IMAGE", "TARGET", "STATE", "SINCE"];

pub(super) async fn show(
    context: &Context,
    common: &Common,
    status: &Status,
) -> Result<u8, Diagnostic> {
    let given = status.nodes.as_ref().map(Hostlist::node_names).transpose()?;
    context
        .with_run(common, async |run: &Run<'_>| {
            let (mut targets, look) = seen(context, run, (given.as_deref(), status)).await?;
            let world = look.world(run);
            let unknown = context.unknown(given.as_deref().unwrap_or_default(), world);
            targets.known.retain(|target| !unknown.contains(&target.node));
            targets.failed.retain(|node, _| !unknown.contains(node));
            let rows: Vec<ImageRow> =
                targets.known.iter().map(|target| ImageRow::of(target, world)).collect();
            for (node, why) in &targets.failed {
                context.warn(&format!("{node}: {why}"));
            }
            print(context, common, &rows);
            let code = context.blind(&look);
            Ok(if unknown.is_empty() { code } else { SOME_FAILED })
        })
        .await
}

fn print(context: &Context, common: &Common, rows: &[ImageRow]) {
    if common.json {
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

/// What the nodes are to have, by the same files and words as a rollout goes by, and what they have.
async fn seen(
    context: &Context,
    run: &Run<'_>,
    (given, status): (Option<&[NodeName]>, &Status),
) -> Result<(Targets, Observation), Diagnostic> {
    let names = given.map_or_else(|| run.conf.nodes(), <[NodeName]>::to_vec);
    let (files, rules) = (target_files(context), wiring::image_rules(&context.settings));
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
    let look = run.observe_rollout(&request).await;
    if given.is_none() {
        let fleet = &look.fleet;
        // The cloud lists machines for a while after their end.
        let is_live = |node: &NodeName| fleet.of(node).iter().any(|it| !it.state.is_leaving());
        let has = |node: &NodeName| is_live(node) || fleet.named(node).is_some();
        targets.known.retain(|target| has(&target.node));
        targets.failed.retain(|node, _| has(node));
        // What slurm.conf has lost is still there.
        let lost = fleet.nodes().into_iter();
        let lost = lost.filter(|node| run.conf.get(node).is_none() && is_live(node));
        targets.known.extend(lost.map(Target::new));
    }
    Ok((targets, look))
}

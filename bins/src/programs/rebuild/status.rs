//! Which image each node has, and which it should have.

use super::target;
use crate::args::{Common, nodes};
use crate::context::Context;
use crate::table;
use crate::trouble::Trouble;
use clap::Args;
use hostlist::{Hostlist, NodeName};
use provision::World;
use provision::plan::Target;
use provision::run::Run;
use serde_json::json;

/// Which image each node has, and which it should have.
#[derive(Args, Debug)]
pub(super) struct Status {
    /// The nodes; all that have a machine if none is given.
    #[arg(value_name = "HOSTLIST", value_parser = nodes)]
    nodes: Option<Hostlist>,
}

const HEAD: [&str; 5] = ["NODE", "IMAGE", "TARGET", "STATE", "SINCE"];

pub(super) async fn show(
    context: &Context,
    common: &Common,
    status: &Status,
) -> Result<u8, Trouble> {
    let given = status.nodes.as_ref().map(Hostlist::node_names).transpose();
    let given = given.map_err(|error| Trouble::from_error(&error))?;
    context
        .with_run(common, async |run: &Run<'_>| {
            let look = run.look().await;
            let names = given.unwrap_or_else(|| look.fleet.nodes());
            let targets = target::targets(context, run, &names).await;
            let world = look.world(run);
            let rows: Vec<[String; 5]> =
                targets.known.iter().map(|target| row(target, world)).collect();
            for (node, why) in &targets.failed {
                context.warn(&format!("{node}: {why}"));
            }
            if common.json {
                let object = |[node, image, target, state, since]: &[String; 5]| {
                    json!({"node": node, "image": image, "target": target, "state": state, "since": since})
                };
                context.output.print(json!(rows.iter().map(object).collect::<Vec<_>>()));
            } else {
                for line in table::lines(HEAD, &rows) {
                    context.output.print(line);
                }
            }
            Ok(context.blind(&look))
        })
        .await
}

fn row(target: &Target, world: World<'_>) -> [String; 5] {
    let node: &NodeName = &target.node;
    let instance = world.fleet.of(node).iter().find(|instance| instance.state.is_live());
    let image = instance.and_then(|instance| instance.image.clone());
    let wanted = target.image(world).ok();
    let slurm = world.node(node);
    let state = match (&image, &wanted) {
        (Some(has), Some(wants)) if has == wants => "done",
        (Some(_), Some(_)) if slurm.is_some_and(|node| node.state.is_reboot_issued()) => {
            "rebuilding"
        }
        (Some(_), Some(_)) => "waiting",
        (None, _) => "no machine",
        (_, None) => "no target",
    };
    let since = slurm.and_then(|node| node.reason.as_ref()?.at);
    let since = since.map_or_else(|| "-".to_owned(), |at| provision::Utc(at).to_string());
    let text = |id: Option<String>| id.unwrap_or_else(|| "-".to_owned());
    [
        node.to_string(),
        text(image.map(|image| image.to_string())),
        text(wanted.map(|image| image.to_string())),
        state.to_owned(),
        since,
    ]
}

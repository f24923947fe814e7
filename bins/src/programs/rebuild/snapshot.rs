//! An image of a running node.

use crate::args::{Common, nodes};
use crate::context::Context;
use crate::diagnostic::Diagnostic;
use crate::process::{SOME_FAILED, SUCCESS};
use clap::Args;
use cloud_core::{ImageId, ImageName, Instance};
use hostlist::{Hostlist, NodeName};
use provision::images;
use provision::plan;
use provision::run::Run;
use serde_json::json;

/// Make an image of a running node.
///
/// OCI shuts the machine down for it, for several minutes, and then starts it again. So a node with a job is refused;
/// drain it first, so that none begins there meanwhile: scontrol update nodename=NODE state=drain reason=image.
/// Keep Slurm from suspending an elastic one meanwhile, as it does with idle nodes, drained or not.
#[derive(Args, Debug)]
pub(super) struct Snapshot {
    /// The node.
    #[arg(value_name = "NODE", value_parser = nodes)]
    node: Hostlist,

    /// The image's name.
    #[arg(long, value_name = "NAME")]
    name: String,

    /// Also if a job is running there, or slurmctld does not say whether one is.
    #[arg(long)]
    force: bool,
}

pub(super) async fn make(
    context: &Context,
    common: &Common,
    snapshot: &Snapshot,
) -> Result<u8, Diagnostic> {
    let names = snapshot.node.node_names()?;
    let [node] = &names[..] else {
        return Err(Diagnostic::new("an image is made of one node"));
    };
    context
        .with_run(common, async |run: &Run<'_>| {
            let look = run.observe().await;
            if !look.fleet.is_complete() && look.fleet.standing(node).here.is_empty() {
                return Ok(context.blind(&look));
            }
            let source = plan::snapshot_source(node, snapshot.force, look.world(run));
            let instance = source.map_err(Diagnostic::new)?;
            unused(run, &snapshot.name).await?;
            if common.dry_run {
                tell(context, common, (snapshot, node, instance), None);
                return Ok(SUCCESS);
            }
            match run.tools.cloud.snapshot(&instance.id, &ImageName::new(&snapshot.name)).await {
                Ok(image) => {
                    tell(context, common, (snapshot, node, instance), Some(&image));
                    Ok(SUCCESS)
                }
                Err(error) => {
                    context.output.complain(crate::output::chain(&error));
                    Ok(SOME_FAILED)
                }
            }
        })
        .await
}

/// Refuses a name that an image has: of two, neither could be called by it.
async fn unused(run: &Run<'_>, name: &str) -> Result<(), Diagnostic> {
    let ids = images::named(run.tools.cloud, name).await?;
    if ids.is_empty() {
        return Ok(());
    }
    let ids: Vec<&str> = ids.iter().map(ImageId::as_str).collect();
    let ids = ids.join(", ");
    Err(Diagnostic::new(format!("there is an image {name} already ({ids}); choose another name")))
}

/// Prints the image that was made, or would be.
fn tell(
    context: &Context,
    common: &Common,
    (snapshot, node, instance): (&Snapshot, &NodeName, &Instance),
    image: Option<&ImageId>,
) {
    let name = &snapshot.name;
    let (output, id) = (context.output, instance.id.as_str());
    match image {
        _ if common.json => {
            let image = image.map(ImageId::as_str);
            output.print(
                json!({"node": node.as_str(), "instance": id, "name": name, "image": image}),
            );
        }
        Some(image) => output.print(image),
        None => output.print(format_args!("image {name} of {node} ({id})")),
    }
}

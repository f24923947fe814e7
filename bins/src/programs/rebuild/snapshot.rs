//! `rebuild image`: makes an image of a running node.

use crate::args::nodes;
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
/// OCI shuts the machine down for several minutes, so a node with a job is refused. Drain the node first, so that no job
/// starts there: scontrol update nodename=NODE state=drain reason=image. Slurm suspends idle elastic nodes even if they are
/// drained; prevent that until the image is made.
#[derive(Args, Debug)]
pub(super) struct Snapshot {
    /// The node.
    #[arg(value_name = "NODE", value_parser = nodes)]
    node: Hostlist,

    /// The name of the image.
    #[arg(long, value_name = "NAME")]
    name: String,

    /// Make the image even if a job may be running on the node.
    #[arg(long)]
    force: bool,
}

pub(super) async fn make(context: &Context<'_>, snapshot: &Snapshot) -> Result<u8, Diagnostic> {
    let names = snapshot.node.node_names()?;
    let [node] = &names[..] else {
        return Err(Diagnostic::new("name exactly one node"));
    };
    context
        .with_run(async |run: &Run<'_>| {
            let observation = run.observe().await;
            if !observation.fleet.is_complete() && observation.fleet.standing(node).here.is_empty()
            {
                return Ok(context.report_unobserved(&observation));
            }
            let source = plan::snapshot_source(node, snapshot.force, observation.world(run));
            let instance = source.map_err(Diagnostic::new)?;
            check_unused(run, &snapshot.name).await?;
            if context.dry_run() {
                print(context, (snapshot, node, instance), None);
                return Ok(SUCCESS);
            }
            match run.tools.cloud.snapshot(&instance.id, &ImageName::new(&snapshot.name)).await {
                Ok(image) => {
                    print(context, (snapshot, node, instance), Some(&image));
                    Ok(SUCCESS)
                }
                Err(error) => {
                    context.output.print_error(crate::output::chain(&error));
                    Ok(SOME_FAILED)
                }
            }
        })
        .await
}

/// Returns an error if an image has this name: neither of two could be selected by it.
async fn check_unused(run: &Run<'_>, name: &str) -> Result<(), Diagnostic> {
    let ids = images::named(run.tools.cloud, name).await?;
    if ids.is_empty() {
        return Ok(());
    }
    let ids: Vec<&str> = ids.iter().map(ImageId::as_str).collect();
    let ids = ids.join(", ");
    Err(Diagnostic::new(format!("an image {name} already exists ({ids}); choose another name")))
}

/// Prints the image that was or would be made.
fn print(
    context: &Context<'_>,
    (snapshot, node, instance): (&Snapshot, &NodeName, &Instance),
    image: Option<&ImageId>,
) {
    let name = &snapshot.name;
    let (output, id) = (context.output, instance.id.as_str());
    match image {
        _ if context.json() => {
            let image = image.map(ImageId::as_str);
            output.print(
                json!({"node": node.as_str(), "instance": id, "name": name, "image": image}),
            );
        }
        Some(image) => output.print(image),
        None => output.print(format_args!("image {name} of {node} ({id})")),
    }
}

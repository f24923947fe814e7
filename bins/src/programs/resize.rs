//! `resize`: grows or shrinks the cluster.

use super::finish::{Change, Inputs, Sources, open_locked};
use crate::args::{Common, time};
use crate::bootstrap::Bootstrap;
use crate::context::Context;
use crate::diagnostic::Diagnostic;
use crate::wiring::Purpose;
use clap::Parser;
use provision::Roster;
use provision::conf::{MarkedFile, is_unapplied};
use provision::plan::{Finish, Gaps, GroupSize, Resize};
use provision::run::RunRequest;
use slurmconf::NodeDef;
use slurmctl::Controller as _;
use std::time::Duration;

/// Grow or shrink the cluster: as limits.yaml says, or to as many persistent nodes as --to says.
///
/// New persistent nodes are launched before they are added to slurm.conf, and existing ones without a machine get one.
/// Nodes to be removed are drained, highest number first, and leave slurm.conf only when their machines are confirmed gone.
/// If jobs do not end in time, the nodes are returned to service and nothing is deleted.
#[derive(Debug, Parser)]
#[command(name = "resize", version, after_help = EXAMPLES)]
pub struct Arguments {
    #[command(flatten)]
    pub(crate) common: Common,

    /// Number of persistent nodes to have; without it, limits.yaml decides.
    #[arg(long, value_name = "N", conflicts_with_all = ["limits", "shapes", "style", "default_partition"])]
    to: Option<usize>,

    /// Partition to resize; may be omitted if only one has persistent nodes.
    #[arg(long, short, value_name = "NAME", requires = "to")]
    partition: Option<String>,

    /// Number nodes without gaps, even if that removes one and adds another.
    #[arg(long, requires = "to")]
    fill_gaps: bool,

    #[command(flatten)]
    sources: Sources,

    /// Do not try the new file on a throw-away slurmctld.
    #[arg(long)]
    no_prove: bool,

    /// How long to wait for jobs to end, in seconds or such as 2h.
    #[arg(long, value_name = "TIME", default_value = "24h", value_parser = time(Duration::ZERO, MOST_PATIENCE))]
    patience: Duration,
}

/// A year, which leaves room for arithmetic.
const MOST_PATIENCE: Duration = Duration::from_hours(8_760);

const EXAMPLES: &str = "\
Examples:
  resize --dry-run                   show what it takes to apply an edited limits.yaml
  resize                             apply it: drain and remove nodes, start new persistent ones
  resize --to 10 --partition compute   ten persistent nodes, whatever limits.yaml says

Exit code: 0 success, 1 some nodes failed (each is named), 2 wrong usage or configuration (nothing done).";

/// Grows or shrinks the cluster.
pub async fn run(arguments: Arguments) -> u8 {
    let bootstrap = Bootstrap::open("resize", &arguments.common);
    begin(&bootstrap, &arguments).await.unwrap_or_else(|why| bootstrap.fail(&why))
}

async fn begin(bootstrap: &Bootstrap, arguments: &Arguments) -> Result<u8, Diagnostic> {
    let (mut context, _lock) = open_locked(bootstrap, Purpose::Launch).await?;
    match arguments.to {
        Some(size) => {
            images(&mut context, &[]).await?;
            to_size(arguments, context, size).await
        }
        None => to_limits(arguments, context).await,
    }
}

/// Finds the images of these nodes and of those in slurm.conf.
async fn images(context: &mut Context<'_>, new: &[NodeDef]) -> Result<(), Diagnostic> {
    let mut config = context.slurm.config.clone();
    config.nodes.extend_from_slice(new);
    context.find_images_of(&config).await?.map_or(Ok(()), Err)
}

/// Resizes the cluster to the limits.
async fn to_limits(arguments: &Arguments, mut context: Context<'_>) -> Result<u8, Diagnostic> {
    let inputs = Inputs::read(&arguments.sources, &context).await?.launchable(&context)?;
    images(&mut context, &inputs.cluster.nodes).await?;
    let request = Finish {
        document: &inputs.marked.document,
        cluster: &inputs.cluster,
        version: context.slurm.controller.version(),
        force: false,
        reload: true,
        unapplied: is_unapplied(&*context.state, &inputs.marked),
        patience: arguments.patience,
    };
    change(arguments, context, &inputs.marked, RunRequest::ResizeTo(&request)).await
}

/// Resizes one group of persistent nodes.
async fn to_size(
    arguments: &Arguments,
    context: Context<'_>,
    size: usize,
) -> Result<u8, Diagnostic> {
    let marked = context.slurm.marked_file()?;
    let roster = Roster::new(&context.slurm.config);
    let group =
        GroupSize::only(&roster, arguments.partition.as_deref()).map_err(Diagnostic::new)?;
    let group = GroupSize { size, ..group };
    let request = Resize {
        groups: &[group],
        gaps: if arguments.fill_gaps { Gaps::Fill } else { Gaps::Keep },
        document: &marked.document,
        version: context.slurm.controller.version(),
        patience: arguments.patience,
    };
    change(arguments, context, &marked, RunRequest::Resize(&request)).await
}

async fn change(
    arguments: &Arguments,
    context: Context<'_>,
    marked: &MarkedFile,
    request: RunRequest<'_>,
) -> Result<u8, Diagnostic> {
    let change = Change { marked, request, limits: None, prove: !arguments.no_prove };
    Box::pin(change.make(context)).await
}

//! `resize`: more or fewer persistent nodes.

use super::finish::{Change, How, Inputs, Sources, marked};
use crate::args::Common;
use crate::context::Context;
use crate::process::WELL;
use crate::trouble::Trouble;
use crate::wiring::{self, Purpose};
use clap::Parser;
use provision::plan::{self, Finish, Gaps, GroupSize, Resize};
use provision::run::{self, Run};
use slurmctl::Controller as _;
use std::time::Duration;

/// Make nodes more or fewer: as limits.yaml says, or as many persistent ones as --to says.
///
/// New nodes that are always there are launched before slurm.conf has them. Nodes that go are drained first, highest number
/// first, and leave slurm.conf only when their machines are confirmed gone. If jobs do not end in time, the nodes take jobs
/// again and nothing is deleted.
#[derive(Debug, Parser)]
#[command(name = "resize", version, after_help = EXAMPLES)]
pub struct Arguments {
    #[command(flatten)]
    pub(crate) common: Common,

    /// How many persistent nodes there are to be; without it, limits.yaml says what there is to be.
    #[arg(long, value_name = "N", conflicts_with_all = ["limits", "shapes", "style", "default_partition", "no_prove"])]
    to: Option<usize>,

    /// Of this partition; may be left out if only one has persistent nodes.
    #[arg(long, short, value_name = "NAME", requires = "to")]
    partition: Option<String>,

    /// Number nodes without gaps, even if that means to remove one and add another.
    #[arg(long, requires = "to")]
    fill_gaps: bool,

    #[command(flatten)]
    sources: Sources,

    /// Do not try the file on a throw-away slurmctld.
    #[arg(long)]
    no_prove: bool,

    /// How long to wait for jobs to end, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 86_400, value_parser = clap::value_parser!(u64).range(..=MOST_PATIENCE))]
    patience: u64,
}

/// A year: a time to which more can be added.
const MOST_PATIENCE: u64 = 31_536_000;

const EXAMPLES: &str = "\
Examples:
  resize --dry-run                   what it takes to get to an edited limits.yaml
  resize                             do it: what goes is drained first, what becomes persistent is started
  resize --to 10 --partition compute   ten persistent nodes, whatever limits.yaml says

Exit code: 0 all well, 1 some nodes failed (each is named), 2 wrong usage or configuration (nothing done).";

/// Runs it.
pub async fn run(arguments: Arguments) -> u8 {
    match begin(&arguments).await {
        Ok(code) => code,
        Err(trouble) => super::wrong("resize", &arguments.common, &trouble),
    }
}

async fn begin(arguments: &Arguments) -> Result<u8, Trouble> {
    let mut context = Context::open("resize", &arguments.common, Purpose::Launch).await?;
    wiring::images(&mut context.site, &context.slurm.config, &*context.cloud).await?;
    match arguments.to {
        Some(size) => to_size(arguments, context, size).await,
        None => to_limits(arguments, context).await,
    }
}

/// Brings the cluster to what the limits say.
async fn to_limits(arguments: &Arguments, context: Context) -> Result<u8, Trouble> {
    let inputs = Inputs::read(&arguments.sources, &context).await?;
    let request = Finish {
        document: &inputs.document,
        cluster: &inputs.cluster,
        version: context.slurm.controller.version(),
        force: false,
        tell: true,
        patience: Duration::from_secs(arguments.patience),
    };
    let change = Change {
        common: &arguments.common,
        inputs: &inputs,
        request,
        prove: !arguments.no_prove,
        how: How::Resize,
    };
    change.make(context).await
}

/// Brings one group of persistent nodes to a size.
async fn to_size(arguments: &Arguments, mut context: Context, size: usize) -> Result<u8, Trouble> {
    let common = &arguments.common;
    context.site.policies.deadline = wiring::unhurried(&context.settings);
    let (path, document) = marked(&context.slurm.path)?;
    context.files.slurm_conf = Some(path);
    context
        .with_run(common, async |run: &Run<'_>| {
            let group = GroupSize { size, ..group(arguments, run)? };
            let request = Resize {
                groups: &[group],
                gaps: if arguments.fill_gaps { Gaps::Fill } else { Gaps::Keep },
                document: &document,
                version: context.slurm.controller.version(),
                patience: Duration::from_secs(arguments.patience),
            };
            let look = run.look().await;
            let plan = plan::resize(&request, look.world(run));
            if common.dry_run {
                return Ok(context.preview(common, &plan, &look));
            }
            if !plan.is_idle() && !common.json {
                context.output.say(plan.to_string().trim_end());
            }
            context.expect(&plan);
            let report = run::resize(run, &request).await;
            if report.nodes.is_empty() && report.is_success() {
                context.output.say("nothing to change");
                return Ok(WELL);
            }
            Ok(context.tell(common, &report))
        })
        .await
}

/// The group of persistent nodes that is meant.
fn group(arguments: &Arguments, run: &Run<'_>) -> Result<GroupSize, Trouble> {
    let groups = GroupSize::persistent(run.conf, arguments.partition.as_deref());
    match &groups[..] {
        [one] => Ok(one.clone()),
        [] => Err(Trouble::new(match &arguments.partition {
            Some(partition) => format!("partition {partition} has no persistent nodes"),
            None => "slurm.conf has no persistent nodes".to_owned(),
        })),
        several => {
            let stems: Vec<&str> = several.iter().map(|group| group.stem.as_str()).collect();
            let stems = stems.join(", ");
            Err(Trouble::new(format!(
                "which nodes? {stems}; name a partition that has one kind only"
            )))
        }
    }
}

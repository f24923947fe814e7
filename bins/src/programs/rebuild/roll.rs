//! A new image for many nodes, a few at a time.

use super::target;
use crate::args::{Common, nodes};
use crate::context::Context;
use crate::process::SOME_FAILED;
use crate::trouble::Trouble;
use clap::Args;
use hostlist::Hostlist;
use provision::plan::{self, ImageWish, Rollout, RolloutHow, RolloutProgress};
use provision::run::{self, Run};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// Have Slurm drain and rebuild nodes, a few at a time.
///
/// Nodes that have the image already are skipped, so that it can be run again. With --once it begins one batch and
/// returns; without, it goes on until all nodes have the image.
#[derive(Args, Debug)]
pub(super) struct Submit {
    /// The image, by name or id; the configuration's if none is given.
    #[arg(long, value_name = "IMAGE")]
    image: Option<String>,

    /// Only nodes of these partitions.
    #[arg(long, short, value_name = "NAME", value_delimiter = ',')]
    partition: Vec<String>,

    /// How many nodes at a time.
    #[arg(long, value_name = "N", default_value_t = 1)]
    batch: usize,

    /// How long to wait after a batch was begun, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 0)]
    delay: u64,

    /// How many nodes may be out of service, whoever took them out.
    #[arg(long, value_name = "N")]
    max_unavailable: Option<usize>,

    /// How many nodes have to come up on the image before the rest is touched.
    #[arg(long, value_name = "N", default_value_t = 0)]
    canary: usize,

    /// How many failures end it.
    #[arg(long, value_name = "N", default_value_t = 1)]
    stop_after: usize,

    /// Submit a job for each node in this partition instead: for nodes that are not elastic.
    #[arg(long, value_name = "PARTITION", num_args = 0..=1, default_missing_value = "rebuild")]
    jobs: Option<String>,

    /// Begin one batch and return.
    #[arg(long)]
    once: bool,

    /// When to give up, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 86_400)]
    deadline: u64,

    /// The nodes; all if none is given.
    #[arg(value_name = "HOSTLIST", value_parser = nodes)]
    nodes: Option<Hostlist>,
}

/// Between two looks at a rollout.
const PAUSE: Duration = Duration::from_secs(5);

pub(super) async fn submit(
    context: &Context,
    common: &Common,
    submit: &Submit,
) -> Result<u8, Trouble> {
    context
        .with_run(common, async |run: &Run<'_>| {
            let mut request = request(submit, run).await?;
            let deadline = Instant::now() + Duration::from_secs(submit.deadline);
            if common.dry_run {
                let look = run.look().await;
                let plan = plan::rollout(&request, look.world(run)).map_err(|why| refused(&why))?;
                return Ok(context.show(common, &plan));
            }
            let mut before = None;
            loop {
                let report = run::rollout(run, &request).await.map_err(|why| refused(&why))?;
                let look = run.look().await;
                let progress = plan::rollout_progress(&request, look.world(run))
                    .map_err(|why| refused(&why))?;
                if before.replace(progress) != Some(progress) {
                    context.output.say(shown(progress));
                    request.last = Some(look.now);
                }
                let over = progress.is_over() || submit.once || submit.jobs.is_some();
                if over || Instant::now() >= deadline || run.tools.cancel.is_cancelled() {
                    let code = context.tell(common, &report);
                    return Ok(if progress.failed > 0 { SOME_FAILED } else { code });
                }
                sleep(PAUSE).await;
            }
        })
        .await
}

fn shown(progress: RolloutProgress) -> String {
    let RolloutProgress { done, under_way, failed, left, apart, halted, .. } = progress;
    let end = if halted { "; stopped, as too many failed" } else { "" };
    format!(
        "{done} done, {under_way} under way, {left} left, {failed} failed, {apart} not touched{end}"
    )
}

fn refused(why: &plan::Refusal) -> Trouble {
    Trouble::new(why.to_string())
}

async fn request(submit: &Submit, run: &Run<'_>) -> Result<Rollout, Trouble> {
    let image = match &submit.image {
        Some(name) => match target::find(run.tools.cloud, name).await? {
            ImageWish::Known(image) => image,
            ImageWish::Unknown(name) => {
                return Err(Trouble::new(format!("the cloud has no image {name}, or several")));
            }
        },
        None => run.site.image.clone().ok_or_else(|| {
            Trouble::new("no image: name one with --image, or in the configuration as image_id")
        })?,
    };
    let named = submit.nodes.as_ref().map(Hostlist::node_names).transpose();
    let mut request = Rollout::new(image);
    request.nodes = named.map_err(|error| Trouble::from_error(&error))?.unwrap_or_default();
    request.partitions.clone_from(&submit.partition);
    request.batch = submit.batch.max(1);
    request.delay = Duration::from_secs(submit.delay);
    request.max_unavailable = submit.max_unavailable;
    request.canary = submit.canary;
    request.stop_after = Some(submit.stop_after.max(1));
    request.how = submit.jobs.clone().map_or(RolloutHow::Reboot, RolloutHow::Jobs);
    Ok(request)
}

//! A new image for many nodes, a few at a time.

use super::memory::Memory;
use super::target;
use crate::args::{Common, nodes};
use crate::context::Context;
use crate::process::SOME_FAILED;
use crate::trouble::Trouble;
use clap::Args;
use hostlist::{Hostlist, NodeName};
use provision::plan::{self, ImageWish, Rollout, RolloutHow, RolloutProgress};
use provision::run::{self, Run};
use serde_json::json;
use slurmconf::NodeDef;
use std::num::NonZeroUsize;
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
    #[arg(long, value_name = "N", default_value = "1")]
    batch: NonZeroUsize,

    /// How long to wait after a batch was begun, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 0)]
    delay: u64,

    /// How many nodes may be out of service, whoever took them out.
    #[arg(long, value_name = "N")]
    max_unavailable: Option<NonZeroUsize>,

    /// How many nodes have to come up on the image before the rest is touched.
    #[arg(long, value_name = "N", default_value_t = 0)]
    canary: usize,

    /// How many failures end it.
    #[arg(long, value_name = "N", default_value = "1")]
    stop_after: NonZeroUsize,

    /// Submit a job for each node in this partition instead: for nodes that are not elastic.
    #[arg(long, value_name = "PARTITION", num_args = 0..=1, default_missing_value = "rebuild")]
    jobs: Option<String>,

    /// Begin one batch and return.
    #[arg(long)]
    once: bool,

    /// Try nodes again that an earlier call for the same image has tried.
    #[arg(long)]
    anew: bool,

    /// When to give up, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 86_400)]
    deadline: u64,

    /// The nodes; all if none is given.
    #[arg(value_name = "HOSTLIST", value_parser = nodes)]
    nodes: Option<Hostlist>,
}

/// Between two looks at a rollout.
const PAUSE: Duration = Duration::from_secs(5);

/// How many signs wide progress is shown.
const BAR: usize = 20;

pub(super) async fn submit(
    context: &Context,
    common: &Common,
    submit: &Submit,
) -> Result<u8, Trouble> {
    context
        .with_run(common, async |run: &Run<'_>| {
            let mut request = request(submit, run).await?;
            let memory = Memory::of(&context.state_path);
            if !submit.anew {
                memory.recall(&mut request);
            } else if !common.dry_run {
                memory.forget().map_err(Trouble::new)?;
            }
            if common.dry_run {
                let look = run.look().await;
                let plan = plan::rollout(&request, look.world(run)).map_err(|why| refused(&why))?;
                return Ok(context.show(common, &plan));
            }
            drive(Drive { context, common, submit, memory }, run, &mut request).await
        })
        .await
}

/// What drives a rollout.
struct Drive<'a> {
    context: &'a Context,
    common: &'a Common,
    submit: &'a Submit,
    memory: Memory,
}

async fn drive(drive: Drive<'_>, run: &Run<'_>, request: &mut Rollout) -> Result<u8, Trouble> {
    let Drive { context, common, submit, memory } = drive;
    // A time that cannot be reckoned never comes.
    let deadline = Instant::now().checked_add(Duration::from_secs(submit.deadline));
    let (mut before, mut was_blind) = (None, false);
    loop {
        let report = run::rollout(run, request).await.map_err(|why| refused(&why))?;
        if let Err(why) = memory.keep(request) {
            context.warn(&format!("the next call will not know what this one has begun: {why}"));
        }
        let look = run.look().await;
        let blind = is_blind(look.slurm.is_some(), look.fleet.is_complete());
        let progress =
            plan::rollout_progress(request, look.world(run)).map_err(|why| refused(&why))?;
        if blind && !was_blind {
            context.blind(&look);
        } else if !blind && before.replace(progress) != Some(progress) {
            tell(context, common, progress);
        }
        was_blind = blind;
        let over = is_over(progress, blind);
        if over && let Err(why) = memory.forget() {
            context.warn(&why);
        }
        let leave = over || submit.once || submit.jobs.is_some();
        let late = deadline.is_some_and(|deadline| Instant::now() >= deadline);
        if leave || late || run.tools.cancel.is_cancelled() {
            let code = context.tell(common, &report);
            return Ok(if progress.failed > 0 || blind || !leave { SOME_FAILED } else { code });
        }
        for failure in &report.failures {
            context.warn(failure);
        }
        let mut cancel = run.tools.cancel.clone();
        tokio::select! {
            () = cancel.cancelled() => {}
            () = sleep(PAUSE) => {}
        }
    }
}

/// True if a look does not show how the nodes stand.
fn is_blind(slurm_answered: bool, listing_complete: bool) -> bool {
    !(slurm_answered && listing_complete)
}

/// True if nothing more will happen; a look that shows no node shows no end either.
fn is_over(progress: RolloutProgress, blind: bool) -> bool {
    !blind && progress.is_over()
}

/// A line for each change, as JSON if asked for.
fn tell(context: &Context, common: &Common, progress: RolloutProgress) {
    let RolloutProgress { done, under_way, failed, left, apart, halted, .. } = progress;
    if common.json {
        context.output.print(json!({
            "done": done, "under_way": under_way, "left": left, "failed": failed, "apart": apart, "halted": halted,
        }));
        return;
    }
    let bar = bar(done, done + under_way + failed + left);
    let end = if halted { "; stopped, as too many failed" } else { "" };
    context.output.say(format_args!(
        "{bar} {done} done, {under_way} under way, {left} left, {failed} failed, {apart} not touched{end}"
    ));
}

/// How far it is, at one look.
fn bar(done: usize, all: usize) -> String {
    let full = (done * BAR).checked_div(all).unwrap_or(BAR).min(BAR);
    format!("[{}{}]", "#".repeat(full), ".".repeat(BAR - full))
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
    request.batch = submit.batch.get();
    request.delay = Duration::from_secs(submit.delay);
    request.max_unavailable = submit.max_unavailable.map(NonZeroUsize::get);
    request.canary = submit.canary;
    request.stop_after = Some(submit.stop_after.get());
    elastic(submit, &request, run)?;
    request.how = submit.jobs.clone().map_or(RolloutHow::Reboot, RolloutHow::Jobs);
    Ok(request)
}

/// Refuses jobs for nodes on which they do nothing.
fn elastic(submit: &Submit, request: &Rollout, run: &Run<'_>) -> Result<(), Trouble> {
    let version = run.tools.slurm.version();
    if submit.jobs.is_none() {
        return Ok(());
    }
    let partition = |name: &String| run.conf.partition(name).unwrap_or_default().node_names().ok();
    let members = request.partitions.iter().filter_map(partition).flatten();
    let mut nodes: Vec<NodeName> = request.nodes.iter().cloned().chain(members).collect();
    if nodes.is_empty() {
        nodes = run.conf.nodes();
    }
    let cloud = |node: &NodeName| run.conf.get(node).is_some_and(NodeDef::is_cloud);
    let elastic: Hostlist = nodes.iter().filter(|node| cloud(node)).collect();
    if elastic.is_empty() {
        return Ok(());
    }
    Err(Trouble::new(format!(
        "--jobs is for nodes that are not elastic, and these are State=CLOUD: {elastic}; Slurm {version} calls no \
         RebootProgram for a job with --reboot there: leave --jobs out, or name other nodes"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_without_slurmctld_or_a_listing_is_not_the_end_of_a_rollout() {
        // All that a look sees without slurmctld: nodes that are not touched.
        let nothing = RolloutProgress { apart: 4, ..RolloutProgress::default() };
        assert!(nothing.is_over());
        for (slurm, listing) in [(false, true), (true, false), (false, false)] {
            assert!(!is_over(nothing, is_blind(slurm, listing)), "{slurm} {listing}");
        }
        assert!(is_over(nothing, is_blind(true, true)));
        let left = RolloutProgress { left: 1, ..nothing };
        assert!(!is_over(left, is_blind(true, true)));
    }
}

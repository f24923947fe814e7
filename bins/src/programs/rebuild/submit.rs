//! What a rollout is asked to do, as options and as a request.

use super::target_files;
use crate::args::{count, nodes, time};
use crate::context::Context;
use crate::diagnostic::Diagnostic;
use crate::wiring;
use clap::Args;
use cloud_core::ImageId;
use hostlist::Hostlist;
use provision::images::{self, ImageRules};
use provision::plan::{ImageWish, JobForm, Rollout, RolloutHow};
use provision::run::Run;
use provision::{ResolvedRollout, RolloutSources};
use std::num::NonZeroUsize;
use std::time::Duration;

/// Drain and rebuild nodes, a few at a time.
///
/// Nodes that have the image already are skipped, so that it can be run again. With --once it starts one batch and
/// returns; without, it goes on until all nodes have the image. With --jobs it submits a job for each node and returns.
#[derive(Args, Debug)]
pub(super) struct Submit {
    /// The image, by name or id; each node's own, by its file, its features or the configuration, if none is given.
    #[arg(long, value_name = "IMAGE")]
    pub(super) image: Option<String>,

    /// Only nodes of these partitions.
    #[arg(long, short, value_name = "NAME", value_delimiter = ',')]
    pub(super) partition: Vec<String>,

    /// How many nodes at a time [default: 1; with --jobs, all].
    #[arg(long, value_name = "N", value_parser = count)]
    pub(super) batch: Option<NonZeroUsize>,

    /// How long to wait after a batch was begun, in seconds or such as 15m.
    #[arg(long, value_name = "TIME", default_value = "0", value_parser = time(Duration::ZERO, Duration::MAX))]
    pub(super) delay: Duration,

    /// How many nodes may be out of service, for whatever reason.
    #[arg(long, value_name = "N", value_parser = count)]
    pub(super) max_unavailable: Option<NonZeroUsize>,

    /// How many nodes have to come up on the image before the rest is touched.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(super) canary: usize,

    /// How many failures end it; a later call for the same image counts them, too.
    #[arg(long, value_name = "N", default_value = "1", value_parser = count)]
    pub(super) stop_after: NonZeroUsize,

    #[command(flatten)]
    pub(super) jobs: JobOptions,

    /// Start one batch and return.
    #[arg(long)]
    pub(super) once: bool,

    /// Try nodes again that an earlier call for the same image has tried.
    #[arg(long)]
    pub(super) anew: bool,

    /// Time after which to give up, in seconds or such as 2h.
    #[arg(long, value_name = "TIME", default_value = "24h", value_parser = time(Duration::ZERO, Duration::MAX))]
    pub(super) deadline: Duration,

    /// The nodes; all if none is given.
    #[arg(value_name = "HOSTLIST", value_parser = nodes)]
    pub(super) nodes: Option<Hostlist>,
}

/// Rebuild jobs, for nodes that are not elastic; before Slurm 23.02, for all.
#[derive(Args, Debug)]
pub(super) struct JobOptions {
    /// Submit a job for each node instead, in the first of these partitions that has the node: for nodes that are not elastic or, before Slurm 23.02, for all.
    #[arg(long, value_name = "PARTITION", num_args = 0..=1, default_missing_value = "rebuild", value_delimiter = ',')]
    pub(super) jobs: Option<Vec<String>>,

    /// What the names of the jobs begin with; the node's follows.
    #[arg(long, value_name = "NAME", default_value = "rebuild", requires = "jobs")]
    name: String,

    /// What a job runs when its node is back.
    #[arg(long, value_name = "COMMAND", default_value = "true", requires = "jobs")]
    command: String,

    /// Submit the jobs without a reboot.
    #[arg(long, requires = "jobs")]
    no_reboot: bool,

    /// A further option of sbatch, such as --option=--qos=high; may be given several times.
    #[arg(long, value_name = "OPTION", requires = "jobs", allow_hyphen_values = true, value_parser = option)]
    option: Vec<String>,
}

/// An option of sbatch as one word; anything else would be taken for the script.
fn option(text: &str) -> Result<String, String> {
    let name = text.strip_prefix("--").filter(|name| !name.is_empty());
    match name {
        Some(_) if !text.contains(char::is_control) => Ok(text.to_owned()),
        _ => Err("an option of sbatch begins with --, and its value follows behind =".to_owned()),
    }
}

impl JobOptions {
    fn form(&self) -> Option<JobForm> {
        let mut form = JobForm::new(self.jobs.clone()?);
        form.name.clone_from(&self.name);
        form.command.clone_from(&self.command);
        form.reboot = !self.no_reboot;
        // A job that comes back would rebuild its node again.
        form.options = vec!["--no-requeue".to_owned()];
        form.options.extend(self.option.iter().cloned());
        Some(form)
    }
}

/// What the options ask for.
pub(super) async fn request(
    context: &Context,
    submit: &Submit,
    run: &Run<'_>,
) -> Result<ResolvedRollout, Diagnostic> {
    let named = submit.nodes.as_ref().map(Hostlist::node_names).transpose();
    let mut request = Rollout::new(ImageId::new(""));
    request.nodes = named?.unwrap_or_default();
    request.partitions.clone_from(&submit.partition);
    request.delay = submit.delay;
    request.max_unavailable = submit.max_unavailable.map(NonZeroUsize::get);
    request.canary = submit.canary;
    request.stop_after = Some(submit.stop_after.get());
    request.anew = submit.anew;
    let rules = wiring::image_rules(&context.settings);
    let wanted = match &submit.image {
        Some(name) => Some(image(name, rules, run).await?),
        None => None,
    };
    if let Some(image) = &wanted
        && !images::is_listed(run.tools.cloud, image).await
    {
        let text = format!("the cloud does not list image {image}");
        // Mistyped, it would cost machines that cannot be given another in place.
        if context.site.image.as_ref() != Some(image) {
            return Err(Diagnostic::new(format!(
                "{text}; if the id is right, set image_id to it first"
            )));
        }
        context.warn(&format!("{text}; make sure that the id is right"));
    }
    let version = run.tools.slurm.version();
    let form = submit.jobs.form();
    let most = if form.is_some() { usize::MAX } else { 1 };
    request.batch = submit.batch.map_or(most, NonZeroUsize::get);
    if let Some(form) = form {
        request.how =
            RolloutHow::Jobs(JobForm { elastic: version.reboots_elastic_nodes(), ..form });
    }
    let (files, state) = (&target_files(context), context.state_path.as_path());
    let sources = RolloutSources { files, rules, state };
    sources.resolve(run, request, wanted).await.map_err(Diagnostic::new)
}

/// The image of a name or an id.
pub(super) async fn image(
    name: &str,
    rules: ImageRules,
    run: &Run<'_>,
) -> Result<ImageId, Diagnostic> {
    let cloud = run.tools.cloud;
    let found = rules.find(cloud, name).await;
    match found? {
        ImageWish::Known(image) => Ok(image),
        ImageWish::Unknown(name) => Err(images::explain_unknown(cloud, &name)
            .await
            .map_or_else(Diagnostic::from, Diagnostic::new)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_that_is_no_option_is_not_given_to_sbatch() {
        assert_eq!(option("--qos=high"), Ok("--qos=high".to_owned()));
        for text in ["", "-", "--", "-q", "script.sh", "--a\nb"] {
            assert!(option(text).is_err(), "{text:?}");
        }
    }
}

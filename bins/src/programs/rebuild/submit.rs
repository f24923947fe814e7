//! The options of `rebuild submit`, and the rollout that they describe.

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

/// Drain and rebuild nodes in batches.
///
/// Nodes that already have the image are skipped, so the command can be repeated. It runs until all nodes have the image;
/// with --once it returns after starting one batch. With --jobs it submits a job for each node and returns.
#[derive(Args, Debug)]
pub(super) struct Submit {
    /// The image, by name or id [default: the one of each node's file, features or the configuration].
    #[arg(long, value_name = "IMAGE")]
    pub(super) image: Option<String>,

    /// Rebuild only nodes of these partitions.
    #[arg(long, short, value_name = "NAME", value_delimiter = ',')]
    pub(super) partition: Vec<String>,

    /// Number of nodes at a time [default: 1; with --jobs, all].
    #[arg(long, value_name = "N", value_parser = count)]
    pub(super) batch: Option<NonZeroUsize>,

    /// Time to wait after starting a batch, in seconds or such as 15m.
    #[arg(long, value_name = "TIME", default_value = "0", value_parser = time(Duration::ZERO, Duration::MAX))]
    pub(super) delay: Duration,

    /// Maximum number of nodes that are out of service for any reason.
    #[arg(long, value_name = "N", value_parser = count)]
    pub(super) max_unavailable: Option<NonZeroUsize>,

    /// Number of nodes that must come up with the image before the others are rebuilt.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(super) canary: usize,

    /// Number of failures that stop the rollout. A later call for the same image counts them, too.
    #[arg(long, value_name = "N", default_value = "1", value_parser = count)]
    pub(super) stop_after: NonZeroUsize,

    #[command(flatten)]
    pub(super) jobs: JobOptions,

    /// Start one batch and return.
    #[arg(long)]
    pub(super) once: bool,

    /// Retry nodes that an earlier call for the same image has tried.
    #[arg(long)]
    pub(super) anew: bool,

    /// Time after which to give up, in seconds or such as 2h.
    #[arg(long, value_name = "TIME", default_value = "24h", value_parser = time(Duration::ZERO, Duration::MAX))]
    pub(super) deadline: Duration,

    /// The nodes [default: all].
    #[arg(value_name = "HOSTLIST", value_parser = nodes)]
    pub(super) nodes: Option<Hostlist>,
}

/// Options for rebuild jobs.
#[derive(Args, Debug)]
pub(super) struct JobOptions {
    /// Submit a rebuild job for each node, in the first of these partitions that has it; for elastic nodes, only before
    /// Slurm 23.02.
    #[arg(long, value_name = "PARTITION", num_args = 0..=1, default_missing_value = "rebuild", value_delimiter = ',')]
    pub(super) jobs: Option<Vec<String>>,

    /// Prefix of the jobs' names; the node's name follows.
    #[arg(long, value_name = "NAME", default_value = "rebuild", requires = "jobs")]
    name: String,

    /// Command that a job runs when its node is back.
    #[arg(long, value_name = "COMMAND", default_value = "true", requires = "jobs")]
    command: String,

    /// Submit the jobs without a reboot.
    #[arg(long, requires = "jobs")]
    no_reboot: bool,

    /// Additional sbatch option, such as --option=--qos=high; may be repeated.
    #[arg(long, value_name = "OPTION", requires = "jobs", allow_hyphen_values = true, value_parser = option)]
    option: Vec<String>,
}

/// Parses an option of sbatch in one argument: sbatch takes anything else for the script.
fn option(text: &str) -> Result<String, String> {
    let name = text.strip_prefix("--").filter(|name| !name.is_empty());
    match name {
        Some(_) if !text.contains(char::is_control) => Ok(text.to_owned()),
        _ => Err("an option of sbatch begins with --, and its value follows after =".to_owned()),
    }
}

impl JobOptions {
    fn form(&self) -> Option<JobForm> {
        let mut form = JobForm::new(self.jobs.clone()?);
        form.name.clone_from(&self.name);
        form.command.clone_from(&self.command);
        form.reboot = !self.no_reboot;
        // A requeued job would rebuild its node again.
        form.options = vec!["--no-requeue".to_owned()];
        form.options.extend(self.option.iter().cloned());
        Some(form)
    }
}

/// The rollout that the options describe.
pub(super) async fn request(
    context: &Context<'_>,
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
    let rules = wiring::image_rules(context.settings);
    let wanted = match &submit.image {
        Some(name) => Some(image(name, rules, run).await?),
        None => None,
    };
    if let Some(image) = &wanted
        && !images::is_listed(run.tools.cloud, image).await
    {
        let text = format!("the cloud does not list image {image}");
        // A mistyped image would cost machines whose image cannot be replaced in place.
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

/// Finds an image by name or id.
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
    fn only_options_are_passed_to_sbatch() {
        assert_eq!(option("--qos=high"), Ok("--qos=high".to_owned()));
        for text in ["", "-", "--", "-q", "script.sh", "--a\nb"] {
            assert!(option(text).is_err(), "{text:?}");
        }
    }
}

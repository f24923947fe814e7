//! What a rollout is asked to do, as options and as a request.

use super::target_files;
use crate::args::{count, nodes, time};
use crate::context::Context;
use crate::diagnostic::Diagnostic;
use crate::programs::no_partition;
use crate::wiring;
use clap::Args;
use cloud_core::ImageId;
use hostlist::{Hostlist, NodeName};
use provision::World;
use provision::images::{self, ImageRules};
use provision::plan::{ImageWish, JobForm, Refusal, Rollout, RolloutHow, Target};
use provision::run::Run;
use provision::state::RolloutMemory;
use provision::targets::{TargetFiles, Targets};
use slurmconf::NodeDef;
use std::collections::BTreeMap;
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

/// A request, what remembers it, and the nodes about which nothing can be known.
pub(super) struct Asked {
    pub(super) request: Rollout,
    pub(super) memory: RolloutMemory,
    pub(super) failed: BTreeMap<NodeName, String>,
}

/// What the options ask for.
pub(super) async fn request(
    context: &Context,
    submit: &Submit,
    run: &Run<'_>,
) -> Result<Asked, Diagnostic> {
    let named = submit.nodes.as_ref().map(Hostlist::node_names).transpose();
    let mut request = Rollout::new(ImageId::new(""));
    request.nodes = named.map_err(|error| Diagnostic::from_error(&error))?.unwrap_or_default();
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
    with_targets(context, request, wanted, run).await
}

fn no_image() -> Diagnostic {
    Diagnostic::new("no image: name one with --image, or in the configuration as image_id")
}

/// The image of a name or an id.
pub(super) async fn image(
    name: &str,
    rules: ImageRules,
    run: &Run<'_>,
) -> Result<ImageId, Diagnostic> {
    let cloud = run.tools.cloud;
    let found = rules.find(cloud, name).await;
    match found.map_err(|error| Diagnostic::from_cloud(&error))? {
        ImageWish::Known(image) => Ok(image),
        ImageWish::Unknown(name) => Err(images::explain_unknown(cloud, &name)
            .await
            .map_or_else(|error| Diagnostic::from_cloud(&error), Diagnostic::new)),
    }
}

pub(super) fn refused(why: &Refusal) -> Diagnostic {
    if let Refusal::UnknownPartition(name) = why {
        return no_partition(name);
    }
    Diagnostic::new(why.to_string())
}

/// The request with the image of each node: that of its own file, else the one that is wanted or that the configuration names.
async fn with_targets(
    context: &Context,
    mut request: Rollout,
    wanted: Option<ImageId>,
    run: &Run<'_>,
) -> Result<Asked, Diagnostic> {
    let names = request.scope(run.conf).map_err(|why| refused(&why))?;
    let jobs = matches!(request.how, RolloutHow::Jobs(_));
    if jobs {
        elastic(&names, run)?;
    }
    let files = target_files(context);
    let Targets { known, failed } = match &wanted {
        // Slurm gives it to our reboot program as the reason; a job has none.
        Some(image) if !jobs => files.targets_of(&names, image),
        _ => {
            let rules = wiring::image_rules(&context.settings);
            files.targets(run, rules, &names, &BTreeMap::new()).await
        }
    };
    let look = run.observe().await;
    let mut images = Images { failed, ..Images::default() };
    for target in known {
        images.add(target, look.world(run));
    }
    if let Some(wanted) = &wanted {
        images.none_but(wanted, jobs, &files)?;
        for text in started_otherwise(wanted, &names, look.world(run)) {
            context.warn(&text);
        }
    }
    let Images { chosen, failed, lacking, .. } = images;
    if chosen.is_empty() && lacking > 0 && lacking == failed.len() {
        return Err(no_image());
    }
    let memory = RolloutMemory::new(&context.state_path, wanted.as_ref(), &request);
    request.image =
        wanted.or_else(|| chosen.values().next().map(|it| it.0.clone())).unwrap_or(request.image);
    for (node, (image, target)) in chosen {
        request.named.extend(target.named().map(|id| (node.clone(), id.clone())));
        request.images.insert(node, image);
    }
    if !failed.is_empty() {
        request.nodes = request.images.keys().cloned().collect();
        request.partitions.clear();
    }
    Ok(Asked { request, memory, failed })
}

/// The images of nodes, as far as they are known.
#[derive(Default)]
struct Images {
    chosen: BTreeMap<NodeName, (ImageId, Target)>,
    /// The others, and why.
    failed: BTreeMap<NodeName, String>,
    /// How many of them only lack somebody who names an image.
    lacking: usize,
}

impl Images {
    fn add(&mut self, target: Target, world: World<'_>) {
        match target.image(world) {
            Ok(image) => {
                self.chosen.insert(target.node.clone(), (image, target));
            }
            Err(why) => {
                self.lacking += usize::from(why == Refusal::NoImage);
                self.failed.insert(target.node, why.to_string());
            }
        }
    }

    /// Refuses an image that some of the nodes would not get.
    fn none_but(
        &self,
        wanted: &ImageId,
        jobs: bool,
        files: &TargetFiles,
    ) -> Result<(), Diagnostic> {
        let others = self.chosen.iter().filter(|(_, (image, _))| image != wanted);
        let others: Vec<String> = others
            .map(|(node, (image, target))| match files.of(target) {
                Some(file) => format!("{node} ({image}, by {})", file.display()),
                None => format!("{node} ({image})"),
            })
            .collect();
        if others.is_empty() { Ok(()) } else { Err(told_otherwise(&others, wanted, jobs)) }
    }
}

/// Why an image is refused that nodes would not get.
fn told_otherwise(others: &[String], wanted: &ImageId, jobs: bool) -> Diagnostic {
    let others = others.join(", ");
    Diagnostic::new(if jobs {
        format!(
            "with --jobs a node gets the image that its own file or the configuration names, and for these that is not \
             {wanted}: {others}; write it there (reboot_vars, hostvars or image_id), or leave --jobs out"
        )
    } else {
        format!(
            "a node's own file goes before --image, and for these it does not name {wanted}: {others}; write it there, or \
             leave --image out, so that each node gets its own"
        )
    })
}

/// What to say of elastic nodes that have another image when they are next started.
fn started_otherwise(wanted: &ImageId, names: &[NodeName], world: World<'_>) -> Vec<String> {
    let mut others: BTreeMap<String, Hostlist> = BTreeMap::new();
    for node in names.iter().filter(|node| world.conf.get(node).is_some_and(NodeDef::is_cloud)) {
        // Neither files nor reasons have a say in a start.
        let image = Target::new(node.clone()).image(world).ok();
        if let Some(image) = image.filter(|image| image != wanted) {
            others.entry(image.to_string()).or_default().push(node.as_str());
        }
    }
    let say = |(image, nodes)| {
        format!(
            "{nodes}: new machines still boot {image}; set `image_id: {wanted}` to change that, or the feature image= in \
             slurm.conf where nodes have one"
        )
    };
    others.into_iter().map(say).collect()
}

/// Refuses jobs for nodes on which they do nothing.
fn elastic(names: &[NodeName], run: &Run<'_>) -> Result<(), Diagnostic> {
    let version = run.tools.slurm.version();
    let cloud = |node: &NodeName| run.conf.get(node).is_some_and(NodeDef::is_cloud);
    let elastic: Hostlist = names.iter().filter(|node| cloud(node)).collect();
    if elastic.is_empty() || version.reboots_elastic_nodes() {
        return Ok(());
    }
    Err(Diagnostic::new(format!(
        "--jobs is for nodes that are not elastic, and these are State=CLOUD: {elastic}; Slurm {version} calls no \
         RebootProgram for a job with --reboot there: leave --jobs out, or name other nodes"
    )))
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

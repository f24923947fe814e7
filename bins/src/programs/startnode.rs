//! `startnode`: Slurm wants these nodes.

mod unbegun;

use crate::args::{Common, nodes};
use crate::context::Context;
use crate::diagnostic::Diagnostic;
use crate::environment::Environment;
use crate::output::chain;
use crate::wiring::{self, Purpose};
use clap::Parser;
use hostlist::{Hostlist, NodeName};
use provision::images::all_need_image;
use provision::plan::{self, JobGroup};
use provision::run::{self, Run};
use slurmctl::{ResumeFileError, ResumeFileWarning, ResumeRequest};
use std::path::Path;
use std::time::Duration;
use tokio::time::{Instant, timeout};

/// Start the machines of nodes, and tell Slurm where they are.
///
/// Slurm calls it as ResumeProgram. A node that cannot be had goes back to Slurm at once, with the reason, and its job is
/// queued again. Run again for the same nodes, it starts nothing twice.
#[derive(Debug, Parser)]
#[command(name = "startnode", version, after_help = EXAMPLES)]
pub struct Arguments {
    #[command(flatten)]
    pub(crate) common: Common,

    /// Remove what is left of nodes that never came up: Slurm's ResumeFailProgram.
    #[arg(long)]
    failed: bool,

    /// The nodes, such as n[001-004],gpu7.
    #[arg(value_name = "HOSTLIST", value_parser = nodes)]
    nodes: Hostlist,

    /// Features that Slurm wants the nodes to boot with, for a job with --reboot; not used.
    #[arg(value_name = "FEATURES")]
    features: Option<String>,
}

const EXAMPLES: &str = "\
Examples:
  startnode --dry-run 'n[001-004]'   say what would be done
  scontrol update nodename=n001 state=power_up
                                     start one node by hand: Slurm calls startnode
  startnode n001                     a machine that Slurm does not want: reconcile ends it
  startnode --failed n001            clean up after a node that never came up
  startnode-failed n001              the same by a name that ResumeFailProgram can have

In slurm.conf:
  ResumeProgram=/usr/local/bin/startnode
  ResumeFailProgram=/usr/local/bin/startnode-failed

Exit code: 0 all well, 1 some nodes failed (each is named), 2 wrong usage, configuration
or resume file (nothing done in the cloud; if Slurm called, the nodes go back to it).";

/// How old a machine may be that slurmctld has called us for: one that is older booted for an earlier wish, and slurmctld
/// does not believe in it. A minute more than none, as clocks differ and booting takes its time.
const OLDEST: Duration = Duration::from_mins(1);

/// Runs it.
pub async fn run(arguments: Arguments) -> u8 {
    let begun = Instant::now();
    let environment = Environment::read();
    // Read first: it is gone when slurmctld has ended.
    let file = environment.get("SLURM_RESUME_FILE").map(Path::new);
    let request = ResumeRequest::read(&arguments.nodes, file);
    // A job with --reboot calls us with its id and without a file (22.05, and static nodes of 24.11).
    let for_job = environment.get("SLURM_JOB_ID").is_some();
    let reboot = for_job && file.is_none();
    if let Some(word) = arguments.features.as_ref().filter(|_| !for_job && file.is_none()) {
        return super::wrong("startnode", &arguments.common, &stray(word, &arguments.nodes));
    }
    match begin(&arguments, (request, file), reboot, begun).await {
        Ok(code) => code,
        Err(diagnostic) => {
            let code = super::wrong("startnode", &arguments.common, &diagnostic);
            if arguments.failed || arguments.common.dry_run {
                return code;
            }
            if !reboot && has_called(&environment) {
                unbegun::give_back(&arguments, &environment, &diagnostic, begun).await;
            } else if reboot && let Ok(names) = arguments.nodes.node_names() {
                super::rebuild::tell_unbegun("startnode", &arguments.common, &names, &diagnostic)
                    .await;
            }
            code
        }
    }
}

/// True if slurmctld waits for us: by hand, another `startnode` may well have the nodes in hand. A Slurm that was built
/// without JSON writes no file.
fn has_called(environment: &Environment) -> bool {
    environment.get("SLURM_RESUME_FILE").is_some() || environment.is_slurmctlds()
}

/// By hand, what stands behind the list is no feature, but a node that would not be started.
fn stray(word: &str, nodes: &Hostlist) -> Diagnostic {
    Diagnostic::new(format!("{word} behind {nodes}: name all nodes in one list, with commas"))
}

async fn begin(
    arguments: &Arguments,
    (request, file): (Result<ResumeRequest, ResumeFileError>, Option<&Path>),
    reboot: bool,
    begun: Instant,
) -> Result<u8, Diagnostic> {
    let common = &arguments.common;
    let names = arguments.nodes.node_names().map_err(|error| Diagnostic::from_error(&error))?;
    let request = match request {
        Err(_) if arguments.failed => ResumeRequest::default(),
        request => request.map_err(|why| illegible(&why, file))?,
    };
    // What is left of a node is removed without knowing how to launch one.
    let purpose = if arguments.failed { Purpose::Other } else { Purpose::Launch };
    let nodes = Some(&arguments.nodes);
    let mut context = Context::open_for("startnode", common, purpose, nodes).await?;
    context.fill(Some(&names)).await;
    let deadline = wiring::deadline(&context.settings, &context.slurm.config, &arguments.nodes);
    context.site.policies.deadline = deadline.saturating_sub(begun.elapsed());
    if arguments.failed {
        return Ok(failed(&context, common, &names).await);
    }
    // By hand there is none, and nothing is odd about that.
    for warning in request.warnings.iter().filter(|it| !matches!(it, ResumeFileWarning::NoFile)) {
        let file = file.unwrap_or(Path::new("")).display();
        context
            .warn(&format!("{file}: {}; nodes that it groups start on their own", chain(warning)));
    }
    let left = context.site.policies.deadline;
    let silent = |_elapsed| Diagnostic::new("the cloud did not say in time which images there are");
    timeout(left, images(&mut context, &names, reboot)).await.map_err(silent)??;
    // slurmctld counts from when it called us.
    context.site.policies.deadline = deadline.saturating_sub(begun.elapsed());
    if reboot {
        return super::rebuild::nodes(&context, common, &names).await;
    }
    context.site.policies.oldest = has_called(&context.environment).then_some(OLDEST);
    let jobs: Vec<JobGroup> = request.jobs.iter().filter_map(group).collect();
    let code = context
        .with_run(common, async |run: &Run<'_>| {
            if common.dry_run {
                let look = run.observe().await;
                let plan = plan::start(&names, &jobs, look.world(run));
                return context.preview(common, &plan, &look);
            }
            context.begin(&names, "Starting");
            context.tell(common, &run::start(run, &names, &jobs).await)
        })
        .await;
    Ok(code)
}

/// Finds out which images there are; without that of the configuration, what needs none is done.
async fn images(context: &mut Context, names: &[NodeName], reboot: bool) -> Result<(), Diagnostic> {
    match context.find_images().await {
        // Slurm waits for an answer, and will get one for each node.
        Err(diagnostic) if diagnostic.is_transient() => context.warn(&diagnostic.to_string()),
        Ok(Some(unknown)) => {
            let all = all_need_image(&context.site, &context.slurm.config, names);
            if all && !reboot {
                return Err(unknown);
            }
            context.without_image(&unknown);
        }
        found => found.map(drop)?,
    }
    Ok(())
}

/// To go on would be to guess which nodes are of one job, and to start a part of them.
fn illegible(why: &ResumeFileError, file: Option<&Path>) -> Diagnostic {
    let file = file.unwrap_or(Path::new("")).display();
    Diagnostic::new(format!("{file}: {}", chain(why))).with_help(
        "slurmctld writes a new one when it wants the nodes again, which has to be readable for its programs; by hand, \
         unset SLURM_RESUME_FILE and every node starts on its own",
    )
}

fn group(job: &slurmctl::JobNodes) -> Option<JobGroup> {
    Some(JobGroup::new(job.id, job.nodes.node_names().ok()?))
}

async fn failed(context: &Context, common: &Common, names: &[NodeName]) -> u8 {
    context
        .with_run(common, async |run: &Run<'_>| {
            if common.dry_run {
                let look = run.observe().await;
                return context.preview(common, &plan::failed(names, look.world(run)), &look);
            }
            context.tell(common, &run::failed(run, names).await)
        })
        .await
}

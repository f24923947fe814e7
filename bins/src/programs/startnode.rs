//! `startnode`: starts the machines of nodes, as ResumeProgram.

use crate::args::{Common, nodes};
use crate::bootstrap::Bootstrap;
use crate::bootstrap_failure::{report_not_rebuilt, return_nodes};
use crate::context::Context;
use crate::diagnostic::Diagnostic;
use crate::output::chain;
use crate::wiring::{self, Purpose};
use clap::Parser;
use hostlist::{Hostlist, NodeName};
use provision::images::all_need_image;
use provision::job_costs;
use provision::plan::JobGroup;
use provision::run::{Run, RunRequest, StopReason};
use slurmctl::{Caller, JobId, ProgramRole, ResumeFileError, ResumeFileWarning, ResumeRequest};
use std::path::Path;
use std::time::Duration;
use tokio::time::{Instant, timeout};

/// Start the machines of nodes, and set their addresses in Slurm.
///
/// Slurm calls it as ResumeProgram. A node that cannot start is returned to Slurm at once, with the reason, and its job is
/// requeued. Run again for the same nodes, it starts nothing twice.
#[derive(Debug, Parser)]
#[command(name = "startnode", version, after_help = EXAMPLES)]
pub struct Arguments {
    #[command(flatten)]
    pub(crate) common: Common,

    /// Clean up after nodes that never came up, as ResumeFailProgram.
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
  startnode --dry-run 'n[001-004]'   show what would be done
  scontrol update nodename=n001 state=power_up
                                     start one node by hand: Slurm calls startnode
  startnode n001                     start a machine that Slurm did not ask for: reconcile terminates it
  startnode --failed n001            clean up after a node that never came up
  startnode-failed n001              the same, for ResumeFailProgram, to which Slurm passes no options

In slurm.conf:
  ResumeProgram=/usr/local/bin/startnode
  ResumeFailProgram=/usr/local/bin/startnode-failed

Exit code: 0 success, 1 some nodes failed (each is named), 2 wrong usage, configuration
or resume file (nothing done in the cloud; if Slurm called, the nodes are returned to it).";

/// Maximum age of a machine to adopt in a call by slurmctld: an older one booted for an earlier call, and slurmctld does
/// not accept its registration. A minute allows for differing clocks.
const OLDEST: Duration = Duration::from_mins(1);

/// Starts the machines of nodes.
pub async fn run(arguments: Arguments) -> u8 {
    let begun = Instant::now();
    let bootstrap = Bootstrap::open("startnode", &arguments.common);
    // Read first, because the file disappears with slurmctld.
    let file = bootstrap.environment.get("SLURM_RESUME_FILE").map(Path::new);
    let request = ResumeRequest::read(&arguments.nodes, file);
    let caller = bootstrap.environment.caller(ProgramRole::Resume);
    let call = Call { file, caller, begun };
    let why = match Box::pin(begin(&bootstrap, &arguments, request, &call)).await {
        Ok(code) => return code,
        Err(why) => why,
    };
    let code = bootstrap.fail(&why);
    if arguments.failed || arguments.common.dry_run {
        return code;
    }
    match caller {
        Caller::Slurm => return_nodes(&bootstrap, &arguments.nodes, &why, begun).await,
        Caller::RebootJob if !bootstrap.environment.terminal => {
            let names = arguments.nodes.node_names().unwrap_or_default();
            report_not_rebuilt(&bootstrap, &names, &why).await;
        }
        // Another startnode may be working on the nodes.
        Caller::RebootJob | Caller::Script | Caller::Operator => {}
    }
    code
}

/// The circumstances of the call.
struct Call<'a> {
    /// The resume file.
    file: Option<&'a Path>,
    caller: Caller,
    begun: Instant,
}

/// The error for a second argument in a call by hand, which is not a feature but a forgotten node.
fn stray_argument(argument: &str, nodes: &Hostlist) -> Diagnostic {
    Diagnostic::new(format!(
        "{argument} after {nodes}: name all nodes in one list, separated by commas"
    ))
}

async fn begin(
    bootstrap: &Bootstrap,
    arguments: &Arguments,
    request: Result<ResumeRequest, ResumeFileError>,
    call: &Call<'_>,
) -> Result<u8, Diagnostic> {
    let &Call { file, caller, begun } = call;
    if let (Some(argument), Caller::Operator | Caller::Script) = (&arguments.features, caller) {
        return Err(stray_argument(argument, &arguments.nodes));
    }
    let names = arguments.nodes.node_names()?;
    let request = match request {
        Err(_) if arguments.failed => ResumeRequest::default(),
        request => request.map_err(|why| unreadable(&why, file))?,
    };
    // Cleaning up needs no launch options.
    let purpose = if arguments.failed { Purpose::Other } else { Purpose::Launch };
    let mut context = Context::open(bootstrap, purpose, Some(&arguments.nodes)).await?;
    context.fill(Some(&names)).await;
    let deadline = wiring::deadline(context.settings, &context.slurm.config, &arguments.nodes);
    context.site.policies.deadline = deadline.saturating_sub(begun.elapsed());
    if arguments.failed {
        let request = RunRequest::Stop { nodes: &names, reason: StopReason::NeverUp };
        return context.with_run(async |run: &Run<'_>| context.carry_out(run, request).await).await;
    }
    let reboot = caller == Caller::RebootJob;
    // A call by hand has no resume file.
    for warning in request.warnings.iter().filter(|it| !matches!(it, ResumeFileWarning::NoFile)) {
        let file = file.unwrap_or(Path::new("")).display();
        context
            .warn(&format!("{file}: {}; nodes that it groups start on their own", chain(warning)));
    }
    let left = context.site.policies.deadline;
    let late = |_elapsed| Diagnostic::new("the cloud did not list its images in time");
    timeout(left, images(&mut context, &names, reboot)).await.map_err(late)??;
    // slurmctld's timeout starts with its call.
    context.site.policies.deadline = deadline.saturating_sub(begun.elapsed());
    if reboot {
        return super::rebuild::nodes(&context, &names).await;
    }
    context.site.policies.oldest = (caller == Caller::Slurm).then_some(OLDEST);
    let jobs: Vec<JobGroup> = request.jobs.iter().filter_map(group).collect();
    let jobs = labelled(&context, jobs).await;
    let request = RunRequest::Start { nodes: &names, jobs: &jobs };
    context
        .with_run(async |run: &Run<'_>| {
            if !context.dry_run() {
                context.begin(&names, "Starting");
            }
            context.carry_out(run, request).await
        })
        .await
}

/// Finds the images. Without the configured one, only nodes that need it fail.
async fn images(
    context: &mut Context<'_>,
    names: &[NodeName],
    reboot: bool,
) -> Result<(), Diagnostic> {
    let found = context.find_images().await;
    if let Ok(Some(unknown)) = &found
        && !reboot
        && all_need_image(&context.site, &context.slurm.config, names)
    {
        return Err(unknown.clone());
    }
    // Slurm gets a result for each node.
    context.tolerate_missing_images(found)
}

/// Timeout for asking Slurm for the owners of jobs, which a start does not need.
const OWNERS: Duration = Duration::from_secs(1);

/// Adds tags with the owner to jobs, for machines that are launched for one job only.
async fn labelled(context: &Context<'_>, jobs: Vec<JobGroup>) -> Vec<JobGroup> {
    if jobs.is_empty() || !wiring::has_room_for_labels(context.settings) {
        return jobs;
    }
    let ids: Vec<JobId> = jobs.iter().map(|group| group.job).collect();
    let owners = timeout(OWNERS, context.slurm.controller.job_owners(&ids)).await;
    let owners = owners.ok().and_then(Result::ok).unwrap_or_default();
    let label = |group: JobGroup| {
        let labels = job_costs::labels(group.job, owners.get(&group.job));
        group.labelled(labels)
    };
    jobs.into_iter().map(label).collect()
}

/// The error for an unreadable resume file. Continuing could start only some of a job's nodes.
fn unreadable(why: &ResumeFileError, file: Option<&Path>) -> Diagnostic {
    let file = file.unwrap_or(Path::new("")).display();
    Diagnostic::new(format!("{file}: {}", chain(why))).with_help(
        "slurmctld writes a new one when it starts the nodes again; its programs must be able to read it; by hand, \
         unset SLURM_RESUME_FILE to start every node on its own",
    )
}

fn group(job: &slurmctl::JobNodes) -> Option<JobGroup> {
    Some(JobGroup::new(job.id, job.nodes.node_names().ok()?))
}

//! `finish`: generates the node section of slurm.conf from the limits.

mod change;
mod check;
mod difference;
mod inputs;
mod power;
mod sources;

pub(super) use change::Change;
pub(super) use inputs::Inputs;
pub(super) use sources::Sources;

use crate::args::Common;
use crate::bootstrap::Bootstrap;
use crate::context::Context;
use crate::diagnostic::Diagnostic;
use crate::drive::until_interrupted;
use crate::output::chain;
use crate::process::{SOME_FAILED, SUCCESS};
use crate::wiring::Purpose;
use check::{Limits, New};
use clap::Parser;
use provision::conf::{ConfLock, is_unapplied, missing_gres, planned_section, unstarted};
use provision::plan::{self, Finish, Notification, ReportStep, Step};
use provision::run::{self, Run, RunRequest};
use slurmctl::Controller as _;
use std::time::Duration;

/// Generate the node section of slurm.conf from limits.yaml, and apply it.
///
/// Shows the changes, tries the new file on a throw-away slurmctld, replaces slurm.conf atomically (the previous version is
/// kept), and tells slurmctld. Nothing is written if nothing changes, if the new file does not work, or if a node to be
/// removed runs a job. If slurmctld does not answer afterwards, the previous file is restored.
#[derive(Debug, Parser)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own")]
#[command(name = "finish", version, after_help = EXAMPLES)]
pub struct Arguments {
    #[command(flatten)]
    pub(crate) common: Common,

    #[command(flatten)]
    sources: Sources,

    /// Check configuration, credentials, image, networks, limits and Slurm's parameters; write nothing.
    #[arg(long, conflicts_with_all = ["print", "print_power", "print_gres", "force"])]
    check: bool,

    /// Print the node section and do nothing.
    #[arg(long, conflicts_with = "json")]
    print: bool,

    /// Print the lines that slurm.conf needs outside the node section (from 26.05 on with `PowerAction`), and do nothing.
    #[arg(long, conflicts_with_all = ["print", "json"])]
    print_power: bool,

    /// Print the gres.conf that nodes with generic resources need, and do nothing.
    #[arg(long, conflicts_with_all = ["print", "print_power", "json"])]
    print_gres: bool,

    /// Write the file, but do not tell slurmctld.
    #[arg(long)]
    no_restart: bool,

    /// Do not try the new file on a throw-away slurmctld.
    #[arg(long)]
    no_prove: bool,

    /// Go on even if nodes to be removed run jobs, or the management node is not ready.
    #[arg(long)]
    force: bool,
}

const EXAMPLES: &str = "\
Examples:
  finish --check      check that everything is in place
  finish --dry-run    show what would change
  finish              apply limits.yaml; run it again whenever the file has changed
  finish --print      print the node section
  finish --print-power   print what else slurm.conf needs: programs and times
  finish --print-gres    print gres.conf, for nodes with GPUs

Exit code: 0 success (also if nothing changes), 1 something failed (it is named), 2 wrong usage, limits or configuration (nothing done).";

/// Writes, checks or prints the node section of slurm.conf.
pub async fn run(mut arguments: Arguments) -> u8 {
    // A check creates neither log nor state directory.
    arguments.common.dry_run |= arguments.check;
    let bootstrap = Bootstrap::open("finish", &arguments.common);
    Box::pin(begin(&bootstrap, &arguments)).await.unwrap_or_else(|why| bootstrap.fail(&why))
}

async fn begin(bootstrap: &Bootstrap, arguments: &Arguments) -> Result<u8, Diagnostic> {
    if arguments.check {
        let context = Context::open(bootstrap, Purpose::Check, None).await?;
        return Ok(check(arguments, context).await);
    }
    let writes = !(arguments.print || arguments.print_power || arguments.print_gres);
    let purpose = if writes { Purpose::Other } else { Purpose::Print };
    let (context, _lock) = if writes {
        open_locked(bootstrap, purpose).await?
    } else {
        (Context::open(bootstrap, purpose, None).await?, None)
    };
    if !arguments.force
        && let Some(unready) = inputs::unready(&context)
    {
        context.output.print_error(unready);
        return Ok(SOME_FAILED);
    }
    let inputs = Inputs::read(&arguments.sources, &context).await?;
    if arguments.print {
        let (document, slurm) = (&inputs.marked.document, &context.slurm);
        let version = slurm.controller.version();
        let section = plan::node_section(&inputs.cluster, document, &slurm.config, version)?;
        context.output.print(section.trim_end());
        return Ok(SUCCESS);
    }
    if arguments.print_gres {
        context.output.print(inputs.cluster.gres_conf().trim_end());
        return Ok(SUCCESS);
    }
    if arguments.print_power {
        let lines = power::lines(&context, &inputs)?;
        context.output.print(lines.trim_end());
        return Ok(SUCCESS);
    }
    let inputs = inputs.launchable(&context)?;
    let (cluster, config) = (&inputs.cluster, &context.slurm.config);
    for warning in missing_gres(cluster, config).iter().chain(&unstarted(cluster, config)) {
        context.warn(warning);
    }
    let request = request(arguments, &context, &inputs);
    let (request, limits) = (RunRequest::Finish(&request), Some(&*inputs.limits));
    let change = Change { marked: &inputs.marked, request, limits, prove: !arguments.no_prove };
    Box::pin(change.make(context)).await
}

/// Opens everything to change slurm.conf, and takes its lock. Without a state directory there is no lock.
pub(super) async fn open_locked(
    bootstrap: &Bootstrap,
    purpose: Purpose,
) -> Result<(Context<'_>, Option<ConfLock>), Diagnostic> {
    let context = Context::open(bootstrap, purpose, None).await?;
    if bootstrap.common.dry_run || !context.state_path.is_dir() {
        return Ok((context, None));
    }
    let mut lock = match ConfLock::open(&context.state_path, bootstrap.program) {
        Ok(lock) => lock,
        Err(error) => {
            context.warn(&format!("continuing without a lock on slurm.conf: {}", chain(&error)));
            return Ok((context, None));
        }
    };
    let Some(holder) = lock.holder().map(str::to_owned) else { return Ok((context, Some(lock))) };
    let most = ConfLock::WAIT.as_secs();
    context.warn(&format!("slurm.conf is being changed by {holder}: waiting for at most {most} s"));
    if !lock.wait().await {
        let text = format!(
            "slurm.conf is still being changed by {holder}; run this again when that has ended"
        );
        return Err(Diagnostic::new(text).transient(true));
    }
    // The other program has changed slurm.conf since it was read.
    Ok((Context::open(bootstrap, purpose, None).await?, Some(lock)))
}

/// Runs all checks until a signal arrives. There is nothing to clean up then.
async fn check(arguments: &Arguments, context: Context<'_>) -> u8 {
    let output = context.output;
    tokio::select! {
        code = run_checks(arguments, context) => code,
        () = until_interrupted() => {
            output.print_error("interrupted; not everything was checked");
            SOME_FAILED
        }
    }
}

/// Runs all checks. Input that cannot be read fails a check of its own and hides no other.
async fn run_checks(arguments: &Arguments, mut context: Context<'_>) -> u8 {
    let _ = context.find_images().await;
    let slurmctld = check::slurmctld(&mut context).await;
    let inputs = Inputs::read(&arguments.sources, &context).await;
    let new = match &inputs {
        Ok(inputs) => Some(planned(arguments, &context, inputs).await),
        Err(_) if check::only_rebuilds(&context, &arguments.sources.limits) => None,
        Err(diagnostic) => Some(Err(diagnostic.clone())),
    };
    let limits = Limits { inputs: inputs.as_ref().ok(), new: new.as_ref() };
    check::all(&context, limits, slurmctld).await
}

/// The node section that would be written, and whether slurmctld already runs with it.
async fn planned(
    arguments: &Arguments,
    context: &Context<'_>,
    inputs: &Inputs,
) -> Result<New, Diagnostic> {
    let request = request(arguments, context, inputs);
    context
        .with_run(async |run: &Run<'_>| {
            let (plan, _) = run::preview(run, &RunRequest::Finish(&request)).await?;
            let section = planned_section(&inputs.marked, Some(&inputs.cluster), &plan)?;
            // A change that is refused because of a job is not applied either.
            let is_pending = |step: &Step| {
                matches!(step.notification(), Some(Notification::Reload(_)))
                    || matches!(step, Step::Report(ReportStep::Refuse { .. }))
            };
            Ok(New { section, unapplied: plan.steps().any(is_pending) })
        })
        .await
}

fn request<'a>(arguments: &Arguments, context: &Context<'_>, inputs: &'a Inputs) -> Finish<'a> {
    Finish {
        document: &inputs.marked.document,
        cluster: &inputs.cluster,
        version: context.slurm.controller.version(),
        force: arguments.force,
        reload: !arguments.no_restart,
        unapplied: is_unapplied(&*context.state, &inputs.marked),
        patience: Duration::ZERO,
    }
}

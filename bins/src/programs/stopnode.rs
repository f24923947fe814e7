//! `stopnode`: terminates the machines of nodes, as SuspendProgram.

use crate::args::{Common, nodes};
use crate::bootstrap::Bootstrap;
use crate::context::Context;
use crate::diagnostic::Diagnostic;
use crate::log::Level;
use crate::output::shortened;
use crate::process::{SOME_FAILED, SUCCESS};
use crate::wiring::{self, Purpose};
use clap::Parser;
use hostlist::{Hostlist, NodeName};
use provision::Cancel;
use provision::plan::{Operation, ReportStep, Step, Why};
use provision::run::{self, Run, RunRequest, StopReason};
use provision::{NodeReport, Report};
use slurmctl::{Caller, Job, ProgramRole};
use std::io::{self, BufRead as _, IsTerminal as _, Write as _};
use tokio::sync::oneshot;
use tokio::time::Instant;

/// Terminate the machines of nodes.
///
/// Slurm calls it as SuspendProgram. Only machines with this cluster's tags are touched.
///
/// Nodes that are in use, or may be because slurmctld does not answer, are not stopped; called by hand, the exit code is
/// then 1. --now terminates their machines anyway, and --all --force every machine of the cluster, for example before
/// terraform destroy.
#[derive(Debug, Parser)]
#[command(name = "stopnode", version, after_help = EXAMPLES)]
pub struct Arguments {
    #[command(flatten)]
    pub(crate) common: Common,

    /// Terminate every machine of this cluster, whether Slurm knows it or not.
    #[arg(long, conflicts_with = "nodes")]
    all: bool,

    /// Terminate the machines even if the nodes are in use.
    #[arg(long, conflicts_with = "all")]
    now: bool,

    /// Do not ask for confirmation.
    #[arg(long, requires = "all", conflicts_with = "nodes")]
    force: bool,

    /// The nodes, such as n[001-004],gpu7.
    #[arg(value_name = "HOSTLIST", value_parser = nodes, required_unless_present = "all")]
    nodes: Option<Hostlist>,
}

const EXAMPLES: &str = "\
Examples:
  stopnode --dry-run 'n[001-004]'   show what would be done
  stopnode n001                     terminate the machine of a node that Slurm has powered down
  stopnode --now n001               terminate it even if the node is in use
  stopnode --all --force            terminate every machine of this cluster

In slurm.conf:
  SuspendProgram=/usr/local/bin/stopnode

Exit code: 0 success, 1 some nodes failed (each is named), 2 wrong usage or configuration (nothing done).";

/// Terminates the machines of nodes.
pub async fn run(arguments: Arguments) -> u8 {
    let bootstrap = Bootstrap::open("stopnode", &arguments.common);
    Box::pin(begin(&bootstrap, &arguments)).await.unwrap_or_else(|why| bootstrap.fail(&why))
}

async fn begin(bootstrap: &Bootstrap, arguments: &Arguments) -> Result<u8, Diagnostic> {
    let begun = Instant::now();
    let names = arguments.nodes.as_ref().map(Hostlist::node_names).transpose()?;
    let purpose = if arguments.all { Purpose::EndAll } else { Purpose::Other };
    let mut context = Context::open(bootstrap, purpose, arguments.nodes.as_ref()).await?;
    let deadline = &mut context.site.policies.deadline;
    *deadline = if arguments.all {
        // Slurm does not wait for it.
        wiring::operator_deadline(context.settings)
    } else {
        // slurmctld's timeout starts with its call.
        deadline.saturating_sub(begun.elapsed())
    };
    if let Some(names) = &names {
        // A node that was created at run time is only in slurmctld.
        context.fill(Some(names)).await;
    }
    context
        .with_run(async |run: &Run<'_>| match names {
            Some(names) => named(&context, run, &names, arguments.now).await,
            None => everything(&context, arguments, run).await,
        })
        .await
}

/// Stops nodes, or prints the plan with `--dry-run`.
async fn named(
    context: &Context<'_>,
    run: &Run<'_>,
    nodes: &[NodeName],
    now: bool,
) -> Result<u8, Diagnostic> {
    let reason = match (now, is_by_hand(context)) {
        (true, _) => StopReason::Now,
        (false, true) => StopReason::ByHand,
        (false, false) => StopReason::PowerDown,
    };
    let request = RunRequest::Stop { nodes, reason };
    if context.dry_run() {
        let (plan, observation) = run::preview(run, &request).await?;
        let skipped = plan.steps().any(|step| {
            matches!(step, Step::Report(ReportStep::Nothing { why: Why::WantedAgain, .. }))
        });
        return Ok(context.preview(&plan, &observation).max(code_for_skipped(context, skipped)));
    }
    context.begin(nodes, "Stopping");
    let report = run::execute(run, request).await?;
    if !context.json() {
        print_absent(context, &report);
    }
    let skipped = warn_of_skipped(context, &report);
    Ok(context.report(&report).max(code_for_skipped(context, skipped)))
}

/// True if neither slurmctld nor a script that it runs called this process. Then only slurmctld knows whether the nodes run
/// jobs.
fn is_by_hand(context: &Context<'_>) -> bool {
    let environment = &context.bootstrap.environment;
    environment.caller(ProgramRole::Suspend) != Caller::Slurm && !environment.by_slurm
}

/// Prints the nodes that had no machine to terminate.
fn print_absent(context: &Context<'_>, report: &Report) {
    let absent: Hostlist = nodes_because(report, &Why::NoInstance).collect();
    if !absent.is_empty() {
        context.output.print_unless_quiet(format_args!("{}: no machine", shortened(&absent)));
    }
}

/// The nodes that were skipped for this reason.
fn nodes_because<'r>(report: &'r Report, why: &Why) -> impl Iterator<Item = &'r NodeName> {
    let why = why.to_string();
    let is_why = move |node: &NodeReport| node.reason.as_deref() == Some(why.as_str());
    report.nodes.iter().filter(move |(_, node)| is_why(node)).map(|(name, _)| name)
}

/// The exit code for skipped nodes: a failure, unless slurmctld called, which has changed its mind.
fn code_for_skipped(context: &Context<'_>, some: bool) -> u8 {
    if some && context.bootstrap.environment.caller(ProgramRole::Suspend) != Caller::Slurm {
        SOME_FAILED
    } else {
        SUCCESS
    }
}

/// Warns of nodes that were not stopped because they are in use. Returns true if there are any.
fn warn_of_skipped(context: &Context<'_>, report: &Report) -> bool {
    let skipped: Hostlist = nodes_because(report, &Why::WantedAgain).collect();
    let is_some = !skipped.is_empty();
    if is_some {
        let skipped = shortened(&skipped);
        context.warn(&format!(
            "{skipped} is in use; not stopped: 'scontrol update nodename={skipped} state=power_down' makes Slurm stop it, and \
             'stopnode --now {skipped}' terminates its machine even if a job runs; 'stopnode --all --force' terminates every \
             machine of the cluster"
        ));
    }
    is_some
}

async fn everything(
    context: &Context<'_>,
    arguments: &Arguments,
    run: &Run<'_>,
) -> Result<u8, Diagnostic> {
    if context.dry_run() || !arguments.force {
        let (plan, observation) = run::preview(run, &RunRequest::StopAll).await?;
        if context.dry_run() {
            return Ok(context.preview(&plan, &observation));
        }
        // Without a complete listing, the prompt could not say which machines would be terminated.
        if !observation.fleet.is_complete() {
            context.report_unobserved(&observation);
            context.bootstrap.note(Level::Error, "nothing done: cannot list the machines");
            return Ok(SOME_FAILED);
        }
        if plan.is_idle() {
            if !context.json() {
                context.output.print_unless_quiet("no machines");
            }
            return Ok(context.report(&Report::new(Operation::StopAll)));
        }
        let text = plan.to_string();
        if context.json() {
            // The plan is for the prompt; JSON follows on standard output.
            context.output.print_error(text.trim_end());
        } else {
            context.output.print(text.trim_end());
        }
        let machines = plan.steps().map(|step| step.instances().len()).sum();
        // The progress line must not overwrite the prompt.
        context.progress.draw(context.output, "");
        let question = question(machines, observation.jobs.as_deref());
        if !confirmed(&question, run.tools.cancel.clone()).await {
            context.output.print_error("Cancelled. Use --force to skip this prompt.");
            return Ok(SOME_FAILED);
        }
    }
    Ok(context.report(&run::execute(run, RunRequest::StopAll).await?))
}

/// The prompt for terminating every machine, with the number of machines and running jobs.
fn question(machines: usize, jobs: Option<&[Job]>) -> String {
    let count = |count: usize, one: &str| match count {
        1 => format!("1 {one}"),
        _ => format!("{count} {one}s"),
    };
    let running = jobs.map(|jobs| jobs.iter().filter(|job| !job.nodes.is_empty()).count());
    let jobs = match running {
        Some(jobs) => format!("on which {} run", count(jobs, "job")),
        None => "with an unknown number of jobs".to_owned(),
    };
    format!("terminate {}, {jobs}?", count(machines, "machine"))
}

/// Asks for confirmation on a terminal. Without a terminal, and on Ctrl-C, the answer is no.
async fn confirmed(question: &str, mut cancel: Cancel) -> bool {
    if !io::stdin().is_terminal() {
        return false;
    }
    let _ = write!(io::stderr(), "{question} [y/N] ");
    let (sender, answer) = oneshot::channel();
    // On a separate thread, which ends with the process, because reading cannot be cancelled.
    std::thread::spawn(move || {
        let mut line = String::new();
        let _ = io::stdin().lock().read_line(&mut line);
        let _ = sender.send(line);
    });
    tokio::select! {
        () = cancel.cancelled() => false,
        line = answer => matches!(line.unwrap_or_default().trim(), "y" | "Y" | "yes"),
    }
}

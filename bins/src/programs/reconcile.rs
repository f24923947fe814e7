//! `reconcile`: compares cloud, Slurm and slurm.conf, and repairs discrepancies.

use crate::args::{Common, time};
use crate::bootstrap::Bootstrap;
use crate::context::Context;
use crate::diagnostic::Diagnostic;
use crate::drive::until_interrupted;
use crate::log::Level;
use crate::process::{SOME_FAILED, SUCCESS};
use crate::wiring::{self, Purpose};
use clap::Parser;
use provision::budget::Allowance;
use provision::plan::{Finding, FindingKind, Handling};
use provision::run::{self, Run, newly_reported};
use std::time::Duration;

/// Compare the cloud, Slurm and slurm.conf, and repair discrepancies.
///
/// Without --apply, it only shows what it would do. It terminates only machines that it saw in two runs, and none while the
/// cloud's listing is incomplete. It leaves nodes alone that an administrator has drained or set down. It drains nodes for
/// which the cloud has no capacity, if their partition has others, so that jobs do not wait for them.
#[derive(Debug, Parser)]
#[command(name = "reconcile", version, after_help = EXAMPLES)]
pub struct Arguments {
    #[command(flatten)]
    pub(crate) common: Common,

    /// Repair discrepancies.
    #[arg(long, conflicts_with = "dry_run")]
    apply: bool,

    /// Repeat after this time, in seconds or such as 5m, until interrupted.
    #[arg(long, value_name = "TIME", value_parser = time(Duration::from_secs(1), Duration::from_hours(24)))]
    watch: Option<Duration>,
}

const EXAMPLES: &str = "\
Examples:
  reconcile                       show discrepancies, and what would be done
  reconcile --apply               repair them
  reconcile --apply --watch 60    repair them every minute; the systemd timer does the same

Exit code: 0 success, 1 something could not be repaired or observed, 2 wrong usage or configuration (nothing done).";

/// Compares cloud and Slurm, once or until interrupted.
pub async fn run(arguments: Arguments) -> u8 {
    // One future for all rounds, so that no signal is lost.
    let interrupted = async {
        match arguments.watch {
            Some(_) => until_interrupted().await,
            None => std::future::pending().await,
        }
    };
    tokio::pin!(interrupted);
    let mut code = SUCCESS;
    loop {
        // The configuration may have changed since the last round.
        let bootstrap = Bootstrap::open("reconcile", &arguments.common);
        let opened = tokio::select! {
            biased;
            () = &mut interrupted => return code,
            opened = open(&bootstrap) => opened,
        };
        code = match opened {
            Ok(context) => round(&context, &arguments).await,
            // The error may be gone in the next round.
            Err(diagnostic) => bootstrap.fail(&diagnostic),
        };
        let Some(pause) = arguments.watch else { return code };
        tokio::select! {
            biased;
            () = &mut interrupted => return code,
            () = tokio::time::sleep(pause) => {}
        }
    }
}

async fn open(bootstrap: &Bootstrap) -> Result<Context<'_>, Diagnostic> {
    let mut context = Context::open(bootstrap, Purpose::Other, None).await?;
    context.fill(None).await;
    with_prices(&mut context);
    // Other discrepancies are found without images.
    context.find_available_images().await?;
    Ok(context)
}

/// Reads what machines cost, for the metrics; where nobody has said it, they have no costs.
fn with_prices(context: &mut Context<'_>) {
    let (settings, environment) = (context.settings, &context.bootstrap.environment);
    let budget = settings.budget.budget();
    if settings.elastic.metrics.is_none() || !wiring::prices_file(settings, environment).exists() {
        return;
    }
    match wiring::prices(settings, environment) {
        Ok(prices) => {
            let budget = budget.unwrap_or_default();
            context.site.allowance = Some(Allowance { budget, prices });
        }
        Err(why) => context.warn(&why.to_string()),
    }
}

/// Reconciles once, and ends gracefully when cancelled.
async fn round(context: &Context<'_>, arguments: &Arguments) -> u8 {
    let work = async |run: &Run<'_>| once(context, arguments, run).await;
    context.with_run(work).await
}

async fn once(context: &Context<'_>, arguments: &Arguments, run: &Run<'_>) -> u8 {
    if arguments.apply {
        let mut report = run::reconcile(run).await;
        report.findings.extend(hidden_nodes(context));
        log_findings(context, &report.findings);
        if !context.json() {
            print_findings(context, &report.findings);
        }
        let blind = report.findings.iter().any(|finding| finding.kind == FindingKind::Blind);
        let code = context.report(&report);
        context.notify(&report).await;
        // Without state nothing is seen twice, so most repairs are never made.
        return if blind || context.state_is_lost { SOME_FAILED } else { code };
    }
    let (mut plan, observation) = run::preview_reconcile(run).await;
    plan.findings.extend(hidden_nodes(context));
    if plan.findings.is_empty() && plan.is_idle() && !context.json() {
        context.output.print_unless_quiet("no discrepancies found");
    } else {
        context.show(&plan);
    }
    if context.hidden_nodes_warning().is_some() {
        SOME_FAILED
    } else {
        context.report_unobserved(&observation)
    }
}

/// A finding if slurmctld hides powered-down nodes.
fn hidden_nodes(context: &Context<'_>) -> Option<Finding> {
    let text = context.hidden_nodes_warning()?;
    let (kind, handling) = (FindingKind::Blind, Handling::Reported);
    Some(Finding { kind, node: None, instances: Vec::new(), text, handling })
}

fn print_findings(context: &Context<'_>, findings: &[Finding]) {
    for finding in findings {
        context.output.print_unless_quiet(finding);
    }
}

/// Logs new findings that are only reported: nobody reads the output under a timer.
fn log_findings(context: &Context<'_>, findings: &[Finding]) {
    for message in &newly_reported(&*context.state, findings) {
        context.bootstrap.log.write(Level::Warning, None, message);
    }
}

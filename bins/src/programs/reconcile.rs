//! `reconcile`: cloud, Slurm and slurm.conf compared, and put right.

use crate::args::{Common, time};
use crate::bootstrap::Bootstrap;
use crate::context::Context;
use crate::diagnostic::Diagnostic;
use crate::drive::until_interrupted;
use crate::log::{Entry, Level};
use crate::process::{SOME_FAILED, SUCCESS};
use crate::wiring::{self, Purpose};
use clap::Parser;
use provision::budget::Allowance;
use provision::plan::{Finding, FindingKind, Handling};
use provision::run::{self, Run, newly_reported};
use std::time::Duration;

/// Compare the cloud, Slurm and slurm.conf, and repair discrepancies.
///
/// Without --apply it only shows what it would do. Nothing is terminated that was not seen in two runs, nothing at all while
/// the cloud's listing is incomplete, and nodes that an administrator has drained or set down are not touched. Nodes for which
/// the cloud has no capacity are drained until it has, if their partition has others, so that jobs do not wait for them.
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

/// Compares cloud and Slurm, once or until told to end.
pub async fn run(arguments: Arguments) -> u8 {
    // One for all rounds: what is told while nobody listens is lost.
    let told = async {
        match arguments.watch {
            Some(_) => until_interrupted().await,
            None => std::future::pending().await,
        }
    };
    tokio::pin!(told);
    let mut code = SUCCESS;
    loop {
        // Anew each time: the configuration may have changed.
        let bootstrap = Bootstrap::open("reconcile", &arguments.common);
        let opened = tokio::select! {
            biased;
            () = &mut told => return code,
            opened = open(&bootstrap) => opened,
        };
        code = match opened {
            Ok(context) => round(&context, &arguments).await,
            // An unreachable cloud, or a file that somebody is about to change, will not be so the next time.
            Err(diagnostic) => bootstrap.fail(&diagnostic),
        };
        let Some(pause) = arguments.watch else { return code };
        tokio::select! {
            biased;
            () = &mut told => return code,
            () = tokio::time::sleep(pause) => {}
        }
    }
}

async fn open(bootstrap: &Bootstrap) -> Result<Context, Diagnostic> {
    let mut context = Context::open(bootstrap, Purpose::Other, None).await?;
    context.fill(None).await;
    with_prices(&mut context);
    // What else does not fit is seen all the same.
    context.find_images_or_go_on().await?;
    Ok(context)
}

/// Reads what machines cost, for the metrics; where nobody has said it, they have no costs.
fn with_prices(context: &mut Context) {
    let Context { settings, environment, .. } = &*context;
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

/// Reconciles once; when cancelled, it ends in order.
async fn round(context: &Context, arguments: &Arguments) -> u8 {
    let work = async |run: &Run<'_>| once(context, arguments, run).await;
    context.with_run(&arguments.common, work).await
}

async fn once(context: &Context, arguments: &Arguments, run: &Run<'_>) -> u8 {
    let common = &arguments.common;
    if arguments.apply {
        let mut report = run::reconcile(run).await;
        report.findings.extend(hidden(context));
        note(context, &report.findings);
        if !common.json {
            tell(context, &report.findings);
        }
        let blind = report.findings.iter().any(|finding| finding.kind == FindingKind::Blind);
        let code = context.report(common, &report);
        context.notify(&report).await;
        // Who forgets what it has seen never sees anything twice, and puts little right.
        return if blind || context.forgets { SOME_FAILED } else { code };
    }
    let (mut plan, look) = run::preview_reconcile(run).await;
    plan.findings.extend(hidden(context));
    if plan.findings.is_empty() && plan.is_idle() && !common.json {
        context.output.say("no discrepancies found");
    } else {
        context.show(common, &plan);
    }
    if context.hidden().is_some() { SOME_FAILED } else { context.blind(&look) }
}

/// That there is more to compare than slurmctld tells.
fn hidden(context: &Context) -> Option<Finding> {
    let text = context.hidden()?;
    let (kind, handling) = (FindingKind::Blind, Handling::Reported);
    Some(Finding { kind, node: None, instances: Vec::new(), text, handling })
}

fn tell(context: &Context, findings: &[Finding]) {
    for finding in findings {
        context.output.say(finding);
    }
}

/// Logs what is only reported, once: a timer shows nobody what we print.
fn note(context: &Context, findings: &[Finding]) {
    for message in &newly_reported(&*context.state, findings) {
        context.log.write(Entry { level: Level::Warning, node: None, message });
    }
}

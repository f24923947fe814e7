//! `reconcile`: cloud, Slurm and slurm.conf compared, and put right.

use crate::args::Common;
use crate::context::Context;
use crate::trouble::Trouble;
use crate::wiring::{self, Purpose};
use clap::Parser;
use provision::plan::Finding;
use provision::run::{self, Run};
use std::time::Duration;

/// Compare the cloud, Slurm and slurm.conf, and put right what does not fit.
///
/// Without --apply it only says what it would do. Nothing is terminated that was not seen in two runs, nothing at all while
/// the cloud's listing is incomplete, and nodes that an administrator has drained or set down are left alone.
#[derive(Debug, Parser)]
#[command(name = "reconcile", version, after_help = EXAMPLES)]
pub struct Arguments {
    #[command(flatten)]
    pub(crate) common: Common,

    /// Put right what does not fit.
    #[arg(long, conflicts_with = "dry_run")]
    apply: bool,

    /// Do it again after so many seconds, until told to end.
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    watch: Option<u64>,
}

const EXAMPLES: &str = "\
Examples:
  reconcile                       what does not fit, and what would be done
  reconcile --apply               do it
  reconcile --apply --watch 60    do it every minute; the systemd timer does the same

Exit code: 0 all well, 1 something could not be put right or seen, 2 wrong usage or configuration (nothing done).";

/// Runs it.
pub async fn run(arguments: Arguments) -> u8 {
    match begin(&arguments).await {
        Ok(code) => code,
        Err(trouble) => super::wrong("reconcile", &arguments.common, &trouble),
    }
}

async fn begin(arguments: &Arguments) -> Result<u8, Trouble> {
    loop {
        // Opened anew each time: the configuration may have changed.
        let mut context = Context::open("reconcile", &arguments.common, Purpose::Other).await?;
        match wiring::images(&mut context.site, &context.slurm.config, &*context.cloud).await {
            // What else does not fit is seen all the same.
            Err(trouble) if trouble.passes() => context.warn(&trouble.to_string()),
            done => done?,
        }
        let (code, cancelled) = context
            .with_run(&arguments.common, async |run: &Run<'_>| {
                let code = once(&context, arguments, run).await;
                let Some(seconds) = arguments.watch else { return (code, true) };
                let mut cancel = run.tools.cancel.clone();
                tokio::select! {
                    () = cancel.cancelled() => (code, true),
                    () = tokio::time::sleep(Duration::from_secs(seconds)) => (code, false),
                }
            })
            .await;
        if cancelled {
            return Ok(code);
        }
    }
}

async fn once(context: &Context, arguments: &Arguments, run: &Run<'_>) -> u8 {
    let common = &arguments.common;
    if arguments.apply {
        let report = run::reconcile(run).await;
        if !common.json {
            tell(context, &report.findings);
        }
        return context.tell(common, &report);
    }
    let (plan, look) = run::preview_reconcile(run).await;
    if plan.findings.is_empty() && plan.is_idle() && !common.json {
        context.output.say("all is well");
    } else {
        context.show(common, &plan);
    }
    context.blind(&look)
}

fn tell(context: &Context, findings: &[Finding]) {
    for finding in findings {
        context.output.say(finding);
    }
}

//! `finish`: limits become the node section of slurm.conf.

mod check;
mod difference;
mod inputs;
mod power;

pub(super) use inputs::marked;
mod prove;
mod settle;

use crate::args::Common;
use crate::context::Context;
use crate::output::{Volume, chain};
use crate::process::{SOME_FAILED, WELL, WRONG};
use crate::trouble::Trouble;
use crate::wiring::{self, Purpose};
use clap::{Parser, ValueEnum};
use inputs::Inputs;
use provision::plan::{self, File, Finish, Plan, Refusal, Step};
use provision::run::{self, Run};
use slurmconf::{Document, Markers, Style};
use slurmctl::Controller as _;
use std::path::PathBuf;
use std::time::Duration;

/// Make the node section of slurm.conf from limits.yaml, and have slurmctld take it.
///
/// Shows what changes, proves it on a throw-away slurmctld, replaces the file as a whole (the previous version is kept),
/// and tells slurmctld. Nothing is written if nothing changes, if the new file is no good, or if a node that would go
/// is running a job. If slurmctld does not answer afterwards, the previous file is put back.
#[derive(Debug, Parser)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own")]
#[command(name = "finish", version, after_help = EXAMPLES)]
pub struct Arguments {
    #[command(flatten)]
    pub(crate) common: Common,

    /// What may be used.
    #[arg(long, value_name = "FILE", default_value = "limits.yaml")]
    limits: PathBuf,

    /// Shapes besides those that are built in [default: /etc/citc/shapes.yaml, if it is there].
    #[arg(long, value_name = "FILE")]
    shapes: Option<PathBuf>,

    /// How nodes are written.
    #[arg(long, value_name = "STYLE", default_value = "folded")]
    style: StyleName,

    /// The partition that gets Default=YES, of those that limits.yaml names.
    #[arg(long, value_name = "NAME")]
    default_partition: Option<String>,

    /// Check configuration, credentials, image, limits and Slurm's parameters; write nothing.
    #[arg(long, conflicts_with_all = ["print", "force"])]
    check: bool,

    /// Print the node section and do nothing.
    #[arg(long)]
    print: bool,

    /// Print the lines that slurm.conf needs outside the node section (from 26.05 on with `PowerAction`), and do nothing.
    #[arg(long, conflicts_with = "print")]
    print_power: bool,

    /// Write the file, and leave it to you to tell slurmctld.
    #[arg(long)]
    no_restart: bool,

    /// Do not try the file on a throw-away slurmctld.
    #[arg(long)]
    no_prove: bool,

    /// Also if nodes that go are running jobs, or the management node is not ready.
    #[arg(long)]
    force: bool,
}

/// How nodes are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum StyleName {
    /// Ranges, which slurmctld reads far faster.
    Folded,
    /// A line for each node, as Cluster in the Cloud writes it.
    Citc,
    /// Ranges with a node set for each group, as StackHPC writes them.
    NodeGroups,
}

const EXAMPLES: &str = "\
Examples:
  finish --check      is everything in place?
  finish --dry-run    what would change
  finish              do it; run it again whenever limits.yaml has changed
  finish --print      the node section on standard output
  finish --print-power   what slurm.conf needs besides: programs, times, nodes that are never stopped

Exit code: 0 all well (also: nothing to change), 1 something failed (it says what), 2 wrong usage, limits or configuration (nothing done).";

/// Runs it.
pub async fn run(arguments: Arguments) -> u8 {
    match begin(&arguments).await {
        Ok(code) => code,
        Err(trouble) => super::wrong("finish", &arguments.common, &trouble),
    }
}

async fn begin(arguments: &Arguments) -> Result<u8, Trouble> {
    let purpose = if arguments.check { Purpose::Launch } else { Purpose::Other };
    let context = Context::open("finish", &arguments.common, purpose).await?;
    if !arguments.force
        && let Some(unready) = inputs::unready(&context)
    {
        context.output.complain(unready);
        return Ok(SOME_FAILED);
    }
    let inputs = Inputs::read(arguments, &context).await?;
    if arguments.print {
        context.output.print(inputs.cluster.to_string().trim_end());
        return Ok(WELL);
    }
    if arguments.print_power {
        let lines = power::lines(&context, &inputs, arguments.common.config.as_deref())?;
        context.output.print(lines.trim_end());
        return Ok(WELL);
    }
    if arguments.check {
        return check(arguments, &context, &inputs).await;
    }
    change(arguments, context, &inputs).await
}

async fn check(arguments: &Arguments, context: &Context, inputs: &Inputs) -> Result<u8, Trouble> {
    let request = request(arguments, context, inputs);
    context
        .with_run(&arguments.common, async |run: &Run<'_>| {
            let look = run.look().await;
            let plan =
                plan::finish(&request, look.world(run)).map_err(|e| Trouble::from_error(&e))?;
            Ok(check::all(context, inputs, &section(inputs, &plan)?).await)
        })
        .await
}

fn request<'a>(arguments: &Arguments, context: &Context, inputs: &'a Inputs) -> Finish<'a> {
    Finish {
        document: &inputs.document,
        cluster: &inputs.cluster,
        version: context.slurm.controller.version(),
        force: arguments.force,
        tell: !arguments.no_restart,
        patience: Duration::ZERO,
    }
}

async fn change(
    arguments: &Arguments,
    mut context: Context,
    inputs: &Inputs,
) -> Result<u8, Trouble> {
    let common = &arguments.common;
    context.files.slurm_conf = Some(inputs.path.clone());
    context.site.policies.deadline = wiring::unhurried(&context.settings);
    let request = request(arguments, &context, inputs);
    context
        .with_run(common, async |run: &Run<'_>| {
            let look = run.look().await;
            let plan =
                plan::finish(&request, look.world(run)).map_err(|e| Trouble::from_error(&e))?;
            if plan.is_idle() && plan.steps().next().is_none() {
                context.output.say("nothing to change");
                return Ok(WELL);
            }
            let section = section(inputs, &plan)?;
            show(arguments, &context, inputs, (&plan, &section))?;
            if common.dry_run {
                return Ok(WELL);
            }
            if refused(&context, inputs, &plan) {
                return Ok(WRONG);
            }
            settle::rehearse(inputs)?;
            if !arguments.no_prove && !proven(&context, inputs, &section).await {
                return Ok(SOME_FAILED);
            }
            let report = run::finish(run, &request).await.map_err(|e| Trouble::from_error(&e))?;
            let code = context.tell(common, &report);
            let settled = settle::settle(&context, inputs, &plan, &report).await;
            Ok(if settled { code } else { SOME_FAILED })
        })
        .await
}

fn show(
    arguments: &Arguments,
    context: &Context,
    inputs: &Inputs,
    (plan, section): (&Plan, &str),
) -> Result<(), Trouble> {
    if arguments.common.json {
        if arguments.common.dry_run {
            context.show(&arguments.common, plan);
        }
        return Ok(());
    }
    // A dry run is for nothing but this.
    let quiet = context.output.volume == Volume::Quiet && !arguments.common.dry_run;
    let lines = difference::lines(inputs, section, context.output)?;
    let plan = plan.to_string();
    for line in lines.iter().map(String::as_str).chain([plan.trim_end()]).filter(|_| !quiet) {
        context.output.print(line);
    }
    Ok(())
}

/// What stands between the markers when the plan is carried out: what a planner adds to the nodes is shown and tried, too.
fn section(inputs: &Inputs, plan: &Plan) -> Result<String, Trouble> {
    let written = plan.steps().find_map(|step| match step {
        Step::WriteFile { which: File::SlurmConf, text, .. } => Some(text.as_str()),
        _ => None,
    });
    let refuses = plan.steps().any(|step| matches!(step, Step::Refuse { .. }));
    let section = match written {
        Some(text) => Document::parse(text).section(Markers::NODES),
        None if refuses => Ok(inputs.cluster.to_string()),
        None => inputs.document.section(Markers::NODES),
    };
    section.map_err(|error| Trouble::from_error(&error))
}

async fn proven(context: &Context, inputs: &Inputs, section: &str) -> bool {
    match prove::prove(context, inputs, section).await {
        Ok(prove::Proof { complaints, tried: true }) => {
            for complaint in complaints {
                context
                    .warn(&format!("a throw-away slurmctld took the file, but said: {complaint}"));
            }
            true
        }
        Ok(prove::Proof { tried: false, .. }) => {
            context.warn("the new file was not tried: no slurmctld is installed here");
            true
        }
        Err(why) => {
            let what = match why {
                prove::Failure::Untried(_) => "the new file could not be tried",
                prove::Failure::Refused(_) | prove::Failure::Silent(_) => {
                    "slurmctld refuses the new file"
                }
            };
            let why = chain(&why);
            context.output.complain(format_args!("{what}, and nothing is changed: {why}"));
            false
        }
    }
}

/// Says which nodes may not go, if that is all that the plan says.
fn refused(context: &Context, inputs: &Inputs, plan: &Plan) -> bool {
    let refusal = |step: &Step| match step {
        Step::Refuse { node, why: why @ (Refusal::Job(_) | Refusal::InUse) } => {
            Some(format!("{node}: {why}"))
        }
        _ => None,
    };
    let refusals: Vec<String> = plan.steps().filter_map(refusal).collect();
    if refusals.is_empty() {
        return false;
    }
    for line in refusals {
        context.output.complain(line);
    }
    context.output.complain(format_args!(
        "{} is left as it is: {} would remove these nodes; wait for their jobs (scontrol update nodename=... \
         state=drain reason=...), raise the limits, or use --force",
        inputs.path.display(),
        inputs.limits.display()
    ));
    true
}

impl From<StyleName> for Style {
    fn from(name: StyleName) -> Self {
        match name {
            StyleName::Folded => Self::Folded,
            StyleName::Citc => Self::Citc,
            StyleName::NodeGroups => Self::NodeGroups,
        }
    }
}

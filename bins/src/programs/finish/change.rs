//! From the nodes that slurm.conf is to have to a slurmctld that runs with them.

use super::inputs::Inputs;
use super::settle::{rehearse, settle};
use super::{difference, prove};
use crate::args::Common;
use crate::context::Context;
use crate::output::{Volume, chain};
use crate::process::{SOME_FAILED, WELL, WRONG};
use crate::trouble::Trouble;
use crate::wiring;
use provision::Report;
use provision::plan::{self, File, Finish, Plan, Refusal, Step};
use provision::run::{self, Look, Run};
use slurmconf::{Document, Markers};

/// What is to be done about the nodes of slurm.conf.
pub(in crate::programs) struct Change<'a> {
    pub(in crate::programs) common: &'a Common,
    pub(in crate::programs) inputs: &'a Inputs,
    pub(in crate::programs) request: Finish<'a>,
    /// True to try the file on a throw-away slurmctld.
    pub(in crate::programs) prove: bool,
    pub(in crate::programs) how: How,
}

/// What becomes of machines and jobs when nodes come or go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::programs) enum How {
    /// A node with a job does not go, and none is started.
    Finish,
    /// Jobs are waited for, and nodes that are always there are started.
    Resize,
}

impl How {
    fn plan(self, request: &Finish<'_>, look: &Look, run: &Run<'_>) -> Result<Plan, Trouble> {
        let planner = match self {
            Self::Finish => plan::finish,
            Self::Resize => plan::resize_to,
        };
        planner(request, look.world(run)).map_err(|error| Trouble::from_error(&error))
    }

    async fn carry_out(self, request: &Finish<'_>, run: &Run<'_>) -> Result<Report, Trouble> {
        let report = match self {
            Self::Finish => run::finish(run, request).await,
            Self::Resize => run::resize_to(run, request).await,
        };
        report.map_err(|error| Trouble::from_error(&error))
    }
}

impl Change<'_> {
    /// Shows what changes, tries it, and does it.
    pub(in crate::programs) async fn make(&self, mut context: Context) -> Result<u8, Trouble> {
        context.files.slurm_conf = Some(self.inputs.path.clone());
        context.site.policies.deadline = wiring::unhurried(&context.settings);
        context
            .with_run(self.common, async |run: &Run<'_>| {
                let look = run.look().await;
                let plan = self.how.plan(&self.request, &look, run)?;
                if plan.is_idle() && plan.steps().next().is_none() {
                    context.output.say("nothing to change");
                    return Ok(WELL);
                }
                let section = section(self.inputs, &plan)?;
                show(self.common, &context, self.inputs, (&plan, &section))?;
                if self.common.dry_run {
                    return Ok(self.seen(&context, &look));
                }
                self.carry_out(&context, run, (&plan, &section)).await
            })
            .await
    }

    async fn carry_out(
        &self,
        context: &Context,
        run: &Run<'_>,
        (plan, section): (&Plan, &str),
    ) -> Result<u8, Trouble> {
        let Self { common, inputs, .. } = self;
        if self.how == How::Finish && refused(context, inputs, plan) {
            return Ok(WRONG);
        }
        let writes = plan.steps().any(|step| matches!(step, Step::WriteFile { .. }));
        if writes {
            rehearse(inputs)?;
        }
        if writes && self.prove && !proven(context, inputs, section).await {
            return Ok(SOME_FAILED);
        }
        context.expect(plan);
        let report = self.how.carry_out(&self.request, run).await?;
        let code = context.tell(common, &report);
        let settled = settle(context, inputs, plan, &report).await;
        Ok(if settled { code } else { SOME_FAILED })
    }

    /// The exit code of a plan that is only shown: a slurmctld that is yet to be started hides nothing from `finish`.
    fn seen(&self, context: &Context, look: &Look) -> u8 {
        if self.how == How::Finish && look.fleet.is_complete() { WELL } else { context.blind(look) }
    }
}

/// Shows what changes in slurm.conf, and the plan.
fn show(
    common: &Common,
    context: &Context,
    inputs: &Inputs,
    (plan, section): (&Plan, &str),
) -> Result<(), Trouble> {
    if common.json {
        if common.dry_run {
            context.show(common, plan);
        }
        return Ok(());
    }
    // A dry run is for nothing but this.
    let quiet = context.output.volume == Volume::Quiet && !common.dry_run;
    let lines = difference::lines(inputs, section, context.output)?;
    let plan = plan.to_string();
    for line in lines.iter().map(String::as_str).chain([plan.trim_end()]).filter(|_| !quiet) {
        context.output.print(line);
    }
    Ok(())
}

/// What stands between the markers when the plan is carried out: what a planner adds to the nodes is shown and tried, too.
pub(super) fn section(inputs: &Inputs, plan: &Plan) -> Result<String, Trouble> {
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

/// Tries the new file on a throw-away slurmctld, and says what came of it; false if it is no good.
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

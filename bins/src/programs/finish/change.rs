//! From the nodes that slurm.conf is to have to a slurmctld that runs with them.

use super::inputs::Marked;
use super::settle::{is_written, rehearse, remember, settle};
use super::{check, difference, prove};
use crate::args::Common;
use crate::context::Context;
use crate::drive::fails;
use crate::output::{Volume, chain};
use crate::process::{SOME_FAILED, WELL, WRONG};
use crate::trouble::Trouble;
use crate::wiring;
use provision::Report;
use provision::exec::Files;
use provision::plan::{self, File, Finish, Plan, Refusal, Resize, Step};
use provision::run::{self, Observation, Run};
use slurmconf::{Cluster, Document, Markers};
use std::path::Path;

/// What is to be done about the nodes of slurm.conf.
pub(in crate::programs) struct Change<'a> {
    pub(in crate::programs) common: &'a Common,
    pub(in crate::programs) marked: &'a Marked,
    pub(in crate::programs) aim: Aim<'a>,
    /// True to try the file on a throw-away slurmctld.
    pub(in crate::programs) prove: bool,
}

/// Which nodes there are to be, and what becomes of machines and jobs when they come or go.
pub(in crate::programs) enum Aim<'a> {
    /// What the limits say: a node with a job does not go, and none is started.
    Finish {
        request: Finish<'a>,
        /// Where the limits are.
        limits: &'a Path,
    },
    /// What the limits say: jobs are waited for, and nodes that are always there are started.
    Limits(Finish<'a>),
    /// So many that are always there: likewise.
    Size(Resize<'a>),
}

impl Aim<'_> {
    fn plan(&self, look: &Observation, run: &Run<'_>) -> Result<Plan, Trouble> {
        let plan = match self {
            Self::Finish { request, .. } => plan::finish(request, look.world(run)),
            Self::Limits(request) => plan::resize_to(request, look.world(run)),
            Self::Size(request) => Ok(plan::resize(request, look.world(run))),
        };
        let plan = plan.map_err(|error| Trouble::from_error(&error))?;
        unwritable(&plan).map_or(Ok(plan), Err)
    }

    async fn carry_out(&self, run: &Run<'_>) -> Result<Report, Trouble> {
        let report = match self {
            Self::Finish { request, .. } => run::finish(run, request).await,
            Self::Limits(request) => run::resize_to(run, request).await,
            Self::Size(request) => Ok(run::resize(run, request).await),
        };
        report.map_err(|error| Trouble::from_error(&error))
    }

    /// What is to stand between the markers, if that is known before it is planned.
    fn cluster(&self) -> Option<&Cluster> {
        match self {
            Self::Finish { request, .. } | Self::Limits(request) => Some(request.cluster),
            Self::Size(_) => None,
        }
    }
}

impl Change<'_> {
    /// Shows what changes, tries it, and does it.
    pub(in crate::programs) async fn make(&self, mut context: Context) -> Result<u8, Trouble> {
        context.files.slurm_conf = Some(self.marked.path.clone());
        context.site.policies.deadline = wiring::unhurried(&context.settings);
        let Files { hosts, inventory, .. } = &context.files;
        context.site.policies.files = hosts.is_some() || inventory.is_some();
        context
            .with_run(self.common, async |run: &Run<'_>| {
                let look = run.observe().await;
                let plan = self.aim.plan(&look, run)?;
                if plan.is_idle() && plan.steps().next().is_none() {
                    return Ok(self.idle(&context, &plan));
                }
                let section = section(self.marked, self.aim.cluster(), &plan)?;
                show(self.common, &context, self.marked, (&plan, &section))?;
                if self.common.dry_run {
                    return Ok(self.seen(&context, &look, &plan));
                }
                self.carry_out(&context, run, (&plan, &section)).await
            })
            .await
    }

    /// Says that there is nothing to change, as what was asked for is said.
    fn idle(&self, context: &Context, plan: &Plan) -> u8 {
        match (self.common.json, self.common.dry_run) {
            (true, true) => context.show(self.common, plan),
            (true, false) => context.tell(self.common, &Report::new(plan.operation)),
            (false, _) => {
                context.output.say("nothing to change");
                WELL
            }
        }
    }

    async fn carry_out(
        &self,
        context: &Context,
        run: &Run<'_>,
        (plan, section): (&Plan, &str),
    ) -> Result<u8, Trouble> {
        let Self { common, marked, .. } = self;
        if let Aim::Finish { limits, .. } = &self.aim
            && refused(context, (&marked.path, limits), plan)
        {
            return Ok(WRONG);
        }
        if let Some(text) = written(plan) {
            rehearse(marked, text)?;
            if self.prove && !proven(context, marked, section).await {
                return Ok(SOME_FAILED);
            }
        }
        context.expect(plan);
        let mut report = self.aim.carry_out(run).await?;
        // Before it is told: a file that was put back is no success.
        let undone = settle(context, marked, (plan, section), &report).await;
        let taken = report.slurm_told && undone.is_empty();
        report.failures.extend(undone);
        let code = context.tell(common, &report);
        if taken {
            remember(context, marked, section);
        }
        if taken && code == WELL && is_written(plan, &marked.path) && !common.json {
            // What was said before it was told, as that it did not answer, is past.
            context.output.say("slurmctld runs with the new file");
        }
        Ok(code)
    }

    /// The exit code of a plan that is only shown, which is that of a run that does it: a slurmctld that is yet to be
    /// started hides nothing from `finish`.
    fn seen(&self, context: &Context, look: &Observation, plan: &Plan) -> u8 {
        match self.aim {
            Aim::Finish { .. } if !in_use(plan).is_empty() => WRONG,
            _ if fails(plan) => SOME_FAILED,
            Aim::Finish { .. } if look.fleet.is_complete() => WELL,
            Aim::Finish { .. } | Aim::Limits(_) | Aim::Size(_) => context.blind(look),
        }
    }
}

/// What is wrong with slurm.conf, where that is why nothing is planned: it is the configuration, and no node, that is at fault.
fn unwritable(plan: &Plan) -> Option<Trouble> {
    plan.steps().find_map(|step| match step {
        Step::Refuse { why: why @ Refusal::BadConf(_), .. } => Some(Trouble::new(why.to_string())),
        _ => None,
    })
}

/// Shows what changes in slurm.conf, and the plan.
fn show(
    common: &Common,
    context: &Context,
    marked: &Marked,
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
    let lines = difference::lines(marked, section, context.output)?;
    let plan = plan.to_string();
    for line in lines.iter().map(String::as_str).chain([plan.trim_end()]).filter(|_| !quiet) {
        context.output.print(line);
    }
    Ok(())
}

/// The text of slurm.conf that the plan writes.
fn written(plan: &Plan) -> Option<&[u8]> {
    plan.steps().find_map(|step| match step {
        Step::WriteFile { which: File::SlurmConf, text, .. } => Some(text.as_slice()),
        _ => None,
    })
}

/// What stands between the markers when the plan is carried out: what a planner adds to the nodes is shown and tried, too.
pub(super) fn section(
    marked: &Marked,
    cluster: Option<&Cluster>,
    plan: &Plan,
) -> Result<String, Trouble> {
    let refuses = plan.steps().any(|step| matches!(step, Step::Refuse { .. }));
    let section = match (written(plan), cluster) {
        (Some(text), _) => Document::parse(text).section(Markers::NODES),
        (None, Some(cluster)) if refuses => Ok(cluster.to_string()),
        (None, _) => marked.document.section(Markers::NODES),
    };
    section.map_err(|error| Trouble::from_error(&error))
}

/// Tries the new file on a throw-away slurmctld, and says what came of it; false if it is no good.
async fn proven(context: &Context, marked: &Marked, section: &str) -> bool {
    // The trial has programs of its own, which do nothing.
    for problem in check::programs(&context.slurm.config) {
        context.warn(&problem);
    }
    match prove::prove(context, marked, section).await {
        Ok(prove::Proof::Ran { complaints }) => {
            for complaint in complaints {
                context
                    .warn(&format!("a throw-away slurmctld took the file, but said: {complaint}"));
            }
            true
        }
        Ok(prove::Proof::Untried(why)) => {
            context.warn(&format!("the new file was not tried: {why}"));
            true
        }
        Err(why) => {
            let what = match why {
                prove::Failure::Untried(_) => "the new file could not be tried",
                prove::Failure::Refused(_) => "slurmctld refuses the new file",
                prove::Failure::Silent(_) => {
                    "a throw-away slurmctld does not come up with the new file"
                }
            };
            let why = chain(&why);
            context.output.complain(format_args!("{what}, and nothing is changed: {why}"));
            false
        }
    }
}

/// The nodes that may not go because of their jobs, each with the reason.
fn in_use(plan: &Plan) -> Vec<String> {
    let refusal = |step: &Step| match step {
        Step::Refuse { node, why: why @ (Refusal::Job(_) | Refusal::InUse) } => {
            Some(format!("{node}: {why}"))
        }
        _ => None,
    };
    plan.steps().filter_map(refusal).collect()
}

/// Says which nodes may not go, if that is all that the plan says.
fn refused(context: &Context, (conf, limits): (&Path, &Path), plan: &Plan) -> bool {
    let refusals = in_use(plan);
    if refusals.is_empty() {
        return false;
    }
    for line in refusals {
        context.output.complain(line);
    }
    context.output.complain(format_args!(
        "{} is left as it is: {} would remove these nodes; wait for their jobs (scontrol update nodename=... \
         state=drain reason=...), raise the limits, or use --force",
        conf.display(),
        limits.display()
    ));
    true
}

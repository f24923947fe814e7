//! Changes the nodes of slurm.conf: shows the difference, tries the new file, writes and applies it.

use super::{check, difference};
use crate::context::Context;
use crate::diagnostic::Diagnostic;
use crate::environment::this_user;
use crate::output::{Volume, chain};
use crate::process::{SOME_FAILED, SUCCESS, USAGE_ERROR};
use crate::wiring;
use provision::Files;
use provision::Report;
use provision::conf::{
    Applied, MarkedFile, Proof, Trial, bad_conf, nodes_in_use, planned_section, unfit_jobs,
    written_conf,
};
use provision::plan::Plan;
use provision::run::{self, Observation, Run, RunRequest};
use slurmconf::{Cluster, Config};
use std::path::Path;

/// A change of slurm.conf.
pub(in crate::programs) struct Change<'a> {
    pub(in crate::programs) marked: &'a MarkedFile,
    /// The nodes that slurm.conf should have.
    pub(in crate::programs) request: RunRequest<'a>,
    /// Path of the limits that decide which nodes there are, unless nodes with jobs are drained and removed later.
    pub(in crate::programs) limits: Option<&'a Path>,
    /// True to try the file on a throw-away slurmctld.
    pub(in crate::programs) prove: bool,
}

impl Change<'_> {
    /// Shows the changes, tries them, and applies them.
    pub(in crate::programs) async fn make(
        self,
        mut context: Context<'_>,
    ) -> Result<u8, Diagnostic> {
        context.files.slurm_conf = Some(self.marked.path.clone());
        context.site.policies.deadline = wiring::operator_deadline(context.settings);
        let Files { hosts, inventory, .. } = &context.files;
        context.site.policies.files = hosts.is_some() || inventory.is_some();
        context
            .with_run(async |run: &Run<'_>| {
                let (plan, observation) = run::preview(run, &self.request).await?;
                if let Some(why) = bad_conf(&plan) {
                    return Err(Diagnostic::new(why));
                }
                if plan.is_idle() && plan.steps().next().is_none() {
                    return Ok(report_idle(&context, &plan));
                }
                let section = planned_section(self.marked, self.cluster(), &plan)?;
                show(&context, self.marked, (&plan, &section))?;
                for unfit in self.unfit_jobs(&context, &observation, &section) {
                    context.warn(&unfit);
                }
                if context.dry_run() {
                    return Ok(self.preview_code(&context, &observation, &plan));
                }
                self.carry_out(&context, run, (&plan, &section)).await
            })
            .await
    }

    /// The new nodes, if they are known before planning.
    fn cluster(&self) -> Option<&Cluster> {
        let (RunRequest::Finish(request) | RunRequest::ResizeTo(request)) = &self.request else {
            return None;
        };
        Some(request.cluster)
    }

    /// Pending jobs that will no longer fit.
    fn unfit_jobs(
        &self,
        context: &Context<'_>,
        observation: &Observation,
        section: &str,
    ) -> Vec<String> {
        let old = self.marked.section().and_then(|old| Config::parse(&old));
        let (Some(jobs), Ok(old), Ok(new)) = (&observation.jobs, old, Config::parse(section))
        else {
            return Vec::new();
        };
        unfit_jobs(jobs, &context.slurm.config, &old, &new)
    }

    async fn carry_out(
        self,
        context: &Context<'_>,
        run: &Run<'_>,
        (plan, section): (&Plan, &str),
    ) -> Result<u8, Diagnostic> {
        let marked = self.marked;
        if let Some(limits) = self.limits
            && refused(context, (&marked.path, limits), plan)
        {
            return Ok(USAGE_ERROR);
        }
        if let Some(text) = written_conf(plan) {
            rehearse(marked, text)?;
            if self.prove && !proven(context, marked, section).await {
                return Ok(SOME_FAILED);
            }
        }
        context.expect(plan);
        let mut report = run::execute(run, self.request).await?;
        let applied = Applied {
            slurm: &context.slurm.controller,
            before: &context.slurm.config,
            marked,
            plan,
            section,
        };
        // Before the report, because a rolled-back file is a failure.
        let verdict = applied.verify_or_roll_back(&report).await;
        verdict.warning.iter().for_each(|warning| context.warn(warning));
        let is_taken = report.slurm_reloaded && verdict.rolled_back.is_empty();
        report.failures.extend(verdict.rolled_back);
        let code = context.report(&report);
        context.notify(&report).await;
        if is_taken {
            applied.remember(&*context.state);
        }
        if is_taken && code == SUCCESS && applied.is_written() && !context.json() {
            // Earlier warnings, such as that slurmctld did not answer, are outdated.
            context.output.print_unless_quiet("slurmctld runs with the new file");
        }
        Ok(code)
    }

    /// The exit code of a dry run, which is that of a run that carries out the plan. `finish` does not need slurmctld.
    fn preview_code(&self, context: &Context<'_>, observation: &Observation, plan: &Plan) -> u8 {
        let finishes = matches!(self.request, RunRequest::Finish(_));
        if finishes && !nodes_in_use(plan).is_empty() {
            USAGE_ERROR
        } else if plan.fails() {
            SOME_FAILED
        } else if finishes && observation.fleet.is_complete() {
            SUCCESS
        } else {
            context.report_unobserved(observation)
        }
    }
}

/// Prints that there is nothing to change, in the chosen format.
fn report_idle(context: &Context<'_>, plan: &Plan) -> u8 {
    match (context.json(), context.dry_run()) {
        (true, true) => context.show(plan),
        (true, false) => context.report(&Report::new(plan.operation)),
        (false, _) => {
            context.output.print_unless_quiet("nothing to change");
            SUCCESS
        }
    }
}

/// Prints the changes of slurm.conf, and the plan.
fn show(
    context: &Context<'_>,
    marked: &MarkedFile,
    (plan, section): (&Plan, &str),
) -> Result<(), Diagnostic> {
    if context.json() {
        if context.dry_run() {
            context.show(plan);
        }
        return Ok(());
    }
    // This is all that a dry run prints.
    let quiet = context.output.volume == Volume::Quiet && !context.dry_run();
    let lines = difference::lines(marked, section, context.output)?;
    let plan = plan.to_string();
    for line in lines.iter().map(String::as_str).chain([plan.trim_end()]).filter(|_| !quiet) {
        context.output.print(line);
    }
    Ok(())
}

/// Checks that the file can be replaced, before anything is changed.
fn rehearse(marked: &MarkedFile, text: &[u8]) -> Result<(), Diagnostic> {
    marked.rehearse(text).map_err(|error| {
        let path = std::fs::canonicalize(&marked.path).unwrap_or_else(|_| marked.path.clone());
        let folder = path.parent().unwrap_or(Path::new("/")).display();
        Diagnostic::new(format!(
            "cannot {}; nothing is changed: make room in {folder} or make it writable, by root if the file belongs to \
             another user, and run it again",
            chain(&error)
        ))
    })
}

/// Tries the new file on a throw-away slurmctld, and prints the result. Returns false if it fails.
async fn proven(context: &Context<'_>, marked: &MarkedFile, section: &str) -> bool {
    // The trial replaces the programs with ones that do nothing.
    for problem in check::programs(context) {
        context.warn(&problem);
    }
    let trial = Trial {
        slurm: &context.slurm.controller,
        conf: &context.slurm.path,
        config: &context.slurm.config,
        marked,
        section,
        hostname: &context.bootstrap.environment.hostname,
        user: &this_user(),
    };
    match trial.prove().await {
        Ok(Proof::Ran { errors }) => {
            for error in errors {
                context
                    .warn(&format!("a throw-away slurmctld accepts the file, but logs: {error}"));
            }
            true
        }
        Ok(Proof::Skipped(why)) => {
            context.warn(&format!("the new file was not tried: {why}"));
            true
        }
        Err(why) => {
            context.output.print_error(format_args!("nothing is changed: {}", chain(&why)));
            false
        }
    }
}

/// Prints the nodes in use that would be removed. Returns true if there are any.
fn refused(context: &Context<'_>, (conf, limits): (&Path, &Path), plan: &Plan) -> bool {
    let refusals = nodes_in_use(plan);
    if refusals.is_empty() {
        return false;
    }
    for line in refusals {
        context.output.print_error(line);
    }
    context.output.print_error(format_args!(
        "{} is unchanged: {} would remove these nodes; run resize, which drains them, waits for their \
         jobs and then removes them, or raise the limits, or use --force",
        conf.display(),
        limits.display()
    ));
    true
}

//! A new image for many nodes, a few at a time.

use super::submit::{Submit, request};
use crate::args::Common;
use crate::context::Context;
use crate::diagnostic::Diagnostic;
use crate::output::chain;
use crate::process::SOME_FAILED;
use crate::progress::bar;
use hostlist::Hostlist;
use provision::plan::{self, Refusal, Rollout, RolloutHow, RolloutProgress};
use provision::run::{self, Run};
use provision::state::RolloutMemory;
use provision::{Cause, Outcome, Report, ResolvedRollout};
use serde_json::json;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// Between two looks at a rollout.
const PAUSE: Duration = Duration::from_secs(5);

pub(super) async fn submit(
    context: &Context,
    common: &Common,
    submit: &Submit,
) -> Result<u8, Diagnostic> {
    context
        .with_run(common, async |run: &Run<'_>| {
            let ResolvedRollout { mut request, memory, failed, warnings } =
                request(context, submit, run).await?;
            for text in &warnings {
                context.warn(text);
            }
            for (node, why) in &failed {
                context.warn(&format!("{node}: {why}"));
            }
            let jobs = matches!(request.how, RolloutHow::Jobs(_));
            if request.images.is_empty() && !failed.is_empty() {
                return Ok(SOME_FAILED);
            }
            if jobs {
                // The queue knows which nodes have a job, and the cloud which have the image.
            } else if !submit.anew {
                memory.recall(&mut request);
            } else if !common.dry_run {
                memory.forget(&request).map_err(|error| Diagnostic::from_error(&error))?;
            }
            let code = if common.dry_run {
                let look = run.observe_rollout(&request).await;
                let plan = plan::rollout(&request, look.world(run)).map_err(|why| refused(&why))?;
                context.preview(common, &plan, &look)
            } else {
                let once = submit.once;
                let drive = Drive { context, common, once, deadline: deadline(submit), memory };
                if jobs {
                    drive.submit_jobs(run, &mut request).await?
                } else {
                    drive.roll(run, &mut request).await?
                }
            };
            Ok(if failed.is_empty() { code } else { SOME_FAILED })
        })
        .await
}

fn refused(why: &Refusal) -> Diagnostic {
    Diagnostic::new(why.to_string())
}

/// When to give up; a time that cannot be reckoned never comes.
fn deadline(submit: &Submit) -> Option<Instant> {
    Instant::now().checked_add(submit.deadline)
}

/// What drives a rollout.
struct Drive<'a> {
    context: &'a Context,
    common: &'a Common,
    /// True to return when a batch is begun.
    once: bool,
    deadline: Option<Instant>,
    memory: RolloutMemory,
}

impl Drive<'_> {
    /// Submits the jobs; when they run is for Slurm to say.
    async fn submit_jobs(&self, run: &Run<'_>, request: &mut Rollout) -> Result<u8, Diagnostic> {
        let report = run::rollout(run, request).await.map_err(|why| refused(&why))?;
        let submitted = report.with(Outcome::Done).count();
        if !self.common.json {
            self.context.output.say(format_args!("{submitted} jobs submitted"));
        }
        Ok(self.context.report(self.common, &report))
    }

    fn keep(&self, request: &Rollout) {
        if let Err(error) = self.memory.store(request) {
            let why = chain(&error);
            self.context.warn(&format!("the next call will not know what this one started: {why}"));
        }
    }

    async fn roll(&self, run: &Run<'_>, request: &mut Rollout) -> Result<u8, Diagnostic> {
        let (mut before, mut was_blind) = (None, false);
        // What cannot even begin is wrong usage; what is refused later, as slurm.conf has changed, is a failure.
        let mut report = run::rollout(run, request).await.map_err(|why| refused(&why))?;
        loop {
            self.keep(request);
            let look = run.observe_rollout(request).await;
            let blind = is_blind(look.slurm.is_some(), look.fleet.is_complete());
            let Ok(progress) = plan::rollout_progress(request, look.world(run)) else {
                return Ok(self.context.report(self.common, &report).max(SOME_FAILED));
            };
            if blind && !was_blind {
                self.context.blind(&look);
            } else if !blind && before.replace(progress) != Some(progress) {
                self.tell(progress);
            }
            was_blind = blind;
            if let Some(code) = self.ends(run, (request, &report), progress, blind) {
                return Ok(code);
            }
            for failure in report.failures.iter().chain(&disobeyed(&report)) {
                self.context.warn(failure);
            }
            // Whoever is told to end begins nothing more, and says once more how it stands.
            if !pauses(run).await {
                continue;
            }
            match run::rollout(run, request).await {
                Ok(next) => report = next,
                Err(why) => {
                    self.context.warn(&why.to_string());
                    return Ok(SOME_FAILED);
                }
            }
        }
    }

    /// The exit code, if this is the end of it.
    fn ends(
        &self,
        run: &Run<'_>,
        (request, report): (&Rollout, &Report),
        progress: RolloutProgress,
        blind: bool,
    ) -> Option<u8> {
        let over = is_over(progress, blind);
        if is_done(progress, blind)
            && let Err(error) = self.memory.forget(request)
        {
            self.context.warn(&chain(&error));
        }
        let leave = over || self.once;
        let late = self.deadline.is_some_and(|deadline| Instant::now() >= deadline);
        if !(leave || late || run.tools.cancel.is_cancelled()) {
            return None;
        }
        self.context.progress.clear(self.context.output);
        let code = self.context.report(self.common, report);
        Some(if progress.failed > 0 || blind || !leave { SOME_FAILED } else { code })
    }

    /// A line for each change, as JSON if asked for; on a terminal a bar in one place.
    fn tell(&self, progress: RolloutProgress) {
        let RolloutProgress { done, under_way, failed, left, apart, halted, .. } = progress;
        let output = self.context.output;
        if self.common.json {
            output.print(json!({
                "done": done, "under_way": under_way, "left": left, "failed": failed, "apart": apart, "halted": halted,
            }));
            return;
        }
        let all = done + under_way + failed + left;
        let end = match (halted, failed > 0 && progress.is_over()) {
            (true, _) => "; stopped, as too many failed; --anew tries them again",
            (false, true) => "; --anew tries those that failed again",
            (false, false) => "",
        };
        let line = format!(
            "{} {done} done, {under_way} under way, {left} left, {failed} failed, {apart} not touched{end}",
            bar(done, all)
        );
        if output.draws {
            self.context.progress.draw(output, &line);
        }
        if !output.draws || progress.is_over() {
            output.say(line);
        }
    }
}

/// Waits for the next look; false if we are told to end.
async fn pauses(run: &Run<'_>) -> bool {
    let mut cancel = run.tools.cancel.clone();
    tokio::select! {
        () = cancel.cancelled() => {}
        () = sleep(PAUSE) => {}
    }
    !cancel.is_cancelled()
}

/// What slurmctld did not do, by its words. The last report alone is told at the end, and these nodes may be tried again before that.
fn disobeyed(report: &Report) -> Vec<String> {
    let mut alike: BTreeMap<&str, Hostlist> = BTreeMap::new();
    for (node, failed) in &report.nodes {
        if failed.cause == Some(Cause::Slurm) {
            let why = failed.reason.as_deref().unwrap_or_default();
            alike.entry(why).or_default().push(node.as_str());
        }
    }
    alike.into_iter().map(|(why, nodes)| format!("{nodes}: {why}")).collect()
}

/// True if a look does not show how the nodes stand.
fn is_blind(slurm_answered: bool, listing_complete: bool) -> bool {
    !(slurm_answered && listing_complete)
}

/// True if nothing more will happen; a look that shows no node shows no end either.
fn is_over(progress: RolloutProgress, blind: bool) -> bool {
    !blind && progress.is_over()
}

/// True if nothing is left to remember. A node that failed is one that a timer would otherwise have rebooted for ever.
fn is_done(progress: RolloutProgress, blind: bool) -> bool {
    is_over(progress, blind) && progress.failed == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use hostlist::NodeName;
    use provision::NodeReport;
    use provision::plan::Operation;

    #[test]
    fn the_reason_why_slurmctld_reboots_nothing_is_reported() {
        let mut report = Report::new(Operation::Rollout);
        for (name, cause) in [("n1", Cause::Slurm), ("n2", Cause::Slurm), ("n3", Cause::Refused)] {
            let failed = NodeReport::new(Outcome::Failed).because(cause, "no answer");
            report.nodes.insert(NodeName::new(name).unwrap(), failed);
        }
        assert_eq!(disobeyed(&report), ["n[1-2]: no answer"]);
    }

    #[test]
    fn a_moment_without_slurmctld_or_a_listing_is_not_the_end_of_a_rollout() {
        // All that a look sees without slurmctld: nodes that are not touched.
        let nothing = RolloutProgress { apart: 4, ..RolloutProgress::default() };
        assert!(nothing.is_over());
        for (slurm, listing) in [(false, true), (true, false), (false, false)] {
            assert!(!is_over(nothing, is_blind(slurm, listing)), "{slurm} {listing}");
        }
        assert!(is_over(nothing, is_blind(true, true)));
        let left = RolloutProgress { left: 1, ..nothing };
        assert!(!is_over(left, is_blind(true, true)));
    }

    #[test]
    fn a_rollout_that_halts_remembers_what_it_tried() {
        let done = RolloutProgress { done: 4, ..RolloutProgress::default() };
        assert!(is_done(done, false));
        assert!(!is_done(done, true), "nothing was seen");
        let halted = RolloutProgress { left: 2, failed: 1, halted: true, ..done };
        let ended = RolloutProgress { failed: 1, ..done };
        for failed in [halted, ended] {
            assert!(failed.is_over() && !is_done(failed, false), "{failed:?}");
        }
    }
}

//! A new image for many nodes, a few at a time.

use super::submit::{Submit, request};
use crate::args::Common;
use crate::context::Context;
use crate::diagnostic::Diagnostic;
use crate::output::chain;
use crate::process::SOME_FAILED;
use crate::progress::bar;
use provision::plan::{self, Rollout, RolloutHow, RolloutProgress};
use provision::run::{self, Run};
use provision::state::RolloutMemory;
use provision::{Outcome, Report, ResolvedRollout};
use serde_json::json;
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
                memory.forget(&request)?;
            }
            let code = if common.dry_run {
                let (plan, look) = run::preview_rollout(run, &request).await?;
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
        let report = run::rollout(run, request).await?;
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
        let mut report = run::rollout(run, request).await?;
        loop {
            self.keep(request);
            let look = run.observe_rollout(request).await;
            let Ok(progress) = plan::rollout_progress(request, look.world(run)) else {
                return Ok(self.context.report(self.common, &report).max(SOME_FAILED));
            };
            if progress.blind && !was_blind {
                self.context.blind(&look);
            } else if !progress.blind && before.replace(progress) != Some(progress) {
                self.tell(progress);
            }
            was_blind = progress.blind;
            if let Some(code) = self.ends(run, (request, &report), progress) {
                return Ok(code);
            }
            for failure in report.failures.iter().chain(&report.slurm_failures()) {
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
    ) -> Option<u8> {
        if progress.is_done()
            && let Err(error) = self.memory.forget(request)
        {
            self.context.warn(&chain(&error));
        }
        let leave = progress.is_over() || self.once;
        let late = self.deadline.is_some_and(|deadline| Instant::now() >= deadline);
        if !(leave || late || run.tools.cancel.is_cancelled()) {
            return None;
        }
        self.context.progress.clear(self.context.output);
        let code = self.context.report(self.common, report);
        Some(if progress.failed > 0 || progress.blind || !leave { SOME_FAILED } else { code })
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

//! `rebuild submit`: rolls out an image in batches.

use super::submit::{Submit, request};
use crate::context::Context;
use crate::diagnostic::Diagnostic;
use crate::output::chain;
use crate::process::SOME_FAILED;
use crate::progress::bar;
use provision::plan::{self, Rollout, RolloutHow, RolloutProgress};
use provision::run::{self, Run, RunRequest};
use provision::state::RolloutMemory;
use provision::{Outcome, Report, ResolvedRollout};
use serde_json::json;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// Interval between two observations of a rollout.
const PAUSE: Duration = Duration::from_secs(5);

pub(super) async fn submit(context: &Context<'_>, submit: &Submit) -> Result<u8, Diagnostic> {
    context
        .with_run(async |run: &Run<'_>| {
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
                // The queue shows which nodes have a job, and the cloud which have the image.
            } else if !submit.anew {
                memory.recall(&mut request);
            } else if !context.dry_run() {
                memory.forget(&request)?;
            }
            let code = if context.dry_run() {
                let (plan, observation) =
                    run::preview(run, &RunRequest::Rollout(&mut request)).await?;
                context.preview(&plan, &observation)
            } else {
                let once = submit.once;
                let drive = Drive { context, once, deadline: deadline(submit), memory };
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

/// The deadline of the rollout; none if it is too far in the future to represent.
fn deadline(submit: &Submit) -> Option<Instant> {
    Instant::now().checked_add(submit.deadline)
}

/// The context of a rollout.
struct Drive<'a> {
    context: &'a Context<'a>,
    /// True to return after starting one batch.
    once: bool,
    deadline: Option<Instant>,
    memory: RolloutMemory,
}

impl Drive<'_> {
    /// Submits the rebuild jobs, without waiting for them.
    async fn submit_jobs(&self, run: &Run<'_>, request: &mut Rollout) -> Result<u8, Diagnostic> {
        let report = run::execute(run, RunRequest::Rollout(request)).await?;
        let submitted = report.with(Outcome::Done).count();
        if !self.context.json() {
            self.context.output.print_unless_quiet(format_args!("{submitted} jobs submitted"));
        }
        Ok(self.context.report(&report))
    }

    fn keep(&self, request: &Rollout) {
        if let Err(error) = self.memory.store(request) {
            let why = chain(&error);
            self.context.warn(&format!(
                "cannot store the progress of the rollout; the next call starts over: {why}"
            ));
        }
    }

    async fn roll(&self, run: &Run<'_>, request: &mut Rollout) -> Result<u8, Diagnostic> {
        let (mut printed, mut was_blind) = (None, false);
        // An error in the first round is wrong usage. Later, slurm.conf may have changed, and an error is a failure.
        let mut report = run::execute(run, RunRequest::Rollout(request)).await?;
        loop {
            self.keep(request);
            let observation = run.observe_rollout(request).await;
            let Ok(progress) = plan::rollout_progress(request, observation.world(run)) else {
                return Ok(self.context.report(&report).max(SOME_FAILED));
            };
            if progress.blind && !was_blind {
                self.context.report_unobserved(&observation);
            } else if !progress.blind && printed.replace(progress) != Some(progress) {
                self.print(progress);
            }
            was_blind = progress.blind;
            if let Some(code) = self.exit_code(run, (request, &report), progress) {
                return Ok(code);
            }
            for failure in report.failures.iter().chain(&report.slurm_failures()) {
                self.context.warn(failure);
            }
            // After a signal, print the progress once more and start nothing.
            if !pause(run).await {
                continue;
            }
            match run::execute(run, RunRequest::Rollout(request)).await {
                Ok(next) => report = next,
                Err(why) => {
                    self.context.warn(&why.to_string());
                    return Ok(SOME_FAILED);
                }
            }
        }
    }

    /// The exit code, if the rollout has ended.
    fn exit_code(
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
        let code = self.context.report(report);
        Some(if progress.failed > 0 || progress.blind || !leave { SOME_FAILED } else { code })
    }

    /// Prints the progress: as a line, as JSON, or as the progress line of a terminal.
    fn print(&self, progress: RolloutProgress) {
        let RolloutProgress { done, under_way, failed, left, apart, halted, .. } = progress;
        let output = self.context.output;
        if self.context.json() {
            output.print(json!({
                "done": done, "under_way": under_way, "left": left, "failed": failed, "apart": apart, "halted": halted,
            }));
            return;
        }
        let all = done + under_way + failed + left;
        let end = match (halted, failed > 0 && progress.is_over()) {
            (true, _) => "; stopped because too many failed; --anew tries them again",
            (false, true) => "; --anew tries the failed ones again",
            (false, false) => "",
        };
        let line = format!(
            "{} {done} done, {under_way} under way, {left} left, {failed} failed, {apart} skipped{end}",
            bar(done, all)
        );
        if output.draws {
            self.context.progress.draw(output, &line);
        }
        if !output.draws || progress.is_over() {
            output.print_unless_quiet(line);
        }
    }
}

/// Waits for the next round. Returns false on a signal.
async fn pause(run: &Run<'_>) -> bool {
    let mut cancel = run.tools.cancel.clone();
    tokio::select! {
        () = cancel.cancelled() => {}
        () = sleep(PAUSE) => {}
    }
    !cancel.is_cancelled()
}

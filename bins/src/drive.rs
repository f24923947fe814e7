//! Runs a program's work: progress, signals, plans, reports and notifications.

use crate::context::Context;
use crate::diagnostic::Diagnostic;
use crate::log::{Level, Log};
use crate::output::{Colour, Output};
use crate::process::{SOME_FAILED, SUCCESS};
use crate::progress::ProgressBar;
use crate::wiring;
use history::millis;
use hostlist::{Hostlist, NodeName};
use provision::notice::new_notices;
use provision::plan::{Operation, Plan, Refusal, Step};
use provision::run::{self, Observation, Run, RunRequest};
use provision::state::{Event, EventKind};
use provision::{Cancel, CancelSignal, Progress, Tools};
use provision::{Report, Roster, World};
use std::collections::BTreeSet;
use std::time::SystemTime;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Exit code after a second Ctrl-C: 128 + SIGINT.
const INTERRUPTED: i32 = 130;

/// Logs events in Cluster in the Cloud's phrases, which operators search for, and prints them.
#[derive(Debug)]
pub struct EventPrinter<'a> {
    /// The log.
    pub log: &'a Log,
    /// Standard output and standard error.
    pub output: Output,
    /// The progress line.
    pub progress: &'a ProgressBar,
    /// True to print each event as JSON.
    pub json: bool,
}

impl Progress for EventPrinter<'_> {
    fn event(&self, event: &Event) {
        let (level, message) = log_phrase(event);
        self.log.write(level, event.node.as_deref(), &message);
        if self.json {
            self.output.print(event.to_line().trim_end());
        } else if let Some(node) = &event.node
            && level > Level::Debug
        {
            self.output.print_unless_quiet(format_args!("{node}: {message}"));
        }
        self.progress.event(self.output, event);
    }
}

/// The level and text of an event in the log, in Cluster in the Cloud's phrases where it has one.
fn log_phrase(event: &Event) -> (Level, String) {
    let detail = event.detail.as_deref().unwrap_or_default();
    let instance = event.instance.as_deref().unwrap_or(detail);
    match event.event {
        EventKind::Begun => (Level::Info, format!("begin: {detail}")),
        EventKind::Launched => (Level::Info, format!("launched instance {instance}")),
        EventKind::Adopted => (
            Level::Warning,
            format!("host is already running with state live, instance {instance}"),
        ),
        EventKind::Waiting => (
            Level::Info,
            format!("host is currently terminating. Waiting... (instance {instance})"),
        ),
        EventKind::LaunchFailed => (Level::Error, format!("problem launching instance: {detail}")),
        EventKind::Up => (Level::Info, format!("Started, Private IP {detail}")),
        EventKind::Terminated => (Level::Info, format!("Stopped, instance {instance}")),
        EventKind::Stopped => (Level::Info, format!("shut down, instance {instance} is kept")),
        EventKind::Started => (Level::Info, format!("started instance {instance} again")),
        EventKind::ReturnedToSlurm => (Level::Warning, format!("returned to Slurm: {detail}")),
        EventKind::Rebuilt => (Level::Info, format!("rebuilt or rebooted, instance {instance}")),
        EventKind::Cooling => (Level::Warning, format!("cooling down: {detail}")),
        EventKind::Owner => {
            (Level::Debug, format!("a job of {}", event.user.as_deref().unwrap_or_default()))
        }
        EventKind::Ended => (Level::Info, format!("end: {detail}")),
        EventKind::Registered => (Level::Debug, "registered with slurmctld".to_owned()),
        EventKind::Busy => (Level::Debug, "runs jobs".to_owned()),
        EventKind::Idle => (Level::Debug, "has no job any more".to_owned()),
        _ => (Level::Info, detail.to_owned()),
    }
}

impl Context<'_> {
    /// Runs `work`, and cancels it gracefully on a signal.
    pub async fn with_run<T>(&self, work: impl AsyncFnOnce(&Run<'_>) -> T) -> T {
        let (stop, cancel) = Cancel::new();
        let (log, output, progress) = (&*self.bootstrap.log, self.output, &self.progress);
        let printer = EventPrinter { log, output, progress, json: self.json() };
        let roster = Roster::new(&self.slurm.config);
        let run = Run {
            tools: Tools {
                cloud: &*self.cloud,
                slurm: &self.slurm.controller,
                state: &*self.state,
                clock: &SystemTime::now,
                progress: &printer,
                files: &self.files,
                run: log.run(),
                cancel,
            },
            site: &self.site,
            conf: &roster,
        };
        let signalled = watch(stop);
        tokio::pin!(signalled);
        let mut work =
            Box::pin(progress.while_waiting(output, "the cloud and slurmctld", work(&run)));
        let result = tokio::select! {
            result = &mut work => result,
            () = &mut signalled => tokio::select! {
                result = &mut work => result,
                // A second Ctrl-C exits immediately.
                () = interrupted() => std::process::exit(INTERRUPTED),
            },
        };
        if !self.dry_run() {
            self.keep_pace();
        }
        result
    }

    /// Logs that work on these nodes begins, one line per node.
    pub fn begin(&self, names: &[NodeName], message: &str) {
        self.progress.expect(self.output, names.len());
        for name in names {
            let node = Some(name.as_str());
            self.bootstrap.log.write(Level::Info, node, message);
        }
    }

    /// Starts the progress line for the nodes of a plan.
    pub fn expect(&self, plan: &Plan) {
        let nodes: BTreeSet<&NodeName> = plan.steps().flat_map(Step::nodes).collect();
        self.progress.expect(self.output, nodes.len());
    }

    /// Prints a plan without carrying it out.
    pub fn show(&self, plan: &Plan) -> u8 {
        if self.json() {
            self.output.print(serde_json::to_string(plan).unwrap_or_default());
        } else {
            self.output.print(plan.to_string().trim_end());
        }
        SUCCESS
    }

    /// Prints a plan without carrying it out, and what could not be observed. Returns the exit code of a run that would
    /// carry it out.
    pub fn preview(&self, plan: &Plan, observation: &Observation) -> u8 {
        let shown = self.show(plan);
        let unobserved = self.report_unobserved(observation);
        // Machines are terminated whether slurmctld answers or not.
        let stops = matches!(plan.operation, Operation::Stop | Operation::StopAll);
        let unobserved =
            if stops && observation.fleet.is_complete() { SUCCESS } else { unobserved };
        if plan.fails() { SOME_FAILED } else { shown.max(unobserved) }
    }

    /// Carries out a request, or prints its plan with `--dry-run`. Returns the exit code.
    pub async fn carry_out(
        &self,
        run: &Run<'_>,
        request: RunRequest<'_>,
    ) -> Result<u8, Diagnostic> {
        if self.dry_run() {
            let (plan, observation) = run::preview(run, &request).await?;
            return Ok(self.preview(&plan, &observation));
        }
        let report = run::execute(run, request).await?;
        let code = self.report(&report);
        self.notify(&report).await;
        Ok(code)
    }

    /// Prints and returns the nodes that are unknown to slurm.conf, slurmctld and the cloud.
    pub fn unknown(&self, names: &[NodeName], world: World<'_>) -> BTreeSet<NodeName> {
        let is_known = |name: &NodeName| {
            let has_machine = !world.fleet.of(name).is_empty() || world.fleet.named(name).is_some();
            has_machine || world.conf.get(name).is_some() || world.node(name).is_some()
        };
        let unknown: BTreeSet<NodeName> =
            names.iter().filter(|name| !is_known(name)).cloned().collect();
        if !unknown.is_empty() {
            let list: Hostlist = unknown.iter().collect();
            let text = format!("{list}: {}", Refusal::NotInSlurmConf);
            self.bootstrap.note(Level::Error, &text);
        }
        unknown
    }

    /// Sends new notifications about a run to the webhooks. This comes last, because Slurm and operators wait for
    /// everything else.
    pub async fn notify(&self, report: &Report) {
        if self.settings.notify.is_empty() {
            return;
        }
        let currency = self.site.allowance.as_ref().map(|it| it.prices.currency.as_str());
        let now = millis(SystemTime::now());
        let new = new_notices(&*self.state, report, currency.unwrap_or_default(), now);
        for failure in wiring::notify(self.settings, &self.bootstrap.environment, &new).await {
            self.bootstrap.log.write(Level::Warning, None, &failure);
        }
    }

    /// Prints and logs the outcome of a run, and returns the exit code.
    pub fn report(&self, report: &Report) -> u8 {
        self.progress.clear(self.output);
        for warning in &report.warnings {
            self.bootstrap.note(Level::Warning, warning);
        }
        for failure in &report.failures {
            self.bootstrap.note(Level::Error, failure);
        }
        let stops = matches!(report.operation, Operation::Stop | Operation::StopAll);
        let problem = if stops { "problem while stopping: " } else { "" };
        for (nodes, why) in report.failed_nodes() {
            let (node, message) = (Some(nodes.as_str()), format!("{problem}{why}"));
            self.bootstrap.log.write(Level::Error, node, &message);
            // The phrase is for searches of the log only, and a refusal is not the cloud's problem.
            let refused = why.strip_prefix(REFUSED);
            let line = format!("{nodes}: {}", refused.unwrap_or(&message));
            self.output.print_error(self.output.paint(Colour::Red, line));
        }
        if self.json() {
            self.output.print(serde_json::to_string(report).unwrap_or_default());
        }
        if report.is_success() { SUCCESS } else { SOME_FAILED }
    }
}

/// Prefix of the reason for a refusal.
const REFUSED: &str = "refused: ";

/// Returns on SIGTERM, SIGINT, SIGQUIT or SIGHUP.
pub async fn until_interrupted() {
    let (stop, _cancel) = Cancel::new();
    watch(stop).await;
}

/// Cancels the work on SIGTERM, SIGINT, SIGQUIT or SIGHUP.
async fn watch(stop: CancelSignal) {
    let [mut terminate, mut interrupt, mut quit] =
        [SignalKind::terminate(), SignalKind::interrupt(), SignalKind::quit()]
            .map(|kind| signal(kind).ok());
    // nohup ignores SIGHUP.
    let mut hangup =
        if ignores(SignalKind::hangup()) { None } else { signal(SignalKind::hangup()).ok() };
    tokio::select! {
        () = received(&mut terminate) => {}
        () = received(&mut interrupt) => {}
        () = received(&mut quit) => {}
        () = received(&mut hangup) => {}
    }
    stop.cancel();
}

/// True if the process was started with this signal ignored.
fn ignores(kind: SignalKind) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    is_ignored(&status, kind.as_raw_value())
}

/// True if this text of `/proc/self/status` has the signal in its mask of ignored signals.
fn is_ignored(status: &str, number: i32) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or_default();
    let bit = u32::try_from(number - 1).ok().and_then(|place| 1_u64.checked_shl(place));
    mask & bit.unwrap_or_default() != 0
}

/// Returns at the next Ctrl-C.
async fn interrupted() {
    received(&mut signal(SignalKind::interrupt()).ok()).await;
}

async fn received(signal: &mut Option<Signal>) {
    match signal {
        Some(signal) => {
            signal.recv().await;
        }
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ignored_signal_is_recognised() {
        let status = "Name:\tx\nSigBlk:\t0000000000000001\nSigIgn:\t0000000000001001\n";
        assert!(is_ignored(status, 1), "HUP");
        assert!(is_ignored(status, 13), "PIPE");
        assert!(!is_ignored(status, 15), "TERM");
        for (status, number) in [("", 1), ("SigIgn:\tx\n", 1), (status, 0), (status, 99)] {
            assert!(!is_ignored(status, number), "{number}");
        }
    }
}

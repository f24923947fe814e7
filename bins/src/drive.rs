//! From an opened context to a report: the plan printed, or carried out and told.

use crate::args::Common;
use crate::context::Context;
use crate::log::{Entry, Level, Log};
use crate::output::{Colour, Output};
use crate::process::{SOME_FAILED, SUCCESS};
use crate::progress::ProgressBar;
use crate::wiring;
use history::millis;
use hostlist::{Hostlist, NodeName};
use provision::notice::{Told, notices};
use provision::plan::{Operation, Plan, Refusal, Step};
use provision::run::{Observation, Run};
use provision::state::{Document, Event, EventKind};
use provision::{Cancel, CancelSignal, Progress, Tools};
use provision::{Report, Roster, World};
use std::collections::BTreeSet;
use std::time::SystemTime;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// The exit code of a program that a second Ctrl-C ends, as shells know it.
const INTERRUPTED: i32 = 130;

/// Logs what happens, in the words that operators' searches know, and shows it if asked to.
#[derive(Debug)]
pub struct EventPrinter<'a> {
    /// Where to write for later.
    pub log: &'a Log,
    /// Where to write for people.
    pub output: Output,
    /// How far it is.
    pub progress: &'a ProgressBar,
    /// True to print each event as JSON.
    pub json: bool,
}

impl Progress for EventPrinter<'_> {
    fn event(&self, event: &Event) {
        let (level, words) = phrase(event);
        self.log.write(Entry { level, node: event.node.as_deref(), message: &words });
        if self.json {
            self.output.print(event.to_line().trim_end());
        } else if let Some(node) = &event.node
            && level > Level::Debug
        {
            self.output.say(format_args!("{node}: {words}"));
        }
        self.progress.event(self.output, event);
    }
}

/// What Cluster in the Cloud's log says when the same happens.
fn phrase(event: &Event) -> (Level, String) {
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

impl Context {
    /// Runs `work` with everything it needs, and stops it in order when we are told to end.
    pub async fn with_run<T>(&self, common: &Common, work: impl AsyncFnOnce(&Run<'_>) -> T) -> T {
        let (stop, cancel) = Cancel::new();
        let (log, output, progress) = (&*self.log, self.output, &self.progress);
        let told = EventPrinter { log, output, progress, json: common.json };
        let roster = Roster::new(&self.slurm.config);
        let run = Run {
            tools: Tools {
                cloud: &*self.cloud,
                slurm: &self.slurm.controller,
                state: &*self.state,
                clock: &SystemTime::now,
                progress: &told,
                files: &self.files,
                run: self.log.run(),
                cancel,
            },
            site: &self.site,
            conf: &roster,
        };
        let watched = watch(stop);
        tokio::pin!(watched);
        let work = progress.while_waiting(output, "the cloud and slurmctld", work(&run));
        tokio::pin!(work);
        tokio::select! {
            result = &mut work => result,
            () = &mut watched => tokio::select! {
                result = &mut work => result,
                // Whoever asks twice does not want to wait for order.
                () = interrupted() => std::process::exit(INTERRUPTED),
            },
        }
    }

    /// Logs that work on each of these nodes begins, before anything else is said of it.
    pub fn begin(&self, names: &[NodeName], word: &str) {
        self.progress.expect(self.output, names.len());
        for name in names {
            let node = Some(name.as_str());
            self.log.write(Entry { level: Level::Info, node, message: word });
        }
    }

    /// Shows how far it is from here on, for the nodes of a plan.
    pub fn expect(&self, plan: &Plan) {
        let nodes: BTreeSet<&NodeName> = plan.steps().flat_map(Step::nodes).collect();
        self.progress.expect(self.output, nodes.len());
    }

    /// Prints a plan that is not carried out.
    pub fn show(&self, common: &Common, plan: &Plan) -> u8 {
        if common.json {
            self.output.print(serde_json::to_string(plan).unwrap_or_default());
        } else {
            self.output.print(plan.to_string().trim_end());
        }
        SUCCESS
    }

    /// Prints a plan that is not carried out, with what could not be observed; the exit code is that of a run that does it.
    pub fn preview(&self, common: &Common, plan: &Plan, look: &Observation) -> u8 {
        let shown = self.show(common, plan);
        let unseen = self.blind(look);
        // Machines are ended whether slurmctld answers or not.
        let ends = matches!(plan.operation, Operation::Stop | Operation::StopAll);
        let blind = if ends && look.fleet.is_complete() { SUCCESS } else { unseen };
        if plan.fails() { SOME_FAILED } else { shown.max(blind) }
    }

    /// Prints and returns the nodes that neither slurm.conf nor slurmctld nor the cloud knows.
    pub fn unknown(&self, names: &[NodeName], world: World<'_>) -> BTreeSet<NodeName> {
        let is_known = |name: &NodeName| {
            let has_machine = !world.fleet.of(name).is_empty() || world.fleet.named(name).is_some();
            has_machine || world.conf.get(name).is_some() || world.node(name).is_some()
        };
        let unknown: BTreeSet<NodeName> =
            names.iter().filter(|name| !is_known(name)).cloned().collect();
        if !unknown.is_empty() {
            let list: Hostlist = unknown.iter().collect();
            self.error(&format!("{list}: {}", Refusal::NotInSlurmConf));
        }
        unknown
    }

    /// Tells administrators what they want to know of a run: last, because Slurm and operators wait for all else.
    pub async fn notify(&self, report: &Report) {
        if self.settings.notify.is_empty() {
            return;
        }
        let currency = self.site.allowance.as_ref().map(|it| it.prices.currency.as_str());
        let mut new = notices(report, currency.unwrap_or_default());
        let now = millis(SystemTime::now());
        let changed = self.state.change(Document::Told, &mut |before| {
            let mut told = Told::parse(before);
            told.take_new(&mut new, now);
            told.to_text()
        });
        if new.is_empty() || !matches!(changed, Ok(true)) {
            return;
        }
        for failure in wiring::notify(&self.settings, &self.environment, &new).await {
            self.log.write(Entry { level: Level::Warning, node: None, message: &failure });
        }
    }

    /// Prints what became of a run, and logs what failed. Gives the exit code.
    pub fn report(&self, common: &Common, report: &Report) -> u8 {
        self.progress.clear(self.output);
        let diagnostics = report.warnings.iter().map(|text| (Level::Warning, text));
        let diagnostics =
            diagnostics.chain(report.failures.iter().map(|text| (Level::Error, text)));
        for (level, message) in diagnostics {
            self.log.write(Entry { level, node: None, message });
            self.output.complain(message);
        }
        let stops = matches!(report.operation, Operation::Stop | Operation::StopAll);
        let problem = if stops { "problem while stopping: " } else { "" };
        for (nodes, why) in report.failed_nodes() {
            let (node, message) = (Some(nodes.as_str()), format!("{problem}{why}"));
            self.log.write(Entry { level: Level::Error, node, message: &message });
            // What is refused is no problem of the cloud's, and the phrase is for searches of the log.
            let refused = why.strip_prefix(REFUSED);
            let line = format!("{nodes}: {}", refused.unwrap_or(&message));
            self.output.complain(self.output.paint(Colour::Red, line));
        }
        if common.json {
            self.output.print(serde_json::to_string(report).unwrap_or_default());
        }
        if report.is_success() { SUCCESS } else { SOME_FAILED }
    }
}

/// What the reason of a refusal follows.
const REFUSED: &str = "refused: ";

/// Returns when we are told to end.
pub async fn until_interrupted() {
    let (stop, _cancel) = Cancel::new();
    watch(stop).await;
}

/// Returns when somebody told us to end, or their terminal is gone; what is under way is then ended in order.
async fn watch(stop: CancelSignal) {
    let [mut terminate, mut interrupt, mut quit] =
        [SignalKind::terminate(), SignalKind::interrupt(), SignalKind::quit()]
            .map(|kind| signal(kind).ok());
    // Under nohup it is not meant for us.
    let mut hangup =
        if ignores(SignalKind::hangup()) { None } else { signal(SignalKind::hangup()).ok() };
    tokio::select! {
        () = heard(&mut terminate) => {}
        () = heard(&mut interrupt) => {}
        () = heard(&mut quit) => {}
        () = heard(&mut hangup) => {}
    }
    stop.cancel();
}

/// True if the signal was ignored when we were started, and so still is.
fn ignores(kind: SignalKind) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    is_ignored(&status, kind.as_raw_value())
}

/// True if `/proc/self/status` says that the signal is ignored.
fn is_ignored(status: &str, number: i32) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or_default();
    let bit = u32::try_from(number - 1).ok().and_then(|place| 1_u64.checked_shl(place));
    mask & bit.unwrap_or_default() != 0
}

/// Returns at the next Ctrl-C.
async fn interrupted() {
    heard(&mut signal(SignalKind::interrupt()).ok()).await;
}

async fn heard(signal: &mut Option<Signal>) {
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
    fn a_signal_that_is_ignored_is_told_from_one_that_is_not() {
        let status = "Name:\tx\nSigBlk:\t0000000000000001\nSigIgn:\t0000000000001001\n";
        assert!(is_ignored(status, 1), "HUP");
        assert!(is_ignored(status, 13), "PIPE");
        assert!(!is_ignored(status, 15), "TERM");
        for (status, number) in [("", 1), ("SigIgn:\tx\n", 1), (status, 0), (status, 99)] {
            assert!(!is_ignored(status, number), "{number}");
        }
    }
}

//! Telemetry of reconcile: events of nodes that registered, got a job or became idle; and metrics for Prometheus.

use super::Run;
use super::observe::Observation;
use crate::cause::Cause;
use crate::failure::chain;
use crate::plan::{FindingKind, Handling};
use crate::report::Report;
use crate::site::Site;
use crate::state::{Event, EventKind, StateFile, atomic_write, change_soon};
use cloud_core::{Instance, InstanceId};
use history::cost::Period;
use history::{Life, RecordedPlace, Series, Tally, label, metrics, millis, place_labels};
use hostlist::NodeName;
use slurmctl::{JobState, Node};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, SystemTime};
use tokio::time::Instant;

/// Gauges for Prometheus.
type Gauges = BTreeMap<Series, f64>;

/// Most machines that one run looks up because they are not listed any more, and how long that may take.
const MOST_GONE: usize = 64;
const GONE_WAIT: Duration = Duration::from_secs(30);

/// The state of a node in Slurm.
struct Seen {
    node: NodeName,
    registered: Option<u64>,
    last_busy: Option<u64>,
    busy: bool,
    jobs: Vec<u32>,
}

/// A machine of the cloud.
struct Listed {
    id: String,
    state: String,
    place: RecordedPlace,
}

/// The part of an observation that is kept until the run has ended.
#[derive(Default)]
pub(super) struct Telemetry {
    nodes: Vec<Seen>,
    machines: Vec<Listed>,
    /// True if the listing had every machine.
    complete: bool,
    gauges: Gauges,
}

impl Telemetry {
    pub(super) fn of(observation: &Observation, site: &Site) -> Self {
        let mut gauges = costs(observation, site);
        let live = observation.fleet.instances().filter(|instance| instance.state.is_live());
        let machines = live.map(listed).collect();
        for (pool, cooldown) in observation.cooldowns.pools() {
            let cools = cooldown.lasts(observation.now);
            let labels = place_labels(&pool.recorded());
            gauges.insert(series("cooling", labels), f64::from(u8::from(cools)));
        }
        let jobs = jobs_by_node(observation);
        let nodes = observation.slurm.iter().flat_map(BTreeMap::values);
        let nodes = nodes.map(|node| seen(node, &jobs)).collect();
        Self { nodes, machines, complete: observation.fleet.is_complete(), gauges }
    }

    /// Counts new events of the log, logs events that Slurm's nodes show, and writes the metrics. Errors are reported and
    /// stop nothing.
    pub(super) async fn finish(mut self, run: &Run<'_>, report: &mut Report) {
        let mut wrong = None;
        let mut tally = Tally::default();
        let changed = change_soon(run.tools.state, StateFile::Tally, &mut |before| {
            tally = before.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
            match run.tools.state.events_after(tally.position) {
                Ok((events, position)) => {
                    for event in &events {
                        tally.add(event);
                    }
                    tally.position = position;
                }
                Err(error) => wrong = Some(chain(&error)),
            }
            count_repairs(&mut tally, report);
            for cause in Cause::ALL {
                tally.count("returned_nodes", label("cause", cause.as_str()), 0);
            }
            serde_json::to_string(&tally).unwrap_or_default()
        });
        match (changed, wrong) {
            (Err(error), _) => {
                report.warn(format!("events could not be counted: {}", chain(&error)));
            }
            (Ok(_), Some(why)) => report.warn(format!("events could not be counted: {why}")),
            (Ok(_), None) => {}
        }
        self.note_gone(run, &tally).await;
        for seen in &self.nodes {
            if let Some(life) = tally.open.open(seen.node.as_str()) {
                for (kind, since, jobs) in noticed(seen, life) {
                    let since = SystemTime::UNIX_EPOCH + Duration::from_millis(since);
                    let event: Event = run.tools.event(kind).of(&seen.node).since(since);
                    run.tools.note(&event.for_jobs(jobs));
                }
            }
        }
        if let Some(path) = &run.tools.files.metrics {
            self.add_report(report, millis(run.tools.now()));
            self.add_machines(&tally);
            // A pool without machines has the value 0, and so has one without stopped machines where any were ever stopped.
            let stops = tally.counters.keys().any(|it| it.name == "slurm_elastic_stops_total");
            let states = if stops { &["running", "stopped"][..] } else { &["running"] };
            for known in
                tally.counters.keys().filter(|it| it.name == "slurm_elastic_launches_total")
            {
                for state in states {
                    let labels = format!("{},{}", label("state", state), known.labels);
                    self.gauges.entry(series("machines", labels)).or_default();
                }
            }
            let text = metrics(&tally, &self.gauges);
            if let Err(error) = atomic_write::replace(path, text.as_bytes()) {
                report.warn(format!("metrics could not be written: {}", chain(&error)));
            }
        }
    }

    /// Notes the end of machines that somebody else has ended, such as the cloud or a console: they cost nothing any more.
    async fn note_gone(&self, run: &Run<'_>, tally: &Tally) {
        let listed: BTreeSet<&str> = self.machines.iter().map(|it| it.id.as_str()).collect();
        let grace = u64::try_from(run.site.policies.grace.as_millis()).unwrap_or(u64::MAX);
        let now = millis(run.tools.now());
        let is_missing = |life: &&Life| {
            // Listings lag behind launches.
            let is_old = life.machine(now).is_some_and(|(from, _)| now - from.min(now) > grace);
            is_old && life.instance.as_deref().is_some_and(|id| !listed.contains(id))
        };
        let until = Instant::now() + GONE_WAIT;
        let missing = tally.open.all_open().filter(|_| self.complete).filter(is_missing);
        for life in missing.take(MOST_GONE) {
            let id = life.instance.as_deref().unwrap_or_default();
            if run.is_gone(&InstanceId::new(id), until).await {
                let event = run.tools.event(EventKind::Terminated).with(id);
                let event = event.because("gone from the cloud");
                run.tools.note(&Event { node: life.node.clone(), ..event });
            }
        }
    }

    /// Counts machines by the pool that they were launched in: clouds do not list the size of a flexible shape.
    fn add_machines(&mut self, tally: &Tally) {
        let lives = tally.open.all_open().filter(|life| !life.place.is_unknown());
        let launched: BTreeMap<&str, &RecordedPlace> =
            lives.filter_map(|life| Some((life.instance.as_deref()?, &life.place))).collect();
        for machine in &self.machines {
            let place = launched.get(machine.id.as_str()).copied().unwrap_or(&machine.place);
            let labels = format!("{},{}", label("state", &machine.state), place_labels(place));
            *self.gauges.entry(series("machines", labels)).or_default() += 1.0;
        }
    }

    fn add_report(&mut self, report: &Report, now: u64) {
        for kind in FindingKind::ALL {
            let labels = label("kind", kind.as_str());
            let count = report.findings.iter().filter(|finding| finding.kind == kind).count();
            let count = u32::try_from(count).unwrap_or(u32::MAX);
            self.gauges.insert(series("findings", labels), f64::from(count));
        }
        let failed = report.nodes.values().filter(|node| !node.outcome.is_success()).count();
        let failures = u32::try_from(report.failures.len() + failed).unwrap_or(u32::MAX);
        let seconds = u32::try_from(now / 1000).unwrap_or(u32::MAX);
        for (name, value) in [
            ("reconcile_failures", f64::from(failures)),
            ("reconcile_seconds", report.took.as_secs_f64()),
            ("reconcile_timestamp_seconds", f64::from(seconds)),
        ] {
            self.gauges.insert(series(name, String::new()), value);
        }
    }
}

/// What was spent this day and this month, and what may be, in the currency of the prices.
fn costs(observation: &Observation, site: &Site) -> Gauges {
    let mut gauges = Gauges::new();
    let (Some(spending), Some(allowance)) = (observation.spending, &site.allowance) else {
        return gauges;
    };
    let budget = allowance.budget;
    for (period, spent, limit) in [
        (Period::Day, spending.day, budget.per_day),
        (Period::Month, spending.month, budget.per_month),
    ] {
        let currency = label("currency", &allowance.prices.currency);
        let labels = format!("{},{currency}", label("period", &period.to_string()));
        gauges.insert(series("cost", labels.clone()), spent.units());
        gauges.extend(limit.map(|limit| (series("budget", labels), limit.amount().units())));
    }
    gauges
}

fn series(name: &str, labels: String) -> Series {
    Series { name: format!("slurm_elastic_{name}"), labels }
}

fn listed(instance: &Instance) -> Listed {
    let shape = instance.shape.as_ref().map(ToString::to_string);
    let zone = instance.zone.as_ref().map(ToString::to_string);
    let place = RecordedPlace { shape, zone, preemptible: instance.preemptible };
    Listed { id: instance.id.to_string(), state: instance.state.to_string(), place }
}

/// Every kind has its counter, as every cause has, so that the first repair is a change from 0.
fn count_repairs(tally: &mut Tally, report: &Report) {
    for kind in FindingKind::ALL {
        let repaired = report
            .findings
            .iter()
            .filter(|finding| finding.kind == kind && finding.handling == Handling::Repaired);
        tally.count("repairs", label("kind", kind.as_str()), repaired.count());
    }
}

fn jobs_by_node(observation: &Observation) -> BTreeMap<String, Vec<u32>> {
    let mut by_node: BTreeMap<String, Vec<u32>> = BTreeMap::new();
    let jobs = observation.jobs.iter().flatten();
    for job in jobs.filter(|job| matches!(job.state, JobState::Running | JobState::Completing)) {
        for node in job.nodes.node_names().unwrap_or_default() {
            by_node.entry(node.as_str().to_owned()).or_default().push(job.id.get());
        }
    }
    by_node
}

fn seen(node: &Node, jobs: &BTreeMap<String, Vec<u32>>) -> Seen {
    let up = node.state.is_up() && !node.state.is_powering_up();
    Seen {
        node: node.name.clone(),
        registered: node.slurmd_start.filter(|_| up).map(millis),
        last_busy: node.last_busy.map(millis),
        busy: up && node.state.has_job(),
        jobs: jobs.get(node.name.as_str()).cloned().unwrap_or_default(),
    }
}

/// New events of a node since its last one in the log: kind, time and jobs.
fn noticed(seen: &Seen, life: &Life) -> Vec<(EventKind, u64, Vec<u32>)> {
    let mut news = Vec::new();
    // Slurm's times are in whole seconds. An older slurmd is that of the previous machine.
    let begun = life.launched.unwrap_or_else(|| life.begin()) / 1000 * 1000;
    let Some(registered) = seen.registered.filter(|at| *at >= begun) else {
        return news;
    };
    if life.registered.is_none() {
        news.push((EventKind::Registered, registered, Vec::new()));
    }
    let known = life.registered.unwrap_or(registered);
    let ended = seen.last_busy.filter(|at| *at > known);
    match (life.work.last(), seen.busy) {
        (None, true) => news.push((EventKind::Busy, known, seen.jobs.clone())),
        (Some(work), true) => {
            let from = work.to.or(ended).unwrap_or(work.from).max(work.from);
            let is_new = work.to.is_some() || (!seen.jobs.is_empty() && work.jobs != seen.jobs);
            news.extend(is_new.then(|| (EventKind::Busy, from, seen.jobs.clone())));
        }
        (Some(work), false) if work.to.is_none() => {
            let to = ended.unwrap_or(work.from).max(work.from);
            news.push((EventKind::Idle, to, Vec::new()));
        }
        (None, false) => news.extend(ended.map(|to| (EventKind::Idle, to, Vec::new()))),
        (Some(_), false) => {}
    }
    news
}

#[cfg(test)]
mod tests {
    use super::*;
    use history::Work;

    fn seen(registered: Option<u64>, busy: bool, last_busy: Option<u64>, jobs: &[u32]) -> Seen {
        let node = NodeName::new("n1").unwrap();
        Seen { node, registered, last_busy, busy, jobs: jobs.to_vec() }
    }

    fn kinds(seen: &Seen, life: &Life) -> Vec<(EventKind, u64)> {
        noticed(seen, life).into_iter().map(|(kind, at, _)| (kind, at)).collect()
    }

    #[test]
    fn each_change_of_a_node_is_noticed_once() {
        let mut life = Life { launched: Some(10_500), up: Some(12_000), ..Life::default() };
        assert_eq!(kinds(&seen(None, false, None, &[]), &life), []);
        assert_eq!(kinds(&seen(Some(9_000), true, None, &[]), &life), [], "the machine before");
        let busy = seen(Some(20_000), true, Some(20_000), &[7]);
        let news = kinds(&busy, &life);
        assert_eq!(news, [(EventKind::Registered, 20_000), (EventKind::Busy, 20_000)]);
        life.registered = Some(20_000);
        life.work.push(Work { from: 20_000, to: None, jobs: vec![7] });
        assert_eq!(kinds(&busy, &life), []);
        let next = seen(Some(20_000), true, Some(30_000), &[8]);
        assert_eq!(kinds(&next, &life), [(EventKind::Busy, 30_000)]);
        let idle = seen(Some(20_000), false, Some(40_000), &[]);
        assert_eq!(kinds(&idle, &life), [(EventKind::Idle, 40_000)]);
        life.work.last_mut().unwrap().to = Some(40_000);
        assert_eq!(kinds(&idle, &life), []);
    }

    #[test]
    fn a_machine_counts_in_the_pool_that_it_was_launched_in() {
        let zone = Some("z".to_owned());
        let plain = RecordedPlace { shape: Some("small".to_owned()), zone, preemptible: false };
        let event = Event::new(SystemTime::UNIX_EPOCH, "run", EventKind::Launched);
        let event = event.of(&NodeName::new("n1").unwrap()).with("i-1");
        let mut tally = Tally::default();
        tally.add(&event.in_place(RecordedPlace { preemptible: true, ..plain.clone() }));
        let running = "running".to_owned();
        let listed =
            |id: &str| Listed { id: id.to_owned(), state: running.clone(), place: plain.clone() };
        let machines = ["i-1", "i-2", "i-3"].map(listed).into();
        let mut telemetry = Telemetry { machines, ..Telemetry::default() };
        telemetry.add_machines(&tally);
        let counts = telemetry.gauges.iter();
        let counts: Vec<String> =
            counts.map(|(series, count)| format!("{} {count}", series.labels)).collect();
        assert_eq!(
            counts,
            [
                r#"state="running",pool="small preemptible",zone="z" 1"#,
                r#"state="running",pool="small",zone="z" 2"#
            ]
        );
    }

    #[test]
    fn a_job_between_two_runs_is_noticed_by_its_end() {
        let life = Life { launched: Some(1_000), registered: Some(5_000), ..Life::default() };
        let idle = seen(Some(5_000), false, Some(9_000), &[]);
        assert_eq!(kinds(&idle, &life), [(EventKind::Idle, 9_000)]);
    }
}

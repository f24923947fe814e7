//! Two hundred jobs over sixteen nodes, with a cloud that answers one request in seven wrongly.
#![expect(clippy::indexing_slicing, reason = "a missing field of JSON is null")]

use cloud_sim::{Fault, Rule};
use e2e::{Accounting, Browser, Cluster, PATIENCE, USUAL, in_namespaces, wait_for};
use std::collections::BTreeMap;
use std::path::Path;
use std::thread::park_timeout;
use std::time::{Duration, Instant};

const JOBS: u32 = 200;

/// How often all of it begins anew, with nodes that have gone in between.
const WAVES: u32 = 5;

/// How long each may take; a quarter of a minute where nothing else runs.
const WAVE: Duration = Duration::from_mins(6);

/// Fifteen in a hundred: refused for want of room or quota, throttled, failed, or lost before or after they were done.
fn faults() -> Vec<Rule> {
    let answer = Fault::answer;
    let kinds = [
        ("*", 0.032, answer(503, "ServiceUnavailable", "try again")),
        ("*", 0.032, answer(429, "TooManyRequests", "slow down")),
        ("*", 0.032, Fault::DropBefore),
        ("*", 0.032, Fault::DropAfter),
        ("*", 0.032, answer(500, "InternalServerError", "oh")),
        ("LaunchInstance", 0.032, Fault::out_of_capacity()),
    ];
    let rule =
        |(operation, probability, fault)| Rule { probability, ..Rule::always(operation, fault) };
    // The first two launches are refused in any case, so that there is a reason to show.
    let refused =
        Rule { count: Some(2), ..Rule::always("LaunchInstance", Fault::out_of_capacity()) };
    [refused].into_iter().chain(kinds.into_iter().map(rule)).collect()
}

/// How many jobs are in each state.
fn states(cluster: &Cluster) -> BTreeMap<String, usize> {
    let text = cluster.ask("squeue", &["--all", "--states=all", "--noheader", "--format=%T"]);
    let mut states = BTreeMap::new();
    for state in text.lines() {
        *states.entry(state.to_owned()).or_default() += 1;
    }
    states
}

/// True if so many jobs have been completed, or can be no more.
fn is_over(states: &BTreeMap<String, usize>, due: usize) -> bool {
    let lost = ["FAILED", "TIMEOUT", "NODE_FAIL", "CANCELLED", "BOOT_FAIL"];
    states.get("COMPLETED") >= Some(&due) || lost.iter().any(|state| states.contains_key(*state))
}

#[test]
fn two_hundred_jobs_complete_on_a_faulty_cloud() {
    in_namespaces(|| soak(false, |_| {}));
}

/// The same jobs with Slurm's accounting, from which the timeline has all of them, and the picture in a real browser; only in
/// `./test --full`, which leaves out the test above.
#[test]
fn a_browser_shows_the_timeline_of_two_hundred_jobs() {
    in_namespaces(|| soak(true, in_a_browser));
}

fn in_a_browser(page: &Path) {
    let mut browser = Browser::start(1280, 860);
    browser.open(page);
    let drawn = browser.evaluate("timeline.drawn()");
    assert_eq!(
        drawn["shown"].as_array().map(Vec::len),
        Some(16),
        "lanes that fit the filter: {drawn}"
    );
    assert_eq!(drawn["lanes"], 16, "lanes that are painted: {drawn}");
    let jobs = &drawn["jobs"];
    assert_eq!(jobs, 200, "jobs that are painted: {drawn}");
    assert!(drawn["marks"].as_u64() > Some(0), "refusals are marked: {drawn}");
    assert!(drawn["spans"].as_u64() > Some(100), "{drawn}");
    hover_shows_the_reason(&mut browser);
    filters_select_lanes(&mut browser);
    let requests = browser.requests();
    let leaves = |url: &&String| !url.starts_with("file://") && !url.starts_with("data:");
    assert_eq!(requests.iter().find(leaves), None, "{requests:?}");
    assert_eq!(requests.iter().filter(|url| url.starts_with("file://")).count(), 1);
    println!("16 lanes, {jobs} jobs, {} spans, requests {requests:?}", drawn["spans"]);
}

fn hover_shows_the_reason(browser: &mut Browser) {
    let tip = "document.getElementById('tip')";
    assert_eq!(browser.evaluate(&format!("{tip}.hidden")), true);
    let marks = browser.evaluate("timeline.failures().filter(it => it.reason)");
    let mark =
        marks.as_array().and_then(|marks| marks.first()).expect("the cloud refused launches");
    browser.hover(mark["x"].as_f64().unwrap(), mark["y"].as_f64().unwrap());
    browser.settle();
    let shown = browser.evaluate(&format!("{tip}.innerText"));
    let (node, reason) = (mark["node"].as_str().unwrap(), mark["reason"].as_str().unwrap());
    let shown = shown.as_str().unwrap_or_default();
    assert!(shown.contains(node) && shown.contains(reason), "{shown}, not {mark}");
    println!("hover shows: {}", shown.replace('\n', " | "));
}

fn filters_select_lanes(browser: &mut Browser) {
    let mut shown = |filter: &str| {
        browser.type_into("filter", filter);
        let drawn = browser.evaluate("timeline.drawn()");
        let count = |what: &str| drawn[what].as_array().map_or(0, Vec::len);
        (count("shown"), count("bars"))
    };
    let (all, _) = shown("node:ad1-");
    let (one, _) = shown("ad1-0003");
    let (of_job, jobs) = shown("job:7");
    let (of_pool, _) = shown("pool:vm.standard2.1");
    let (none, _) = shown("node:nowhere");
    assert_eq!((all, one, jobs, of_pool, none), (16, 1, 1, 16, 0));
    assert!((1..=16).contains(&of_job), "{of_job}");
    println!("filter: node 1 lane, job 7 {of_job} lanes, pool {of_pool} lanes");
}

/// Runs the jobs, and does something with the page that shows what happened.
fn soak(accounts: bool, after: impl FnOnce(&Path)) {
    let cluster = Cluster::builder(USUAL)
        .nodes(16)
        .suspend_time(1)
        .resume_timeout(60)
        .elastic("cooldown: 2s, grace: 30s")
        .cloud(|cloud| cloud.faults = faults())
        .start();
    let _accounting = accounts.then(|| Accounting::start(&cluster, USUAL));
    let _reconcile = cluster.begin("reconcile", &["--apply", "--watch", "2"]);
    let begun = Instant::now();
    for wave in 1..=WAVES {
        for number in 0..JOBS / WAVES {
            let nodes = format!("--nodes={}", 1 + number % 4);
            let _ = cluster.submit(&[&nodes, "--exclusive"], "srun sleep 0.3");
        }
        let due = usize::try_from(JOBS / WAVES * wave).unwrap();
        let done = wait_for(WAVE, || {
            park_timeout(Duration::from_secs(1));
            is_over(&states(&cluster), due).then_some(())
        });
        let states = states(&cluster);
        let all = done.is_some() && states.get("COMPLETED") >= Some(&due);
        assert!(all, "wave {wave}, {due} jobs: {states:?}\n{}", cluster.story());
        // The next wave finds no machines, and some that are on their way out.
        cluster.until("the first machines go", || cluster.live().len() < 8);
    }
    let took = begun.elapsed();
    cluster.cloud().clear_faults();
    let empty = wait_for(PATIENCE, || cluster.live().is_empty().then_some(()));
    assert!(empty.is_some(), "machines are left\n{}", cluster.story());
    cluster.wait_empty();
    table(&cluster, took);
    let page = cluster.dir().join("timeline.html");
    let _ = cluster.well("timeline", &["--html", &page.display().to_string()]);
    after(&page);
}

fn table(cluster: &Cluster, took: Duration) {
    let counts = cluster.cloud().counts();
    let requests: u64 = counts.values().sum();
    let bad = |request: &cloud_sim::Recorded| request.status.is_none_or(|code| code >= 400);
    let faulty = cluster.cloud().requests().iter().filter(|request| bad(request)).count();
    let down = cluster.nodes().values().filter(|state| state.starts_with("DOWN")).count();
    let rows = [
        (
            "jobs completed",
            states(cluster).get("COMPLETED").copied().unwrap_or_default().to_string(),
        ),
        ("seconds", format!("{:.0}", took.as_secs_f64())),
        ("machines started", cluster.cloud().instances().len().to_string()),
        ("requests to the cloud", requests.to_string()),
        ("of them answered wrongly", faulty.to_string()),
        ("machines left", cluster.live().len().to_string()),
        ("nodes DOWN", down.to_string()),
    ];
    for (what, number) in rows {
        println!("{what:<26} {number:>6}");
    }
    assert_eq!(down, 0);
    assert!(faulty * 10 > cluster.cloud().requests().len(), "the cloud was to be faulty");
}

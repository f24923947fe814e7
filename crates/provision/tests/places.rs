//! The places that a node's line lists: preemptible machines first, others after a time, the cheapest first.

use crate::common::run;
use crate::common::{Bed, conf, names, node};
use cloud_core::memory::MemoryCloudSettings;
use cloud_core::{ImageId, InstanceState, Shape, ShapeName, Zone};
use history::cost::Prices;
use provision::state::EventKind;
use provision::{Fallback, Identity, Outcome, Place, Report, Roster, Site};
use slurmctl::memory::{Call, JobSpec};
use slurmctl::{JobId, JobState};
use std::time::Duration;
use tokio::time::{Instant, sleep};

const SPOT: &str = "shape=small,ad=1,preemptible=true,give_up_after=600";

fn bed(features: &str) -> Bed {
    let mut settings = MemoryCloudSettings::default();
    let mut tiny = Shape::new(ShapeName::new("tiny"), 2, 15_000);
    tiny.zones = vec![Zone::new("zone-1")];
    settings.shapes.push(tiny);
    let mut bed = Bed::with("n[1-4]", settings);
    bed.config = conf(&format!("NodeName=n[1-4] State=CLOUD CPUs=2 Features={features}"));
    bed.site.policies.cooldown = Duration::from_mins(2);
    bed
}

async fn start(bed: &Bed, nodes: &str) -> Report {
    let nodes = names(nodes);
    bed.run(async |run| run::start(run, &nodes, &[]).await).await
}

async fn stop(bed: &Bed, nodes: &str) {
    let nodes = names(nodes);
    bed.run(async |run| run::stop(run, &nodes).await).await;
}

/// Where the last machine of a node was launched: preemptible or not, shape and zone.
fn launched(bed: &Bed, name: &str) -> (bool, String, String) {
    let log = bed.state.history().unwrap();
    let mut launches = log.events.into_iter().filter(|event| event.event == EventKind::Launched);
    let last = launches.rfind(|event| event.node.as_deref() == Some(name)).unwrap();
    let place = last.place();
    (place.preemptible, place.shape.unwrap_or_default(), place.zone.unwrap_or_default())
}

/// Asks for a node each minute until its machine is launched, and gives the minutes that took.
async fn until_launched(bed: &Bed, name: &str) -> u32 {
    for minute in 0..60 {
        let _ = bed.slurm.tick();
        let report = start(bed, name).await;
        if report.nodes[&node(name)].outcome == Outcome::Up {
            return minute;
        }
        sleep(Duration::from_mins(1)).await;
    }
    panic!("{name} is never launched");
}

#[tokio::test(start_paused = true)]
async fn spot_that_is_refused_gives_way_to_on_demand_after_a_time_and_comes_back() {
    let bed = bed(SPOT);
    assert_eq!(until_launched(&bed, "n1").await, 0);
    assert!(launched(&bed, "n1").0, "there are preemptible machines");
    bed.cloud.set_preemptible(false);
    let minutes = until_launched(&bed, "n2").await;
    assert!((9..=12).contains(&minutes), "{minutes} minutes");
    assert!(!launched(&bed, "n2").0, "on demand after ten minutes");
    // It is tried again after each cool-down, and others do not wait for that.
    sleep(Duration::from_mins(3)).await;
    assert_eq!(until_launched(&bed, "n3").await, 0);
    assert!(!launched(&bed, "n3").0);
    bed.cloud.set_preemptible(true);
    sleep(Duration::from_mins(3)).await;
    assert_eq!(until_launched(&bed, "n4").await, 0);
    assert!(launched(&bed, "n4").0, "spot again");
    stop(&bed, "n[1-4]").await;
    assert!(bed.live().is_empty());
}

#[tokio::test(start_paused = true)]
async fn nodes_that_chose_on_demand_go_to_spot_once_the_probe_of_another_has_found_some() {
    let mut bed = bed(SPOT);
    bed.site.policies.concurrency = 1;
    bed.cloud.set_preemptible(false);
    assert!(until_launched(&bed, "n1").await > 0);
    bed.cloud.set_preemptible(true);
    sleep(Duration::from_mins(3)).await;
    let report = start(&bed, "n[2-4]").await;
    for name in ["n2", "n3", "n4"] {
        assert_eq!(report.nodes[&node(name)].outcome, Outcome::Up, "{report:?}");
        assert!(launched(&bed, name).0, "{name} is on spot");
    }
}

#[tokio::test(start_paused = true)]
async fn the_places_of_a_node_come_before_the_fallback_of_the_site() {
    let mut bed = bed("shape=small,ad=1,place1=/3/,place2=/2/");
    let zone = Some(Zone::new("zone-1"));
    bed.site.fallback = vec![Fallback { zone, ..Fallback::default() }];
    let full =
        |zone| bed.cloud.set_capacity(ShapeName::new("small"), Some(Zone::new(zone)), Some(0));
    start(&bed, "n1").await;
    assert_eq!(launched(&bed, "n1").2, "zone-3");
    full("zone-3");
    start(&bed, "n2").await;
    assert_eq!(launched(&bed, "n2").2, "zone-2");
    full("zone-2");
    let report = start(&bed, "n3").await;
    assert_ne!(report.nodes[&node("n3")].outcome, Outcome::Up, "zone-1 is not among its places");
}

#[test]
fn a_place_without_a_zone_is_in_each_zone_of_the_node() {
    let mut site = Site::new(Identity::cluster("blue"));
    site.image = Some(ImageId::new("image-1"));
    site.zones = ["a", "b"].map(Zone::new).into();
    let zone = Some(Zone::new("b"));
    let large = Fallback { shape: Some("large".to_owned()), ..Fallback::default() };
    site.fallback = vec![Fallback { zone, ..large.clone() }, large];
    let places = |features: &str| {
        let config = conf(&format!("NodeName=n1 State=CLOUD Features=shape=small{features}"));
        let roster = Roster::new(&config);
        let wanted = site.wanted(&node("n1"), roster.get(&node("n1")).unwrap()).unwrap();
        let named = |place: &Place| {
            let zone = place.zone.as_ref().map(ToString::to_string).unwrap_or_default();
            (place.preemptible, place.shape.to_string(), zone)
        };
        wanted.places.iter().map(named).collect::<Vec<_>>()
    };
    let place =
        |preemptible, shape: &str, zone: &str| (preemptible, shape.to_owned(), zone.to_owned());
    assert_eq!(
        places(",place1=//preemptible,place2=tiny/b/"),
        [place(true, "small", "a"), place(true, "small", "b"), place(false, "tiny", "b")]
    );
    assert_eq!(
        places(""),
        [("small", "a"), ("small", "b"), ("large", "b"), ("large", "a")]
            .map(|(shape, zone)| place(false, shape, zone))
    );
}

#[tokio::test(start_paused = true)]
async fn places_are_tried_cheapest_first_where_prices_are_known() {
    let prices = "currency: USD\nshapes: {tiny: 0.01, small: {hour: 0.05, preemptible: 0.02}}\n";
    let mut bed = bed("shape=small,ad=1,place1=//on-demand,place2=//preemptible,place3=tiny//");
    start(&bed, "n1").await;
    assert_eq!(
        launched(&bed, "n1"),
        (false, "small".to_owned(), "zone-1".to_owned()),
        "as written"
    );
    bed.site.prices = Some(Prices::read("prices.yaml", prices).unwrap());
    start(&bed, "n2").await;
    assert_eq!(launched(&bed, "n2").1, "tiny");
    bed.cloud.set_capacity(ShapeName::new("tiny"), Some(Zone::new("zone-1")), Some(0));
    start(&bed, "n3").await;
    assert!(launched(&bed, "n3").0, "then the preemptible one");
    bed.cloud.set_preemptible(false);
    start(&bed, "n4").await;
    assert!(!launched(&bed, "n4").0, "then the other");
    let comment = bed.slurm.node("n3").unwrap().comment.unwrap_or_default();
    assert_eq!(comment, "small preemptible in zone-1, 0.02 USD an hour");
}

/// Slurm and its programs for so long, with a reconcile each minute.
async fn live(bed: &Bed, job: JobId, state: &JobState) -> Option<Duration> {
    let begun = Instant::now();
    for second in 0..3600 {
        for call in bed.slurm.tick() {
            match call {
                Call::Resume { nodes, .. } => drop(start(bed, &nodes.to_string()).await),
                Call::Suspend { nodes } | Call::ResumeFail { nodes } => {
                    stop(bed, &nodes.to_string()).await;
                }
                _ => {}
            }
        }
        for machine in bed.live().iter().filter(|one| one.state == InstanceState::Running) {
            let name = bed.site.identity.node_of(machine).unwrap();
            let waits = bed.slurm.node(name.as_str()).unwrap().state.is_powering_up();
            if let Some(address) = machine.address.filter(|_| waits) {
                let _ = bed.slurm.register(&name, &address.to_string(), Instant::now());
            }
        }
        if second % 60 == 0 {
            bed.run(async |run| run::reconcile(run).await).await;
        }
        if bed.slurm.job(job).is_some_and(|job| job.state == *state) {
            return Some(begun.elapsed());
        }
        sleep(Duration::from_secs(1)).await;
    }
    None
}

#[tokio::test(start_paused = true)]
async fn a_job_whose_machine_is_preempted_is_requeued_and_completes_and_no_machine_is_left() {
    let bed = bed(SPOT);
    let job = bed.slurm.submit_job(JobSpec::new(2, Duration::from_mins(10)));
    assert!(live(&bed, job, &JobState::Running).await.is_some());
    sleep(Duration::from_mins(5)).await;
    let taken = bed.live().remove(0);
    assert!(bed.cloud.force(&taken.id, InstanceState::Terminated));
    bed.slurm.lost(&bed.site.identity.node_of(&taken).unwrap());
    bed.cloud.set_preemptible(false);
    let took = live(&bed, job, &JobState::Completed).await.expect("it completes elsewhere");
    assert!(bed.slurm.job(job).unwrap().restarts > 0, "it was requeued");
    println!("preempted after 5 minutes, completed {took:?} later");
    // Slurm has them stopped when they were idle for some time.
    for _ in 0..7200 {
        if bed.live().is_empty() {
            return;
        }
        for call in bed.slurm.tick() {
            if let Call::Suspend { nodes } = call {
                stop(&bed, &nodes.to_string()).await;
            }
        }
        sleep(Duration::from_secs(1)).await;
    }
    panic!("machines are left: {:?}", bed.live());
}

//! Places of a group: preemptible machines first, on-demand ones after a time, and preemptible ones again.

use cloud_sim::{Fault, Recorded, Rule};
use e2e::{Cluster, USUAL, in_namespaces};

/// What a launch of a preemptible machine says.
const SPOT: &str = "preemptibleInstanceConfig";

const LIMITS: &str = "general: {shape: VM.Standard2.1, zone: '1', max: 2,
  preemptible: {give_up_after: 12s}}
cheap: {shape: VM.Standard2.1, zone: '1', max: 1, weight: 50, partition: cheap,
  places: [{shape: VM.Standard2.4}, {shape: VM.Standard2.1}]}
";

/// The second place of the group `cheap` costs a quarter of the first.
const PRICES: &str = "currency: USD\nshapes: {VM.Standard2.1: 0.06, VM.Standard2.4: 0.24}\n";

/// What the accepted launches said since the requests were cleared.
fn launches(cluster: &Cluster) -> Vec<String> {
    let taken =
        |request: &Recorded| request.operation == "LaunchInstance" && request.status == Some(200);
    cluster.cloud().requests().into_iter().filter(taken).map(|request| request.body).collect()
}

/// The kinds of machines that were launched since the requests were cleared.
fn launched(cluster: &Cluster) -> Vec<&'static str> {
    let kind = |body: String| if body.contains(SPOT) { "spot" } else { "on-demand" };
    launches(cluster).into_iter().map(kind).collect()
}

/// Runs a job and gives the kinds of machines that were launched for it.
fn run(cluster: &Cluster) -> Vec<&'static str> {
    cluster.cloud().clear_requests();
    let job = cluster.submit(&["--nodes=1"], "srun hostname");
    cluster.wait_job(job, "COMPLETED");
    let kinds = launched(cluster);
    cluster.wait_empty();
    kinds
}

/// Runs a job on the group of two places, and gives the shape of its machine.
fn run_cheap(cluster: &Cluster) -> Vec<String> {
    cluster.cloud().clear_requests();
    let job = cluster.submit(&["--partition=cheap"], "srun hostname");
    cluster.wait_job(job, "COMPLETED");
    cluster.wait_empty();
    let shape = |body: String| {
        let mut words = body.split('"').skip_while(|word| *word != "shape");
        words.nth(2).unwrap_or_default().to_owned()
    };
    launches(cluster).into_iter().map(shape).collect()
}

/// The group's places are tried as they are written, and with prices the cheapest first.
fn goes_to_the_cheapest(cluster: &Cluster) {
    assert_eq!(run_cheap(cluster), ["VM.Standard2.4"], "{}", cluster.story());
    std::fs::write(cluster.dir().join("etc/prices.yaml"), PRICES).unwrap();
    assert_eq!(run_cheap(cluster), ["VM.Standard2.1"], "{}", cluster.story());
}

#[test]
fn spot_gives_way_to_on_demand_after_a_time_and_comes_back_and_the_cheapest_place_is_first() {
    in_namespaces(|| {
        let cluster = Cluster::builder(USUAL)
            .limits(LIMITS)
            .suspend_time(1)
            .credential(5)
            .elastic("cooldown: 3s")
            .start();
        assert_eq!(run(&cluster), ["spot"], "{}", cluster.story());
        let full = Fault::answer(500, "InternalError", "Out of host capacity.");
        let spot = Some(SPOT.to_owned());
        cluster
            .cloud()
            .add_fault(&Rule { containing: spot, ..Rule::always("LaunchInstance", full) });
        assert_eq!(run(&cluster), ["on-demand"], "{}", cluster.story());
        let comment = cluster.node_fields("Comment");
        assert!(comment.values().any(|text| text == "VM.Standard2.1"), "{comment:?}");
        cluster.cloud().clear_faults();
        cluster.until("the cool-down is over", || {
            let stored = std::fs::read_to_string(cluster.dir().join("elastic/cooldowns.json"));
            let _ = run(&cluster);
            stored.is_ok_and(|text| !text.contains("preemptible"))
        });
        assert_eq!(run(&cluster), ["spot"], "{}", cluster.story());
        goes_to_the_cheapest(&cluster);
    });
}

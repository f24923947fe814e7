//! Places of a group: preemptible machines first, on-demand ones after a time, and preemptible ones again.

use cloud_sim::{Fault, Recorded, Rule};
use e2e::{Cluster, USUAL, in_namespaces};

/// What a launch of a preemptible machine says.
const SPOT: &str = "preemptibleInstanceConfig";

const LIMITS: &str = "general: {shape: VM.Standard2.1, zone: '1', max: 2,
  preemptible: {give_up_after: 12s}}
";

/// The kinds of machines that were launched since the requests were cleared.
fn launched(cluster: &Cluster) -> Vec<&'static str> {
    let taken =
        |request: &Recorded| request.operation == "LaunchInstance" && request.status == Some(200);
    let kind = |request: Recorded| if request.body.contains(SPOT) { "spot" } else { "on-demand" };
    cluster.cloud().requests().into_iter().filter(taken).map(kind).collect()
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

#[test]
fn spot_gives_way_to_on_demand_after_a_time_and_comes_back() {
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
    });
}

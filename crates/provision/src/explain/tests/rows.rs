//! Jobs that wait, each with what keeps it.

use super::{Scene, now, pool};
use crate::cause::Cause;
use std::time::Duration;

/// Each with the cause and words of the sentence that it must have.
#[expect(clippy::too_many_lines, reason = "a table: one row for each cause")]
pub(super) fn waiting_jobs() -> Vec<(Scene, &'static str, &'static str)> {
    let cloud = |text: &str| Scene::new().requeued(&format!("elastic: launch: {text}"));
    let all = ["n1", "n2", "n3", "n4"];
    let held = |by: &str| Scene::new().nodes(&all, "IDLE+CLOUD+DRAIN", by);
    vec![
        (
            cloud("out of capacity (m1.large): No valid host."),
            "capacity",
            "m1.large is out of capacity (No valid host)",
        ),
        (
            cloud("quota exceeded (m1.large): cores"),
            "quota",
            "the quota for m1.large is used up (cores)",
        ),
        (cloud("too many requests (m1.large)"), "throttled", "too many"),
        (cloud("cloud unavailable (m1.large): 503"), "unavailable", "cannot be reached"),
        (cloud("answer lost (m1.large)"), "ambiguous", "answer to a launch is lost"),
        (
            cloud("not authenticated: bad key"),
            "unauthenticated",
            "does not accept the cluster's credential (bad key)",
        ),
        (cloud("not allowed (m1.large): policy"), "forbidden", "does not allow"),
        (
            cloud("invalid request (m1.large): no such subnet"),
            "invalid",
            "calls the launch invalid (no such subnet)",
        ),
        (
            cloud("not allowed (m1.large): no: subnet … is gone, or the caller may not see it"),
            "subnet",
            "the subnet of its nodes is gone, or the cluster may not see it",
        ),
        (
            cloud("not found (m1.large): image img-1"),
            "not_found",
            "does not have what the launch needs (image img-1)",
        ),
        (
            cloud(
                "invalid request (m1.large): image …: authorization failed or related resource not found: image … is gone, or the caller may not see it",
            ),
            "image",
            "the image of its nodes is gone, or the cluster may not see it",
        ),
        (cloud("in use elsewhere (m1.large)"), "conflict", "busy with something else"),
        (cloud("answer not understood (m1.large): <html>"), "protocol", "cannot be understood"),
        (Scene::new().requeued("elastic: took too long"), "timeout", "did not run in time"),
        (
            Scene::new().requeued("elastic: the cloud has no image rocky-9"),
            "image",
            "the image of its nodes is not in the cloud",
        ),
        (
            Scene::new().requeued("elastic: configuration: startnode.yaml:3:1: bad"),
            "configuration",
            "the configuration cannot be read",
        ),
        (
            Scene::new().with(|it| {
                it.cooldowns.close(
                    pool("m1.large"),
                    Cause::Capacity,
                    now() - Duration::from_mins(2),
                    Duration::from_mins(10),
                );
            }),
            "capacity",
            "m1.large is out of capacity",
        ),
        (held("fan broken"), "held_node", "n1 is out of service by alice (fan broken)"),
        (
            held("elastic: drained for lack of room: m1.large: quota exceeded, next try after x"),
            "quota",
            "the quota for m1.large",
        ),
        (held("elastic: drained for resize"), "drained", "n1 is drained for resize"),
        (
            Scene::new().nodes(&all, "IDLE+CLOUD+MAINTENANCE", "os update"),
            "maintenance",
            "reserved for maintenance (os update)",
        ),
        (
            Scene::new().nodes(&all, "DOWN+CLOUD+POWERED_DOWN", "ResumeTimeout reached"),
            "never_registered",
            "n1 did not register",
        ),
        (
            Scene::new().nodes(&all, "DOWN+CLOUD", "Not responding"),
            "not_responding",
            "slurmd on n1 does not answer",
        ),
        (
            Scene::new().nodes(&all, "IDLE+CLOUD+INVALID_REG", ""),
            "misfit",
            "n1 registered with fewer",
        ),
        (
            Scene::new().nodes(&all, "DOWN+CLOUD", "elastic: 2 instances: i-1, i-2"),
            "duplicates",
            "several machines",
        ),
        (Scene::new().nodes(&all, "ALLOCATED+CLOUD", ""), "busy", "other jobs have 4 nodes"),
        (Scene::new().reason("Priority"), "priority", "higher priority"),
        (Scene::new().reason("BeginTime"), "begin_time", "not to begin yet"),
        (Scene::new(), "not_scheduled", "has not scheduled it yet (Resources)"),
        (
            Scene::new().wants(5),
            "larger_than_partition",
            "it asks for 5 nodes, and partition main has 4",
        ),
        (
            Scene::new().wants(4).reason("PartitionNodeLimit"),
            "partition_node_limit",
            "allows MaxNodes=3",
        ),
        (
            Scene::new()
                .reason("PartitionTimeLimit")
                .with(|it| it.job.time_limit = Some("2:00:00".to_owned())),
            "partition_time_limit",
            "its time limit of 2:00:00 is above MaxTime=60",
        ),
        (Scene::new().reason("PartitionDown"), "partition_down", "partition main is down"),
        (Scene::new().reason("PartitionInactive"), "partition_inactive", "is inactive"),
        (Scene::new().reason("PartitionConfig"), "partition_config", "does not allow"),
        (Scene::new().reason("JobHeldUser"), "held", "its owner holds it"),
        (Scene::new().reason("JobHeldAdmin"), "held", "an administrator holds it"),
        (Scene::new().reason("launch_failed_requeued_held"), "held", "failed to start too often"),
        (
            Scene::new()
                .reason("Dependency")
                .with(|it| it.job.dependency = Some("afterok:5(unfulfilled)".to_owned())),
            "dependency",
            "it depends on afterok:5",
        ),
        (Scene::new().reason("DependencyNeverSatisfied"), "dependency", "never starts"),
        (
            Scene::new()
                .reason("BadConstraints")
                .with(|it| it.job.features = Some("a100".to_owned())),
            "constraints",
            "no node has its constraint a100",
        ),
        (
            Scene::new().with(|it| it.job.features = Some("a100".to_owned())),
            "nothing_fits",
            "has no node with a100",
        ),
        (Scene::new().reason("QOSMaxJobsPerUserLimit"), "account_limit", "QOSMaxJobsPerUserLimit"),
        (Scene::new().reason("AssocGrpCpuLimit"), "account_limit", "AssocGrpCpuLimit"),
        (Scene::new().reason("Licenses"), "licenses", "licences"),
        (Scene::new().reason("Reservation"), "reservation", "reservation"),
        (Scene::new().reason("JobArrayTaskLimit"), "array_limit", "array"),
        (
            Scene::new().reason("MaxPoweredUpNodes"),
            "max_powered_nodes",
            "as many nodes are powered up as max_powered_nodes allows (3)",
        ),
        (
            Scene::new().with(|it| it.job.partition = "odd".to_owned()),
            "shape",
            "does not say which shape x1 has",
        ),
    ]
}

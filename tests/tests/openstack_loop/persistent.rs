//! Nodes that are always there, and nodes that reboot themselves.

use crate::openstack_loop::steps::{completes, configure, expect, part, reboot};
use e2e::{Cluster, OpenStack, RebuildJobs, USUAL, in_namespaces};

const LIMITS: &str = "standard: {shape: m1.tiny, min: 2, max: 2, partition: standard}
extra: {shape: m1.tiny, min: 2, max: 2, partition: extra}
big: {shape: m1.tiny, min: 0, max: 1, partition: big}
";

const PARTITIONS: &str = "PriorityType=priority/multifactor
PriorityWeightPartition=1000
PartitionName=rebuild Nodes=c1-standard-[0001-0002],c1-extra-[0001-0002] Hidden=YES RootOnly=YES DisableRootJobs=NO PreemptMode=OFF OverSubscribe=EXCLUSIVE PriorityJobFactor=65533 MaxTime=INFINITE
";

#[test]
fn rebuild_jobs_and_nodes_that_reboot_themselves() {
    in_namespaces(|| {
        let cluster = part("an OpenStack and a Slurm", || {
            Cluster::builder(USUAL)
                .limits(LIMITS)
                .persistent(&["c1-standard", "c1-extra"])
                .partitions(PARTITIONS)
                .reboot_on_the_node()
                .suspend_time(86_400)
                .start_on_openstack()
        });
        part("nodes that are always there come", || come(&cluster));
        part("rebuild jobs go before waiting ones", || rebuild_jobs(&cluster));
        part("an elastic node has no rebuild job", || refused(&cluster));
        part("nodes reboot themselves, equal image", || reboots(&cluster));
        part("nodes rebuild themselves, another image", || rebuilds(&cluster));
        assert_eq!(cluster.site().ever(), 4 + 1, "each node has one server, once");
    });
}

const ELASTIC: &str = "c1-big-0001";
const ALWAYS: &str = "c1-standard-0001";

fn group(name: &str) -> Vec<String> {
    [1, 2].map(|number| format!("c1-{name}-000{number}")).to_vec()
}

fn come(cluster: &Cluster<OpenStack>) {
    let nodes = [group("standard"), group("extra")].concat();
    let _ = cluster.well("startnode", &[&nodes.join(",")]);
    cluster.until("all nodes answer", || {
        let states = cluster.nodes();
        nodes.iter().all(|node| states.get(node).is_some_and(|state| state == "IDLE"))
    });
    expect(cluster, &nodes, "image-1", &["spawn"]);
}

fn rebuild_jobs(cluster: &Cluster<OpenStack>) {
    configure(cluster, "image-2");
    let expect = |nodes: &str, begun: bool| {
        let (image, boots): (_, &[&str]) =
            if begun { ("image-2", &["spawn", "rebuild"]) } else { ("image-1", &["spawn"]) };
        expect(cluster, &group(nodes), image, boots);
    };
    cluster.see_rebuild_jobs_in_order(&[], |RebuildJobs { standard, extra }| {
        expect("standard", standard);
        expect("extra", extra);
    });
}

/// From 23.02 on, Slurm runs a job with `--reboot` on an elastic node without a reboot; a rebuild job would rebuild nothing.
fn refused(cluster: &Cluster<OpenStack>) {
    let run = |options: &[&str]| {
        let options = [&["--nodes=1", "--partition=big"], options].concat();
        let job = cluster.submit(&options, "srun hostname");
        completes(cluster, job);
        assert_eq!(cluster.output(job).trim(), ELASTIC, "{}", cluster.story());
    };
    run(&[]);
    configure(cluster, "image-1");
    run(&["--reboot"]);
    let refused = cluster.run("rebuild", &["submit", "--jobs", "big"]);
    let words = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    assert!(words.contains("elastic") || words.contains("CLOUD"), "it says why: {words}");
    expect(cluster, &[ELASTIC.to_owned()], "image-2", &["spawn"]);
}

/// How often slurmd was asked to reboot its node.
fn asked(cluster: &Cluster<OpenStack>, node: &str) -> usize {
    let log = cluster.log(&format!("slurmd.{node}.log"));
    log.matches("Node reboot request being processed").count()
}

/// Slurm has an elastic node and one that is always there run our program themselves, without any argument.
fn reboots(cluster: &Cluster<OpenStack>) {
    configure(cluster, "image-2");
    reboot(cluster, &[ELASTIC, ALWAYS].map(str::to_owned));
    expect(cluster, &[ELASTIC.to_owned()], "image-2", &["spawn", "reboot SOFT"]);
    expect(cluster, &[ALWAYS.to_owned()], "image-2", &["spawn", "rebuild", "reboot SOFT"]);
    assert_eq!([ELASTIC, ALWAYS].map(|node| asked(cluster, node)), [1, 1], "{}", cluster.story());
}

fn rebuilds(cluster: &Cluster<OpenStack>) {
    configure(cluster, "image-1");
    reboot(cluster, &[ELASTIC, ALWAYS].map(str::to_owned));
    expect(cluster, &[ELASTIC.to_owned()], "image-1", &["spawn", "reboot SOFT", "rebuild"]);
    let boots = ["spawn", "rebuild", "reboot SOFT", "rebuild"];
    expect(cluster, &[ALWAYS.to_owned()], "image-1", &boots);
    assert_eq!([ELASTIC, ALWAYS].map(|node| asked(cluster, node)), [2, 2], "{}", cluster.story());
}

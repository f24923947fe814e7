//! The main job: sbatch, nodes come, the job runs on all of them, nodes go.

use e2e::Cluster;

fn loops(series: &str, nodes: u32) {
    let cluster = Cluster::builder(series).nodes(nodes).start();
    let count = nodes.to_string();
    let output = cluster.dir().join("log/job.out");
    let job = cluster.sbatch(&[
        "--nodes",
        &count,
        "--output",
        &output.display().to_string(),
        "--wrap",
        "srun --label hostname | sort",
    ]);
    cluster.wait_job(job, "COMPLETED");
    let printed = std::fs::read_to_string(&output).unwrap();
    let mut hosts: Vec<&str> = printed.lines().filter_map(|line| line.split(' ').nth(1)).collect();
    hosts.sort_unstable();
    let expected: Vec<String> =
        (1..=nodes).map(|number| format!("vm-standard2-1-ad1-{number:04}")).collect();
    assert_eq!(hosts, expected, "{printed}");
    cluster.wait_empty();
}

#[test]
fn four_nodes_come_and_go_on_24_11() {
    loops("24.11", 4);
}

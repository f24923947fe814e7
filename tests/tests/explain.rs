//! `explain` on a real Slurm: what keeps jobs waiting, each fault on one cluster, with its cause and its remedy.

use cloud_sim::{Fault, Rule};
use e2e::{Cluster, USUAL, in_namespaces};
use serde_json::Value;
use std::fmt::Write as _;
use std::fs;

/// Partitions and a licence that keep jobs waiting whatever the cloud has.
const PARTITIONS: &str = "Licenses=solver:1
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
PartitionName=small Nodes=vm-standard2-1-ad1-00[20-23] MaxNodes=2 MaxTime=INFINITE State=UP
PartitionName=short Nodes=vm-standard2-1-ad1-00[20-23] MaxTime=10 State=UP
PartitionName=single Nodes=vm-standard2-1-ad1-00[20-21] MaxTime=INFINITE State=DOWN
PartitionName=shut Nodes=vm-standard2-1-ad1-00[20-23] MaxTime=INFINITE State=DOWN
PartitionName=idle Nodes=vm-standard2-1-ad1-00[20-23] MaxTime=INFINITE State=DOWN
";

/// A node of the first zone.
fn node(number: u32) -> String {
    format!("vm-standard2-1-ad1-{number:04}")
}

/// What the cloud answers to each launch for a node.
fn launches_of(node: &str, fault: Fault) -> Rule {
    Rule { containing: Some(node.to_owned()), ..Rule::always("LaunchInstance", fault) }
}

/// What is explained, by the name of its fault.
struct Book<'c> {
    cluster: &'c Cluster,
    pages: Vec<(&'static str, Value)>,
}

impl Book<'_> {
    /// Explains a job or a node, and keeps the explanation.
    fn explain(&mut self, fault: &'static str, subject: &str) {
        let output = self.cluster.run("explain", &[subject, "--json"]);
        let text = String::from_utf8_lossy(&output.stdout);
        let page = serde_json::from_str(&text);
        let page = page.unwrap_or_else(|error| panic!("{fault}: {error}: {output:?}"));
        self.pages.push((fault, page));
    }

    fn job(&mut self, fault: &'static str, job: u32) {
        self.explain(fault, &job.to_string());
    }

    /// A job for one node that is refused, and explained once it is back in the queue.
    fn refused(&mut self, fault: &'static str, node: &str) {
        let job = submit_for(self.cluster, node);
        self.cluster.until(fault, || is_back(self.cluster, job));
        self.job(fault, job);
    }

    /// Cause, sentence and remedy of each fault.
    fn text(&self) -> String {
        let dir = self.cluster.dir().display().to_string();
        let mut text = String::new();
        for (fault, page) in &self.pages {
            let word = |key: &str| page[key].as_str().unwrap_or_default().to_owned();
            let (cause, sentence) = (word("cause"), word("sentence"));
            writeln!(
                text,
                "## {fault}: {cause}\n{}\n{}\n",
                plain(fault, &sentence),
                word("remedy")
            )
            .unwrap();
        }
        text.replace(&dir, "DIR")
    }
}

/// Times, amounts and the number of machines differ from run to run.
fn plain(fault: &str, text: &str) -> String {
    let text = text
        .split_once("; the cloud's clock says")
        .map_or_else(|| text.to_owned(), |(it, _)| format!("{it})."));
    match fault {
        "budget" | "max_nodes" => text.split_once(" (").map_or(text.clone(), |(it, why)| {
            format!("{it} ({}", why.replace(|c: char| c.is_ascii_digit(), "9"))
        }),
        _ => text,
    }
}

fn submit_for(cluster: &Cluster, node: &str) -> u32 {
    cluster.submit(&[&format!("--nodelist={node}")], "srun hostname")
}

/// True if a job was started in vain and is in the queue again.
fn is_back(cluster: &Cluster, job: u32) -> bool {
    cluster.job(job, "Restarts") != "0" && cluster.job(job, "JobState") == "PENDING"
}

/// The jobs whose launches the cloud refuses, loses or leaves without an answer.
fn cloud_faults(cluster: &Cluster) -> Vec<(&'static str, u32)> {
    let answer = Fault::answer;
    let full = "vm-standard2-1-ad2-0001";
    let used_up = "vm-standard2-1-ad3-0001";
    let rows = [
        ("no capacity", full.to_owned(), Fault::out_of_capacity()),
        (
            "quota",
            used_up.to_owned(),
            answer(400, "LimitExceeded", "The limit standard2-core-count is reached."),
        ),
        (
            "credential",
            node(1),
            answer(401, "NotAuthenticated", "The required information was not provided."),
        ),
        ("no right", node(2), answer(403, "NotAllowed", "Policy does not allow it.")),
        (
            "invalid request",
            node(3),
            answer(400, "InvalidParameter", "The shape does not fit the image."),
        ),
        (
            "something is missing",
            node(4),
            answer(404, "NotAuthorizedOrNotFound", "The subnet does not exist."),
        ),
        ("409", node(5), answer(409, "IncorrectState", "The subnet is being changed.")),
        ("429", node(6), answer(429, "TooManyRequests", "Too many requests for the tenancy.")),
        ("503", node(7), answer(503, "ServiceUnavailable", "The service is under maintenance.")),
        // Its machine is there for all that, and must not boot.
        ("no answer", node(8), Fault::Delay { millis: 120_000 }),
        ("connection lost", node(9), Fault::DropBefore),
        ("not understood", node(10), answer(302, "", "<html>Sign in</html>")),
    ];
    let jobs = rows.map(|(fault, node, answer)| {
        cluster.cloud().add_fault(&launches_of(&node, answer));
        (fault, submit_for(cluster, &node))
    });
    jobs.to_vec()
}

/// Jobs that Slurm itself keeps waiting.
fn slurm_faults(book: &mut Book<'_>, running: u32, large: u32) {
    let cluster = book.cluster;
    let submit = |options: &[&str]| cluster.submit(options, "true");
    let at = format!("--dependency=afterok:{running}");
    let held = submit(&["--hold"]);
    let by_root = submit(&["--begin=now+1hour"]);
    cluster.scontrol(&format!("hold {by_root}"));
    let vain = submit(&["--hold"]);
    let never = submit(&[&format!("--dependency=afterok:{vain}")]);
    cluster.scontrol("create reservation reservationname=later starttime=now+1hour duration=60 users=root nodes=vm-standard2-1-ad1-0022");
    let rows = [
        (
            "more nodes than MaxNodes",
            submit(&["--partition=small", "--nodes=3"]),
            "PartitionNodeLimit",
        ),
        ("longer than MaxTime", submit(&["--partition=short", "--time=60"]), "PartitionTimeLimit"),
        ("larger than the partition", large, "Partition"),
        ("partition down", submit(&["--partition=shut"]), "PartitionDown"),
        ("partition inactive", submit(&["--partition=idle"]), "PartitionInactive"),
        ("held by its owner", held, "JobHeld"),
        ("held by an administrator", by_root, "JobHeldAdmin"),
        ("dependency", submit(&[&at]), "Dependency"),
        ("dependency that failed", never, ""),
        ("not yet", submit(&["--begin=now+1hour"]), "BeginTime"),
        (
            "licence in use",
            submit(&["--licenses=solver:1", "--exclude=vm-standard2-1-ad1-00[01-19]"]),
            "Licenses",
        ),
        ("reservation", submit(&["--reservation=later"]), "Reservation"),
        (
            "other jobs",
            cluster.submit(&["--exclusive", &format!("--nodelist={}", node(20))], "true"),
            "",
        ),
    ];
    cluster.scontrol("update partitionname=idle state=inactive");
    let _ = cluster.ask("scancel", &[&vain.to_string()]);
    cluster.until("the job that it depends on is gone", || {
        cluster.job(never, "Reason") == "DependencyNeverSatisfied"
    });
    for (fault, job, reason) in rows {
        cluster.until(fault, || {
            let said = cluster.job(job, "Reason");
            said != "None" && said.contains(reason)
        });
        book.job(fault, job);
    }
}

/// Takes nodes from a partition that is down, and sets it up.
fn shrink(cluster: &Cluster, partition: &str, nodes: &str, to: &str) {
    let path = cluster.dir().join("etc/slurm.conf");
    let text = fs::read_to_string(&path).unwrap();
    let line = text.lines().find(|line| line.starts_with(&format!("PartitionName={partition} ")));
    let line = line.unwrap();
    let shrunk = line.replace(nodes, to).replace("State=DOWN", "State=UP");
    assert_ne!(line, shrunk);
    fs::write(&path, text.replace(line, &shrunk)).unwrap();
    cluster.scontrol("reconfigure");
}

/// Nodes that somebody has taken out of service.
fn nodes_by_hand(book: &mut Book<'_>) {
    let cluster = book.cluster;
    for (fault, number, state, reason) in [
        ("drained by hand", 11, "drain", "fan broken"),
        ("down by hand", 12, "down", "disk replaced"),
    ] {
        let node = node(number);
        let _ = cluster.ask(
            "scontrol",
            &[
                "update",
                &format!("nodename={node}"),
                &format!("state={state}"),
                &format!("reason={reason}"),
            ],
        );
        let job = submit_for(cluster, &node);
        cluster.until(fault, || cluster.job(job, "Reason") != "None");
        book.job(fault, job);
    }
}

/// What startnode.yaml does not allow, or does not say.
fn limits_of_ours(book: &mut Book<'_>) {
    let cluster = book.cluster;
    let path = cluster.dir().join("etc/startnode.yaml");
    let usual = fs::read_to_string(&path).unwrap();
    let rows = [
        ("budget", "per_day: 1000", "per_day: 0.5"),
        ("max_nodes", "max_nodes: 100", "max_nodes: 1"),
        ("image gone", "phx.img000", "phx.deleted"),
        ("configuration", "csp: oracle", "csp: orakle"),
    ];
    for (number, (fault, old, new)) in (13..).zip(rows) {
        let changed = usual.replace(old, new);
        assert_ne!(changed, usual, "{old}");
        fs::write(&path, changed).unwrap();
        book.refused(fault, &node(number));
        fs::write(&path, &usual).unwrap();
    }
}

#[test]
fn every_fault_on_a_real_slurm_has_a_sentence_with_its_cause_and_a_remedy() {
    in_namespaces(|| faults(USUAL));
}

fn faults(series: &str) {
    let cluster = Cluster::builder(series)
        .limits("VM.Standard2.1: {1: 23, 2: 2, 3: 1}\n")
        .partitions(PARTITIONS)
        .suspend_time(600)
        .resume_timeout(80)
        // A job that is put back in the queue stays there while it is explained.
        .credential(600)
        .config("image_id: ocid1.image.oc1.phx.img000\nbudget: {per_day: 1000}")
        .elastic("cooldown: 1h, max_nodes: 100")
        .start();
    let prices = "currency: USD\nshapes: {VM.Standard2.1: 1}\n";
    fs::write(cluster.dir().join("etc/prices.yaml"), prices).unwrap();
    let mut book = Book { cluster: &cluster, pages: Vec::new() };
    // Slurm refuses such a job at once; a partition may become smaller later.
    let large = cluster.submit(&["--partition=single", "--nodes=2"], "true");
    // Before any start: slurmctld takes no returned nodes while `scontrol reconfigure` waits for a start to end.
    shrink(&cluster, "single", "00[20-21]", "0020");
    let lost = node(19);
    cluster.fate(&lost, "never");
    let never = submit_for(&cluster, &lost);
    cluster.fate(&node(8), "never");
    let on = format!("--nodelist={}", node(20));
    let running =
        cluster.submit(&["--exclusive", "--licenses=solver:1", &on], &cluster.wait_for_file("go"));
    let jobs = cloud_faults(&cluster);
    cluster.wait_job(running, "RUNNING");
    slurm_faults(&mut book, running, large);
    nodes_by_hand(&mut book);
    for (fault, job) in jobs {
        cluster.until(fault, || is_back(&cluster, job));
        book.job(fault, job);
    }
    book.refused("cool-down", "vm-standard2-1-ad2-0002");
    limits_of_ours(&mut book);
    cluster.until("ResumeTimeout", || cluster.node(&lost).contains("ResumeTimeout"));
    book.job("never registers", never);
    book.explain("never registers, the node", &lost);
    cluster.stop_slurmctld("KILL");
    book.job("slurmctld down", running);
    cluster.start_slurmctld();
    cluster.let_go(&["go"]);
    assert!(book.pages.len() >= 30, "{}", book.pages.len());
    let mut settings = insta::Settings::clone_current();
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!("explain", book.text()));
}

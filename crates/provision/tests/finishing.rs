//! slurm.conf with other nodes, and what follows from that.

use crate::common::run;
use crate::common::{Bed, groups, names, node};
use cloud_core::ApiOperation;
use cloud_core::memory::InjectedFault;
use hostlist::Hostlist;
use provision::plan::{Finish, Gaps, GroupSize, Resize};
use provision::{Outcome, Report};
use slurmconf::{Cluster, Config, Document, Limits, NodeDef, SlurmVersion, generate};
use slurmctl::memory::{JobSpec, MemorySlurm, MemorySlurmSettings, NodeSpec};
use std::path::PathBuf;
use std::time::Duration;
use tempfile::TempDir;
use tokio::time::{Instant, advance, sleep};

const POWER: &str = "SuspendProgram=/s\nResumeProgram=/r\nSuspendTime=600\n";

/// A cluster whose slurm.conf has these persistent and elastic nodes.
struct Site {
    bed: Bed,
    text: String,
    path: PathBuf,
    _directory: TempDir,
}

fn cluster(persistent: &str, elastic: &str) -> Cluster {
    let line = |names: &str, state: &str| -> Option<NodeDef> {
        let text = format!("NodeName={names} CPUs=2 Features=shape=small,ad=1 State={state}");
        (!names.is_empty()).then(|| text.parse().unwrap())
    };
    let nodes = [line(persistent, "UNKNOWN"), line(elastic, "CLOUD")];
    let limits = Limits::read("limits.yaml", "VM.Standard2.1: 1").unwrap();
    let mut cluster =
        generate(&limits, &slurm_testbed::shapes(), &slurmconf::GenerateOptions::default())
            .unwrap();
    cluster.nodes = nodes.into_iter().flatten().collect();
    cluster
}

fn specs(cluster: &Cluster) -> Vec<NodeSpec> {
    let spec = |def: &NodeDef| -> Vec<NodeSpec> {
        let names = def.names.node_names().unwrap().into_iter();
        let make = if def.is_cloud() { NodeSpec::cloud } else { NodeSpec::fixed };
        names.map(make).collect()
    };
    cluster.nodes.iter().flat_map(spec).collect()
}

impl Site {
    fn new(persistent: &str, elastic: &str, before: &str) -> Self {
        let cluster = cluster(persistent, elastic);
        let text = format!(
            "{before}# STARTNODES\n{cluster}# ENDNODES\nPartitionName=main Nodes=ALL Default=YES\n"
        );
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("slurm.conf");
        std::fs::write(&path, &text).unwrap();
        let all: Hostlist = "n1".parse().unwrap();
        let mut settings = MemorySlurmSettings::cloud(&all);
        settings.nodes = specs(&cluster);
        let mut bed = Bed::new("n1");
        bed.slurm = MemorySlurm::new(settings);
        bed.config = Config::parse(&text).unwrap();
        bed.files.slurm_conf = Some(path.clone());
        Self { bed, text, path, _directory: directory }
    }

    async fn finish(&self, cluster: &Cluster, force: bool) -> Report {
        let document = Document::parse(self.text.clone());
        let request = self.request(cluster, &document, force);
        self.bed.run(async |run| run::finish(run, &request).await).await.unwrap()
    }

    async fn resize_to(&self, cluster: &Cluster) -> Report {
        let document = Document::parse(self.text.clone());
        let request = self.request(cluster, &document, false);
        self.bed.run(async |run| run::resize_to(run, &request).await).await.unwrap()
    }

    fn request<'a>(&self, cluster: &'a Cluster, document: &'a Document, force: bool) -> Finish<'a> {
        // What is to be written is what slurmctld will read.
        self.bed.slurm.set_conf_nodes(specs(cluster));
        let (version, patience) = (SlurmVersion::new(24, 11), Duration::from_mins(1));
        Finish { document, cluster, version, force, reload: true, unapplied: false, patience }
    }

    async fn resize(&self, size: usize) -> Report {
        self.resize_from(&Document::parse(self.text.clone()), size).await
    }

    async fn resize_from(&self, document: &Document, size: usize) -> Report {
        let groups =
            [GroupSize { partition: None, stem: "n".to_owned(), first: 1, width: 1, size }];
        let request = Resize {
            groups: &groups,
            gaps: Gaps::Keep,
            document,
            version: SlurmVersion::new(24, 11),
            patience: Duration::from_mins(1),
        };
        self.bed.run(async |run| run::resize(run, &request).await).await
    }

    fn written(&self) -> String {
        std::fs::read_to_string(&self.path).unwrap()
    }

    fn excluded(&self) -> Option<String> {
        Config::parse(&self.written()).unwrap().power.suspend_exc_nodes
    }

    /// Takes up what was written.
    fn reread(&mut self) {
        self.text = self.written();
        self.bed.config = Config::parse(&self.text).unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn slurmctld_hears_of_nodes_that_finish_has_added() {
    let site = Site::new("", "n[1-2]", "");
    let report = site.finish(&cluster("", "n[1-4]"), false).await;
    assert!(report.is_success(), "{report:?}");
    assert_eq!(Config::parse(&site.written()).unwrap().nodes[0].names.to_string(), "n[1-4]");
    assert_eq!(site.bed.slurm.all_nodes().len(), 4, "reconfigured");
    assert!(site.bed.live().is_empty());
}

#[tokio::test(start_paused = true)]
async fn finish_writes_nothing_where_nothing_changes() {
    let site = Site::new("", "n[1-2]", "");
    let before = std::fs::metadata(&site.path).unwrap().modified().unwrap();
    let report = site.finish(&cluster("", "n[1-2]"), false).await;
    assert!(report.is_success() && report.nodes.is_empty(), "{report:?}");
    assert_eq!(std::fs::metadata(&site.path).unwrap().modified().unwrap(), before);
    assert!(!site.path.with_file_name("slurm.conf.previous").exists());
}

#[tokio::test(start_paused = true)]
async fn what_somebody_writes_to_slurm_conf_meanwhile_is_not_overwritten() {
    let site = Site::new("", "n[1-2]", "");
    let above = format!("# theirs\n{}", site.text);
    let between = site.text.replace("n[1-2]", "n[1-3]");
    for theirs in [above, between] {
        std::fs::write(&site.path, &theirs).unwrap();
        let report = site.finish(&cluster("", "n[1-4]"), false).await;
        assert_eq!(report.exit_code(), 1, "{report:?}");
        assert!(report.failures[0].contains("slurm.conf was changed"), "{report:?}");
        assert!(report.failures[0].contains("run it again"), "{report:?}");
        assert_eq!(site.written(), theirs);
        assert_eq!(site.bed.slurm.all_nodes().len(), 2, "slurmctld is told nothing");
    }
    std::fs::remove_file(&site.path).unwrap();
    let report = site.finish(&cluster("", "n[1-4]"), false).await;
    assert!(report.failures[0].contains("cannot be read any more"), "{report:?}");
    assert!(!site.path.exists());
}

#[tokio::test(start_paused = true)]
async fn finish_drops_a_node_only_when_its_instance_is_gone() {
    let site = Site::new("", "n[1-2]", "");
    let start = site.bed.run(async |run| run::start(run, &names("n[1-2]"), &[]).await).await;
    assert!(start.is_success(), "{start:?}");
    for _ in 0..5 {
        let refused = InjectedFault::Refuse(cloud_core::ErrorKind::Forbidden);
        site.bed.cloud.inject(ApiOperation::Terminate, refused);
    }
    let report = site.finish(&cluster("", "n1"), false).await;
    assert!(!report.is_success(), "{report:?}");
    assert_eq!(site.written(), site.text, "the node and its machine are still there");
    site.bed.cloud.clear_faults();
    let report = site.finish(&cluster("", "n1"), false).await;
    assert!(report.is_success(), "{report:?}");
    assert_eq!(Config::parse(&site.written()).unwrap().nodes[0].names.to_string(), "n1");
    let left: Vec<String> = site.bed.live().iter().map(|one| one.name.to_string()).collect();
    assert_eq!(left, ["n1"]);
    assert_eq!(site.bed.slurm.all_nodes().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn finish_leaves_a_node_with_a_job_alone_unless_forced() {
    let site = Site::new("n[1-2]", "", "");
    site.bed.run(async |run| run::deploy(run, None).await).await;
    let _ = site.bed.slurm.submit_job(JobSpec::new(2, Duration::from_hours(5)));
    advance(Duration::from_secs(2)).await;
    let _ = site.bed.slurm.tick();
    let report = site.finish(&cluster("n1", ""), false).await;
    assert_eq!(report.nodes[&node("n2")].outcome, Outcome::Refused, "{report:?}");
    assert_eq!((site.written(), site.bed.live().len()), (site.text.clone(), 2));
    let report = site.finish(&cluster("n1", ""), true).await;
    assert!(report.is_success(), "{report:?}");
    assert_eq!(site.bed.live().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_forced_finish_requeues_a_job_on_an_elastic_node() {
    let site = Site::new("", "n[1-2]", "");
    let (job, request) = site.bed.job(2).await;
    let (nodes, jobs) = (names("n[1-2]"), groups(&request));
    site.bed.run(async |run| run::start(run, &nodes, &jobs).await).await;
    for name in &nodes {
        let _ = site.bed.slurm.register(name, "10.0.0.9", Instant::now());
    }
    advance(Duration::from_secs(2)).await;
    let _ = site.bed.slurm.tick();
    assert!(site.bed.slurm.node("n2").unwrap().state.is_up());
    let report = site.finish(&cluster("", "n1"), true).await;
    assert!(report.is_success(), "{report:?}");
    let job = site.bed.slurm.job(job).unwrap();
    assert!(!job.state.is_finished() && job.restarts == 1, "back in the queue: {job:?}");
}

#[tokio::test(start_paused = true)]
async fn a_resize_to_limits_waits_for_jobs_and_ends_none() {
    for (runs, ends_in_time) in [(Duration::from_secs(40), true), (Duration::from_hours(5), false)]
    {
        let site = Site::new("n[1-2]", "", "");
        site.bed.run(async |run| run::deploy(run, None).await).await;
        let job = site.bed.slurm.submit_job(JobSpec::new(2, runs));
        advance(Duration::from_secs(2)).await;
        let _ = site.bed.slurm.tick();
        let ticks = async {
            loop {
                sleep(Duration::from_secs(1)).await;
                let _ = site.bed.slurm.tick();
            }
        };
        let cluster = cluster("n1", "n3");
        let report = tokio::select! {
            report = site.resize_to(&cluster) => report,
            () = ticks => panic!("never"),
        };
        assert_eq!(report.is_success(), ends_in_time, "{report:?}");
        let state = site.bed.slurm.node("n2").map(|node| node.state);
        if ends_in_time {
            assert_eq!((site.bed.live().len(), state), (1, None));
            continue;
        }
        assert_eq!((site.written(), site.bed.live().len()), (site.text.clone(), 2));
        assert!(state.is_some_and(|state| state.has_job() && !state.has_drain()));
        assert!(site.bed.slurm.job(job).is_some_and(|job| !job.state.is_finished()));
    }
}

#[tokio::test(start_paused = true)]
async fn a_resize_to_limits_starts_what_is_always_there_from_now_on() {
    let mut site = Site::new("n1", "n[2-3]", POWER);
    site.bed.run(async |run| run::deploy(run, None).await).await;
    let report = site.resize_to(&cluster("n[1-2]", "n[3-5]")).await;
    assert!(report.is_success(), "{report:?}");
    assert_eq!((site.bed.live().len(), site.bed.slurm.all_nodes().len()), (2, 5));
    assert_eq!(site.excluded().as_deref(), Some("n[1-2]"));
    site.reread();
    let report = site.resize_to(&cluster("n[1-2]", "n[3-5]")).await;
    assert!(report.is_success() && report.nodes.is_empty(), "{report:?}");
}

#[tokio::test(start_paused = true)]
async fn a_resize_without_room_does_not_wait_for_its_deadline() {
    let site = Site::new("n1", "", "");
    let full = || InjectedFault::Refuse(cloud_core::ErrorKind::Capacity);
    for limits in [false, true] {
        site.bed.cloud.inject(ApiOperation::Launch, full());
        let begun = tokio::time::Instant::now();
        let report = if limits {
            site.resize_to(&cluster("n[1-2]", "")).await
        } else {
            site.resize(2).await
        };
        assert_eq!(report.nodes[&node("n2")].outcome, Outcome::Failed, "{report:?}");
        assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
        assert_eq!(site.written(), site.text);
    }
}

#[tokio::test(start_paused = true)]
async fn persistent_nodes_are_not_switched_off_when_idle() {
    let mut site = Site::new("", "n[1-2]", POWER);
    let report = site.finish(&cluster("n[1-2]", "n[3-4]"), false).await;
    assert!(report.is_success(), "{report:?}");
    assert_eq!(site.excluded().as_deref(), Some("n[1-2]"));
    site.reread();
    let report = site.finish(&cluster("n[1-2]", "n[3-4]"), false).await;
    assert!(report.is_success(), "{report:?}");
    assert_eq!(site.written(), site.text, "a second time changes nothing");
    let report = site.finish(&cluster("n1", "n[3-4]"), false).await;
    assert!(report.is_success(), "{report:?}");
    assert_eq!(site.excluded().as_deref(), Some("n1"));
    site.reread();
    let report = site.finish(&cluster("", "n[1-4]"), false).await;
    assert!(report.is_success(), "{report:?}");
    assert_eq!(site.excluded(), None, "{}", site.written());
}

#[tokio::test(start_paused = true)]
async fn persistent_nodes_are_spared_from_the_time_of_a_partition() {
    let before =
        "SuspendProgram=/s\nResumeProgram=/r\nPartitionName=all Nodes=ALL SuspendTime=600\n";
    let site = Site::new("", "n[1-2]", before);
    let report = site.finish(&cluster("n[1-2]", "n[3-4]"), false).await;
    assert!(report.is_success(), "{report:?}");
    assert_eq!(site.excluded().as_deref(), Some("n[1-2]"), "{}", site.written());
}

#[tokio::test(start_paused = true)]
async fn a_resize_keeps_the_nodes_that_are_never_switched_off() {
    let before = format!("{POWER}NodeName=other State=UNKNOWN\n");
    let mut site = Site::new("n[1-2]", "", &before);
    let report = site.finish(&cluster("n[1-2]", ""), false).await;
    assert!(report.is_success(), "{report:?}");
    assert_eq!(site.excluded().as_deref(), Some("n[1-2]"));
    site.reread();
    for (size, excluded) in [(4, "n[1-4]"), (1, "n1")] {
        site.bed.slurm.set_conf_nodes(specs(&cluster(excluded, "")));
        let report = site.resize(size).await;
        assert!(report.is_success(), "{report:?}");
        assert_eq!(site.excluded().as_deref(), Some(excluded), "{}", site.written());
        site.reread();
    }
}

#[tokio::test(start_paused = true)]
async fn what_others_say_of_nodes_that_stay_on_is_theirs() {
    for said in ["SuspendExcNodes=n[1-2]\n", "SuspendExcParts=main\n"] {
        let site = Site::new("n[1-2]", "", &format!("{POWER}{said}"));
        let report = site.finish(&cluster("n[1-2]", "n[3-4]"), false).await;
        assert!(report.is_success(), "{report:?}");
        assert_eq!(site.written().matches("SuspendExc").count(), 1, "{}", site.written());
        let report = site.resize(3).await;
        let refused = said.starts_with("SuspendExcNodes");
        assert_eq!(report.with(Outcome::Refused).count(), usize::from(refused), "{report:?}");
    }
}

/// Slurm reads the later of two lines alone, so that ours beside theirs would be no help.
#[tokio::test(start_paused = true)]
async fn persistent_nodes_are_spared_beside_a_line_about_others() {
    let mut site = Site::new("n1", "", &format!("{POWER}SuspendExcNodes=login1,n1\n"));
    let document = Document::parse(site.text.clone());
    let grown = cluster("n[1-3]", "n4");
    let request = site.request(&grown, &document, false);
    let finished = site.bed.run(async |run| run::finish(run, &request).await).await;
    let resized = site.bed.run(async |run| run::resize_to(run, &request).await).await;
    for error in [finished.unwrap_err(), resized.unwrap_err()] {
        let said = error.to_string();
        assert!(said.contains("SuspendExcNodes=login1,n1,n[2-3] instead"), "{said}");
    }
    assert_eq!((site.written(), site.bed.live().len()), (site.text.clone(), 0));
    site.text = site.text.replace("login1,n1", "login1,n[1-3]");
    std::fs::write(&site.path, &site.text).unwrap();
    site.reread();
    let report = site.finish(&grown, false).await;
    assert!(report.is_success(), "{report:?}");
    assert_eq!(site.excluded().as_deref(), Some("login1,n[1-3]"));
}

#[tokio::test(start_paused = true)]
async fn persistent_nodes_are_spared_beside_a_partition_of_others() {
    let others = "SuspendExcParts=p\nNodeName=login1\nPartitionName=p Nodes=login1\n";
    let site = Site::new("", "n[1-2]", &format!("{POWER}{others}"));
    let report = site.finish(&cluster("n[1-2]", ""), false).await;
    assert!(report.is_success(), "{report:?}");
    assert_eq!(site.excluded().as_deref(), Some("n[1-2]"), "{}", site.written());
}

#[tokio::test(start_paused = true)]
async fn a_name_in_a_comment_that_is_not_utf8_is_accepted() {
    let site = Site::new("n[1-2]", "", "# M?ller's\n");
    let latin1 = |text: &str| -> Vec<u8> {
        text.bytes().map(|byte| if byte == b'?' { 0xfc } else { byte }).collect()
    };
    let now = || std::fs::read(&site.path).unwrap();
    let excluded = "SuspendExcNodes=n[1-2]\n# ENDNODES";
    let after = site.text.replace("# ENDNODES", excluded);
    let expected = |nodes: &str| latin1(&after.replace("n[1-2]", nodes));
    std::fs::write(&site.path, latin1(&site.text)).unwrap();
    let cluster = cluster("n[1-3]", "");
    let document = Document::parse(now());
    let request = site.request(&cluster, &document, false);
    let report = site.bed.run(async |run| run::finish(run, &request).await).await.unwrap();
    assert!(report.is_success(), "{report:?}");
    assert_eq!(now(), expected("n[1-3]"));
    std::fs::write(&site.path, latin1(&site.text)).unwrap();
    let report = site.resize_from(&Document::parse(now()), 3).await;
    assert!(report.is_success(), "{report:?}");
    assert_eq!(now(), expected("n[1-3]"));
    // Lines that are kept between the markers pass through text.
    let inside = latin1(&site.text.replace("# ENDNODES", "# M?ller's\n# ENDNODES"));
    std::fs::write(&site.path, &inside).unwrap();
    let report = site.resize_from(&Document::parse(now()), 3).await;
    assert_eq!(report.with(Outcome::Refused).count(), 1, "{report:?}");
    assert!(format!("{report:?}").contains("iconv"), "{report:?}");
    assert_eq!(now(), inside);
}

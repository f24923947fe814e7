//! Against real controllers of three versions.

mod testbed;
mod twin;

use hostlist::{Hostlist, NodeName};
use slurmctl::{
    BatchJob, Controller as _, ErrorKind, JobFilter, JobId, JobRef, JobState, Node, NodeAction,
    NodeAddress, Reason, Scontrol,
};
use std::{net::IpAddr, time::Duration};
use testbed::{PATIENCE, Testbed, until};

const CONF: &str = "SuspendTime=600\nSuspendTimeout=2\nResumeTimeout=600\n\
    NodeName=n[1-64] NodeAddr=127.0.1.[1-64] CPUs=2 RealMemory=1000 Feature=gpu,fast State=CLOUD\n\
    PartitionName=main Nodes=n[1-60] Default=YES MaxTime=INFINITE State=UP\n\
    PartitionName=rebuild Nodes=n[1-64] Hidden=YES MaxTime=INFINITE State=UP\n";

macro_rules! on_all_versions {
    ($($name:ident;)+) => {$(
        mod $name {
            #[tokio::test]
            async fn on_22_05() {
                super::cases::$name("22.05").await;
            }

            #[tokio::test]
            async fn on_24_11() {
                super::cases::$name("24.11").await;
            }

            #[tokio::test]
            async fn on_26_05() {
                super::cases::$name("26.05").await;
            }
        }
    )+};
}

on_all_versions! {
    what_it_tells_is_read;
    a_time_without_end_is_read;
    jobs_are_listed_and_commented;
    addresses_are_paired;
    a_node_that_the_cloud_refused_is_given_back;
    states_are_set;
    an_unknown_name_does_not_stop_the_rest_of_its_list;
    reboots_and_rebuild_jobs_are_asked_for;
    a_controller_that_hangs_is_given_up;
    it_reads_its_configuration_again;
}

fn list(text: &str) -> Hostlist {
    text.parse().unwrap()
}

fn name(text: &str) -> NodeName {
    text.parse().unwrap()
}

async fn node(slurm: &Scontrol, name: &str) -> Node {
    let nodes = slurm.nodes(Some(&list(name))).await.unwrap();
    let [node] = &nodes[..] else { panic!("{nodes:?}") };
    node.clone()
}

/// A job that has its node and waits for it to come up.
async fn waiting_job(slurm: &Scontrol, on: &str) -> JobId {
    let mut job = BatchJob::reboot("test", "main", name(on));
    job.reboot = false;
    let id = slurm.submit(&job).await.unwrap();
    until("powering-up node", async || node(slurm, on).await.state.is_powering_up().then_some(()))
        .await;
    id
}

mod cases {
    use super::*;

    pub(super) async fn what_it_tells_is_read(series: &str) {
        let bed = Testbed::start(series, CONF).await;
        let slurm = bed.scontrol().await;
        assert_eq!(slurm.version(), bed.version());
        assert!(slurm.ping().await.unwrap());
        let nodes = slurm.nodes(None).await.unwrap();
        assert_eq!(nodes.len(), 64);
        let first = nodes.first().unwrap();
        assert_eq!(first.state.to_string(), "IDLE+CLOUD+POWERED_DOWN");
        assert_eq!((first.address.as_str(), first.hostname.as_str()), ("127.0.1.1", "n1"));
        assert_eq!(first.features, ["gpu", "fast"]);
        assert_eq!(first.partitions, ["main", "rebuild"]);
        assert_eq!((&first.reason, first.boot_time), (&None, None));
        let some = slurm.nodes(Some(&list("n3,unknown,n1"))).await.unwrap();
        assert_eq!(some.len(), 2, "{some:?}");
        assert_eq!(slurm.nodes(Some(&list("unknown"))).await.unwrap(), []);
        let config = slurm.config().await.unwrap();
        assert_eq!(config.get("clustername"), Some("real"));
        assert_eq!(config.resume_timeout(), Some(Duration::from_mins(10)));
        assert_eq!(config.get("SuspendTimeout"), Some("2 sec"));
        assert_eq!(config.suspend_time(), Some(Duration::from_mins(10)));
        let parameters = config.get("SlurmctldParameters").unwrap_or_default();
        assert!(parameters.contains("power_save_interval"), "{parameters}");
    }

    pub(super) async fn a_time_without_end_is_read(series: &str) {
        let conf = CONF.replace("SuspendTime=600\n", "");
        let bed = Testbed::start(series, &conf).await;
        let config = bed.scontrol().await.config().await.unwrap();
        assert_eq!(config.suspend_time(), None, "{:?}", config.get("SuspendTime"));
        assert_eq!(config.resume_timeout(), Some(Duration::from_mins(10)));
    }

    pub(super) async fn jobs_are_listed_and_commented(series: &str) {
        let bed = Testbed::start(series, CONF).await;
        let slurm = bed.scontrol().await;
        let id = waiting_job(&slurm, "n7").await;
        slurm.comment(id, "cloud: \"out\" of\n capacity=0").await.unwrap();
        let mut queued = BatchJob::reboot("x", "main", name("n7"));
        queued.reboot = false;
        let second = slurm.submit(&queued).await.unwrap();
        let jobs = slurm.jobs(JobFilter::All).await.unwrap();
        assert_eq!(jobs.len(), 2, "{jobs:?}");
        let job = jobs.iter().find(|job| job.id == id).unwrap();
        assert_eq!(job.state, JobState::Configuring);
        assert_eq!((job.nodes.to_string(), job.wanted.to_string()), ("n7".into(), "n7".into()));
        assert_eq!((job.partition.as_str(), job.node_count, job.restarts), ("main", 1, 0));
        assert_eq!((job.reboot, &job.features), (false, &None));
        assert_eq!((job.cpus, job.time_limit.is_some()), (2, true));
        assert_eq!((job.eligible.is_some(), &job.dependency), (true, &None));
        assert_eq!(job.admin_comment.as_deref(), Some("cloud: 'out' of capacity=0"));
        let on = |jobs: Vec<slurmctl::Job>| jobs.iter().map(|job| job.id).collect::<Vec<_>>();
        assert_eq!(on(slurm.jobs(JobFilter::On(list("n[5-7]"))).await.unwrap()), [id]);
        assert_eq!(on(slurm.jobs(JobFilter::On(list("n8"))).await.unwrap()), []);
        assert_eq!(on(slurm.jobs(JobFilter::Ids(vec![second])).await.unwrap()), [second]);
        queued.options = vec!["--array=1-3%1".to_owned()];
        let array = slurm.submit(&queued).await.unwrap();
        let task = async |number| {
            let name = JobRef::Task { array: array.get(), task: number };
            on(slurm.jobs(JobFilter::Called(name)).await.unwrap())
        };
        assert_eq!((task(2).await, task(4).await), (vec![array], vec![]));
        assert_eq!(on(slurm.jobs(JobFilter::In("rebuild".into())).await.unwrap()), []);
        let error = slurm.comment(JobId::new(4711), "x").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
        assert_eq!(error.exit_code(), Some(1));
    }

    pub(super) async fn addresses_are_paired(series: &str) {
        let bed = Testbed::start(series, CONF).await;
        let slurm = bed.scontrol().await;
        // In no order, with gaps, IPv4 and IPv6, and some with a name of their own.
        let numbers: Vec<u16> = (1..=64).map(|number| number * 37 % 65).collect();
        let mut addresses = Vec::new();
        for number in &numbers {
            let address = if number % 5 == 0 {
                format!("fd00::{number:x}")
            } else {
                format!("10.0.{}.{}", number % 3, 250 - number)
            };
            let mut item = NodeAddress::new(name(&format!("n{number}")), address.parse().unwrap());
            item.hostname = (number % 4 == 0).then(|| name(&format!("host-{}", 100 - number)));
            item.instance_id = Some(format!("ocid1.instance.oc1..aa{number}"));
            item.comment = Some(format!("m{} in \"a\", 0.03 USD an hour", number % 2));
            addresses.push(item);
        }
        slurm.set_addresses(&addresses).await.unwrap();
        let knows_ids = bed.version().knows_instance_ids();
        let nodes = slurm.nodes(None).await.unwrap();
        for item in &addresses {
            let node = nodes.iter().find(|node| node.name == item.node).unwrap();
            assert_eq!(node.address.parse(), Ok(item.address), "{node:?}");
            let hostname = item.hostname.as_ref().unwrap_or(&item.node);
            assert_eq!(node.hostname, hostname.as_str(), "{node:?}");
            assert_eq!(node.comment, item.comment.as_ref().map(|text| text.replace('"', "'")));
            assert_eq!(node.instance_id.is_some(), knows_ids);
            assert!(!knows_ids || node.instance_id == item.instance_id, "{node:?}");
        }
        let unknown = NodeAddress::new(name("unknown"), IpAddr::from([10, 0, 0, 1]));
        let error = slurm.set_addresses(&[unknown]).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
        assert!(error.to_string().contains("nodename=unknown nodeaddr=10.0.0.1: exit code 1: "));
    }

    pub(super) async fn a_node_that_the_cloud_refused_is_given_back(series: &str) {
        let bed = Testbed::start(series, CONF).await;
        let slurm = bed.scontrol().await;
        let id = waiting_job(&slurm, "n2").await;
        let text = "cloud: no room State=DOWN Comment=x [a@b] Extra=y";
        let why = Reason::new(text);
        slurm.set_state(&list("n2"), NodeAction::PowerDownForce, Some(&why)).await.unwrap();
        let job = until("requeued job", async || {
            let jobs = slurm.jobs(JobFilter::Ids(vec![id])).await.unwrap();
            jobs.into_iter().find(|job| job.state == JobState::Pending)
        });
        assert_eq!(job.await.restarts, 1);
        let off = until("powered-down node", async || {
            let node = node(&slurm, "n2").await;
            node.state.is_powered_down().then_some(node)
        });
        let off = off.await;
        assert_eq!(off.state.to_string(), "IDLE+CLOUD+POWERED_DOWN");
        let reason = off.reason.unwrap();
        assert_eq!(reason.text, text);
        assert!(reason.by.is_some() && reason.at.is_some(), "{reason:?}");
        assert_eq!(
            (bed.calls("resume"), bed.calls("suspend")),
            (vec!["n2".into()], vec!["n2".into()])
        );
        assert_eq!(bed.calls("resumefail"), Vec::<String>::new());
    }

    pub(super) async fn states_are_set(series: &str) {
        let bed = Testbed::start(series, CONF).await;
        let slurm = bed.scontrol().await;
        let why = Reason::new("for a test");
        slurm.set_state(&list("n[1-3]"), NodeAction::Drain, Some(&why)).await.unwrap();
        let drained = node(&slurm, "n2").await;
        assert!(drained.state.is_drained(), "{}", drained.state);
        assert_eq!(drained.reason_text(), "for a test");
        slurm.set_state(&list("n[1-3]"), NodeAction::Undrain, None).await.unwrap();
        assert!(!node(&slurm, "n3").await.state.has_drain());
        slurm.set_state(&list("n4"), NodeAction::Down, Some(&why)).await.unwrap();
        assert!(node(&slurm, "n4").await.state.is_down());
        slurm.set_state(&list("n4"), NodeAction::Resume, None).await.unwrap();
        let back = node(&slurm, "n4").await;
        assert!(!back.state.is_down() && back.state.is_powered_down(), "{}", back.state);
        slurm.set_state(&list("n5"), NodeAction::PowerUp, None).await.unwrap();
        until("call for n5", async || bed.calls("resume").contains(&"n5".into()).then_some(()))
            .await;
        slurm.set_state(&list("n6"), NodeAction::PowerDown, None).await.unwrap();
        until("call for n6", async || bed.calls("suspend").contains(&"n6".into()).then_some(()))
            .await;
        let error = slurm.set_state(&list("n7"), NodeAction::Down, None).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
        let error =
            slurm.set_state(&list("n[63-66]"), NodeAction::Drain, Some(&why)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
    }

    pub(super) async fn an_unknown_name_does_not_stop_the_rest_of_its_list(series: &str) {
        let bed = Testbed::start(series, CONF).await;
        let slurm = bed.scontrol().await;
        let why = Reason::new("for a test");
        for (unknown, others) in
            [("a0", ["n8", "n9"]), ("n012", ["n12", "n2"]), ("zz", ["n30", "n4"])]
        {
            let nodes = list(&[others[0], unknown, others[1]].join(","));
            let error = slurm.set_state(&nodes, NodeAction::Drain, Some(&why)).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
            for other in others {
                assert!(node(&slurm, other).await.state.has_drain(), "{other} of {nodes}");
            }
            // To resume what was resumed already would be refused.
            let error = slurm.set_state(&nodes, NodeAction::Resume, None).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::NotFound, "nothing is done twice: {error}");
            for other in others {
                assert!(!node(&slurm, other).await.state.has_drain(), "{other} of {nodes}");
            }
        }
        let names = ["n33", "zz", "n31", "a0", "n32"];
        let place = |number| IpAddr::from([10, 1, 0, number]);
        let items: Vec<NodeAddress> = (1..)
            .zip(names)
            .map(|(number, node)| NodeAddress::new(name(node), place(number)))
            .collect();
        let error = slurm.set_addresses(&items).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
        for (node_name, address) in [("n33", "10.1.0.1"), ("n31", "10.1.0.3"), ("n32", "10.1.0.5")]
        {
            assert_eq!(node(&slurm, node_name).await.address, address, "{node_name}");
        }
        slurm.set_state(&list("n40"), NodeAction::PowerUp, None).await.unwrap();
        until("powering-up node", async || {
            node(&slurm, "n40").await.state.is_powering_up().then_some(())
        })
        .await;
        let error = slurm.reboot(&list("a0,n40,zz"), &why).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
        assert!(node(&slurm, "n40").await.state.is_reboot_requested());
    }

    pub(super) async fn reboots_and_rebuild_jobs_are_asked_for(series: &str) {
        let bed = Testbed::start(series, CONF).await;
        let slurm = bed.scontrol().await;
        let why = Reason::new("rebuild image:x");
        slurm.reboot(&list("n[1-2]"), &why).await.unwrap();
        assert!(node(&slurm, "n1").await.state.is_powered_down(), "off: left out without a word");
        slurm.set_state(&list("n3"), NodeAction::PowerUp, None).await.unwrap();
        until("powering-up node", async || {
            node(&slurm, "n3").await.state.is_powering_up().then_some(())
        })
        .await;
        slurm.reboot(&list("n3"), &why).await.unwrap();
        let asked = node(&slurm, "n3").await;
        assert!(asked.state.is_reboot_requested() && asked.state.has_drain(), "{}", asked.state);
        assert_eq!(asked.reason_text(), "rebuild image:x");
        let mut job = BatchJob::reboot("rebuild", "rebuild", name("n64"));
        job.time_limit = Some(Duration::from_secs(90));
        job.comment = Some("rebuild image:x".into());
        let id = slurm.submit(&job).await.unwrap();
        let jobs = slurm.jobs(JobFilter::In("rebuild".into())).await.unwrap();
        let [job] = &jobs[..] else { panic!("{jobs:?}") };
        assert_eq!((job.id, job.reboot, job.wanted.to_string()), (id, true, "n64".into()));
        let stray = BatchJob::reboot("rebuild", "main", name("n64"));
        let error = slurm.submit(&stray).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
    }

    pub(super) async fn a_controller_that_hangs_is_given_up(series: &str) {
        let bed = Testbed::start(series, CONF).await;
        let mut config = bed.config();
        config.timeout = Duration::from_millis(1_500);
        config.restart = vec!["/bin/true".into()];
        config.restart_timeout = Duration::from_secs(2);
        let slurm = Scontrol::new(config.clone(), bed.version());
        bed.signal("STOP");
        let error = slurm.nodes(None).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
        assert!(error.to_string().ends_with("no answer in 1.5s"), "{error}");
        assert!(!slurm.ping().await.unwrap());
        let error = slurm.restart().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
        bed.signal("CONT");
        config.timeout = PATIENCE;
        config.restart_timeout = PATIENCE;
        let slurm = Scontrol::new(config, bed.version());
        slurm.restart().await.unwrap();
        assert_eq!(slurm.nodes(None).await.unwrap().len(), 64);
    }

    pub(super) async fn it_reads_its_configuration_again(series: &str) {
        let bed = Testbed::start(series, CONF).await;
        let slurm = bed.scontrol().await;
        bed.add_to_conf("SlurmdTimeout=77\n");
        slurm.reconfigure().await.unwrap();
        until("new setting", async || {
            let config = slurm.config().await.ok()?;
            (config.get("SlurmdTimeout") == Some("77 sec")).then_some(())
        })
        .await;
        bed.add_to_conf("Nonsense=1\n");
        let error = slurm.reconfigure().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
    }
}

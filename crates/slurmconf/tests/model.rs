//! Types that print themselves as lines, and read lines back as themselves.

use proptest::{option, prelude::*};
use slurmconf::{
    Config, ConfiguredState, ElasticSettings, Features, GresList, NodeDef, NodeSet, PartitionDef,
    Program, SlurmVersion, Statement, SuspendTime, flatten_includes,
};
use std::{path::Path, time::Duration};

/// Any value that a line can carry.
fn value() -> impl Strategy<Value = String> {
    "[a-zA-Z0-9#\\\\/:=.,' ]{1,12}"
        .prop_filter("features cut at commas", |text| !text.contains(','))
}

prop_compose! {
    fn node()(
        numbers in (option::of(1_u32..9), option::of(1_u32..9), option::of(1_u32..9), option::of(1_u32..9)),
        cpus in option::of(0_u32..900),
        on_board in any::<bool>(),
        memory in option::of(any::<u64>()),
        weight in option::of(any::<u32>()),
        state in option::of(prop::sample::select(vec!["CLOUD", "future", "UNKNOWN", "DRAIN"])),
        texts in (option::of(value()), option::of(value()), option::of(value())),
        addr in option::of(Just("10.0.0.[1-3]")),
    ) -> NodeDef {
        let mut node = NodeDef { names: "n[1-2],login".parse().unwrap(), ..NodeDef::default() };
        (node.boards, node.cores_per_socket, node.threads_per_core) = (numbers.0, numbers.1, numbers.2);
        if on_board { node.sockets_per_board = numbers.3 } else { node.sockets = numbers.3 }
        (node.cpus, node.real_memory, node.weight) = (cpus, memory, weight);
        node.state = state.map(ConfiguredState::from);
        node.addr = addr.map(|addr| addr.parse().unwrap());
        node.features = texts.0.as_deref().map(Features::from);
        node.gres = texts.1.as_deref().map(GresList::from);
        node.other = texts.2.into_iter().map(|text| ("Reason".to_owned(), text)).collect();
        node
    }
}

proptest! {
    #[test]
    fn a_node_reads_back_as_itself(node in node()) {
        let line = node.to_string();
        prop_assert_eq!(line.parse::<NodeDef>().unwrap(), node, "{}", line);
    }

    #[test]
    fn a_partition_reads_back_as_itself(
        truths in (option::of(any::<bool>()), option::of(any::<bool>()), option::of(any::<bool>())),
        times in (option::of(any::<u32>()), option::of(any::<u32>()), option::of(any::<u16>())),
        text in option::of(value()),
    ) {
        let mut partition = PartitionDef::new("p");
        partition.nodes = Some("n[1-9],set".parse().unwrap());
        (partition.default, partition.hidden, partition.power_down_on_idle) = truths;
        partition.suspend_time = times.0.map(SuspendTime::Seconds);
        (partition.resume_timeout, partition.priority_job_factor) = (times.1, times.2);
        partition.other = text.into_iter().map(|text| ("AllowGroups".to_owned(), text)).collect();
        let line = partition.to_string();
        prop_assert_eq!(line.parse::<PartitionDef>().unwrap(), partition, "{}", line);
    }
}

#[test]
fn a_line_must_be_of_its_kind() {
    assert!("NodeSet=s Feature=x".parse::<NodeSet>().is_ok());
    assert!("NodeSet=s Feature=x".parse::<NodeDef>().is_err());
    assert!("NodeName=a\nNodeName=b".parse::<NodeDef>().is_err());
    assert!("NodeName=DEFAULT CPUs=1".parse::<NodeDef>().is_err());
    assert!("NodeSet=s Nodes=n[1".parse::<NodeSet>().is_err());
}

#[test]
fn processors_are_counted_as_slurm_counts_them() {
    // Boards, sockets and CPUs as slurmctld shows them; defaults.conf asks a real one.
    let cases = [
        ("CPUs=7 CoresPerSocket=2", (1, 1, 2)),
        ("CPUs=8 ThreadsPerCore=3", (1, 1, 3)),
        ("SocketsPerBoard=2 Sockets=4", (1, 2, 2)),
        ("Boards=4 Sockets=2", (1, 2, 2)),
        ("CPUs=4 Procs=8", (1, 4, 4)),
        ("Procs=8 CPUs=4", (1, 4, 4)),
    ];
    for (text, expected) in cases {
        let topology = format!("NodeName=n {text}").parse::<NodeDef>().unwrap().topology();
        assert_eq!((topology.boards, topology.sockets, topology.cpus), expected, "{text}");
    }
}

#[test]
fn numbers_are_read_as_c_reads_them() {
    let memory = |text: &str| {
        let node = format!("NodeName=n RealMemory={text}").parse::<NodeDef>();
        node.ok().and_then(|node| node.real_memory)
    };
    let cases = [
        ("10", Some(10)),
        ("0x1F", Some(31)),
        ("010", Some(8)),
        ("0", Some(0)),
        ("+5", Some(5)),
        ("2K", Some(2048)),
        ("UNLIMITED", Some(u64::MAX)),
        ("2M", None),
        ("08", None),
        ("-1", None),
        ("++1", None),
        ("0x", None),
        ("18446744073709551615k", None),
    ];
    for (text, expected) in cases {
        assert_eq!(memory(text), expected, "{text}");
    }
    assert!("NodeName=n CPUs=2K".parse::<NodeDef>().is_err());
    assert_eq!("NodeName=n CPUs=infinite".parse::<NodeDef>().unwrap().cpus, Some(u32::MAX));
}

#[test]
fn power_settings_are_read_with_slurms_defaults() {
    let none = Config::parse("ClusterName=x\n").unwrap().power;
    assert_eq!(
        (none.suspend_time, none.suspend_rate, none.resume_rate),
        (SuspendTime::Never, 60, 300)
    );
    assert_eq!(none.suspend_timeout + none.resume_timeout, Duration::from_secs(90));
    let text = "SuspendProgram=/s\nResumeProgram=/r\nSuspendTime=-1\nResumeTimeout=5\nSuspendExcParts=a,b\n\
                PartitionName=p Nodes=ALL SuspendTime=INFINITE ResumeTimeout=7 SuspendTimeout=8 PowerDownOnIdle=YES\n";
    let config = Config::parse(text).unwrap();
    assert!(!config.has_power_saving());
    assert_eq!(config.power.suspend_exc_parts, ["a", "b"]);
    let partition = config.partitions.first().unwrap();
    assert_eq!(partition.suspend_time, Some(SuspendTime::Never));
    let times = (partition.resume_timeout, partition.suspend_timeout, partition.power_down_on_idle);
    assert_eq!(times, (Some(7), Some(8), Some(true)));
    assert!(Config::parse("ResumeTimeout=soon\n").is_err());
    assert!(Config::parse("PartitionName=p Hidden=maybe\n").is_err());
}

#[test]
fn a_suspend_time_is_read_as_slurmctld_reads_it() {
    use SuspendTime::{Never, Seconds};
    // As 22.05, 24.11 and 26.05 show them, for the cluster and for a partition; only a partition's NONE is 0 before 26.05.
    let cases = [
        ("600", Some(Seconds(600))),
        ("0600", Some(Seconds(600))),
        ("0800", Some(Seconds(800))),
        ("10m", Some(Seconds(10))),
        ("600.5", Some(Seconds(600))),
        ("0x258", Some(Seconds(0))),
        ("abc", Some(Seconds(0))),
        ("UNLIMITED", Some(Seconds(0))),
        ("infinitely", Some(Seconds(0))),
        ("+5", Some(Seconds(5))),
        ("++5", Some(Seconds(0))),
        ("+-5", Some(Seconds(0))),
        ("-0", Some(Seconds(0))),
        ("-x", Some(Seconds(0))),
        ("\"  7\"", Some(Seconds(7))),
        ("infinite", Some(Never)),
        ("None", Some(Never)),
        ("-1", Some(Never)),
        ("-1s", None),
        ("-5", None),
        ("4294967296", None),
    ];
    for (text, expected) in cases {
        let whole = Config::parse(&format!("SuspendTime={text}\n")).ok();
        assert_eq!(whole.map(|config| config.power.suspend_time), expected, "{text}");
        let partition = format!("PartitionName=p SuspendTime={text}").parse::<PartitionDef>();
        assert_eq!(partition.ok().and_then(|def| def.suspend_time), expected, "{text}");
    }
}

#[test]
fn a_suspend_time_of_a_partition_enables_power_saving() {
    let programs = "SuspendProgram=/s\nResumeProgram=/r\n";
    let cases = [
        ("SuspendTime=600\n", true),
        ("PartitionName=p SuspendTime=600\n", true),
        ("SuspendTime=INFINITE\nPartitionName=p SuspendTime=0\n", true),
        ("SuspendTime=600\nPartitionName=p SuspendTime=INFINITE\n", true),
        ("PartitionName=DEFAULT SuspendTime=600\nPartitionName=p\n", true),
        ("PartitionName=p SuspendTime=INFINITE\nPartitionName=q\n", false),
        ("SuspendTime=-1\n", false),
        ("", false),
    ];
    for (times, on) in cases {
        let powers = |text: &str| Config::parse(text).unwrap().has_power_saving();
        assert_eq!(powers(&format!("{programs}{times}")), on, "{times}");
        for program in programs.lines() {
            assert!(!powers(&format!("{program}\n{times}")), "{program} alone with {times}");
        }
    }
}

#[test]
fn the_program_behind_a_power_action_is_found() {
    let text = "PowerAction=start Location=slurmctld Program=\"/usr/sbin/start --fast\"\nResumeProgram=start\n";
    let config = Config::parse(text).unwrap();
    assert_eq!(
        config.program(config.power.resume_program.as_deref().unwrap()),
        "/usr/sbin/start --fast"
    );
    assert_eq!(config.program("/usr/sbin/stop"), "/usr/sbin/stop");
}

#[test]
fn old_releases_hide_powered_down_nodes_unless_told_otherwise() {
    let (old, new) = (SlurmVersion::new(22, 5), SlurmVersion::new(23, 2));
    let hides =
        |text: &str, version| Config::parse(text).unwrap().hides_powered_down_nodes(version);
    assert!(hides("PrivateData=jobs\n", old));
    assert!(!hides("PrivateData=jobs,Cloud\n", old));
    assert!(!hides("", new));
}

#[test]
fn a_node_has_the_longest_resume_timeout_of_its_partitions() {
    let config = Config::parse(
        "ResumeTimeout=300\nNodeName=n[1-3] State=CLOUD\nPartitionName=a Nodes=n[1-2] ResumeTimeout=60\n\
         PartitionName=b Nodes=n[2-3]\nPartitionName=c Nodes=n2 ResumeTimeout=900\n",
    )
    .unwrap();
    for (nodes, shortest, longest) in [("n1", 60, 60), ("n[1-3]", 60, 900), ("n[2-3]", 300, 900)] {
        let times = config.resume_timeouts(&nodes.parse().unwrap());
        assert_eq!(times, Duration::from_secs(shortest)..=Duration::from_secs(longest), "{nodes}");
    }
}

#[test]
fn the_message_timeout_is_ten_seconds_by_default() {
    let time = |text| Config::parse(text).unwrap().message_timeout();
    assert_eq!(
        (time("MessageTimeout=60\n"), time("")),
        (Duration::from_mins(1), Duration::from_secs(10))
    );
}

#[test]
fn suspend_exclusions_are_nodes_without_a_count() {
    let config =
        Config::parse("NodeName=n[1-2] Features=big\nNodeName=n3\nNodeSet=large Feature=big\n")
            .unwrap();
    let excluded = |said, version| config.suspend_exclusions(said, version).to_string();
    assert_eq!(excluded("large,n3:1", SlurmVersion::new(23, 11)), "n[1-2]");
    assert_eq!(excluded("n1,n2:1,n3", SlurmVersion::new(22, 5)), "n3");
}

#[test]
fn nodes_of_excluded_partitions_and_without_a_suspend_time_are_not_suspended() {
    let config = Config::parse(
        "SuspendProgram=/s\nResumeProgram=/r\nSuspendTime=600\nSuspendExcNodes=n1,n[2-3]:1\nSuspendExcParts=kept\n\
         NodeName=n[1-6]\nPartitionName=all Nodes=ALL\nPartitionName=kept Nodes=n4\n\
         PartitionName=always Nodes=n5 SuspendTime=INFINITE\n",
    )
    .unwrap();
    let suspended = |version| config.suspendable(&"n[1-6]".parse().unwrap(), version).to_string();
    assert_eq!(suspended(SlurmVersion::new(23, 11)), "n[2-3,6]");
    assert_eq!(
        suspended(SlurmVersion::new(22, 5)),
        "n[1-3,6]",
        "the count is one of all items before it"
    );
}

#[test]
fn includes_are_flattened_into_one_text() {
    let read = |path: &Path| match path.to_str() {
        Some("/etc/slurm.conf") => {
            Ok(b"ClusterName=c1\nInclude more.conf\nSlurmctldPort=6817\n".to_vec())
        }
        _ => Ok(b"# more\nSlurmctldHost=h1\nNodeName=n1".to_vec()),
    };
    let version = SlurmVersion::new(24, 11);
    let text = flatten_includes(Path::new("/etc/slurm.conf"), version, read, |line, statement| {
        match statement {
            Statement::Parameter(pair) if pair.key == "SlurmctldHost" => None,
            _ => Some(line.text().into_owned()),
        }
    });
    assert_eq!(text.unwrap(), "ClusterName=c1\nNodeName=n1\nSlurmctldPort=6817\n");
}

#[test]
fn elastic_settings_keep_the_values_of_slurm_conf() {
    let config = Config::parse("SuspendTime=90\nSlurmctldParameters=enable_configless\n").unwrap();
    let (start, stop) = (Program::new("/bin/startnode"), Program::new("/bin/stopnode"));
    let settings = ElasticSettings::new(SlurmVersion::new(24, 11), start, stop);
    let text = settings.with_current_values(&config).text().unwrap();
    assert!(
        text.contains("SlurmctldParameters=idle_on_node_suspend,enable_configless\n"),
        "{text}"
    );
    assert!(text.contains("SuspendTime=90\n"), "{text}");
}

#[test]
fn the_zone_none_of_citc_is_no_zone() {
    let node: NodeDef = "NodeName=n Features=shape=t3a.small,ad=None".parse().unwrap();
    assert_eq!((node.shape(), node.zone()), (Some("t3a.small"), None));
}

//! Types that print themselves as lines, and read lines back as themselves.

use proptest::{option, prelude::*};
use slurmconf::{
    Config, Features, GresList, NodeDef, NodeSet, NodeState, PartitionDef, SuspendTime,
};
use std::time::Duration;

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
        node.state = state.map(NodeState::from);
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
fn a_suspend_time_that_slurmctld_runs_with_stopped_every_program() {
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
fn power_saving_that_only_a_partition_asks_for_counted_as_off() {
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

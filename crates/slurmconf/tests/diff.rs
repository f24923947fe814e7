//! What changed, and what slurmctld needs for it.

use Action::{Nothing, Reconfigure, Restart};
use slurmconf::{Action, Change, Changes, Config, SlurmVersion, diff};

const OLD: SlurmVersion = SlurmVersion::new(22, 5);
const NEW: SlurmVersion = SlurmVersion::new(24, 11);

fn changes(old: &str, new: &str) -> Changes {
    diff(&Config::parse(old).unwrap(), &Config::parse(new).unwrap())
}

fn shown(changes: &Changes) -> String {
    let text = |value: &Option<String>| value.clone().unwrap_or_else(|| "-".to_owned());
    let change =
        |change: &Change| format!("{} {}→{}", change.key, text(&change.old), text(&change.new));
    let mut all = Vec::new();
    all.extend((!changes.added.is_empty()).then(|| format!("+{}", changes.added)));
    all.extend((!changes.removed.is_empty()).then(|| format!("-{}", changes.removed)));
    all.extend(
        changes.altered.iter().map(|node| format!("{}: {}", node.nodes, change(&node.change))),
    );
    all.extend(changes.parameters.iter().map(change));
    all.extend(changes.partitions.iter().map(change));
    all.join("; ")
}

/// Old and new text, the changes, and what 22.05 and 24.11 need for them.
const CASES: &[(&str, &str, &str, Action, Action)] = &[
    ("NodeName=n[1-3] CPUs=2", "NodeName=n1,n[2-3] Procs=2 # same", "", Nothing, Nothing),
    (
        "NodeName=n1 CPUs=4\nNodeName=n2 CPUs=4",
        "NodeName=n[2,1] CoresPerSocket=1 Sockets=4",
        "",
        Nothing,
        Nothing,
    ),
    ("NodeName=n1 Gres=\"\"", "NodeName=n1", "", Nothing, Nothing),
    ("A=1\nB=2", "b=2\na=1", "", Nothing, Nothing),
    ("NodeName=n[1-2]", "NodeName=n[2-4]", "+n[3-4]; -n1", Restart, Reconfigure),
    (
        "NodeName=n[1-3]",
        "NodeName=n[1-3] Features=x",
        "n[1-3]: Features -→x",
        Reconfigure,
        Reconfigure,
    ),
    (
        "NodeName=n[1-3] CPUs=2",
        "NodeName=n1 CPUs=2\nNodeName=n[2-3] CPUs=4",
        "n[2-3]: CPUs 2→4; n[2-3]: Sockets 2→4",
        Restart,
        Reconfigure,
    ),
    (
        "NodeName=n[1-2] NodeAddr=10.0.0.[1-2]",
        "NodeName=n[1-2] NodeAddr=10.0.0.[1,3]",
        "n2: NodeAddr 10.0.0.2→10.0.0.3",
        Restart,
        Reconfigure,
    ),
    ("SuspendTime=600", "SuspendTime=900", "SuspendTime 600→900", Reconfigure, Reconfigure),
    (
        "SuspendTime=600",
        "SUSPENDTIME=900\nResumeRate=5",
        "ResumeRate -→5; SUSPENDTIME 600→900",
        Reconfigure,
        Reconfigure,
    ),
    ("SlurmctldPort=1", "SlurmctldPort=2", "SlurmctldPort 1→2", Restart, Restart),
    (
        "SlurmctldHost=a\nSlurmctldHost=b",
        "SlurmctldHost=a\nSlurmctldHost=c",
        "SlurmctldHost a,b→a,c",
        Restart,
        Restart,
    ),
    (
        "PartitionName=p Nodes=ALL",
        "PartitionName=p Nodes=ALL Hidden=YES",
        "PartitionName=p PartitionName=p Nodes=ALL→PartitionName=p Nodes=ALL Hidden=YES",
        Reconfigure,
        Reconfigure,
    ),
    (
        "PowerAction=a Program=/x",
        "PowerAction=a Program=/y",
        "PowerAction=a PowerAction=a Program=/x→PowerAction=a Program=/y",
        Reconfigure,
        Reconfigure,
    ),
    (
        "DownNodes=n1 State=DOWN",
        "",
        "DownNodes=n1 DownNodes=n1 State=DOWN→-",
        Reconfigure,
        Reconfigure,
    ),
    (
        "FrontendName=f1 Port=1",
        "FrontendName=f1 Port=2",
        "FrontendName=f1 FrontendName=f1 Port=1→FrontendName=f1 Port=2",
        Reconfigure,
        Reconfigure,
    ),
    (
        "PowerAction=a Program=/x Location=y",
        "poweraction=a location=y program=/x",
        "",
        Nothing,
        Nothing,
    ),
    ("NodeSet=s Feature=x", "", "NodeSet=s NodeSet=s Feature=x→-", Reconfigure, Reconfigure),
];

#[test]
fn changes_are_found_and_weighed() {
    for &(old, new, expected, on_old, on_new) in CASES {
        let changes = changes(old, new);
        assert_eq!(shown(&changes), expected, "{old} / {new}");
        assert_eq!((changes.action(OLD), changes.action(NEW)), (on_old, on_new), "{old} / {new}");
        assert_eq!(changes.is_empty(), expected.is_empty());
    }
}

#[test]
fn a_default_that_is_said_is_no_change() {
    let short = "NodeName=n1\nPartitionName=p Nodes=n1\n";
    let long = "NodeName=n1 State=UNKNOWN Weight=1 RealMemory=1\nPartitionName=p Nodes=n1 Default=NO Hidden=NO \
                RootOnly=NO DisableRootJobs=NO State=up PriorityJobFactor=1 PowerDownOnIdle=NO\n";
    assert_eq!(shown(&changes(short, long)), "");
    assert_eq!(shown(&changes(long, short)), "");
    let other = "NodeName=n1 Weight=2\nPartitionName=p Nodes=n1\n";
    assert_eq!(shown(&changes(short, other)), "n1: Weight 1→2");
}

#[test]
fn a_change_in_the_first_of_two_lines_of_one_name_is_seen() {
    let second = "DownNodes=n1 State=FAIL";
    let changes = changes(&format!("DownNodes=n1 State=DOWN\n{second}"), second);
    assert_eq!(changes.action(NEW), Reconfigure);
}

#[test]
fn partitions_and_sets_that_differ_in_case_are_two() {
    let old = "PartitionName=gpu Nodes=n1\nPartitionName=GPU Nodes=n2\nNodeSet=s Feature=x\nNodeSet=S Feature=y";
    let new = "PartitionName=gpu Nodes=n3\nPartitionName=GPU Nodes=n2\nNodeSet=S Feature=y";
    let changes = changes(old, new);
    let keys: Vec<_> = changes.partitions.iter().map(|change| change.key.as_str()).collect();
    assert_eq!(keys, ["NodeSet=s", "PartitionName=gpu"]);
}

#[test]
fn a_controller_under_its_old_name_needs_a_restart() {
    for key in ["ControlMachine", "ControlAddr", "BackupController", "BackupAddr"] {
        let changes = changes(&format!("{key}=a"), &format!("{key}=b"));
        assert_eq!(changes.action(NEW), Restart, "{key}");
    }
}

#[test]
fn one_line_a_node_and_folded_lines_are_no_change() {
    let line = |n| {
        format!(
            "NodeName=n{n:04} CPUs=2 State=CLOUD Gres=\"\"
"
        )
    };
    let lines = (1..=500).map(line).collect::<Vec<_>>().concat();
    assert!(changes(&lines, "NodeName=n[0001-0500] CPUs=2 State=CLOUD\n").is_empty());
}

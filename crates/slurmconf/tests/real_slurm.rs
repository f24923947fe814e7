//! What this crate writes and reads, judged by real slurmctlds.

use crate::common::{Testbed, wait};
use hostlist::Hostlist;
use slurm_testbed::Release;
use slurmconf::{
    Action, Cluster, Config, ConfiguredState, Document, ElasticSettings, Features, GenerateOptions,
    GresList, Limits, PartitionDef, Program, SlurmVersion, Style, SuspendTime, diff, generate,
};
use std::{collections::BTreeMap, path::Path, time::Duration};

const LIMITS: &str = "
VM.Standard2.1: {1: 3, 2: 1}
VM.Standard.E4.Flex.4.64: {1: 2}
BM.GPU.A10.4: 2
VM.Standard.A1.Flex.4.24: 1
general: {shape: VM.Standard2.2, min: 2, max: 5, partition: [compute, long], weight: 7}
gpu: {shape: VM.GPU3.2, max: 3, partition: gpu, zone: 3}
";

type Record = BTreeMap<String, String>;

/// The records of `scontrol show … -o`, by the value of their first key.
fn records(text: &str) -> BTreeMap<String, Record> {
    let record = |line: &str| -> Record {
        let pair = |word: &str| {
            word.split_once('=').map(|(key, value)| (key.to_owned(), value.to_owned()))
        };
        line.split_whitespace().filter_map(pair).collect()
    };
    let name = |line: &str| {
        let first = line.split_whitespace().next()?;
        Some(first.split_once('=')?.1.to_owned())
    };
    text.lines().filter_map(|line| Some((name(line)?, record(line)))).collect()
}

fn cluster(style: Style) -> Cluster {
    let limits = Limits::read("limits.yaml", LIMITS).unwrap();
    let site = GenerateOptions {
        cluster_id: Some("cheerful-macaw".to_owned()),
        style,
        default_partition: Some("compute".to_owned()),
        ..GenerateOptions::default()
    };
    let mut cluster = generate(&limits, &slurm_testbed::shapes(), &site).unwrap();
    // Nodes that are always there have names that resolve; here they do not.
    for node in cluster.nodes.iter_mut().filter(|node| node.state == Some(ConfiguredState::Unknown))
    {
        node.addr = Some("127.0.0.[2-3]".parse().unwrap());
    }
    cluster
}

fn elastic(bed: &Testbed, persistent: Hostlist) -> String {
    let program = |name: &str| Program::new(bed.program(name));
    let mut settings =
        ElasticSettings::new(bed.version(), program("startnode"), program("stopnode"));
    settings.resume_fail = Some(program("fail"));
    settings.reboot = Some(program("rebuild"));
    settings.suspend_exc_nodes = persistent;
    if bed.version().has_power_actions() {
        settings.resume_fail.as_mut().unwrap().arguments.push("--failed".to_owned());
    }
    settings.text().unwrap()
}

/// A whole slurm.conf in one style: elastic settings, nodes, partitions, and the one for rebuilding.
fn generated(bed: &Testbed, style: Style) -> String {
    let cluster = cluster(style);
    bed.write("gres.conf", &cluster.gres_conf());
    let rebuild = "PartitionName=rebuild Nodes=ALL Default=NO MaxTime=30 State=UP PriorityJobFactor=65533 Hidden=YES \
                   RootOnly=YES DisableRootJobs=NO PreemptMode=OFF OverSubscribe=EXCLUSIVE";
    let rebuild: PartitionDef = rebuild.parse().unwrap();
    let (elastic, types) = (elastic(bed, cluster.persistent_nodes()), cluster.gres_types());
    format!("ClusterName=test\nGresTypes={types}\n{elastic}{cluster}{rebuild}\n")
}

fn same_nodes(bed: &Testbed, config: &Config) {
    let real = records(&bed.ask("scontrol", &["show", "node", "-o"]));
    let mut count = 0;
    for node in &config.nodes {
        let topology = node.topology();
        let expected = [
            ("CPUTot", topology.cpus.to_string()),
            ("Boards", topology.boards.to_string()),
            ("Sockets", topology.sockets.to_string()),
            ("CoresPerSocket", topology.cores_per_socket.to_string()),
            ("ThreadsPerCore", topology.threads_per_core.to_string()),
            ("RealMemory", node.real_memory.unwrap_or(1).to_string()),
            ("Weight", node.weight.unwrap_or(1).to_string()),
            ("AvailableFeatures", or_null(node.features.as_ref().map(Features::to_string))),
            ("Gres", or_null(node.gres.as_ref().map(GresList::to_string))),
        ];
        let list = |list: Option<&Hostlist>| list.map(Hostlist::to_vec);
        let (addresses, hosts) = (list(node.addr.as_ref()), list(node.hostname.as_ref()));
        for (index, name) in node.names.iter().enumerate() {
            let found = real.get(&name).unwrap_or_else(|| panic!("{name} is not in {real:?}"));
            for (key, value) in &expected {
                assert_eq!(&found[*key], value, "{name} {key}");
            }
            let own = |list: &Option<Vec<String>>| {
                list.as_ref().map_or(name.clone(), |list| list[index].clone())
            };
            assert_eq!(found["NodeAddr"], own(&addresses), "{name}");
            assert_eq!(found["NodeHostName"], own(&hosts), "{name}");
            assert_eq!(
                found["State"].contains("CLOUD"),
                node.is_cloud(),
                "{name} {}",
                found["State"]
            );
            count += 1;
        }
    }
    assert_eq!(real.len(), count);
}

fn or_null(text: Option<String>) -> String {
    text.filter(|text| !text.is_empty()).unwrap_or_else(|| "(null)".to_owned())
}

fn same_partitions(bed: &Testbed, config: &Config) {
    let real = records(&bed.ask("scontrol", &["show", "partition", "-a", "-o"]));
    let word = |truth: Option<bool>| if truth == Some(true) { "YES" } else { "NO" }.to_owned();
    for partition in &config.partitions {
        let found = &real[&partition.name];
        let expected = [
            ("Default", word(partition.default)),
            ("Hidden", word(partition.hidden)),
            ("RootOnly", word(partition.root_only)),
            ("DisableRootJobs", word(partition.disable_root_jobs)),
            ("PriorityJobFactor", partition.priority_job_factor.unwrap_or(1).to_string()),
            ("State", partition.state.clone().unwrap_or_else(|| "UP".to_owned())),
        ];
        for (key, value) in &expected {
            assert_eq!(&found[*key], value, "{} {key}", partition.name);
        }
        // 26.05 shows what EXCLUSIVE means, and not the word.
        let exclusive = found["OverSubscribe"] == "EXCLUSIVE"
            || found.get("Exclusive").is_some_and(|exclusive| exclusive == "NODE");
        assert_eq!(exclusive, partition.over_subscribe.as_deref() == Some("EXCLUSIVE"));
        let nodes: Hostlist = found["Nodes"].parse().unwrap();
        assert_eq!(nodes.uniq(), config.partition_nodes(partition), "{}", partition.name);
    }
    assert_eq!(real.len(), config.partitions.len());
}

fn same_power(bed: &Testbed, config: &Config) {
    let real = bed.ask("scontrol", &["show", "config"]);
    let pair = |line: &str| {
        let (key, value) = line.split_once('=')?;
        Some((key.trim().to_owned(), value.trim().to_owned()))
    };
    let real: Record = real.lines().filter_map(pair).collect();
    let power = &config.power;
    let seconds = |time: Duration| format!("{} sec", time.as_secs());
    let expected = [
        ("SuspendProgram", or_null(power.suspend_program.clone())),
        ("ResumeProgram", or_null(power.resume_program.clone())),
        ("ResumeFailProgram", or_null(power.resume_fail_program.clone())),
        ("RebootProgram", or_null(power.reboot_program.clone())),
        ("SuspendTimeout", seconds(power.suspend_timeout)),
        ("ResumeTimeout", seconds(power.resume_timeout)),
        ("SuspendRate", format!("{} nodes/min", power.suspend_rate)),
        ("ResumeRate", format!("{} nodes/min", power.resume_rate)),
        ("SuspendExcNodes", or_null(power.suspend_exc_nodes.clone())),
        ("SlurmctldParameters", or_null(Some(power.slurmctld_parameters.join(",")))),
    ];
    for (key, value) in expected {
        assert_eq!(real[key], value, "{key}");
    }
    let time = match power.suspend_time {
        SuspendTime::Never => "INFINITE".to_owned(),
        SuspendTime::Seconds(seconds) => format!("{seconds} sec"),
    };
    assert_eq!(real["SuspendTime"], time);
    let cluster = config.get("ClusterName").unwrap_or_default().to_lowercase();
    assert_eq!(real["ClusterName"], cluster);
}

/// Starts slurmctld on each style, and finds there what the model says.
fn accepts_every_style(series: &str) {
    let mut bed = Testbed::new(Release::find(series));
    for style in [Style::Citc, Style::Folded, Style::NodeGroups] {
        let text = generated(&bed, style);
        bed.start(&text);
        let config = Config::parse(&text).unwrap();
        same_nodes(&bed, &config);
        same_partitions(&bed, &config);
        same_power(&bed, &config);
        assert_eq!(bed.complaints(), Vec::<String>::new(), "{series} {style:?}\n{text}");
    }
}

#[test]
fn slurm_22_05_accepts_every_style() {
    accepts_every_style("22.05");
}

#[test]
fn slurm_24_11_accepts_every_style() {
    accepts_every_style("24.11");
}

#[test]
fn slurm_26_05_accepts_every_style() {
    accepts_every_style("26.05");
}

/// Those that Slurm takes, with nothing in them that only some machines have.
const FIXTURES: [&str; 8] = [
    "continuations",
    "crlf",
    "defaults",
    "mixed-case",
    "numbers",
    "operators",
    "quotes",
    "tabs-and-blanks",
];

/// Files as people write them: read here and there, with the same outcome.
fn reads_alike(series: &str) {
    let mut bed = Testbed::new(Release::find(series));
    let old = bed.version() < SlurmVersion::new(23, 11);
    // Cloud nodes need no address, and 22.05 shows them only when told to.
    let head =
        format!("{}NodeName=DEFAULT State=CLOUD\n", if old { "PrivateData=cloud\n" } else { "" });
    for name in FIXTURES {
        let path =
            Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/fixtures/{name}.conf"));
        let text = format!("{head}{}", std::fs::read_to_string(path).unwrap());
        bed.start(&text);
        let config = Config::parse(&text).unwrap();
        same_nodes(&bed, &config);
        same_partitions(&bed, &config);
        same_power(&bed, &config);
    }
    // Includes, from the same directory and from others.
    let files = [
        "conf.d/nodes.conf",
        "conf.d/more.conf",
        "conf.d/partitions.conf",
        "more.conf",
        "site-extra.conf",
    ];
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/includes");
    for file in files {
        bed.write(file, &std::fs::read_to_string(root.join(file)).unwrap());
    }
    bed.start(&format!("{head}{}", std::fs::read_to_string(root.join("slurm.conf")).unwrap()));
    let config =
        Config::load(&root.join("slurm.conf"), bed.version(), |path| std::fs::read(path)).unwrap();
    same_nodes(&bed, &config);
    same_partitions(&bed, &config);
    same_power(&bed, &config);
}

#[test]
fn slurm_22_05_reads_files_as_we_do() {
    reads_alike("22.05");
}

#[test]
fn slurm_24_11_reads_files_as_we_do() {
    reads_alike("24.11");
}

#[test]
fn slurm_26_05_reads_files_as_we_do() {
    reads_alike("26.05");
}

/// Where the diff says that a reconfigure will do, it does.
fn takes_up(series: &str, limits: [&str; 2]) {
    let mut bed = Testbed::new(Release::find(series));
    let elastic = elastic(&bed, Hostlist::new());
    let text = |limits: &str, suspend: &str| {
        let limits = Limits::read("limits.yaml", limits).unwrap();
        let cluster =
            generate(&limits, &slurm_testbed::shapes(), &GenerateOptions::default()).unwrap();
        let head =
            format!("ClusterName=test\n{elastic}{cluster}PartitionName=p Nodes=ALL Default=YES\n");
        let mut document = Document::parse(head);
        document.set("SuspendTime", suspend).unwrap();
        document.to_string()
    };
    let (old, new) = (text(limits[0], "600"), text(limits[1], "900"));
    let (before, after) = (Config::parse(&old).unwrap(), Config::parse(&new).unwrap());
    let changes = diff(&before, &after);
    assert_eq!(changes.action(bed.version()), Action::Reconfigure, "{changes:?}");
    bed.start(&old);
    same_nodes(&bed, &before);
    bed.reconfigure(&new);
    wait("new SuspendTime", || {
        let config = bed.ask("scontrol", &["show", "config"]);
        config
            .lines()
            .any(|line| line.starts_with("SuspendTime ") && line.contains("= 900 sec"))
            .then_some(())
    });
    same_nodes(&bed, &after);
    // 22.05 calls every change an error, and takes it up.
    let complaints: Vec<_> = bed
        .complaints()
        .into_iter()
        .filter(|line| !line.contains("differ from slurm.conf"))
        .collect();
    assert_eq!(complaints, Vec::<String>::new(), "{series}");
}

#[test]
fn a_reconfigure_takes_up_what_the_diff_says_it_does() {
    let general =
        |weight: u32| format!("general: {{shape: VM.Standard2.1, max: 3, weight: {weight}}}\n");
    takes_up("22.05", [&general(5), &general(9)]);
    let more = ["VM.Standard2.1: {1: 2}\n", "VM.Standard2.1: {1: 4}\nVM.Standard2.2: {2: 1}\n"];
    takes_up("24.11", more);
    takes_up("26.05", more);
}

/// 22.05 does not start without a node, so there is always one.
#[test]
fn no_nodes_at_all_are_accepted() {
    for series in ["22.05", "26.05"] {
        let mut bed = Testbed::new(Release::find(series));
        let cluster =
            generate(&Limits::default(), &slurm_testbed::shapes(), &GenerateOptions::default())
                .unwrap();
        bed.start(&format!("ClusterName=test\n{cluster}PartitionName=p Nodes=ALL Default=YES\n"));
        assert_eq!(bed.complaints(), Vec::<String>::new());
    }
}

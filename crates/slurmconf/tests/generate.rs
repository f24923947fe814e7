//! Generated text in its three styles, and that it reads back as the nodes it was made from.

use proptest::prelude::*;
use slurmconf::{
    Cluster, Config, ElasticSettings, GenerateOptions, Limits, MemoryPolicy, PartitionDef, Program,
    SlurmVersion, Style, SuspendTime, generate,
};
use std::fmt::Write as _;

const LIMITS: &str = "
VM.Standard2.1: {1: 400}
general: {shape: VM.Standard2.2, min: 2, max: 12000, partition: compute, weight: 5}
gpu: {shape: BM.GPU4.8, max: 1, partition: [gpu, compute], zone: 2}
mixed: {shape: VM.GPU2.1, max: 2, gres: 'gpu:p100:1,gpu:mi300x:2,nic:4'}
";

fn cluster(style: Style) -> Cluster {
    let limits = Limits::read("limits.yaml", LIMITS).unwrap();
    let site = GenerateOptions {
        cluster_id: Some("hpc".to_owned()),
        style,
        memory: MemoryPolicy::CitcOracle,
        default_partition: Some("compute".to_owned()),
        ..GenerateOptions::default()
    };
    generate(&limits, &slurm_testbed::shapes(), &site).unwrap()
}

#[test]
fn folded_lines_are_one_for_all_that_are_alike() {
    let expected = "\
NodeName=vm-standard2-1-ad1-[0001-0400] State=CLOUD SocketsPerBoard=1 CoresPerSocket=1 ThreadsPerCore=2 RealMemory=12700 Features=shape=VM.Standard2.1,ad=1,arch=x86_64
NodeName=hpc-general-[0001-0002] State=UNKNOWN SocketsPerBoard=1 CoresPerSocket=2 ThreadsPerCore=2 RealMemory=27400 Weight=5 Features=shape=VM.Standard2.2,arch=x86_64
NodeName=hpc-general-[0003-12000] State=CLOUD SocketsPerBoard=1 CoresPerSocket=2 ThreadsPerCore=2 RealMemory=27400 Weight=5 Features=shape=VM.Standard2.2,arch=x86_64
NodeName=hpc-gpu-0001 State=CLOUD SocketsPerBoard=2 CoresPerSocket=32 ThreadsPerCore=2 RealMemory=2020000 Gres=gpu:a100:8 Features=shape=BM.GPU4.8,ad=2,arch=x86_64
NodeName=hpc-mixed-[0001-0002] State=CLOUD SocketsPerBoard=1 CoresPerSocket=12 ThreadsPerCore=2 RealMemory=69000 Gres=gpu:p100:1,gpu:mi300x:2,nic:4 Features=shape=VM.GPU2.1,arch=x86_64
PartitionName=compute Nodes=hpc-general-[0001-12000],hpc-gpu-0001 Default=YES MaxTime=INFINITE State=UP
PartitionName=gpu Nodes=hpc-gpu-0001 Default=NO MaxTime=INFINITE State=UP
";
    similar(&cluster(Style::Folded).to_string(), expected);
}

#[test]
fn node_groups_have_a_feature_and_a_set_each() {
    let expected = "\
# nodegroup: vm-standard2-1-ad1
NodeName=vm-standard2-1-ad1-[0001-0400] State=CLOUD Sockets=1 CoresPerSocket=1 ThreadsPerCore=2 RealMemory=12700 Features=nodegroup_vm-standard2-1-ad1,shape=VM.Standard2.1,ad=1,arch=x86_64
NodeSet=nodegroup_vm-standard2-1-ad1 Feature=nodegroup_vm-standard2-1-ad1
# nodegroup: general
NodeName=hpc-general-[0001-0002] State=UNKNOWN Sockets=1 CoresPerSocket=2 ThreadsPerCore=2 RealMemory=27400 Weight=5 Features=nodegroup_general,shape=VM.Standard2.2,arch=x86_64
NodeName=hpc-general-[0003-12000] State=CLOUD Sockets=1 CoresPerSocket=2 ThreadsPerCore=2 RealMemory=27400 Weight=5 Features=nodegroup_general,shape=VM.Standard2.2,arch=x86_64
NodeSet=nodegroup_general Feature=nodegroup_general
# nodegroup: gpu
NodeName=hpc-gpu-0001 State=CLOUD Sockets=2 CoresPerSocket=32 ThreadsPerCore=2 RealMemory=2020000 Gres=gpu:a100:8 Features=nodegroup_gpu,shape=BM.GPU4.8,ad=2,arch=x86_64
NodeSet=nodegroup_gpu Feature=nodegroup_gpu
# nodegroup: mixed
NodeName=hpc-mixed-[0001-0002] State=CLOUD Sockets=1 CoresPerSocket=12 ThreadsPerCore=2 RealMemory=69000 Gres=gpu:p100:1,gpu:mi300x:2,nic:4 Features=nodegroup_mixed,shape=VM.GPU2.1,arch=x86_64
NodeSet=nodegroup_mixed Feature=nodegroup_mixed
PartitionName=vm-standard2-1-ad1 Nodes=nodegroup_vm-standard2-1-ad1 Default=NO MaxTime=INFINITE State=UP
PartitionName=compute Nodes=nodegroup_general,nodegroup_gpu Default=YES MaxTime=INFINITE State=UP
PartitionName=gpu Nodes=nodegroup_gpu Default=NO MaxTime=INFINITE State=UP
PartitionName=mixed Nodes=nodegroup_mixed Default=NO MaxTime=INFINITE State=UP
";
    similar(&cluster(Style::NodeGroups).to_string(), expected);
}

fn similar(found: &str, expected: &str) {
    for (found, expected) in found.lines().zip(expected.lines()) {
        assert_eq!(found, expected);
    }
    assert_eq!(found.lines().count(), expected.lines().count());
}

#[test]
fn gres_conf_names_the_devices() {
    let expected = "\
NodeName=hpc-gpu-0001 Name=gpu Type=a100 File=/dev/nvidia[0-7]
NodeName=hpc-mixed-[0001-0002] Name=gpu Type=p100 File=/dev/nvidia0
NodeName=hpc-mixed-[0001-0002] Name=gpu Type=mi300x File=/dev/dri/renderD[128-129]
NodeName=hpc-mixed-[0001-0002] Name=nic Count=4
";
    for style in [Style::Folded, Style::Citc, Style::NodeGroups] {
        assert_eq!(cluster(style).gres_conf(), expected);
        assert_eq!(cluster(style).gres_types(), "gpu,nic");
    }
}

fn settings(version: SlurmVersion) -> ElasticSettings {
    let program = |name: &str| Program::new(format!("/usr/local/bin/{name}"));
    let mut settings = ElasticSettings::new(version, program("startnode"), program("stopnode"));
    settings.reboot = Some(program("rebuild"));
    settings.slurmctld_parameters.push("power_save_interval=5".to_owned());
    settings
}

#[test]
fn elastic_settings_fit_the_version() {
    let common = "ResumeProgram=/usr/local/bin/startnode\nSuspendProgram=/usr/local/bin/stopnode\n\
                  RebootProgram=/usr/local/bin/rebuild\nSuspendTime=600\nSuspendTimeout=60\nResumeTimeout=600\n\
                  SuspendRate=0\nResumeRate=0\n";
    let old = settings(SlurmVersion::new(22, 5)).text().unwrap();
    let words = "idle_on_node_suspend,cloud_reg_addrs,reboot_from_controller,power_save_interval=5";
    assert_eq!(old, format!("{common}SlurmctldParameters={words}\nPrivateData=cloud\n"));
    let new = settings(SlurmVersion::new(24, 11)).text().unwrap();
    let words = "idle_on_node_suspend,reboot_from_controller,power_save_interval=5";
    assert_eq!(new, format!("{common}SlurmctldParameters={words}\n"));
    let config = Config::parse(&new).unwrap();
    assert_eq!(config.power.suspend_time, SuspendTime::Seconds(600));
    assert!(config.has_power_saving());
    assert_eq!(config.power.slurmctld_parameters.len(), 3);
    let mut settings = settings(SlurmVersion::new(24, 11));
    settings.suspend_exc_nodes = cluster(Style::Folded).persistent_nodes();
    assert!(settings.text().unwrap().contains("\nSuspendExcNodes=hpc-general-[0001-0002]\n"));
}

#[test]
fn programs_get_arguments_where_slurm_can_give_them() {
    let mut failing = settings(SlurmVersion::new(24, 11));
    let arguments = vec!["--failed".to_owned()];
    failing.resume_fail = Some(Program { path: "/usr/local/bin/startnode".to_owned(), arguments });
    let error = failing.text().unwrap_err().to_string();
    assert_eq!(
        error,
        "Slurm 24.11.0 starts ResumeFailProgram without arguments; name a script that adds them"
    );
    failing.version = SlurmVersion::new(26, 5);
    let text = failing.text().unwrap();
    assert!(text.contains(
        "PowerAction=elastic_resumefail Location=slurmctld Program=\"/usr/local/bin/startnode --failed\"\n\
         ResumeFailProgram=elastic_resumefail\n"
    ));
    failing.resume_fail.as_mut().unwrap().arguments.push("two words".to_owned());
    assert!(failing.text().is_err());
}

#[test]
fn a_program_or_parameter_cannot_bring_in_a_line_of_its_own() {
    let evil = "/a\nNodeName=evil";
    let with = |change: &dyn Fn(&mut ElasticSettings)| {
        let mut settings = settings(SlurmVersion::new(26, 5));
        change(&mut settings);
        settings.text()
    };
    let arguments =
        |word: &str| Program { path: word.to_owned(), arguments: vec!["-x".to_owned()] };
    assert!(with(&|_| {}).is_ok());
    assert!(with(&|settings| settings.resume = Program::new(evil)).is_err());
    assert!(with(&|settings| settings.resume = arguments(evil)).is_err());
    assert!(with(&|settings| settings.resume = arguments("/a\rb")).is_err());
    assert!(with(&|settings| settings.slurmctld_parameters.push(evil.to_owned())).is_err());
    assert!(with(&|settings| settings.resume = Program::new("/a \"b\"")).is_err());
}

#[test]
fn a_gpu_type_of_digits_stays_a_type_in_gres_conf() {
    let limits = "g: {shape: VM.Standard2.1, max: 1, gres: 'gpu:4090:2(S:0,1),nic:3'}\n";
    let limits = Limits::read("limits.yaml", limits).unwrap();
    let cluster = generate(&limits, &slurm_testbed::shapes(), &GenerateOptions::default()).unwrap();
    let expected = "NodeName=g-0001 Name=gpu Type=4090 File=/dev/nvidia[0-1]\nNodeName=g-0001 Name=nic Count=3\n";
    assert_eq!(cluster.gres_conf(), expected);
}

#[test]
fn more_gpus_than_slurm_can_count_are_refused() {
    let limits = "g: {shape: VM.Standard2.1, max: 1, gres: 'gpu:18446744073709551615'}\n";
    let limits = Limits::read("limits.yaml", limits).unwrap();
    let error = generate(&limits, &slurm_testbed::shapes(), &GenerateOptions::default())
        .unwrap_err()
        .to_string();
    assert!(error.contains("gpu: 9223372036854775807 is not between 0 and 1024"), "{error}");
}

fn labels(limits: &str, cluster_id: &str) -> slurmconf::Result<Vec<String>> {
    let limits = Limits::read("limits.yaml", limits)?;
    let cluster_id = Some(cluster_id.to_owned());
    let site =
        GenerateOptions { cluster_id, style: Style::NodeGroups, ..GenerateOptions::default() };
    let cluster = generate(&limits, &slurm_testbed::shapes(), &site)?;
    Ok(cluster.node_sets.into_iter().map(|set| set.name).collect())
}

#[test]
fn no_two_groups_become_one_node_group() {
    let two = "a: {shape: VM.Standard2.1, max: 1}\na-: {shape: VM.Standard2.1, max: 1}\n";
    assert_eq!(labels(two, "hpc").unwrap(), ["nodegroup_a", "nodegroup_a-"]);
    let begins_alike = labels("VM.Standard2.1: {1: 1}\n", "vm").unwrap();
    assert_eq!(begins_alike, ["nodegroup_vm-standard2-1-ad1"]);
    let same = "VM.Standard2.1: {1: 1}\nvm-standard2-1-ad1: {shape: VM.Standard2.2, max: 1}\n";
    let error = labels(same, "hpc").unwrap_err().to_string();
    assert!(error.contains("would both be the node group vm-standard2-1-ad1"), "{error}");
}

#[test]
fn stackhpcs_rebuild_partition_reads_back_as_written() {
    let expected = "PartitionName=rebuild Nodes=nodegroup_general,nodegroup_gpu Default=NO MaxTime=30 State=UP \
                    PriorityJobFactor=65533 Hidden=YES RootOnly=YES DisableRootJobs=NO PreemptMode=OFF \
                    OverSubscribe=EXCLUSIVE";
    assert_eq!(expected.parse::<PartitionDef>().unwrap().to_string(), expected);
}

proptest! {
    /// What is written must be what is read: a file is not replaced otherwise.
    #[test]
    fn every_style_reads_back_as_the_nodes_it_was_made_from(
        counts in prop::collection::vec((0_u32..30, 0_u32..20, 0_usize..60), 0..6),
        style in prop::sample::select(vec![Style::Folded, Style::Citc, Style::NodeGroups]),
    ) {
        let shapes = slurm_testbed::shapes();
        let names: Vec<_> = shapes.iter().map(|(name, _)| name).collect();
        let mut text = String::new();
        for (index, (min, more, shape)) in counts.iter().enumerate() {
            let (max, shape) = (min + more, names.get(shape % names.len()).unwrap());
            writeln!(text, "g{index}: {{shape: {shape}, min: {min}, max: {max}, partition: p}}").unwrap();
        }
        let text = if text.is_empty() { "{}" } else { &text };
        let limits = Limits::read("limits.yaml", text).unwrap();
        let cluster = generate(&limits, &shapes, &GenerateOptions { style, ..GenerateOptions::default() }).unwrap();
        let read = Config::parse(&cluster.to_string()).unwrap();
        if style == Style::Citc {
            let total: u32 = counts.iter().map(|(min, more, _)| min + more).sum();
            prop_assert_eq!(u32::try_from(read.nodes.len()).unwrap(), total);
        } else {
            prop_assert_eq!(&read.nodes, &cluster.nodes);
        }
        prop_assert_eq!(&read.partitions, &cluster.partitions);
        prop_assert_eq!(&read.node_sets, &cluster.node_sets);
        let names = |nodes: &[slurmconf::NodeDef]| -> Vec<String> {
            nodes.iter().flat_map(|node| node.names.to_vec()).collect()
        };
        prop_assert_eq!(names(&read.nodes), names(&cluster.nodes));
    }
}

//! The reference outputs of Cluster in the Cloud, whose files and nodes operators bring along.

use serde_json::Value;
use slurmconf::{
    Document, GenerateOptions, Limits, ManagementNode, Markers, Memory, MemoryPolicy, NodeShape,
    Shapes, Style, generate,
};

const MANAGEMENT: &str = "mgmt_ad: 1\nmgmt_shape: VM.Standard2.1\n";

fn citc(
    limits: &str,
    shapes: &Shapes,
    memory: MemoryPolicy,
    cluster_id: Option<&str>,
) -> Vec<String> {
    let limits = Limits::read("limits.yaml", limits).unwrap();
    let limits = limits.without(&ManagementNode::read("mgmt_shape.yaml", MANAGEMENT).unwrap());
    let cluster_id = cluster_id.map(str::to_owned);
    let site =
        GenerateOptions { cluster_id, style: Style::Citc, memory, ..GenerateOptions::default() };
    let cluster = generate(&limits, shapes, &site).unwrap();
    cluster.to_string().lines().map(str::to_owned).collect()
}

fn expected(case: &str) -> Vec<String> {
    let golden: Value = serde_json::from_str(include_str!("golden/nodelines.json")).unwrap();
    let lines = golden[case]["lines"].as_array().unwrap();
    lines.iter().map(|line| line.as_str().unwrap().to_owned()).collect()
}

fn flavors() -> Shapes {
    let mut shapes = Shapes::new();
    for (name, memory) in [("t3a.small", 2048), ("t3a.medium", 4096)] {
        let memory = Memory::Nominal(memory);
        let (gres, arch) = (String::new(), "x86_64".to_owned());
        let threads_per_core = 2;
        shapes.insert(
            name,
            NodeShape { sockets: 1, cores_per_socket: 1, threads_per_core, memory, gres, arch },
        );
    }
    let mut small = NodeShape::new(1, Memory::Nominal(2048));
    "x86_64".clone_into(&mut small.arch);
    shapes.insert("m1.small", small);
    shapes
}

#[test]
fn node_lines_are_citcs_to_the_byte() {
    let oci = slurm_testbed::shapes();
    let table = MemoryPolicy::CitcOracle;
    let docs = "VM.Standard2.1: {1: 1, 2: 1, 3: 1}\nVM.Standard2.2: {1: 1, 2: 1, 3: 1}\n";
    let case = "oci-docs-mgmt-ad1-standard2.1";
    assert_eq!(citc(docs, &oci, table, None), expected(case));
    assert_eq!(citc(docs, &oci, table, Some("never-in-them")), expected(case));
    let flex = "VM.Standard.E4.Flex.16.256: {1: 2}\n";
    assert_eq!(citc(flex, &oci, table, None), expected("oci-flex"));
    let aws = "t3a.small: 3\nt3a.medium: 3\n";
    let (policy, id) = (MemoryPolicy::CitcAws, Some("useful-gnu"));
    assert_eq!(citc(aws, &flavors(), policy, id), expected("aws-docs"));
    let (policy, id) = (MemoryPolicy::CitcOpenstack, Some("cheerful-macaw"));
    assert_eq!(citc("m1.small: 2\n", &flavors(), policy, id), expected("openstack"));
}

#[test]
fn shapes_yaml_is_read_as_citc_reads_it() {
    let mut shapes = slurm_testbed::shapes();
    let text = "X.GPU: {memory: 1000, cores_per_socket: 4, sockets: 2, gres: 'gpu:2'}\n\
                a: {memory: 1, cores_per_socket: '1', threads_per_core: \"1\", cluster_group: true}\n\
                VM.Standard2.1: {memory: 14700, cores_per_socket: 1, threads_per_core: 2}\n";
    shapes.read("shapes.yaml", text).unwrap();
    let policy = MemoryPolicy::default();
    assert_eq!(citc("X.GPU: {1: 1}\n", &shapes, policy, None), expected("gres-and-sockets"));
    let many = citc("a: 10000\n", &shapes, policy, Some("c"));
    assert_eq!(many.len(), 10_000);
    assert_eq!(many[9999..], expected("count-10000"));
    assert!(many[9998].starts_with("NodeName=c-a-9999 "), "{}", many[9998]);
    let old = citc("VM.Standard2.1: {2: 1}\n", &shapes, policy, None);
    assert!(old[0].contains("RealMemory=14700 "), "{}", old[0]);
}

/// CitC skips a shape it does not know and says so; here it stops everything, with the shape that was meant.
#[test]
fn an_unknown_shape_is_never_skipped() {
    assert_eq!(expected("oci-unknown-shape").len(), 1);
    let limits =
        Limits::read("limits.yaml", "VM.Standard2.1: {2: 1}\nVM.Standrd2.1: {1: 1}\n").unwrap();
    let error =
        generate(&limits, &slurm_testbed::shapes(), &GenerateOptions::default()).unwrap_err();
    let shown = "limits.yaml:2:1: unknown shape \"VM.Standrd2.1\"; did you mean \"VM.Standard2.1\"?\n \
                 2 | VM.Standrd2.1: {1: 1}\n   | ^";
    assert_eq!(error.to_string(), shown);
}

#[test]
fn sections_are_spliced_without_citcs_corruption() {
    let cases: Value = serde_json::from_str(include_str!("golden/splice.json")).unwrap();
    let text = |case: &Value, key: &str| case[key].as_str().unwrap().to_owned();
    for case in cases.as_array().unwrap() {
        let mut document = Document::parse(text(case, "input"));
        document.replace_section(Markers::NODES, &text(case, "nodes")).unwrap();
        let correct = match text(case, "correct_output").as_str() {
            "either handled or error" => "# STARTNODES\r\nN1\r\n# ENDNODES\r\n".to_owned(),
            correct => correct.to_owned(),
        };
        assert_eq!(document.to_string(), correct, "{}", text(case, "name"));
        // Again, and back to nothing: the second writing is where the reference went wrong.
        let nodes = text(case, "nodes");
        document.replace_section(Markers::NODES, &nodes).unwrap();
        assert_eq!(document.to_string(), correct, "{}", text(case, "name"));
        document.replace_section(Markers::NODES, "").unwrap();
        assert_eq!(document.section(Markers::NODES).unwrap(), "");
    }
}

#[test]
fn memory_is_discounted_as_in_the_tables() {
    let golden: Value = serde_json::from_str(include_str!("golden/memory.json")).unwrap();
    let policies = [
        ("aws", MemoryPolicy::CitcAws),
        ("google_as_shipped_bug", MemoryPolicy::CitcGoogle),
        ("google_intended", MemoryPolicy::CitcAws),
        ("openstack_citc_x0.8", MemoryPolicy::CitcOpenstack),
        ("openstack_stackhpc_x0.95", MemoryPolicy::StackHpc),
    ];
    for (table, policy) in policies {
        for (size, expected) in golden[table].as_object().unwrap() {
            let memory = size.parse().unwrap();
            let shape = NodeShape::new(1, Memory::Nominal(memory));
            let found = policy.real_memory("any", &shape);
            // 512 MiB on AWS came out negative; Slurm takes no less than 1.
            let expected = expected.as_i64().unwrap().max(1);
            assert_eq!(i64::try_from(found).unwrap(), expected, "{table} {size}");
        }
    }
    let shape = slurm_testbed::shapes().get("VM.Standard2.1").unwrap();
    let memory = |policy: MemoryPolicy| policy.real_memory("VM.Standard2.1", &shape);
    assert_eq!(memory(MemoryPolicy::CitcOracle), 12_700);
    assert_eq!(memory(MemoryPolicy::CitcOracleBefore2023), 14_700);
    assert_eq!(memory(MemoryPolicy::Percent(200)), 15_360);
    for size in 0..2000 {
        let shape = NodeShape::new(1, Memory::Nominal(size));
        let seen = MemoryPolicy::Seen.real_memory("any", &shape);
        assert!(seen >= 1 && seen <= size.max(1), "{size}: {seen}");
    }
}

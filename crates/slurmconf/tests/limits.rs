//! limits.yaml, `mgmt_shape.yaml` and shapes.yaml: what is read, and how what is wrong is told.

use slurmconf::{
    Form, GenerateOptions, Group, Limits, ManagementNode, Memory, Shapes, Style, generate,
    generate_all,
};

fn first_line(error: &slurmconf::Error) -> String {
    error.to_string().lines().next().unwrap_or_default().to_owned()
}

#[test]
fn all_three_forms_are_read_in_order() {
    let text = "\
VM.Standard2.1:
  3: 1
  \"1\": 2
t3a.small: 3
empty: 0
general: {shape: m1.large, min: 2, max: 40, partition: compute}
gpu:
  shape: g1.a100
  max: \"8\"
  partition: [gpu, all]
  gres: gpu:a100:4
  weight: 100
  zone: 2
";
    let limits = Limits::read("limits.yaml", text).unwrap();
    let found: Vec<_> = limits
        .groups
        .iter()
        .map(|group| {
            let name = (group.name.as_str(), group.shape.as_str(), group.form);
            (name, group.zone.as_deref(), group.min, group.max, group.partitions.join("+"))
        })
        .collect();
    let expected = [
        (("VM.Standard2.1", "VM.Standard2.1", Form::Domains), Some("3"), 0, 1, String::new()),
        (("VM.Standard2.1", "VM.Standard2.1", Form::Domains), Some("1"), 0, 2, String::new()),
        (("t3a.small", "t3a.small", Form::Count), None, 0, 3, String::new()),
        (("empty", "empty", Form::Count), None, 0, 0, String::new()),
        (("general", "m1.large", Form::Group), None, 2, 40, "compute".to_owned()),
        (("gpu", "g1.a100", Form::Group), Some("2"), 0, 8, "gpu+all".to_owned()),
    ];
    assert_eq!(found, expected);
    let gpu = limits.groups.last().unwrap();
    assert_eq!((gpu.gres.as_deref(), gpu.weight), (Some("gpu:a100:4"), Some(100)));
    assert_eq!(Limits::read("limits.yaml", "{}\n").unwrap(), Limits::default());
    let error = Limits::read("limits.yaml", "# none yet\n").unwrap_err().to_string();
    assert_eq!(error, "limits.yaml is empty; write {} for no nodes at all");
}

/// A file, and how what is wrong with it is told.
const WRONG: &[(&str, &str)] = &[
    (
        "VM.Standard2.1:\n  1: true\n",
        "2:6: VM.Standard2.1 in availability domain 1: expected a whole number, found the boolean true",
    ),
    (
        "VM.Standard2.1:\n  1: -1\n",
        "2:6: VM.Standard2.1 in availability domain 1: -1 is not between 0 and 65536",
    ),
    ("a: 70000\n", "1:4: a: 70000 is not between 0 and 65536"),
    ("a: 99999999999999999999\n", "1:4: a: expected a whole number, found 99999999999999999999"),
    ("a: 1.5\n", "1:4: a: expected a whole number, found 1.5"),
    ("a: yes\n", "1:4: a: expected a whole number, found the boolean true"),
    ("a: many\n", "1:4: a: expected a whole number, found \"many\""),
    ("a: [1, 2]\n", "1:4: a: expected a count, or availability domains with counts, found a list"),
    ("a:\n  - 1\n", "2:3: a: expected a count, or availability domains with counts, found a list"),
    ("a: {1: [1]}\n", "1:8: a in availability domain 1: expected a whole number, found a list"),
    (
        "VM.Standard2.1:\n1: 1\n2: 1\n",
        "1:1: VM.Standard2.1 has no counts; indent the lines that belong to it",
    ),
    ("a: {}\n", "1:1: a has no counts; indent the lines that belong to it"),
    (
        "1: 1\n",
        "1:1: 1 is not the name of a shape; indent the availability domains under their shape",
    ),
    (
        "VM.Standard2.1:\n1: 1\nVM.Standard2.2:\n1: 1\n",
        "2:1: 1 is not the name of a shape; indent the availability domains under their shape",
    ),
    ("a: 010\n", "1:4: a: expected a whole number without leading zeros, found 010"),
    ("a: {1: 1, x: 2}\n", "1:11: a: availability domain: expected a whole number, found \"x\""),
    ("a: {0: 1}\n", "1:5: a: availability domain: 0 is not between 1 and 99"),
    ("- a\n- b\n", "1:1: limits.yaml: expected a mapping, found a list"),
    (
        "a: {shape: s, max: 1, wieght: 2}\n",
        "1:23: a: unknown key \"wieght\"; did you mean \"weight\"?",
    ),
    ("a: {shape: s}\n", "1:1: a: missing key \"max\""),
    ("a: {max: 3}\n", "1:1: a: missing key \"shape\""),
    ("a: {shape: s, min: 4, max: 3}\n", "1:28: a: max: 3 is not between 4 and 65536"),
    (
        "a: {shape: s, max: 3, partition: {x: 1}}\n",
        "1:34: a: partition: expected a string, found a mapping",
    ),
    ("a: {shape: s, max: 3, weight: -1}\n", "1:31: a: weight: -1 is not between 0 and 4294967279"),
    (
        "a: {shape: s, max: 3, image: 'Rocky 9, new'}\n",
        "1:30: a: image: expected an image's name of letters, digits, '.', '-' and '_', or its id, found \"Rocky 9, new\"",
    ),
    ("a: {shape: s, max: 3, image: [x]}\n", "1:30: a: image: expected a string, found a list"),
    (
        "a: {shape: s, max: 3, imgae: x}\n",
        "1:23: a: unknown key \"imgae\"; did you mean \"image\"?",
    ),
    ("a: 1\na: 2\n", "2:1: invalid YAML"),
    ("a: {1: 1\n", "1:4: invalid YAML"),
];

#[test]
fn every_error_has_line_and_column() {
    for (text, message) in WRONG {
        let error = Limits::read("limits.yaml", text).unwrap_err();
        assert_eq!(first_line(&error), format!("limits.yaml:{message}"), "{text}");
        assert!(error.location().is_some());
    }
}

#[test]
fn an_entry_that_cannot_become_nodes_is_reported_where_it_is() {
    let cases = [
        (
            "VM.Standard2.1: {1: 1}\ng: {shape: VM.Standard2.3, max: 1}\n",
            "2:12: unknown shape \"VM.Standard2.3\"; did you mean \"VM.Standard2.1\"?",
        ),
        (
            "a b: {shape: VM.Standard2.1, max: 1}\n",
            "1:14: invalid name \"a b\": use letters, digits, '.', '-' and '_', and no reserved word",
        ),
        (
            "g: {shape: VM.Standard2.1, max: 1, zone: 'a b'}\n",
            "1:12: invalid name \"a b\": use letters, digits, '.', '-' and '_', and no reserved word",
        ),
        (
            "g: {shape: VM.Standard2.1, max: 1, partition: default}\n",
            "1:12: invalid name \"default\": use letters, digits, '.', '-' and '_', and no reserved word",
        ),
        (
            "g: {shape: VM.Standard2.1, max: 1, gres: 'gpu 4'}\n",
            "1:12: gres: expected name:type:count, separated by commas, found \"gpu 4\"",
        ),
        (
            "VM.Standard2.1: 1\nvm-standard2-1: {shape: VM.Standard2.1, max: 1}\n",
            "2:25: \"VM.Standard2.1\" and \"vm-standard2-1\" would both create nodes named vm-standard2-1-…",
        ),
        (
            "VM.Standard2.1: {1: 1, '1': 1}\n",
            "1:1: \"VM.Standard2.1\" and \"VM.Standard2.1\" would both create nodes named vm-standard2-1-ad1-…",
        ),
    ];
    for (text, message) in cases {
        let limits = Limits::read("limits.yaml", text).unwrap();
        let error =
            generate(&limits, &slurm_testbed::shapes(), &GenerateOptions::default()).unwrap_err();
        assert_eq!(first_line(&error), format!("limits.yaml:{message}"), "{text}");
    }
}

#[test]
fn all_unknown_shapes_are_reported_together() {
    let text = "VM.Standrd2.1: {1: 1, 2: 1}\nVM.Standard2.1: 2\nVM.Nowhere: 1\n";
    let limits = Limits::read("limits.yaml", text).unwrap();
    let errors =
        generate_all(&limits, &slurm_testbed::shapes(), &GenerateOptions::default()).unwrap_err();
    let places: Vec<_> =
        errors.iter().map(|it| first_line(it).split(';').next().unwrap().to_owned()).collect();
    let expected = [
        "limits.yaml:1:1: unknown shape \"VM.Standrd2.1\"",
        "limits.yaml:3:1: unknown shape \"VM.Nowhere\"",
    ];
    assert_eq!(places, expected);
}

#[test]
fn a_partition_named_twice_has_the_nodes_once() {
    let text = "g: {shape: VM.Standard2.1, max: 2, partition: [p, q, p]}\n";
    let limits = Limits::read("limits.yaml", text).unwrap();
    let cluster = generate(&limits, &slurm_testbed::shapes(), &GenerateOptions::default()).unwrap();
    let nodes: Vec<_> =
        cluster.partitions.iter().map(|p| p.nodes.as_ref().unwrap().to_string()).collect();
    assert_eq!(nodes, ["g-[0001-0002]", "g-[0001-0002]"]);
}

#[test]
fn groups_can_be_made_without_a_file() {
    let general = Group { min: 1, ..Group::new("general", "VM.Standard2.1", 3) };
    let limits = Limits { groups: vec![general] };
    let cluster = generate(&limits, &slurm_testbed::shapes(), &GenerateOptions::default()).unwrap();
    let names: Vec<_> = cluster.nodes.iter().map(|node| node.names.to_string()).collect();
    assert_eq!(names, ["general-0001", "general-[0002-0003]"]);
    let limits = Limits { groups: vec![Group::new("g", "VM.Standrd2.1", u32::MAX)] };
    let error = generate(&limits, &slurm_testbed::shapes(), &GenerateOptions::default())
        .unwrap_err()
        .to_string();
    assert_eq!(error, "unknown shape \"VM.Standrd2.1\"; did you mean \"VM.Standard2.1\"?");
}

#[test]
fn the_management_node_counts_in_its_own_shape_and_domain_only() {
    let limits = Limits::read(
        "limits.yaml",
        "VM.Standard2.1: {1: 2, '2': 1}\nVM.Standard2.2: {1: 2}\nx: 2\n",
    )
    .unwrap();
    let counts = |text: &str| -> Vec<u32> {
        let management = ManagementNode::read("mgmt_shape.yaml", text).unwrap();
        limits.clone().without(&management).groups.iter().map(|group| group.max).collect()
    };
    assert_eq!(counts("mgmt_ad: 1\nmgmt_shape: VM.Standard2.1\n"), [1, 1, 2, 2]);
    assert_eq!(counts("mgmt_ad: \"2\"\nmgmt_shape: VM.Standard2.1\n"), [2, 0, 2, 2]);
    assert_eq!(counts("mgmt_ad: 3\nmgmt_shape: VM.Standard2.1\n"), [2, 1, 2, 2]);
    assert_eq!(counts("mgmt_ad: 1\nmgmt_shape: x\n"), [2, 1, 2, 2]);
    let none = Limits::read("limits.yaml", "VM.Standard2.1: {1: 0}\n").unwrap();
    let management =
        ManagementNode::read("mgmt_shape.yaml", "mgmt_ad: 1\nmgmt_shape: VM.Standard2.1\n")
            .unwrap();
    assert_eq!(none.clone().without(&management), none);
    let bad = |text: &str| first_line(&ManagementNode::read("mgmt_shape.yaml", text).unwrap_err());
    assert_eq!(
        bad("mgmt_ad: 1\n"),
        "mgmt_shape.yaml:1:1: mgmt_shape.yaml: missing key \"mgmt_shape\""
    );
    assert_eq!(
        bad("mgmt_shape: s\nmgmt_ad: one\n"),
        "mgmt_shape.yaml:2:10: mgmt_ad: expected a whole number, found \"one\""
    );
}

#[test]
fn a_missing_key_in_shapes_yaml_is_an_error() {
    let bad = |text: &str| first_line(&Shapes::new().read("shapes.yaml", text).unwrap_err());
    assert_eq!(
        bad("t3.2xlarge: {2xlarge: 1, cores_per_socket: 4}\n"),
        "shapes.yaml:1:1: t3.2xlarge: missing key \"memory\""
    );
    assert_eq!(bad("a: {memory: 5}\n"), "shapes.yaml:1:1: a: missing key \"cores_per_socket\"");
    assert_eq!(
        bad("a: {memory: -58, cores_per_socket: 1}\n"),
        "shapes.yaml:1:13: a: memory: -58 is not between 1 and 4294967295"
    );
    assert_eq!(bad("a: 5\n"), "shapes.yaml:1:4: a: expected a mapping, found 5");
}

#[test]
fn a_group_has_an_image_of_its_own() {
    let image = "ocid1.image.oc1.phx.aaaa";
    let text = format!(
        "g: {{shape: BM.GPU4.8, max: 2, image: {image}}}\nc: {{shape: VM.Standard2.1, max: 1}}\n"
    );
    let limits = Limits::read("limits.yaml", &text).unwrap();
    for style in [Style::Folded, Style::Citc, Style::NodeGroups] {
        let cluster = generate(
            &limits,
            &slurm_testbed::shapes(),
            &GenerateOptions { style, ..GenerateOptions::default() },
        )
        .unwrap();
        let features: Vec<_> =
            cluster.nodes.iter().map(|node| node.features.as_ref().unwrap()).collect();
        let images: Vec<_> = features.iter().map(|features| features.value("image")).collect();
        assert_eq!(images, [Some(image), None], "{style:?}");
        assert!(cluster.to_string().contains(&format!(",arch=x86_64,image={image}")), "{style:?}");
    }
}

#[test]
fn a_file_without_gres_keeps_the_known_gpus() {
    let file = "VM.GPU3.2: {memory: 176000, cores_per_socket: 12}\nVM.GPU3.4: {memory: 1, cores_per_socket: 24, gres: ''}\n";
    let gres =
        |shapes: &Shapes| ["VM.GPU3.2", "VM.GPU3.4"].map(|name| shapes.get(name).unwrap().gres);
    let mut shapes = slurm_testbed::shapes();
    shapes.read("shapes.yaml", file).unwrap();
    assert_eq!(gres(&shapes), ["gpu:v100:2", ""], "what it does say counts");
    assert_eq!(shapes.get("VM.GPU3.2").unwrap().memory, Memory::Real(176_000));
    let mut shapes = slurm_testbed::shapes();
    shapes.read_as_citc("shapes.yaml", file).unwrap();
    assert_eq!(gres(&shapes), ["", ""]);
}

#[test]
fn ad_is_another_word_for_zone() {
    let zone = |key: &str| {
        let text = format!("g: {{shape: VM.Standard2.1, max: 1, {key}: 2}}\n");
        Limits::read("limits.yaml", &text).unwrap().groups[0].zone.clone()
    };
    assert_eq!(zone("ad"), zone("zone"));
    assert_eq!(zone("ad").as_deref(), Some("2"));
}

//! What a launch says besides shape and image.

use crate::fixture::Fixture;
use serde_json::{Value, json};

const NODE: &str = "vm-standard2-1-ad1-0001";

#[test]
fn launches_have_the_tags_that_a_tenancy_demands() {
    let stage = Fixture::new().running();
    let more = "nsg_ids: [ocid1.networksecuritygroup.oc1.phx.a]\nfreeform_tags: {project: climate, cluster: theirs, 2026: round}\n\
        defined_tags: {Operations: {CostCenter: 42}}\n";
    stage.write("startnode.yaml", &format!("{}{more}", stage.configuration()));
    stage.run("startnode", &[NODE]).with_code(0);
    let launch = stage.cloud().requests().into_iter().find(|it| it.operation == "LaunchInstance");
    let body: Value = serde_json::from_str(&launch.unwrap().body).unwrap();
    assert_eq!(body["definedTags"], json!({"Operations": {"CostCenter": "42"}}));
    let groups = &body["createVnicDetails"]["nsgIds"];
    assert_eq!(*groups, json!(["ocid1.networksecuritygroup.oc1.phx.a"]));
    let tags = &body["freeformTags"];
    assert_eq!((&tags["project"], &tags["node"]), (&"climate".into(), &NODE.into()));
    assert_eq!(tags["2026"], "round");
    assert_ne!(tags["cluster"], "theirs", "what tells our machines stays ours");
    stage.run("stopnode", &["--now", NODE]).with_code(0);
    assert_eq!(stage.live(), Vec::<String>::new());
}

/// The body of the one launch.
fn body_of_launch(stage: &Fixture) -> Value {
    let requests = stage.cloud().requests().into_iter();
    let launches: Vec<_> = requests.filter(|it| it.operation == "LaunchInstance").collect();
    assert_eq!(launches.len(), 1);
    serde_json::from_str(&launches[0].body).unwrap()
}

#[test]
fn old_images_and_subnets_without_dns_can_be_used() {
    for (more, legacy_off, label) in [
        ("", json!(true), json!(NODE)),
        ("legacy_imds: true\nhostname_label: false\n", json!(false), Value::Null),
    ] {
        let stage = Fixture::new().running();
        stage.write("startnode.yaml", &format!("{}{more}", stage.configuration()));
        stage.run("startnode", &[NODE]).with_code(0);
        let body = body_of_launch(&stage);
        assert_eq!(body["instanceOptions"]["areLegacyImdsEndpointsDisabled"], legacy_off);
        assert_eq!(body["createVnicDetails"]["hostnameLabel"], label);
    }
}

/// CitC 5 has two images of a cluster, and the newer one was every machine's.
#[test]
fn only_a_machine_with_graphics_cards_has_the_image_for_them() {
    let stage = Fixture::with(
        |settings| {
            for (image, name) in settings.images.iter_mut().zip(["c1-v1", "c1-GPU-v1"]) {
                image.name = name.to_owned();
                image.time_created = Some("2026-01-01T00:00:00Z".to_owned());
            }
            settings.images.truncate(2);
        },
        |_| {},
    );
    stage.write("limits.yaml", "VM.Standard2.1: {1: 1}\nBM.GPU4.8: {1: 1}\n");
    let check = stage.run("finish", &["--check"]).stdout;
    assert!(
        check.contains("img000, and for shapes with GPU ocid1.image.oc1.phx.img001"),
        "{check}"
    );
    let stage = stage.running();
    for (node, image) in [(NODE, "img000"), ("bm-gpu4-8-ad1-0001", "img001")] {
        stage.run("startnode", &[node]).with_code(0);
        let launched = stage.machine(node).image_id;
        assert_eq!(launched.as_deref(), Some(&*format!("ocid1.image.oc1.phx.{image}")), "{node}");
    }
}

#[test]
fn a_group_can_name_its_image() {
    let stage = Fixture::new();
    let limits = "arm: {shape: VM.Standard2.1, zone: '1', max: 1, image: citc-ol9-2}\n";
    stage.write("limits.yaml", limits);
    let stage = stage.running();
    stage.run("startnode", &["c1-arm-0001"]).with_code(0);
    let image = || stage.machine("c1-arm-0001").image_id;
    assert_eq!(image().as_deref(), Some("ocid1.image.oc1.phx.img002"));
    stage.write("limits.yaml", &limits.replace("ol9-2", "ol9-9"));
    let check = stage.run("finish", &["--check"]).with_code(1).stdout;
    assert!(check.contains("fail nodes are to have the image citc-ol9-9, "), "{check}");
    // A name that slurm.conf has not yet.
    let more = "new: {shape: VM.Standard2.1, zone: '1', min: 1, max: 1, image: citc-ol9-3}\n";
    stage.write("limits.yaml", &format!("{limits}{more}"));
    let plan = stage.run("resize", &["--dry-run", "--no-prove"]).stdout;
    let launch = plan.lines().find(|line| line.contains("launch c1-new-0001")).unwrap_or_default();
    assert!(launch.contains("image=ocid1.image.oc1.phx.img003"), "{plan}");
}

/// The page said that it was.
#[test]
fn an_image_of_a_node_is_not_that_of_new_nodes_unasked() {
    let stage = Fixture::new().running();
    stage.run("startnode", &[NODE]).with_code(0);
    let made = stage.run("rebuild", &["image", NODE, "--name", "mine"]).with_code(0);
    let (made, other) = (made.stdout.trim(), "vm-standard2-1-ad1-0002");
    stage.run("startnode", &[other]).with_code(0);
    let image = |node: &str| stage.machine(node).image_id;
    assert_eq!(image(other), image(NODE));
    stage.write("startnode.yaml", &format!("{}image_id: mine\n", stage.configuration()));
    let third = "vm-standard2-1-ad1-0003";
    crate::slurm::wait(
        "image that is ready",
        || (stage.run("startnode", &[third]).code == Some(0)).then_some(()),
        || stage.read("log/elastic.log"),
    );
    assert_eq!(image(third).as_deref(), Some(made));
}

/// CitC up to 4 has no cluster id and no tags.
#[test]
fn a_configuration_without_a_cluster_id_needs_no_tag() {
    let subnets = |name: &'static str| {
        move |settings: &mut cloud_sim::CloudSettings| {
            let mut other = settings.subnets[0].clone();
            other.id.push_str("other");
            other.name = "Public".to_owned();
            settings.subnets[0].name = name.to_owned();
            settings.subnets.push(other);
        }
    };
    let untagged = |stage: &Fixture| {
        let image = "image_id: ocid1.image.oc1.phx.img002\n";
        stage.write("startnode.yaml", &stage.configuration().replace("cluster_id: c1\n", image));
    };
    let stage = Fixture::with(subnets("Subnet"), |_| {});
    untagged(&stage);
    let stage = stage.running();
    stage.run("startnode", &[NODE]).with_code(0);
    let subnet = &body_of_launch(&stage)["createVnicDetails"]["subnetId"];
    assert_eq!(subnet, "ocid1.subnet.oc1.phx.aaaasub");

    let stage = Fixture::with(subnets("SubnetAD1"), |_| {});
    untagged(&stage);
    let check = stage.run("finish", &["--check"]).with_code(1).stdout;
    let found = check.lines().find(|line| line.contains("has no subnet")).unwrap_or_default();
    assert!(found.contains("called Subnet,") && found.contains("set subnet_id"), "{check}");
    assert!(!check.contains("this cluster's tag"), "{check}");
}

#[test]
fn virtual_machines_are_not_launched_into_a_cluster_of_bare_metal() {
    let stage = Fixture::new().running();
    let more = "compute_cluster_id: ocid1.computecluster.oc1.phx.cc1\n";
    stage.write("startnode.yaml", &format!("{}{more}", stage.configuration()));
    stage.run("startnode", &[NODE]).with_code(0);
    assert_eq!(body_of_launch(&stage)["computeClusterId"], Value::Null);
}

/// The same token with another body is refused by the cloud, for a day.
#[test]
fn the_token_of_a_launch_changes_with_its_disk_and_groups() {
    let token = |more: &str| {
        let stage = Fixture::new().running();
        stage.write("startnode.yaml", &format!("{}{more}", stage.configuration()));
        stage.run("startnode", &[NODE]).with_code(0);
        let requests = stage.cloud().requests().into_iter();
        let mut launches = requests.filter(|it| it.operation == "LaunchInstance");
        launches.find_map(|it| it.header("opc-retry-token").map(str::to_owned)).unwrap()
    };
    let tokens =
        ["", "boot_volume_gb: 60\n", "legacy_imds: true\n", "freeform_tags: {a: b}\n"].map(token);
    let unlike: std::collections::BTreeSet<_> = tokens.iter().collect();
    assert_eq!(unlike.len(), tokens.len(), "{tokens:?}");
}

#[test]
fn tags_that_are_no_texts_are_refused_where_they_stand() {
    let stage = Fixture::new();
    for (tags, column, word) in [
        ("defined_tags: {Operations: 3}", 28, "Operations"),
        ("defined_tags: {Operations: {CostCenter: }}", 39, "CostCenter"),
        ("defined_tags: {Operations: }", 26, "Operations"),
        ("freeform_tags: {billable: ''}", 27, "billable"),
    ] {
        let text = format!("{}{tags}\n", stage.configuration());
        let place = format!("startnode.yaml:{}:{column}", text.lines().count());
        stage.write("startnode.yaml", &text);
        stage.run("startnode", &[NODE]).with_code(2).saying(&[&place, word]);
    }
}

/// A queue that is long, or that squeue cannot read, was taken for a slurmctld that does not answer.
#[test]
fn starts_and_stops_do_not_need_the_queue() {
    let stage = Fixture::new().running();
    for name in ["scontrol", "sbatch"] {
        let link = stage.path(&format!("bin/{name}"));
        std::fs::create_dir_all(link.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(stage.slurm.bin().join(name), link).unwrap();
    }
    stage.write("bin/squeue", "#!/bin/sh\nexit 1\n");
    let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(stage.path("bin/squeue"), executable).unwrap();
    let real = format!("slurm_bin: {}", stage.slurm.bin().display());
    let ours = format!("slurm_bin: {}", stage.path("bin").display());
    stage.write("startnode.yaml", &stage.configuration().replace(&real, &ours));
    for program in ["startnode", "stopnode"] {
        let ended = stage.run(program, &[NODE]).with_code(0);
        assert!(!ended.text().contains("does not answer"), "{ended:?}");
    }
    stage.run("reconcile", &[]).saying(&["squeue"]);
}

//! What a launch says besides shape and image.

use crate::stage::Stage;
use serde_json::{Value, json};

const NODE: &str = "vm-standard2-1-ad1-0001";

#[test]
fn tenancies_that_demand_tags_refused_every_launch() {
    let stage = Stage::new().running();
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

#[test]
fn tags_that_are_no_texts_are_refused_where_they_stand() {
    let stage = Stage::new();
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

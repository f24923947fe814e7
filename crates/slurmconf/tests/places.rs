//! `places` and `preemptible` of a group: what becomes of them in slurm.conf, and what is refused.

use slurmconf::{GenerateOptions, Limits, Memory, NodeShape, PlaceChoice, Shapes, generate};
use std::time::Duration;

fn generated(text: &str) -> Result<slurmconf::NodeDef, String> {
    let limits = Limits::read("limits.yaml", text).map_err(|error| error.to_string())?;
    let cluster = generate(&limits, &slurm_testbed::shapes(), &GenerateOptions::default());
    Ok(cluster.map_err(|error| error.to_string())?.nodes.remove(0))
}

#[test]
fn places_are_features_that_read_back() {
    let text = "general:
  shape: VM.Standard2.1
  zone: 1
  max: 4
  preemptible: {give_up_after: 10m}
  places:
    - {zone: 1, preemptible: true}
    - {ad: 2, shape: VM.Standard2.2}
    - {preemptible: false}
";
    let node = generated(text).unwrap();
    let features = node.features.clone().unwrap();
    let words: Vec<&str> = features.iter().skip(3).collect();
    let expected = [
        "place1=/1/preemptible",
        "place2=VM.Standard2.2/2/",
        "place3=//on-demand",
        "preemptible=true",
        "give_up_after=600",
    ];
    assert_eq!(words, expected);
    let places = features.places();
    assert_eq!(places.len(), 3);
    let second = PlaceChoice {
        shape: Some("VM.Standard2.2".to_owned()),
        zone: Some("2".to_owned()),
        preemptible: None,
    };
    assert_eq!(places[1], second);
    assert_eq!(
        (features.preemptible(), features.give_up_after()),
        (Some(true), Some(Duration::from_mins(10)))
    );
    let line = slurmconf::Config::parse(&format!("{node}\n")).unwrap();
    assert_eq!(line.nodes[0].features.as_ref().unwrap().places(), places);
}

#[test]
fn a_group_without_places_has_the_line_of_before() {
    let node = generated("general: {shape: VM.Standard2.1, zone: 1, max: 4}\n").unwrap();
    let features = node.features.unwrap();
    assert_eq!(features.to_string(), "shape=VM.Standard2.1,ad=1,arch=x86_64");
    assert!(features.places().is_empty() && features.give_up_after().is_none());
}

#[test]
fn the_first_elastic_nodes_of_a_group_are_warm_and_used_first() {
    let text = "fast: {shape: VM.Standard2.1, zone: 1, min: 1, max: 6, warm: 2, weight: 10}\n";
    let limits = Limits::read("limits.yaml", text).unwrap();
    let cluster = generate(&limits, &slurm_testbed::shapes(), &GenerateOptions::default()).unwrap();
    let lines = cluster.nodes.iter().map(|node| {
        let warm = node.features.as_ref().is_some_and(slurmconf::Features::is_warm);
        (node.names.to_string(), warm, node.weight)
    });
    let expected = [
        ("fast-0001".to_owned(), false, Some(10)),
        ("fast-[0002-0003]".to_owned(), true, Some(10)),
        ("fast-[0004-0006]".to_owned(), false, Some(11)),
    ];
    assert_eq!(lines.collect::<Vec<_>>(), expected);
}

#[test]
fn no_more_nodes_are_warm_than_there_are_elastic_ones() {
    let error = generated("fast: {shape: VM.Standard2.1, min: 2, max: 4, warm: 3}\n").unwrap_err();
    assert!(error.starts_with("limits.yaml:1:") && error.contains("fast: warm"), "{error}");
}

#[test]
fn a_place_is_as_large_as_the_line_of_the_node() {
    let with = |place: &str| {
        generated(&format!(
            "big: {{shape: VM.Standard.E4.Flex.16.256, zone: 1, max: 4, places: [{{shape: {place}}}]}}\n"
        ))
    };
    for place in
        ["VM.Standard.E4.Flex.16.256", "VM.Standard.E5.Flex.16.256", "VM.Standard.E4.Flex.32.512"]
    {
        assert!(with(place).is_ok(), "{place}");
    }
    for (place, lack) in [
        ("VM.Standard.E4.Flex.1.16", "has 2 CPUs instead of 32"),
        ("VM.Standard.E4.Flex.16.255", "MiB instead of"),
        ("VM.Nosuch", "unknown shape \"VM.Nosuch\""),
    ] {
        let error = with(place).unwrap_err();
        assert!(error.contains(lack), "{place}: {error}");
    }
    let cards = "gpu: {shape: VM.GPU3.1, zone: 1, max: 1, places: [{shape: VM.Standard2.24}]}\n";
    let error = generated(cards).unwrap_err();
    assert!(error.contains("0 gpu instead of 1"), "{error}");
}

#[test]
fn a_place_is_not_refused_for_cards_that_the_cloud_reports_of_no_shape() {
    let mut shapes = Shapes::new();
    for name in ["g1.a100", "g2.a100"] {
        shapes.insert(name, NodeShape::new(8, Memory::Nominal(65_536)));
    }
    let cards = "gpu: {shape: g1.a100, max: 1, gres: 'gpu:a100:4', places: [{shape: g2.a100}]}\n";
    let limits = Limits::read("limits.yaml", cards).unwrap();
    let cluster = generate(&limits, &shapes, &GenerateOptions::default()).unwrap();
    let features = cluster.nodes[0].features.as_ref().unwrap();
    assert_eq!(features.places()[0].shape.as_deref(), Some("g2.a100"));
}

#[test]
fn what_is_wrong_with_places_is_told_with_its_line() {
    for (words, expected) in [
        ("places: 3", "places: expected a list of places such as {zone: 2, preemptible: true}"),
        ("places: [{zome: 2}]", "places: unknown key \"zome\"; did you mean \"zone\"?"),
        ("places: [{zone: a b}]", "places: zone: expected a word of letters"),
        ("places: [{preemptible: 3}]", "places: expected true or false"),
        ("preemptible: soon", "preemptible: expected true or false"),
        ("preemptible: {}", "preemptible: missing key \"give_up_after\""),
        (
            "preemptible: {give_up_after: soon}",
            "preemptible: expected a time such as 90s, 10m or 2h",
        ),
    ] {
        let text = format!("g: {{shape: VM.Standard2.1, max: 1, {words}}}\n");
        let error = generated(&text).unwrap_err();
        let first = error.lines().next().unwrap_or_default();
        assert!(
            first.starts_with("limits.yaml:1:") && first.contains(expected),
            "{words}: {error}"
        );
    }
}

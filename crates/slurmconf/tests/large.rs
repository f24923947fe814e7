//! Inputs on which anything quadratic would take minutes, and the runner's time limit end it.

use slurmconf::{Config, Document, GenerateOptions, Group, Limits, Style, generate};
use std::fmt::Write as _;

#[test]
fn a_line_of_very_many_pairs_is_read_in_one_pass() {
    let mut line = String::from("NodeName=n");
    (0..400_000).for_each(|number| write!(line, " k{number}={number}").unwrap());
    let config = Config::parse(&line).unwrap();
    assert_eq!(config.nodes.first().unwrap().other.len(), 400_000);
}

#[test]
fn very_many_bad_lines_are_passed_over_in_one_pass() {
    let document = Document::parse("x\n".repeat(500_000));
    assert_eq!(document.get("x"), None);
}

#[test]
fn very_many_limits_are_read_in_one_pass() {
    let mut text = String::new();
    (0..60_000).for_each(|number| writeln!(text, "g{number}: 1").unwrap());
    let limits = Limits::read("limits.yaml", &text).unwrap();
    assert_eq!(limits.groups.last().unwrap().location.as_ref().unwrap().excerpt, "g59999: 1");
}

#[test]
fn very_many_partitions_and_node_groups_are_made_in_one_pass() {
    let group = |number| Group::new(format!("g{number}"), "VM.Standard2.1", 1);
    let limits = Limits { groups: (0..100_000).map(group).collect() };
    let site = GenerateOptions { style: Style::NodeGroups, ..GenerateOptions::default() };
    let cluster = generate(&limits, &slurm_testbed::shapes(), &site).unwrap();
    assert_eq!(cluster.partitions.len(), 100_000);
    assert_eq!(cluster.to_string().lines().count(), 400_000);
}

#[test]
fn very_many_nodes_are_looked_up_without_a_search_each() {
    let mut text = String::new();
    (0..60_000).for_each(|number| writeln!(text, "NodeName=n{number} NodeAddr=a{number}").unwrap());
    let config = Config::parse(&text).unwrap();
    let index = config.index();
    for number in 0..60_000 {
        let node = index.get(&format!("n{number}")).unwrap();
        assert_eq!(node.addr.as_ref().unwrap().to_string(), format!("a{number}"));
    }
}

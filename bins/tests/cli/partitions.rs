//! Which partition of the section is the default.

use crate::fixture::Fixture;

#[test]
fn a_default_partition_that_is_not_there_is_refused() {
    let stage = Fixture::new();
    let text = "g: {shape: VM.Standard2.1, zone: '1', max: 2, partition: [mine, yours]}\n";
    stage.write("limits.yaml", text);
    let wrong = ["--default-partition", "nosuch", "--print"];
    stage.run("finish", &wrong).with_code(2).saying(&["nosuch", "mine, yours"]);
    let right = stage.run("finish", &["--default-partition", "yours", "--print"]).with_code(0);
    assert!(right.stdout.contains("PartitionName=yours "), "{right:#?}");
}

#[test]
fn the_default_partition_stays_when_it_is_not_named_again() {
    let stage = Fixture::new();
    let text = "g: {shape: VM.Standard2.1, zone: '1', max: 2, partition: [mine, yours]}\n";
    stage.write("limits.yaml", text);
    let section = |arguments: &[&str]| stage.run("finish", arguments).with_code(0).stdout;
    let named = section(&["--default-partition", "yours", "--print"]);
    let conf = stage.read("etc/slurm.conf");
    let (before, after) = conf.split_once("# This section will be replaced\n").unwrap();
    stage.write("etc/slurm.conf", &format!("{before}{named}{after}"));
    assert_eq!(section(&["--print"]), named);
    let other = section(&["--default-partition", "mine", "--print"]);
    assert_eq!(other.matches("Default=YES").count(), 1, "{other}");
    // The one that has it is no more.
    stage.write("limits.yaml", &text.replace("yours", "theirs"));
    assert!(!section(&["--print"]).contains("Default=YES"));
}

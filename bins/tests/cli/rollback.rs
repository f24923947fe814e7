//! `finish` with a slurm.conf that slurmctld refuses: the old file is back, and slurmctld answers.

use crate::fixture::Fixture;

/// A line outside the markers that is wrong as soon as there is a node of the same name between them.
const TWICE: &str = "NodeName=vm-standard2-1-ad1-0005 CPUs=1 State=CLOUD\n";

fn refusing(series: &str) -> Fixture {
    let stage = Fixture::on(series, |_| {}, |conf| conf.push_str(TWICE)).running();
    assert!(stage.slurm.is_up());
    stage.write("limits.yaml", "VM.Standard2.1: {1: 5}\n");
    stage
}

/// Nothing is changed for good, and no machine either.
fn as_before(stage: &Fixture, old: &str, said: &str) {
    assert_eq!(stage.read("etc/slurm.conf"), old, "{said}");
    assert!(stage.slurm.is_up(), "slurmctld does not answer: {said}");
    assert_eq!(stage.slurm.node("vm-standard2-1-ad1-0001", "NodeName"), "vm-standard2-1-ad1-0001");
    assert_eq!(stage.changes(), Vec::<String>::new());
}

#[test]
fn a_throw_away_slurmctld_finds_it_out_first() {
    let stage = refusing("24.11");
    let old = stage.read("etc/slurm.conf");
    let ended = stage.run("finish", &[]).with_code(1).saying(&["nothing is changed"]);
    as_before(&stage, &old, &ended.stderr);
}

#[test]
fn the_old_file_is_put_back_after_a_restart() {
    let stage = refusing("22.05");
    let old = stage.read("etc/slurm.conf");
    let ended = stage.run("finish", &["--no-prove"]).with_code(1);
    let ended = ended.saying(&["restoring the previous file", "runs again with the previous file"]);
    as_before(&stage, &old, &ended.stderr);
}

#[test]
fn the_old_file_is_put_back_after_a_reconfiguration() {
    let stage = refusing("24.11");
    let old = stage.read("etc/slurm.conf");
    let ended = stage.run("finish", &["--no-prove"]).with_code(1);
    let ended = ended.saying(&["restoring the previous file"]);
    as_before(&stage, &old, &ended.stderr);
}

#[test]
fn a_file_that_is_put_back_is_a_failure_and_logged() {
    let stage = refusing("22.05");
    let ended = stage.run("finish", &["--no-prove", "--json"]).with_code(1);
    let last = ended.stdout.lines().last().unwrap();
    let report: serde_json::Value = serde_json::from_str(last).unwrap();
    assert_eq!(report["exit_code"], 1, "{ended:#?}");
    let failures = report["failures"].to_string();
    for words in ["restart_command", "restoring the previous file", "with the previous file"] {
        assert!(failures.contains(words), "{words}: {ended:#?}");
        let log = stage.read("log/elastic.log");
        assert!(log.lines().any(|it| it.contains(" ERROR ") && it.contains(words)), "{log}");
    }
}

#[test]
fn a_good_file_is_taken_and_the_version_before_is_kept() {
    for series in ["22.05", "24.11"] {
        let stage = Fixture::on(series, |_| {}, |_| {}).running();
        let old = stage.read("etc/slurm.conf");
        stage.write("limits.yaml", "VM.Standard2.1: {1: 5}\n");
        let ended = stage.run("finish", &[]).with_code(0);
        assert!(ended.stdout.contains("+NodeName=vm-standard2-1-ad1-[0001-0005]"), "{ended:?}");
        assert_eq!(stage.read("etc/slurm.conf.previous"), old);
        let node = "vm-standard2-1-ad1-0005";
        assert_eq!(stage.slurm.node(node, "NodeName"), node, "{ended:?}");
        let again = stage.run("finish", &[]).with_code(0);
        assert_eq!(again.stdout, "nothing to change\n");
        assert_eq!(stage.read("etc/slurm.conf.previous"), old);
    }
}

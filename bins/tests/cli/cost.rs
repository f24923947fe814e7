//! What machines cost, from the log of events, prices.yaml and Slurm's accounting.

use crate::fixture::Fixture;
use crate::slurm::Fake;
use serde_json::Value;
use std::fs;

const HOUR: u64 = 3_600_000;

/// 2026-11-01T00:00:00Z.
const BEGIN: u64 = 1_793_491_200_000;

/// Two machines of two CPUs for two hours each; the second is dearer, and was launched in the second hour.
fn stage() -> Fixture {
    let stage = Fixture::new();
    let section = stage.run("finish", &["--print"]).with_code(0).stdout;
    let text = stage.read("etc/slurm.conf");
    stage.write("etc/slurm.conf", &text.replace("# This section will be replaced\n", &section));
    let mut events = String::new();
    for (node, instance, shape, from) in [
        ("vm-standard2-1-ad1-0001", "i1", "VM.Standard2.1", BEGIN),
        ("vm-standard2-1-ad1-0002", "i2", "VM.Big", BEGIN + HOUR),
    ] {
        let line = |at: u64, event: &str| {
            format!(
                "{{\"at\":{at},\"run\":\"r\",\"event\":\"{event}\",\"node\":\"{node}\",\"instance\":\"{instance}\",\"shape\":\"{shape}\"}}\n"
            )
        };
        events.push_str(&line(from, "launched"));
        events.push_str(&line(from + 2 * HOUR, "terminated"));
    }
    stage.write("state/events.jsonl", &events);
    stage.write("prices.yaml", "currency: EUR\nshapes: {VM.Standard2.1: 0.10, VM.Big: 1}\n");
    stage
}

/// From here on sacct prints this, and scontrol is the real one.
fn with_sacct(stage: &Fixture, script: &str) {
    stage.slurm.fake(&Fake { scontrol: "exec \"$REAL/scontrol\" \"$@\"", sbatch: "exit 1" });
    stage.slurm.script("bin/sacct", script);
    let (real, ours) = (stage.slurm.bin(), stage.path("bin"));
    let (real, ours) = (real.display().to_string(), ours.display().to_string());
    stage.write("startnode.yaml", &stage.configuration().replace(&real, &ours));
}

const RECORDS: &str =
    "printf '%s\\037' 7 ada physics main 'vm-standard2-1-ad1-[0001-0002]' 2 2026-11-01T01:00:00
printf '%s\\037' 2026-11-01T02:00:00 2026-11-01T00:30:00 COMPLETED
echo solve
printf '%s\\037' 8 bob '' main vm-standard2-1-ad1-0001 2 2026-11-01T00:00:00
printf '%s\\037' 2026-11-01T00:30:00 Unknown COMPLETED
echo solve
";

const OCTOBER_TO_DECEMBER: [&str; 4] = ["--since", "2026-10-01", "--until", "2026-12-01"];

#[test]
fn machine_time_is_split_by_slurms_accounting() {
    let stage = stage();
    with_sacct(&stage, RECORDS);
    let arguments = |more: &[&'static str]| [&OCTOBER_TO_DECEMBER[..], more].concat();
    let ended = stage.run("cost", &arguments(&["--by", "user"])).with_code(0);
    let expected = "USER   JOBS  IDLE  TOTAL EUR\n\
                    ada    0.55  0.00  0.55\n\
                    bob    0.05  0.00  0.05\n\
                    idle   0.00  1.60  1.60\n\
                    total  0.60  1.60  2.20\n";
    assert_eq!(ended.stdout, expected);
    let ended = stage.run("cost", &arguments(&["--by", "pool", "--csv"])).with_code(0);
    let expected = "pool,jobs,idle,total\nVM.Big,0.50,1.50,2.00\nVM.Standard2.1,0.10,0.10,0.20\ntotal,0.60,1.60,2.20\n";
    assert_eq!(ended.stdout, expected);
    let ended = stage.run("cost", &arguments(&["--by", "day", "--json"])).with_code(0);
    let json: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!((&json["currency"], &json["total"]["idle"]), (&"EUR".into(), &"1.60".into()));
    assert_eq!(json["rows"][0]["name"], "2026-11-01");
    let hour = ["--since", "2026-11-01T00:00", "--until", "2026-11-01T01:00", "--csv"];
    let ended = stage.run("cost", &hour).with_code(0);
    assert!(ended.stdout.ends_with("total,0.05,0.05,0.10\n"), "{ended:?}");
}

#[test]
fn without_accounting_jobs_come_from_the_log() {
    let stage = stage();
    with_sacct(&stage, "echo Slurm accounting storage is disabled >&2; exit 1");
    let busy = format!(
        "{{\"at\":{},\"run\":\"r\",\"event\":\"busy\",\"node\":\"vm-standard2-1-ad1-0001\",\"jobs\":[7]}}\n",
        BEGIN + HOUR
    );
    let log = stage.read("state/events.jsonl");
    let (first, rest) = log.split_once('\n').unwrap();
    let owner = format!(
        "{{\"at\":{BEGIN},\"run\":\"r\",\"event\":\"owner\",\"jobs\":[7],\"user\":\"ada\",\"account\":\"physics\"}}\n"
    );
    stage.write("state/events.jsonl", &format!("{first}\n{owner}{busy}{rest}"));
    for (by, name) in [("user", "ada"), ("account", "physics"), ("partition", "unknown")] {
        let all = [&OCTOBER_TO_DECEMBER[..], &["--by", by, "--csv"]].concat();
        let ended = stage.run("cost", &all).with_code(0);
        assert!(ended.stdout.contains(&format!("\n{name},0.10,0.00,0.10\n")), "{ended:?}");
    }
    let ended = stage.run("cost", &[&OCTOBER_TO_DECEMBER[..], &["--by", "job", "--csv"]].concat());
    let expected =
        "job,jobs,idle,total\n7,0.10,0.00,0.10\nidle,0.00,2.10,2.10\ntotal,0.10,2.10,2.20\n";
    assert_eq!(ended.with_code(0).stdout, expected);
}

#[test]
fn what_is_not_known_is_said() {
    let stage = stage();
    with_sacct(&stage, RECORDS);
    stage.write("prices.yaml", "currency: EUR\nshapes: {VM.Standard2.1: 0.10}\n");
    let ended = stage.run("cost", &OCTOBER_TO_DECEMBER).with_code(1);
    ended.saying(&["VM.Big has no price: 2 machine hours are not in the sum"]);
    stage.write("prices.yaml", "currency: EUR\nshapes: {VM.Standard2.1: cheap}\n");
    stage
        .run("cost", &[])
        .with_code(2)
        .saying(&["prices.yaml:2:26: VM.Standard2.1: expected an amount"]);
    fs::remove_file(stage.path("prices.yaml")).unwrap();
    stage.run("cost", &[]).with_code(2).saying(&["cannot read DIR/prices.yaml", "set prices_file"]);
    stage.run("cost", &["--since", "soon"]).with_code(2).saying(&["soon is no time"]);
    stage.run("cost", &["--by", "colour"]).with_code(2).saying(&["colour"]);
}

#[test]
fn what_machines_cost_is_in_the_metrics_without_a_budget() {
    let stage = stage();
    stage.silence();
    let metrics = format!(", metrics: {}}}", stage.path("elastic.prom").display());
    let text = stage
        .read("startnode.yaml")
        .replace("requests_per_second: 500}", &format!("requests_per_second: 500{metrics}"));
    stage.write("startnode.yaml", &text);
    let written = || {
        let _ = stage.run("reconcile", &["--apply"]);
        let text = stage.read("elastic.prom");
        assert!(text.contains("slurm_elastic_reconcile_seconds "), "{text}");
        ["cost", "budget"].map(|name| text.contains(&format!("slurm_elastic_{name}{{")))
    };
    assert_eq!(written(), [true, false]);
    stage.write("startnode.yaml", &format!("{text}budget: {{per_day: 20}}\n"));
    assert_eq!(written(), [true, true]);
    fs::remove_file(stage.path("prices.yaml")).unwrap();
    stage.write("startnode.yaml", &text);
    assert_eq!(written(), [false, false]);
}

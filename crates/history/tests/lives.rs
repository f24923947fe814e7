//! The lives of nodes that follow from events.

use history::{Ending, Event, Life, Lives, Phase};
use proptest::prelude::*;

fn events(lines: &str) -> Vec<Event> {
    let parse = |line: &str| serde_json::from_str(line).unwrap();
    lines.lines().map(str::trim).filter(|line| !line.is_empty()).map(parse).collect()
}

fn lives(lines: &str) -> Vec<Life> {
    Lives::of(&events(lines)).lives
}

fn phases(life: &Life) -> Vec<(Phase, u64, u64)> {
    life.phases(1000).iter().map(|span| (span.phase, span.from, span.to)).collect()
}

#[test]
fn a_node_goes_through_its_phases() {
    let all = lives(
        r#"
        {"at":10,"run":"a","event":"begun"}
        {"at":20,"run":"a","event":"launched","node":"n1","instance":"i1","shape":"S","zone":"Z","jobs":[7]}
        {"at":60,"run":"a","event":"up","node":"n1","since":50}
        {"at":61,"run":"a","event":"ended"}
        {"at":99,"run":"b","event":"registered","node":"n1","since":80}
        {"at":99,"run":"b","event":"busy","node":"n1","jobs":[7],"since":82}
        {"at":190,"run":"c","event":"idle","node":"n1","since":180}
        {"at":300,"run":"d","event":"terminated","node":"n1","instance":"i1"}"#,
    );
    let [life] = &all[..] else { panic!("{all:?}") };
    assert_eq!(
        phases(life),
        [
            (Phase::Asked, 10, 20),
            (Phase::Launched, 20, 50),
            (Phase::Running, 50, 60),
            (Phase::Booting, 60, 80),
            (Phase::Idle, 80, 82),
            (Phase::Busy, 82, 180),
            (Phase::Idle, 180, 300),
        ]
    );
    assert_eq!((life.jobs.as_slice(), life.machine(1000)), (&[7][..], Some((20, 300))));
    assert_eq!(life.end.as_ref().map(|end| end.how), Some(Ending::Terminated));
}

#[test]
fn a_node_that_gets_no_machine_fails_with_the_reason() {
    let all = lives(
        r#"
        {"at":10,"run":"a","event":"begun"}
        {"at":20,"run":"a","event":"launch_failed","node":"n1","detail":"full","cause":"capacity","zone":"Z"}
        {"at":21,"run":"a","event":"cooling","detail":"S in Z: full","cause":"capacity","shape":"S","zone":"Z"}
        {"at":30,"run":"a","event":"returned_to_slurm","node":"n1","detail":"launch: full","cause":"capacity"}"#,
    );
    let [life] = &all[..] else { panic!("{all:?}") };
    let end = life.end.as_ref().unwrap();
    assert_eq!(
        (end.how, end.at, end.reason.as_deref()),
        (Ending::Failed, 30, Some("launch: full"))
    );
    assert_eq!((life.machine(1000), life.refusals.len(), life.begin()), (None, 1, 10));
}

#[test]
fn a_machine_that_fails_ends_and_the_next_place_is_another_life() {
    let all = lives(
        r#"
        {"at":10,"run":"a","event":"begun"}
        {"at":20,"run":"a","event":"launched","node":"n1","instance":"i1"}
        {"at":30,"run":"a","event":"launch_failed","node":"n1","detail":"no host","cause":"capacity"}
        {"at":31,"run":"a","event":"terminated","node":"n1","instance":"i1"}
        {"at":40,"run":"a","event":"launched","node":"n1","instance":"i2"}
        {"at":50,"run":"a","event":"up","node":"n1"}"#,
    );
    let [first, second] = &all[..] else { panic!("{all:?}") };
    assert!(first.has_failed() && second.end.is_none());
    assert_eq!(second.machine(100), Some((40, 100)));
}

#[test]
fn a_node_with_an_address_that_never_registers_has_failed() {
    let up = r#"
        {"at":20,"run":"a","event":"launched","node":"n1","instance":"i1"}
        {"at":30,"run":"a","event":"up","node":"n1"}"#;
    let given_up = r#"{"at":99,"run":"b","event":"terminated","node":"n1","instance":"i1","detail":"did not register","cause":"never_registered"}"#;
    let returned = r#"{"at":90,"run":"b","event":"returned_to_slurm","node":"n1","detail":"down","cause":"never_registered"}"#;
    let ended = r#"{"at":99,"run":"c","event":"terminated","node":"n1","instance":"i1"}"#;
    let registered = r#"{"at":40,"run":"b","event":"registered","node":"n1"}"#;
    let adopted = r#"{"at":95,"run":"c","event":"adopted","node":"n1","instance":"i1"}"#;
    for (lines, reason) in [
        (vec![up, given_up], Some("did not register")),
        (vec![up, returned, ended], Some("down")),
        (vec![up, registered, returned, ended], None),
        (vec![up, returned, adopted, ended], None),
        (vec![up, ended], None),
    ] {
        let all = lives(&lines.join("\n"));
        let [life] = &all[..] else { panic!("{all:?}") };
        let end = life.end.as_ref().unwrap();
        assert_eq!((end.at, end.reason.as_deref()), (99, reason), "{lines:?}");
        assert_eq!(life.has_failed(), reason.is_some());
        let cause = reason.map(|_| "never_registered");
        assert_eq!(end.cause.as_deref(), cause);
    }
}

#[test]
fn an_end_that_is_seen_late_belongs_to_its_own_machine() {
    let all = lives(
        r#"
        {"at":20,"run":"a","event":"launched","node":"n1","instance":"i1"}
        {"at":30,"run":"b","event":"launched","node":"n1","instance":"i2"}
        {"at":40,"run":"c","event":"terminated","node":"n1","instance":"i1"}
        {"at":50,"run":"c","event":"terminated","instance":"stray"}"#,
    );
    let ends: Vec<_> =
        all.iter().map(|life| life.end.as_ref().map(|end| (end.how, end.at))).collect();
    assert_eq!(ends, [Some((Ending::Terminated, 40)), None, Some((Ending::Terminated, 50))]);
}

#[test]
fn an_old_line_has_the_adopted_machine_in_its_detail() {
    let all = lives(r#"{"at":20,"run":"a","event":"adopted","node":"n1","detail":"i1"}"#);
    assert_eq!(all.first().and_then(|life| life.instance.as_deref()), Some("i1"));
}

#[test]
fn lives_that_have_ended_are_taken_once() {
    let mut lives = Lives::of(&events(
        r#"
        {"at":20,"run":"a","event":"launched","node":"n1","instance":"i1"}
        {"at":21,"run":"a","event":"launched","node":"n2","instance":"i2"}
        {"at":30,"run":"b","event":"terminated","node":"n1","instance":"i1"}"#,
    ));
    assert_eq!(lives.take_ended().len(), 1);
    assert_eq!(lives.take_ended().len(), 0);
    assert_eq!(lives.open("n2").map(|life| life.launched), Some(Some(21)));
    for event in events(r#"{"at":40,"run":"b","event":"terminated","node":"n2","instance":"i2"}"#) {
        lives.add(&event);
    }
    assert_eq!(lives.take_ended().len(), 1);
}

const KINDS: [&str; 12] = [
    "begun",
    "launched",
    "adopted",
    "launch_failed",
    "up",
    "registered",
    "busy",
    "idle",
    "terminated",
    "returned_to_slurm",
    "rebuilt",
    "ended",
];

proptest! {
    #[test]
    fn phases_are_in_order_whatever_the_log_says(
        rows in proptest::collection::vec((0..KINDS.len(), 0..60_u64, 0..3_u8, 0..4_u8, proptest::option::of(0..60_u64)), 0..60)
    ) {
        let lines: Vec<String> = rows.iter().map(|(kind, at, node, instance, since)| {
            let since = since.map(|since| format!(r#","since":{since}"#)).unwrap_or_default();
            let kind = KINDS[*kind];
            format!("{{\"at\":{at},\"run\":\"r\",\"event\":\"{kind}\",\"node\":\"n{node}\",\"instance\":\"i{instance}\"{since}}}\n")
        }).collect();
        for life in lives(&lines.concat()) {
            let spans = life.phases(60);
            for pair in spans.windows(2) {
                prop_assert!(pair[0].to <= pair[1].from, "{:?}", spans);
            }
            for span in &spans {
                prop_assert!(span.from < span.to);
            }
            if let Some((from, to)) = life.machine(60) {
                prop_assert!(from <= to);
            }
        }
    }
}

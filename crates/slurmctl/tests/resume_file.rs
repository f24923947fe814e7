//! Resume files of three versions, and what is none.

use hostlist::Hostlist;
use proptest::prelude::*;
use serde_json::Value;
use slurmctl::{JobId, ResumeFileError, ResumeFileWarning, ResumeRequest};
use std::{fs, path::Path};

const SAMPLES: [&str; 3] = [
    include_str!("data/22.05.8-resume-file.jsonl"),
    include_str!("data/24.11.5-resume-file.jsonl"),
    include_str!("data/26.05.5-resume-file.jsonl"),
];

fn list(text: &str) -> Hostlist {
    text.parse().unwrap()
}

fn request(sample: &str) -> ResumeRequest {
    let line: Value = serde_json::from_str(sample).unwrap();
    let argument = list(line.get("argv").and_then(Value::as_str).unwrap());
    ResumeRequest::parse(&argument, line.get("resume_file").unwrap().to_string().as_bytes())
        .unwrap()
}

fn groups(request: &ResumeRequest) -> Vec<(u32, String, String)> {
    let group =
        |job: &slurmctl::JobNodes| (job.id.get(), job.nodes.to_string(), job.allocated.to_string());
    request.jobs.iter().map(group).collect()
}

#[test]
fn every_sample_is_read_without_a_warning() {
    for sample in SAMPLES {
        let mut jobs = 0;
        for line in sample.lines() {
            let request = request(line);
            assert_eq!(request.warnings, []);
            assert!(request.jobs.iter().all(|job| !job.nodes.is_empty()));
            jobs += request.jobs.len();
        }
        assert!(jobs >= 8, "{jobs}");
    }
}

#[test]
fn all_versions_say_the_same_in_their_own_words() {
    for sample in SAMPLES {
        let lines: Vec<&str> = sample.lines().collect();
        let four = request(lines.get(1).unwrap());
        assert_eq!(groups(&four), [(2, "n[002-005]".into(), "n[002-005]".into())]);
        let array = request(lines.get(2).unwrap());
        assert_eq!(groups(&array).len(), 2, "two jobs on one node");
        let by_hand = request(lines.get(4).unwrap());
        assert_eq!(
            (by_hand.jobs.len(), by_hand.nodes_without_job().to_string()),
            (0, "n008".into())
        );
        let shared = request(lines.get(5).unwrap());
        assert_eq!(shared.jobs.len(), 3);
        assert!(shared.nodes_without_job().is_empty());
    }
    let features = request(SAMPLES[2].lines().nth(3).unwrap());
    let job = features.jobs.first().unwrap();
    assert_eq!((job.features.as_deref(), job.extra.as_deref()), (Some("gpu"), Some("hello=1")));
    assert_eq!(job.partition.as_deref(), Some("main"));
    let partly = request(SAMPLES[2].lines().last().unwrap());
    assert_eq!(groups(&partly), [(7, "n002".into(), "n[001-002]".into())]);
}

#[test]
fn the_argument_is_authoritative() {
    let file = r#"{"jobs":[
        {"job_id":1,"nodes_resume":"n[1-3]","nodes_alloc":"n[0-3]","new":{"a":[1]}},
        {"job_id":2,"nodes_resume":"n[7-9]"},
        {"job_id":3,"nodes":"n2"}],"all_nodes_resume":"n[1-9]","more":null}"#;
    let request = ResumeRequest::parse(&list("n[2-5]"), file.as_bytes()).unwrap();
    assert_eq!(
        groups(&request),
        [(1, "n[2-3]".into(), "n[0-3]".into()), (3, "n2".into(), "n2".into())]
    );
    assert_eq!(
        (request.all.to_string(), request.nodes_without_job().to_string()),
        ("n[2-5]".into(), "n[4-5]".into())
    );
}

#[test]
fn a_missing_field_is_a_warning() {
    let argument = list("n[1-2]");
    let table: [(&str, &str); 4] = [
        ("", "the resume file is empty"),
        (" \n", "the resume file is empty"),
        (r#"{"jobs":[{"job_id":-1,"nodes":"n1"}]}"#, "job 0 of the resume file has no id"),
        (
            r#"{"jobs":[{"job_id":4,"nodes":"n["}]}"#,
            "job 4 of the resume file has no valid list of nodes",
        ),
    ];
    for (text, warning) in table {
        let request = ResumeRequest::parse(&argument, text.as_bytes()).unwrap();
        let warnings: Vec<String> =
            request.warnings.iter().map(ResumeFileWarning::to_string).collect();
        assert_eq!(warnings, [warning], "{text:?}");
        assert_eq!((request.jobs.len(), request.nodes_without_job()), (0, argument.clone()));
    }
}

#[test]
fn an_invalid_file_is_an_error() {
    let table: [(&str, &str); 5] = [
        ("{", "the resume file is not JSON"),
        ("\u{0}\u{1}", "the resume file is not JSON"),
        ("[]", "the resume file has no list of jobs"),
        ("{}", "the resume file has no list of jobs"),
        (r#"{"jobs":{}}"#, "the resume file has no list of jobs"),
    ];
    for (text, why) in table {
        let error = ResumeRequest::parse(&list("n[1-2]"), text.as_bytes()).unwrap_err();
        assert_eq!(error.to_string(), why, "{text:?}");
    }
}

#[test]
fn bytes_in_the_text_of_one_job_do_not_cost_the_others_their_groups() {
    // As 24.11 and 26.05 write it after `sbatch --extra=$'a\xffb'`.
    let file = b"{\"jobs\":[{\"extra\":\"a\xffb\",\"job_id\":1,\"nodes_alloc\":\"n1\",\"nodes_resume\":\"n1\"},\
        {\"extra\":null,\"job_id\":2,\"nodes_alloc\":\"n[2-3]\",\"nodes_resume\":\"n[2-3]\"}]}";
    let request = ResumeRequest::parse(&list("n[1-3]"), file).unwrap();
    assert_eq!(request.warnings, []);
    assert_eq!(
        groups(&request),
        [(1, "n1".into(), "n1".into()), (2, "n[2-3]".into(), "n[2-3]".into())]
    );
    assert_eq!(request.jobs.first().unwrap().extra.as_deref(), Some("a\u{fffd}b"));
}

#[test]
fn an_unreadable_list_of_all_nodes_does_not_cost_those_to_resume() {
    let file = r#"{"jobs":[{"job_id":1,"nodes_alloc":"n[","nodes_resume":"n[1-2]"}]}"#;
    let request = ResumeRequest::parse(&list("n[1-3]"), file.as_bytes()).unwrap();
    assert_eq!(groups(&request), [(1, "n[1-2]".into(), "n[1-2]".into())]);
}

#[test]
fn files_are_read_from_where_slurm_says() {
    let argument = list("n1");
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("file");
    fs::write(&path, r#"{"jobs":[{"job_id":9,"nodes":"n1"}]}"#).unwrap();
    let read = ResumeRequest::read(&argument, Some(&path)).unwrap();
    assert_eq!(read.jobs.first().unwrap().id, JobId::new(9));
    let missing = ResumeRequest::read(&argument, Some(Path::new("/proc/0/fd/3")));
    assert!(matches!(missing, Err(ResumeFileError::Unreadable(_))), "{missing:?}");
    let none = ResumeRequest::read(&argument, None).unwrap();
    assert_eq!(none.warnings, [ResumeFileWarning::NoFile]);
    assert_eq!(none.nodes_without_job(), argument);
}

proptest! {
    #[test]
    fn no_file_panics_and_every_node_is_in_a_job_or_alone(
        text in "(?s).{0,200}",
        bytes in proptest::collection::vec(any::<u8>(), 0..200),
        jobs in proptest::collection::vec((any::<u32>(), "n(\\[[0-9,-]{0,9}\\]|[0-9]{1,2})?(,m[0-9])?"), 0..6),
    ) {
        let argument = list("n[0-20],m[1-3]");
        let _ = ResumeRequest::parse(&argument, text.as_bytes());
        let _ = ResumeRequest::parse(&argument, &bytes);
        let jobs: Vec<Value> = jobs
            .into_iter()
            .map(|(id, nodes)| serde_json::json!({"job_id": id, "nodes_resume": nodes}))
            .collect();
        let file = serde_json::json!({ "jobs": jobs }).to_string();
        let request = ResumeRequest::parse(&argument, file.as_bytes()).unwrap();
        let mut found = request.nodes_without_job();
        for job in &request.jobs {
            prop_assert!(job.nodes.iter().all(|node| argument.contains(&node)));
            found.append(&job.nodes);
        }
        prop_assert_eq!(found.union(&Hostlist::new()), argument.sorted());
    }

    #[test]
    fn states_are_read_and_written_back(words in proptest::collection::btree_set("[A-Z_]{1,12}", 1..6)) {
        let text = words.into_iter().collect::<Vec<_>>().join("+");
        let state = slurmctl::NodeState::from(text.as_str());
        prop_assert_eq!(slurmctl::NodeState::from(state.to_string().as_str()), state.clone());
        let mut given: Vec<&str> = text.split('+').collect();
        let written = state.to_string();
        let mut written: Vec<&str> = written.split('+').collect();
        given.sort_unstable();
        written.sort_unstable();
        prop_assert_eq!(given, written, "no flag is lost, known or not");
    }

    #[test]
    fn no_state_panics(text in ".*") {
        let _ = slurmctl::NodeState::from(text.as_str()).to_string();
    }
}

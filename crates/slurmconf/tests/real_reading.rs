//! Lines of every kind of disorder: refused here if and only if Slurm refuses them.

use proptest::{prelude::*, strategy::ValueTree as _, test_runner::TestRunner};
use slurm_testbed::Release;
use slurmconf::Document;
use std::{collections::BTreeSet, fmt::Write as _, fs};

/// How a line begins, what stands between, and how it ends; node lines may go on in a next one.
fn line() -> impl Strategy<Value = String> {
    let key = prop::sample::select(vec![
        "MailDomain",
        "maildomain",
        " MailDomain",
        "Mail Domain",
        "NodeName=n1 Feature",
        "nodename = n2 Feature ",
        "DownNodes=z State=DOWN Reason",
        "NodeSet=s Feature",
    ]);
    let operator =
        prop::sample::select(vec!["=", "=", "=", " = ", "+=", "-=", "*=", "/=", " +=", "+ =", ""]);
    let value = "[ab\"\"#\\\\ =\t,+-]{0,7}";
    let end = prop::sample::select(vec!["", "", " ", " # c", " # c \\", "\\\\", " \\", "\\ \t"]);
    let newline = prop::sample::select(vec!["\n", "\n", "\r\n"]);
    (key, operator, value, end, newline).prop_map(|(key, operator, value, end, newline)| {
        // Whatever a line ends with, the next is one that may be joined to a node's.
        let next = if key.starts_with(['N', 'n']) && !key.starts_with("NodeSet") {
            "Weight=1"
        } else {
            ""
        };
        format!("{key}{operator}{value}{end}{newline}{next}\n")
    })
}

fn disorder(head: &str) -> String {
    let mut runner = TestRunner::deterministic();
    let mut text = head.to_owned();
    for _ in 0..600 {
        let line = line().new_tree(&mut runner).unwrap().current();
        write!(text, "{line}").unwrap();
    }
    text
}

/// The numbers of the lines that Slurm's own reader refuses.
fn refused(release: &Release, text: &str) -> BTreeSet<usize> {
    let dir = tempfile::tempdir().unwrap();
    let conf = dir.path().join("slurm.conf");
    fs::write(&conf, text).unwrap();
    let output = release.client("sinfo", &conf).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    let number = |line: &str| {
        let (_, rest) = line.split_once("Parse error in file ")?.1.split_once(" line ")?;
        rest.split(':').next()?.parse().ok()
    };
    errors.lines().filter_map(number).collect()
}

fn refuses_alike(series: &str) {
    let release = Release::find(series);
    let head = format!(
        "ClusterName=x\nSlurmctldHost=h(127.0.0.1)\nPluginDir={}\nNodeName=z CPUs=1\nPartitionName=p Nodes=z\n",
        release.plugin_dir().display()
    );
    let text = disorder(&head);
    let document = Document::parse(text.clone());
    let ours: BTreeSet<usize> =
        document.lines().filter(|line| line.read().is_err()).map(|line| line.number()).collect();
    let theirs = refused(&release, &text);
    assert!(theirs.len() > 100, "{theirs:?}");
    let shown = |numbers: &BTreeSet<usize>, others: &BTreeSet<usize>| -> Vec<String> {
        let line = |number: &usize| text.lines().nth(number - 1).unwrap_or_default();
        numbers.difference(others).map(|number| format!("{number}: {:?}", line(number))).collect()
    };
    assert_eq!(shown(&ours, &theirs), Vec::<String>::new(), "only refused here");
    assert_eq!(shown(&theirs, &ours), Vec::<String>::new(), "only refused by Slurm");
}

#[test]
fn slurm_22_05_refuses_the_same_lines() {
    refuses_alike("22.05");
}

#[test]
fn slurm_24_11_refuses_the_same_lines() {
    refuses_alike("24.11");
}

#[test]
fn slurm_26_05_refuses_the_same_lines() {
    refuses_alike("26.05");
}

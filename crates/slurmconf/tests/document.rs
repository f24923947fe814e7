//! Round trips: on files as people write them, and on anything at all.

use proptest::prelude::*;
use slurmconf::{Config, Document, Markers, SlurmVersion, Statement};
use std::{
    fmt::Write as _,
    fs, io,
    path::{Path, PathBuf},
};

fn fixtures() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let files = fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path());
    files.filter(|path| path.extension().is_some_and(|extension| extension == "conf")).collect()
}

#[test]
fn every_fixture_is_given_back_byte_for_byte() {
    let fixtures = fixtures();
    assert!(fixtures.len() >= 12, "{}", fixtures.len());
    for path in fixtures {
        let bytes = fs::read(&path).unwrap();
        let document = Document::parse(bytes.clone());
        assert_eq!(document.as_bytes(), bytes, "{}", path.display());
        if let Ok(text) = std::str::from_utf8(&bytes) {
            assert_eq!(document.to_string(), text, "{}", path.display());
            let lines: String = document.lines().map(|line| line.text().into_owned()).collect();
            assert_eq!(lines, text, "{}", path.display());
        }
    }
}

#[test]
fn five_thousand_node_lines_are_given_back_and_understood() {
    let mut text = String::from("ClusterName=large\n");
    for number in 1..=5000 {
        let comment = if number % 7 == 0 { "  # seven" } else { "" };
        writeln!(
            text,
            "NodeName=n{number:04}\tCPUs=2 \\\r\n  RealMemory=1000 State=CLOUD{comment}"
        )
        .unwrap();
    }
    let document = Document::parse(text.clone());
    assert_eq!(document.to_string(), text);
    assert_eq!(document.lines().len(), 5001);
    let config = Config::parse(&text).unwrap();
    assert_eq!(config.cloud_nodes().to_string(), "n[0001-5000]");
    assert_eq!(config.node("n4999").unwrap().names.to_string(), "n4999");
    assert!(config.node("n5001").is_none());
}

#[test]
fn every_valid_fixture_means_the_same_when_printed_by_its_types() {
    for path in fixtures().iter().filter(|path| !path.ends_with("broken.conf")) {
        let text = String::from_utf8_lossy(&fs::read(path).unwrap()).into_owned();
        let config =
            Config::parse(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let mut printed = String::new();
        for parameter in &config.parameters {
            let mut line = Document::parse("");
            line.append(&parameter.key, &parameter.value).unwrap();
            write!(printed, "{line}").unwrap();
        }
        config.nodes.iter().for_each(|node| writeln!(printed, "{node}").unwrap());
        config.node_sets.iter().for_each(|set| writeln!(printed, "{set}").unwrap());
        config.partitions.iter().for_each(|partition| writeln!(printed, "{partition}").unwrap());
        config.others.iter().for_each(|other| writeln!(printed, "{other}").unwrap());
        assert_eq!(Config::parse(&printed).unwrap(), config, "{}\n{printed}", path.display());
    }
}

#[test]
fn a_reason_that_is_not_utf8_is_read_lossily() {
    let load = |bytes: &[u8]| {
        let version = SlurmVersion::new(24, 11);
        Config::load(Path::new("slurm.conf"), version, |_| Ok(bytes.to_vec()))
    };
    // As 22.05, 24.11 and 26.05 run with.
    let bytes = b"MailDomain=caf\xe9\nNodeName=n[1-2] CPUs=2 \\\n Reason=\"d\xe9fectueux\"\n\
                  DownNodes=n001 State=DOWN Reason=\"d\xe9f\"\nSuspendTime=600\n";
    let config = load(bytes).unwrap();
    assert_eq!(config.get("MailDomain"), Some("caf\u{fffd}"));
    let node = config.node("n2").unwrap();
    assert_eq!(node.other, [("Reason".to_owned(), "d\u{fffd}fectueux".to_owned())]);
    let mut document = Document::parse(*bytes);
    assert_eq!(document.as_bytes(), bytes);
    document.set("SuspendTime", "900").unwrap();
    let set = bytes.strip_suffix(b"600\n").unwrap();
    assert_eq!(document.as_bytes(), [set, b"900\n"].concat());

    let names: [&[u8]; 10] = [
        b"NodeName=caf\xe9",
        b"PartitionName=caf\xe9",
        b"NodeSet=caf\xe9",
        b"DownNodes=caf\xe9",
        b"NodeName=n NodeAddr=caf\xe9",
        b"NodeName=n NodeHostname=caf\xe9",
        b"PartitionName=p Nodes=caf\xe9",
        b"SuspendExcNodes=caf\xe9",
        b"Include caf\xe9",
        b"caf\xe9=1",
    ];
    for line in names {
        assert!(load(line).is_err(), "{}", line.escape_ascii());
    }
}

#[test]
fn broken_lines_are_reported_where_they_break() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/broken.conf");
    let document = Document::parse(fs::read(path).unwrap()).named("broken.conf");
    let errors =
        document.lines().filter_map(|line| line.read().err()).map(|error| error.to_string());
    let found: Vec<_> = errors.map(|error| error.lines().next().unwrap().to_owned()).collect();
    let expected = [
        "broken.conf:2:1: expected key=value",
        "broken.conf:3:1: expected key=value",
        "broken.conf:4:1: expected key=value",
        "broken.conf:5:5: unexpected text after the value of A; write one parameter per line",
        "broken.conf:6:1: expected key=value",
        "broken.conf:7:3: expected key=value",
    ];
    assert_eq!(found, expected);
    let error = Config::parse("A=1\nNodeName=n[1- CPUs=2\n").unwrap_err();
    assert_eq!(
        error.to_string(),
        "slurm.conf:2:10: invalid host list in NodeName\n 2 | NodeName=n[1- CPUs=2\n   |          ^"
    );
    assert!(std::error::Error::source(&error).is_some());
    let error = Config::parse("NodeName=n1 CPUs=4x\n").unwrap_err();
    assert_eq!(
        error.to_string(),
        "slurm.conf:1:18: CPUs: expected a number, found \"4x\"\n 1 | NodeName=n1 CPUs=4x\n   |                  ^"
    );
}

#[test]
fn markers_must_be_there_once_and_in_order() {
    let splice =
        |text: &str| Document::parse(text).replace_section(Markers::NODES, "N1").unwrap_err();
    let cases = [
        ("A=1\n", "slurm.conf has no line \"# STARTNODES\""),
        ("# STARTNODES\n", "slurm.conf has no line \"# ENDNODES\""),
        ("# STARTNODES\n# ENDNODES\n# ENDNODES\n", "slurm.conf:3:1: duplicate line \"# ENDNODES\""),
        (
            "# STARTNODES\n# STARTNODES\n# ENDNODES\n",
            "slurm.conf:2:1: duplicate line \"# STARTNODES\"",
        ),
        (
            "# ENDNODES\n# STARTNODES\n",
            "slurm.conf:1:1: \"# ENDNODES\" comes before the start of the section",
        ),
    ];
    for (text, message) in cases {
        let shown = splice(text).to_string();
        assert_eq!(shown.lines().next(), Some(message), "{text:?}");
    }
    let mut document = Document::parse("# STARTNODES\n# ENDNODES\n");
    assert!(document.replace_section(Markers::NODES, "x\n# ENDNODES\n").is_err());
    assert_eq!(document.to_string(), "# STARTNODES\n# ENDNODES\n");
}

fn load(version: SlurmVersion) -> Config {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/includes/slurm.conf");
    Config::load(&path, version, |path| fs::read(path)).unwrap()
}

#[test]
fn includes_are_followed_as_each_version_follows_them() {
    let old = load(SlurmVersion::new(22, 5));
    assert_eq!(old.cloud_nodes().to_string(), "n[1-3],m[1-2]");
    let new = load(SlurmVersion::new(24, 11));
    assert_eq!(new.cloud_nodes().to_string(), "n[1-3],top[1-2]");
    assert_eq!(new.get("suspendtime"), Some("77"));
    assert_eq!(new.partitions.len(), 1);
}

#[test]
fn a_cluster_name_in_an_include_is_in_lower_case() {
    let read = |path: &Path| match path.to_str() {
        Some("slurm.conf") => Ok(b"ClusterName=Big\nInclude %c-x.conf\n".to_vec()),
        Some("big-x.conf") => Ok(b"NodeName=n1\n".to_vec()),
        _ => Err(io::ErrorKind::NotFound.into()),
    };
    let config = Config::load(Path::new("slurm.conf"), SlurmVersion::new(24, 11), read).unwrap();
    assert_eq!(config.nodes.len(), 1);
    assert_eq!(config.get("ClusterName"), Some("Big"));
}

#[test]
fn includes_that_cannot_be_followed_are_refused() {
    let files = [
        ("loop.conf", "Include /b.conf\n"),
        ("b.conf", "# to and fro\nInclude /loop.conf\n"),
        ("pattern.conf", "Include conf.d/*.conf\n"),
        ("missing.conf", "A=1\nInclude nowhere.conf\n"),
        ("deep.conf", "Include %c\nClusterName=x\n"),
    ];
    let read = |path: &Path| {
        let name = path.file_name().unwrap().to_str().unwrap();
        // Every %c includes another, for ever.
        if name.starts_with('%') {
            return Ok(format!("Include {name}c\n").into_bytes());
        }
        let found = files.iter().find(|(file, _)| *file == name);
        found
            .map(|(_, text)| text.as_bytes().to_vec())
            .ok_or_else(|| io::ErrorKind::NotFound.into())
    };
    let load = |name: &str| {
        Config::load(&Path::new("/").join(name), SlurmVersion::new(24, 11), read).unwrap_err()
    };
    let cases = [
        ("loop.conf", "/b.conf:2:1: Include loop: /loop.conf includes itself"),
        ("pattern.conf", "/pattern.conf:1:1: Include with a pattern: Slurm takes one file name"),
        ("missing.conf", "/missing.conf:2:1: cannot read /nowhere.conf"),
        ("none.conf", "cannot read /none.conf"),
    ];
    for (name, message) in cases {
        assert_eq!(load(name).to_string().lines().next(), Some(message));
    }
    assert!(load("deep.conf").to_string().contains("Include nested more than 16 deep"));
}

#[test]
fn files_that_each_include_two_others_come_to_an_end() {
    let mut count = 0;
    let read = |path: &Path| {
        count += 1;
        let name = path.to_str().unwrap();
        // The deepest include nothing, so that the depth is no reason to stop.
        let text = if name.len() < 16 {
            format!("Include {name}a\nInclude {name}b\n")
        } else {
            String::new()
        };
        Ok(text.into_bytes())
    };
    let version = SlurmVersion::new(24, 11);
    let error = Config::load(Path::new("x"), version, read).unwrap_err();
    assert!(error.to_string().contains("Include of more than 1000 files in all"), "{error}");
    assert!(count <= 1000);
}

/// Lines of the kinds a slurm.conf has, in any order and mutilated in any way.
fn any_line() -> impl Strategy<Value = String> {
    let word = "[a-zA-Z0-9_.\\[\\]=,:\"#\\\\ -]{0,12}";
    let end = prop_oneof![
        Just("\n"),
        Just("\r\n"),
        Just(" \\\n"),
        Just(" # c\n"),
        Just(" # c \\\n"),
        Just("")
    ];
    let start = prop_oneof![
        Just(""),
        Just("NodeName="),
        Just("PartitionName=p Nodes="),
        Just("A="),
        Just("Include "),
        Just("# "),
        Just("# STARTNODES"),
        Just("# ENDNODES"),
        Just("B += "),
        Just("C=\""),
    ];
    (start, word, end).prop_map(|(start, word, end)| format!("{start}{word}{end}"))
}

/// Such lines, without a marker among them.
fn any_text() -> impl Strategy<Value = String> {
    prop::collection::vec(any_line(), 0..8)
        .prop_map(|lines| lines.concat().replace("NODES", "KNOTS"))
}

fn read_everything(bytes: &[u8]) {
    let document = Document::parse(bytes);
    assert_eq!(document.as_bytes(), bytes);
    for line in document.lines() {
        match line.read() {
            Ok(Statement::Blank | Statement::Include(_) | Statement::Parameter(_)) => {}
            Ok(Statement::Definition(definition)) => assert!(!definition.name.key.is_empty()),
            Err(error) => assert!(error.to_string().contains(':')),
        }
    }
    let _ = Config::parse(&String::from_utf8_lossy(bytes));
    let _ = document.section(Markers::NODES);
}

proptest! {
    #[test]
    fn any_bytes_are_given_back_and_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        read_everything(&bytes);
    }

    #[test]
    fn any_document_is_given_back_and_never_panics(lines in prop::collection::vec(any_line(), 0..30)) {
        read_everything(lines.concat().as_bytes());
    }

    #[test]
    fn a_set_parameter_is_read_back_and_no_other_byte_changes(
        (before, after) in (any_text(), any_text()),
        lead in prop::sample::select(vec!["Zebra=", "zebra \\\n = ", "\tZEBRA +=  "]),
        old in prop::sample::select(vec!["1", "\"a b\"", "x\\#y", "1\\\n2", "\"\""]),
        tail in prop::sample::select(vec!["\n", " # c\n", " # c \\\n", "  \r\n", " \\\n\n"]),
        value in "[ -~]{0,12}",
    ) {
        // A blank line ends whatever continues.
        let (head, rest) = (format!("{before}\n\n{lead}"), format!("{tail}{after}"));
        let mut document = Document::parse(format!("{head}{old}{rest}"));
        let unset = document.clone();
        if document.set("Zebra", &value).is_ok() {
            prop_assert_eq!(document.get("zEBRA"), Some(value));
            prop_assert!(document.as_bytes().starts_with(head.as_bytes()));
            prop_assert!(document.as_bytes().ends_with(rest.as_bytes()));
            prop_assert!(document.as_bytes().len() > head.len() + rest.len());
        } else {
            prop_assert_eq!(document, unset);
        }
    }

    #[test]
    fn an_added_parameter_is_read_back_and_no_other_byte_changes(
        before in any_text(),
        value in "[ -~]{0,12}",
    ) {
        let before = Document::parse(before);
        let mut after = before.clone();
        if after.set("Zebra", &value).is_ok() {
            prop_assert_eq!(after.get("Zebra"), Some(value));
            prop_assert!(after.as_bytes().starts_with(before.as_bytes()));
        }
    }

    #[test]
    fn a_replaced_section_is_read_back_and_all_else_stays(
        (before, inside, after) in (any_text(), any_text(), any_text()),
        newline in prop::sample::select(vec!["\n", "\r\n"]),
        nodes in "([a-z=]{1,9}\n){0,4}",
    ) {
        let head = format!("{before}\n# STARTNODES{newline}");
        let rest = format!("# ENDNODES{newline}{after}");
        let mut document = Document::parse(format!("{head}{inside}\n{rest}"));
        document.replace_section(Markers::NODES, &nodes).unwrap();
        let lines = nodes.replace('\n', newline);
        prop_assert_eq!(document.to_string(), format!("{head}{lines}{rest}"));
        prop_assert_eq!(document.section(Markers::NODES).unwrap(), lines);
    }
}

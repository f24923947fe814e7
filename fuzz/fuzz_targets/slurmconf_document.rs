//! Any bytes are a slurm.conf, and come back as they are: `cargo +nightly fuzz run slurmconf_document`.
#![no_main]

use hostlist::Hostlist;
use libfuzzer_sys::fuzz_target;
use slurmconf::{Config, Document, Limits, Markers, NodeDef};

fuzz_target!(|bytes: &[u8]| {
    let mut document = Document::parse(bytes);
    assert_eq!(document.as_bytes(), bytes);
    for line in document.lines() {
        let _ = line.read();
    }
    if document.set("Zebra", "a b").is_ok() {
        assert_eq!(document.get("zebra").as_deref(), Some("a b"));
    }
    if document.replace_section(Markers::NODES, "NodeName=n1\n").is_ok() {
        assert!(document.section(Markers::NODES).is_ok());
    }
    if let Ok(text) = std::str::from_utf8(bytes) {
        // What is understood is understood again when printed, if its host lists are.
        if let Ok(config) = Config::parse(text)
            && config.nodes.iter().all(|node| lists(node).all(plain) && !has_quote(node))
        {
            let lines: Vec<String> = config.nodes.iter().map(ToString::to_string).collect();
            let again = Config::parse(&lines.join("\n")).expect("printed nodes parse");
            assert_eq!(again.nodes, config.nodes);
        }
        let _ = Limits::read("limits.yaml", text);
    }
});

fn lists(node: &NodeDef) -> impl Iterator<Item = &Hostlist> {
    [Some(&node.names), node.addr.as_ref(), node.hostname.as_ref()].into_iter().flatten()
}

/// True for a value with a quote inside, such as `a"b`: Slurm reads one, and knows no way to write it with a blank.
fn has_quote(node: &NodeDef) -> bool {
    let words = [
        node.port.clone(),
        node.state.as_ref().map(ToString::to_string),
        node.gres.as_ref().map(ToString::to_string),
        node.features.as_ref().map(ToString::to_string),
    ];
    let others = node.other.iter().map(|(_, value)| value.as_str());
    words.iter().flatten().map(String::as_str).chain(others).any(|value| value.contains('"'))
}

/// False for names that only Slurm's strangest expressions can give, such as one with a bracket in it.
fn plain(names: &Hostlist) -> bool {
    let text = names.to_string();
    let is_default = text.eq_ignore_ascii_case("DEFAULT");
    !is_default && text.parse().is_ok_and(|again: Hostlist| again == *names)
}

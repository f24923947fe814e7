//! No planner, executor or program names a cloud: adding one touches its own crate and the registry in `bins/src/clouds`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Where clouds are named.
const REGISTRY: &str = "bins/src/clouds";

/// What has to work with any cloud.
const NEUTRAL: [&str; 5] = [
    "crates/cloud-core/src",
    "crates/provision/src",
    "crates/slurmconf/src",
    "crates/slurmctl/src",
    "bins/src",
];

/// CitC's own files, which name its clouds and their ids.
const CITC: [&str; 2] = ["bins/src/config/tests.rs", "crates/slurmconf/src/shapes/memory.rs"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The Rust files below a folder.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found
}

/// True if a text has this word, whatever the case, or a word that begins with it: `CitcAws` has `aws`, `draws` has not.
fn has(text: &str, word: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    lower.match_indices(word).any(|(at, _)| {
        let (before, found) = text.split_at(at);
        found.starts_with(|first: char| first.is_ascii_uppercase())
            || !before.ends_with(|last: char| last.is_ascii_alphabetic())
    })
}

/// The files in these folders that have one of the words, from the root of the repository.
fn naming(folders: &[&str], words: &[&str]) -> BTreeSet<String> {
    let root = root();
    let mut found = BTreeSet::new();
    for path in folders.iter().flat_map(|folder| sources(&root.join(folder))) {
        let text = std::fs::read_to_string(&path).unwrap();
        if words.iter().any(|word| has(&text, word)) {
            found.insert(path.strip_prefix(&root).unwrap().display().to_string());
        }
    }
    found
}

/// The crates of clouds, as Rust names them.
fn clouds() -> Vec<String> {
    let folders = std::fs::read_dir(root().join("crates")).unwrap();
    let names = folders.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let is_cloud = |name: &String| {
        name.starts_with("cloud-") && !["cloud-core", "cloud-sim"].contains(&name.as_str())
    };
    names.filter(is_cloud).map(|name| name.replace('-', "_")).collect()
}

#[test]
fn only_the_registry_and_citcs_files_have_the_words_of_one_cloud() {
    let found = naming(&NEUTRAL, &["ocid1", "invalidatedretrytoken", "ocpu", "aws", "ec2"]);
    println!("{found:#?}");
    let is_allowed = |file: &String| file.starts_with(REGISTRY) || CITC.contains(&file.as_str());
    let others: Vec<&String> = found.iter().filter(|file| !is_allowed(file)).collect();
    assert!(others.is_empty(), "{others:?}");
    assert!(found.iter().any(|file| file.starts_with(REGISTRY)), "nothing was searched");
}

#[test]
fn adding_a_cloud_touches_its_own_crate_and_the_registry() {
    let clouds = clouds();
    assert!(clouds.len() >= 2, "{clouds:?}");
    for cloud in &clouds {
        let found = naming(&NEUTRAL, &[cloud]);
        let files: Vec<&String> = found.iter().collect();
        let [file] = files[..] else {
            panic!("{cloud} is named in {found:?}, and not in one file")
        };
        assert!(file.starts_with(REGISTRY), "{cloud} is named in {file}");
    }
    let registry = std::fs::read_to_string(root().join(REGISTRY).join("mod.rs")).unwrap();
    assert_eq!(
        registry.matches("::ENTRY").count(),
        clouds.len() + 1,
        "a line for each, and the default"
    );
}

#[test]
fn a_word_is_found_where_it_begins() {
    for text in ["aws", "AWS's", "MemoryPolicy::CitcAws", "fn aws_discount", "csp: aws", "(EC2)"] {
        assert!(has(text, "aws") || has(text, "ec2"), "{text}");
    }
    for text in ["it draws", "laws", "spec2", "rec2"] {
        assert!(!has(text, "aws") && !has(text, "ec2"), "{text}");
    }
}

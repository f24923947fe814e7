//! What the documents name exists, and every test file is compiled.

use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn architecture() -> String {
    fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap()
}

/// The parts of a text that stand between backticks.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// The numbered lines of the section that follows one call: a file, and a function in it.
fn walk(text: &str) -> Vec<(&str, &str)> {
    let (_, section) = text.split_once("\n## From `startnode").expect("the section is there");
    let section = section.split("\n## ").next().unwrap();
    let numbered =
        section.lines().filter(|line| line.starts_with(|first: char| first.is_ascii_digit()));
    numbered
        .map(|line| {
            let mut parts = quoted(line);
            let path = parts.next().expect("a file comes first");
            (path, parts.next().expect("a function comes second"))
        })
        .collect()
}

#[test]
fn every_named_path_exists() {
    let text = architecture();
    let paths: Vec<&str> = quoted(&text)
        .filter(|part| part.contains('/') && !part.contains([' ', '\n']))
        .filter(|part| !part.starts_with('/'))
        .collect();
    assert!(paths.contains(&"crates/provision"), "the paths were not read: {paths:?}");
    let missing: Vec<&&str> = paths.iter().filter(|path| !root().join(path).exists()).collect();
    assert!(missing.is_empty(), "ARCHITECTURE.md names what is not there: {missing:?}");
}

#[test]
fn every_function_of_the_walk_is_in_its_file() {
    let text = architecture();
    let walk = walk(&text);
    assert!((5..=15).contains(&walk.len()), "{walk:?}");
    for (path, function) in walk {
        let file = fs::read_to_string(root().join(path)).unwrap_or_default();
        let found = ["(", "<"].iter().any(|next| file.contains(&format!("fn {function}{next}")));
        assert!(found, "{path} has no function {function}");
    }
}

#[test]
fn every_file_that_holds_a_behaviour_exists() {
    let text = fs::read_to_string(root().join("docs/behaviour.md")).unwrap();
    let is_source = |part: &&str| Path::new(part).extension().is_some_and(|kind| kind == "rs");
    let files: Vec<&str> = quoted(&text).filter(is_source).collect();
    assert!(files.len() > 10, "the files were not read: {files:?}");
    let missing: Vec<&&str> = files.iter().filter(|path| !root().join(path).exists()).collect();
    assert!(missing.is_empty(), "docs/behaviour.md names what is not there: {missing:?}");
}

/// `path`: `name`, as SECURITY.md names a test behind a claim.
fn claims(text: &str) -> Vec<(&str, &str)> {
    let parts: Vec<&str> = text.split('`').collect();
    parts
        .windows(3)
        .filter_map(|parts| match parts {
            [path, ": ", name] if path.contains('/') => Some((*path, *name)),
            _ => None,
        })
        .collect()
}

#[test]
fn every_claim_about_security_has_its_test() {
    let text = fs::read_to_string(root().join("SECURITY.md")).unwrap();
    let claims = claims(&text);
    let rows = text.lines().filter(|line| line.starts_with('|') && line.contains(".rs`")).count();
    assert!(rows > 25 && claims.len() >= rows, "{rows} rows, {} claims", claims.len());
    for (path, name) in claims {
        let file = fs::read_to_string(root().join(path)).unwrap_or_default();
        assert!(file.contains(&format!("fn {name}(")), "{path} has no test {name}");
    }
}

/// Cargo compiles what `tests/main.rs` names, and says nothing of the rest.
#[test]
fn every_test_file_is_a_module_of_its_program() {
    let crates = fs::read_dir(root().join("crates")).unwrap().map(|entry| entry.unwrap().path());
    for folder in crates.map(|path| path.join("tests")).chain([root().join("tests/tests")]) {
        let Ok(main) = fs::read_to_string(folder.join("main.rs")) else {
            continue;
        };
        for path in fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()) {
            let is_module = path.join("mod.rs").is_file()
                || path.extension().is_some_and(|extension| extension == "rs");
            let name = path.file_stem().unwrap().display().to_string();
            if is_module && name != "main" {
                assert!(
                    main.contains(&format!("mod {name};\n")),
                    "{} is not compiled",
                    path.display()
                );
            }
        }
    }
}

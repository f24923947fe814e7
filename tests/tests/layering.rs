//! The dependency diagram of ARCHITECTURE.md is the truth: an edge that it does not have fails here, and
//! so does one that only it has.

use cargo_metadata::{DependencyKind, MetadataCommand};
use std::collections::{BTreeMap, BTreeSet};

type Edges = BTreeMap<String, BTreeSet<String>>;

/// Reads the lines `a → b, c` of the fenced block that follows `heading`.
fn diagram(text: &str, heading: &str) -> Edges {
    let (_, after) = text.split_once(heading).expect("ARCHITECTURE.md has the heading");
    let block = after.split("```").nth(1).expect("a fenced block follows the heading");
    let parse = |line: &str| {
        let (from, to) = line.split_once('→')?;
        let to = to.split(',').map(|name| name.trim().to_owned()).filter(|name| !name.is_empty());
        Some((from.trim().to_owned(), to.collect()))
    };
    block.lines().filter_map(parse).collect()
}

/// The edges between members of this workspace; `dev` selects those that only tests need.
fn edges(dev: bool) -> Edges {
    let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/../Cargo.toml");
    let metadata = MetadataCommand::new().manifest_path(manifest).no_deps().exec().unwrap();
    let members: BTreeSet<String> =
        metadata.packages.iter().map(|package| package.name.to_string()).collect();
    metadata
        .packages
        .iter()
        .map(|package| {
            let to = package.dependencies.iter().filter(|dependency| {
                (dependency.kind == DependencyKind::Development) == dev
                    && members.contains(&dependency.name)
                    && dependency.name != package.name.as_str()
            });
            (package.name.to_string(), to.map(|dependency| dependency.name.clone()).collect())
        })
        .collect()
}

fn beyond(found: &Edges, allowed: &Edges) -> Vec<String> {
    let none = BTreeSet::new();
    let mut extra = Vec::new();
    for (from, to) in found {
        for to in to.difference(allowed.get(from).unwrap_or(&none)) {
            extra.push(format!("{from} → {to}"));
        }
    }
    extra
}

fn architecture() -> String {
    std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../ARCHITECTURE.md")).unwrap()
}

#[test]
fn every_dependency_is_in_the_diagram() {
    let (drawn, found) = (diagram(&architecture(), "## Who may depend on whom"), edges(false));
    assert!(drawn.contains_key("provision"), "the diagram was not read: {drawn:?}");
    assert_eq!(beyond(&found, &drawn), Vec::<String>::new());
    assert_eq!(beyond(&drawn, &found), Vec::<String>::new(), "only drawn");
}

#[test]
fn every_test_dependency_is_in_the_diagram() {
    let text = architecture();
    let (drawn, found) = (diagram(&text, "In tests also:"), edges(true));
    let mut allowed = drawn.clone();
    for (from, to) in diagram(&text, "## Who may depend on whom") {
        allowed.entry(from).or_default().extend(to);
    }
    assert_eq!(beyond(&found, &allowed), Vec::<String>::new());
    assert_eq!(beyond(&drawn, &found), Vec::<String>::new(), "only drawn");
}

#[test]
fn every_member_is_in_the_diagram() {
    let text = architecture();
    let allowed = diagram(&text, "## Who may depend on whom");
    let missing: Vec<_> =
        edges(false).into_keys().filter(|name| !allowed.contains_key(name)).collect();
    assert_eq!(missing, Vec::<String>::new());
}

#[test]
fn an_extra_edge_is_reported() {
    let graph = |line: &str| diagram(&format!("# h\n```text\n{line}\n```\n"), "# h");
    let extra = beyond(&graph("a → b, c"), &graph("a → b"));
    assert_eq!(extra, ["a → c"]);
}

/// The lines of `cargo tree` for a package.
fn listed(package: &str, options: &[&str]) -> Vec<String> {
    let tree = ["tree", "--offline", "-p", package, "-e", "normal", "--prefix", "none"];
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
    let mut command = std::process::Command::new(cargo);
    let output = command.args(tree).args(options).current_dir(folder).output().unwrap();
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

/// The crates that a package needs, itself included.
fn tree(package: &str) -> BTreeSet<String> {
    let lines = listed(package, &[]);
    lines.iter().filter_map(|line| line.split(' ').next()).map(str::to_owned).collect()
}

#[test]
fn no_library_needs_more_crates_than_its_documentation_says() {
    let text = include_str!("../../docs/dependencies.md");
    let (_, table) = text.split_once("## What each library needs").expect("the heading");
    let mut rows = 0;
    for line in table.lines().skip_while(|line| !line.starts_with("|---")).skip(1) {
        let Some([name, count, ..]) = line.strip_prefix('|').map(|line| {
            let mut cells = line.split('|').map(str::trim);
            [(); 3].map(|()| cells.next().unwrap_or_default())
        }) else {
            break;
        };
        let crates = tree(name);
        println!("{name}: {} crates", crates.len());
        let most: usize = count.parse().unwrap();
        assert!((1..=most).contains(&crates.len()), "{name}: {crates:?}");
        rows += 1;
    }
    assert!(rows >= 7, "the table was not read");
}

/// Whether it builds for a target without `std` needs such a target: `cargo check -p slurm-hostlist --no-default-features
/// --features serde --target x86_64-unknown-none`, after `rustup target add`.
#[test]
fn host_lists_without_std_need_no_crate_with_std() {
    let features = ["--no-default-features", "--features", "serde", "-f", "{lib} {f}"];
    let crates = listed("slurm-hostlist", &features);
    assert_eq!(crates, ["hostlist serde", "serde_core "]);
}

#[test]
fn provision_and_slurmctl_build_no_http() {
    for (package, most) in [("provision", 60), ("slurmctl", 30)] {
        let crates = tree(package);
        assert!((2..=most).contains(&crates.len()), "{package}: {crates:?}");
        assert!(!crates.contains("reqwest"), "{package}: {crates:?}");
    }
}

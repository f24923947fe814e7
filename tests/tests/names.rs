//! A public name means one thing: no two libraries have a public type of the same name.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The libraries and how Rust names them. `cloud-sim` and `slurm-testbed` are left out: they are servers and helpers of tests.
const LIBRARIES: [&str; 9] = [
    "cloud-aws",
    "cloud-core",
    "cloud-oci",
    "cloud-openstack",
    "history",
    "hostlist",
    "provision",
    "slurmconf",
    "slurmctl",
];

/// Names that every library may have, as the standard library's modules have them.
const OF_EACH: [&str; 3] = ["Error", "ErrorKind", "Result"];

/// What each cloud has of its own. A program that serves several clouds writes the crate in front.
const OF_A_CLOUD: [&str; 7] = [
    "ConnectSettings",
    "Credentials",
    "LaunchOptions",
    "MetadataService",
    "Origin",
    "Overrides",
    "Signed",
];

/// The configuration of a cloud's provider, and `slurmconf::Config`, which is slurm.conf.
const CONFIG: &str = "Config";

/// The text of a file without its unit tests.
fn source(path: &Path) -> String {
    let text = std::fs::read_to_string(path).unwrap();
    text.split("#[cfg(test)]\nmod ").next().unwrap_or_default().to_owned()
}

/// True for the name of a type, and not of a constant or a function.
fn is_type(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_uppercase())
        && name.contains(|other: char| other.is_ascii_lowercase())
}

/// The name that an item of a `pub use` gets: `a::B` is `B`, and `B as C` is `C`.
fn exported(item: &str) -> &str {
    let item = item.split(" as ").last().unwrap_or_default();
    item.rsplit("::").next().unwrap_or_default().trim()
}

/// The types that a file re-exports from its own crate.
fn re_exported(text: &str) -> BTreeSet<String> {
    let of_another = |path: &str| {
        let is_own = text.lines().any(|line| line.ends_with(&format!("mod {path};")));
        !is_own && LIBRARIES.iter().any(|name| path == name.replace('-', "_"))
    };
    let mut found = BTreeSet::new();
    for statement in text.split("\npub use ").skip(1) {
        let statement = statement.split(';').next().unwrap_or_default();
        let (path, items) = statement.split_once('{').unwrap_or(("", statement));
        if of_another(path.split("::").next().unwrap_or_default()) {
            continue;
        }
        let names = items.trim_end_matches('}').split(',').map(exported);
        found.extend(names.filter(|name| is_type(name)).map(str::to_owned));
    }
    found
}

/// The types that a file defines.
fn defined(text: &str) -> BTreeSet<String> {
    let kinds = ["struct", "enum", "trait", "type", "union"];
    let name = |line: &str| {
        let (kind, rest) = line.strip_prefix("pub ")?.split_once(' ')?;
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        kinds.contains(&kind).then(|| rest.get(..end).map(str::to_owned))?
    };
    text.lines().filter_map(name).collect()
}

/// The public types of a module and of the public modules in it.
fn public_types(file: &Path, folder: &Path) -> BTreeSet<String> {
    let text = source(file);
    let mut found = re_exported(&text);
    found.extend(defined(&text));
    let module = |line: &str| Some(line.strip_prefix("pub mod ")?.strip_suffix(';')?.to_owned());
    for module in text.lines().filter_map(module).filter(|name| name != "fuzzing") {
        let inner = folder.join(&module);
        let files = [folder.join(format!("{module}.rs")), inner.join("mod.rs")];
        let file = files.iter().find(|file| file.exists()).unwrap();
        found.extend(public_types(file, &inner));
    }
    found
}

/// Each public type and the libraries that have one of that name.
fn owners() -> BTreeMap<String, BTreeSet<&'static str>> {
    let crates: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates");
    let mut owners: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    for library in LIBRARIES {
        let folder = crates.join(library).join("src");
        let types = public_types(&folder.join("lib.rs"), &folder);
        assert!(types.len() > 3, "{library}: {types:?}");
        for name in types {
            owners.entry(name).or_default().insert(library);
        }
    }
    owners
}

fn is_allowed(name: &str, owners: &BTreeSet<&str>) -> bool {
    let clouds = ["cloud-aws", "cloud-oci", "cloud-openstack"];
    let of_clouds = |owner: &&str| clouds.contains(owner);
    OF_EACH.contains(&name)
        || (OF_A_CLOUD.contains(&name) && owners.iter().all(of_clouds))
        || (name == CONFIG && owners.iter().all(|owner| of_clouds(owner) || *owner == "slurmconf"))
}

#[test]
fn no_two_libraries_have_a_public_type_of_one_name() {
    let owners = owners();
    let shared: BTreeMap<_, _> = owners.iter().filter(|(_, owners)| owners.len() > 1).collect();
    println!("{} public types; shared: {shared:#?}", owners.len());
    let others: Vec<_> = shared.iter().filter(|(name, owners)| !is_allowed(name, owners)).collect();
    assert!(others.is_empty(), "{others:?}");
    let allowed = OF_EACH.into_iter().chain(OF_A_CLOUD).chain([CONFIG]);
    let unused: Vec<&str> = allowed.filter(|name| !shared.keys().any(|key| key == name)).collect();
    assert!(unused.is_empty(), "allowed, and not shared: {unused:?}");
}

#[test]
fn the_public_types_of_a_file_are_found() {
    let text = "\npub use a::{Bee, Cat as Dog, e, F_G};\npub use history::{Event};\npub use x::Yak;\n\
                pub struct One<T>(T);\npub(crate) struct Two;\npub enum Three {\npub fn four() {}\n";
    let found: Vec<String> = re_exported(text).into_iter().chain(defined(text)).collect();
    assert_eq!(found, ["Bee", "Dog", "Yak", "One", "Three"]);
}

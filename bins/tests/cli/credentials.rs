//! Credentials that cannot be used: one sentence that names the file and the remedy, and nothing is sent.

use crate::fixture::{Ended, Fixture};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;

const CONFIG: &str = "home/.oci/config";

const NODE: &str = "vm-standard2-1-ad1-0001";

/// Calls a program on a cluster that is set up wrong.
fn refused(stage: &Fixture, words: &[&str]) {
    refused_by("listnodes", stage, words);
}

fn refused_by(name: &str, stage: &Fixture, words: &[&str]) {
    let ended = stage.run(name, &[NODE]).with_code(2).saying(words);
    assert_eq!(sentences(&ended), 1, "{ended:#?}");
    let asked = stage.cloud().requests();
    assert!(asked.is_empty(), "{asked:#?}");
}

/// Lines about what is wrong; what became of the nodes is said besides.
fn sentences(ended: &Ended) -> usize {
    let lines = ended.stderr.lines().filter(|line| !line.trim().is_empty());
    lines.filter(|line| !line.contains("returned to Slurm")).count()
}

/// The line of the configuration file with this key, and the value that it has.
fn value(stage: &Fixture, key: &str) -> String {
    let text = stage.read(CONFIG);
    let start = format!("{key}=");
    let line = text.lines().find_map(|line| line.strip_prefix(&start));
    line.unwrap_or_else(|| panic!("no {key} in {text}")).to_owned()
}

fn change(stage: &Fixture, name: &str, from: &str, to: &str) {
    let text = stage.read(name);
    assert!(text.contains(from), "no {from} in {text}");
    stage.write(name, &text.replace(from, to));
}

#[test]
fn a_key_file_that_is_not_there() {
    let stage = Fixture::new();
    change(&stage, CONFIG, &value(&stage, "key_file"), "/nowhere/key.pem");
    let words = ["DIR/home/.oci/config line", "/nowhere/key.pem is not there", "name the file"];
    for name in ["listnodes", "startnode"] {
        refused_by(name, &stage, &words);
    }
}

#[test]
fn a_fingerprint_of_another_key() {
    let stage = Fixture::new();
    let given = ["00"; 16].join(":");
    change(&stage, CONFIG, &value(&stage, "fingerprint"), &given);
    refused(&stage, &["DIR/home/.oci/config line", &given, "set the fingerprint"]);
}

#[test]
fn a_profile_that_is_not_there() {
    let stage = Fixture::new();
    let text = stage.read("startnode.yaml");
    stage.write("startnode.yaml", &format!("{text}profile: prod\n"));
    refused(&stage, &["DIR/home/.oci/config: no profile [prod]", "choose one of [DEFAULT]"]);
}

#[test]
fn a_key_that_everybody_can_read() {
    let stage = Fixture::new();
    let key = value(&stage, "key_file");
    fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).unwrap();
    let remedy = ["make the user of this program its owner", "run `chmod 600 DIR/home/.oci/"];
    refused(&stage, &["can be read by others (mode 644)", remedy[0], remedy[1]]);
}

/// Named by our own configuration, or by that of the credentials: where hosts are made of it.
#[test]
fn a_region_that_nobody_knows() {
    let stage = Fixture::new();
    let text = stage.read("startnode.yaml");
    let endpoint = text.lines().find(|line| line.starts_with("endpoint:")).unwrap();
    let hosted = text.replace(&format!("{endpoint}\n"), "");
    stage.write("startnode.yaml", &hosted.replace("us-phoenix-1", "us-pheonix-1"));
    let words = ["unknown region us-pheonix-1", "did you mean us-phoenix-1?"];
    refused(&stage, &["DIR/startnode.yaml: ", words[0], words[1]]);
    stage.write("startnode.yaml", &hosted.replace("region: us-phoenix-1\n", ""));
    change(&stage, CONFIG, &value(&stage, "region"), "us-pheonix-1");
    refused(&stage, &["DIR/home/.oci/config line", words[0], words[1]]);
}

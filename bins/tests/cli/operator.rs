//! An operator's first hour: what the programs once said, or did not say, and how they ended.

use crate::fixture::{Ended, Fixture};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::MetadataExt as _;

const NODE: &str = "vm-standard2-1-ad1-0001";

/// scontrol looked for it for 20 seconds, and nobody said which file.
#[test]
fn a_missing_slurm_conf_is_named() {
    let stage = Fixture::new();
    fs::remove_file(stage.path("etc/slurm.conf")).unwrap();
    let ended = stage.run("listnodes", &[]).with_code(2);
    let _ = ended.saying(&["cannot read slurm.conf DIR/etc/slurm.conf", "--slurm-conf"]);
}

/// scontrol runs in another directory.
#[test]
fn a_relative_path_of_slurm_conf_is_found() {
    let stage = Fixture::new();
    let ended = stage.run("finish", &["--slurm-conf", "etc/slurm.conf", "--print"]).with_code(0);
    assert!(ended.stdout.contains("NodeName=vm-standard2-1-ad1-[0001-0004]"), "{ended:?}");
}

#[test]
fn keys_of_another_cloud_are_warned_of_before_the_cloud_is_reached() {
    let stage = Fixture::new();
    let text = stage.configuration().replace("csp: oracle", "csp: openstack");
    stage.write("startnode.yaml", &text);
    let ended = stage.run("listnodes", &[]).with_code(2);
    let ended = ended.saying(&["unknown key \"compartment_id\"", "clouds.yaml"]);
    let place = |word: &str| ended.stderr.find(word).unwrap();
    assert!(place("compartment_id") < place("no clouds.yaml"), "{ended:#?}");
}

/// It is to be put in the place of the file.
#[test]
fn a_hosts_file_is_given_back_byte_for_byte() {
    let stage = Fixture::new().running();
    let old = b"127.0.0.1 localhost # caf\xe9\n\n\n";
    fs::write(stage.path("hosts"), old).unwrap();
    let output = stage.command("listnodes", &["--hosts", "hosts"]).output().unwrap();
    assert_eq!(output.stdout, old, "{output:?}");
    stage.run("startnode", &[NODE]).with_code(0);
    let output = stage.command("listnodes", &["--hosts", "hosts"]).output().unwrap();
    assert!(output.stdout.starts_with(old) && output.stdout.len() > old.len(), "{output:?}");
}

/// All lines of standard output, each of which is to be a value.
fn values(ended: &Ended) -> Vec<Value> {
    let value = |line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{ended:#?}"));
    ended.stdout.lines().map(value).collect()
}

#[test]
fn what_is_printed_for_machines_is_json() {
    let stage = Fixture::new().running();
    let calls: [(&str, &[&str]); 4] = [
        ("finish", &[]),
        ("finish", &["--dry-run"]),
        ("stopnode", &["--all"]),
        ("stopnode", &["--all", "--dry-run"]),
    ];
    for (name, arguments) in calls {
        let ended = stage.run(name, &[&["--json"], arguments].concat()).with_code(0);
        let said = values(&ended);
        assert!(said.len() == 1 && said[0]["operation"].is_string(), "{name} {arguments:?}");
    }
    stage.run("startnode", &[NODE]).with_code(0);
    let ended = stage.run("stopnode", &["--json", "--all"]).with_code(1).saying(&[NODE, "--force"]);
    assert_eq!(ended.stdout, "");
    let image = ["--json", "image", NODE, "--name", "golden"];
    let dry = values(&stage.run("rebuild", &[&image[..], &["--dry-run"]].concat()).with_code(0));
    assert_eq!((&dry[0]["name"], &dry[0]["image"]), (&"golden".into(), &Value::Null));
    let made = values(&stage.run("rebuild", &image).with_code(0));
    assert!(made[0]["image"].as_str().unwrap().starts_with("ocid1.image."), "{made:?}");
    let other = "vm-standard2-1-ad1-0002";
    let rows = values(&stage.run("rebuild", &["status", "--json", other]).with_code(0));
    assert_eq!((&rows[0][0]["node"], &rows[0][0]["image"]), (&other.into(), &Value::Null));
    for option in ["--print", "--print-power", "--print-gres"] {
        stage.run("finish", &[option, "--json"]).with_code(2).saying(&["cannot be used with"]);
        stage.run("finish", &[option, "--check"]).with_code(2).saying(&["cannot be used with"]);
    }
}

#[test]
fn a_node_that_slurm_conf_does_not_have_is_refused() {
    let stage = Fixture::new().running();
    let unknown = ["nosuch: ", "no such node in slurm.conf"];
    let ended = stage.run("listnodes", &["nosuch"]).with_code(1).saying(&unknown);
    assert!(ended.stdout.contains("no such node in slurm.conf"), "{ended:?}");
    let both = format!("nosuch,{NODE}");
    let ended = stage.run("rebuild", &["status", &both]).with_code(1).saying(&unknown);
    assert!(ended.stdout.contains(NODE) && !ended.stdout.contains("nosuch"), "{ended:?}");
    for (name, arguments) in [
        ("startnode", &["--dry-run", "nosuch"][..]),
        ("startnode", &["--dry-run", "--failed", "nosuch"]),
        ("stopnode", &["--dry-run", "nosuch"]),
        ("rebuild", &["--dry-run", "nosuch"]),
    ] {
        let ended = stage.run(name, arguments).with_code(1);
        assert!(ended.stdout.contains("no such node in slurm.conf"), "{name}: {ended:?}");
    }
}

/// The cloud says of an id that is none that we may not have it.
#[test]
fn the_name_of_a_missing_image_is_not_sent_as_an_id() {
    let stage = Fixture::new().running();
    stage.write("startnode.yaml", &format!("{}image_id: rocky-9\n", stage.configuration()));
    let words = ["the cloud has no image rocky-9", "change image_id"];
    stage.run("startnode", &[NODE]).with_code(2).saying(&words);
    stage.run("startnode", &["--dry-run", NODE]).with_code(2).saying(&words);
    stage.run("rebuild", &["submit"]).with_code(2).saying(&words).saying(&["--image"]);
    stage.run("reconcile", &[]).with_code(0).saying(&words);
    assert_eq!(stage.changes(), Vec::<String>::new());
}

#[test]
fn a_full_disk_is_a_failure() {
    let stage = Fixture::new().running();
    for (name, arguments) in [("listnodes", "--json"), ("finish", "--print")] {
        let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output = stage.command(name, &[arguments]).stdout(full).output().unwrap();
        let ended = Ended::of(&output, stage.dir.path()).with_code(1);
        assert_eq!(ended.stderr.matches("cannot write to standard output").count(), 1, "{ended:?}");
    }
    let pipe = stage.command("listnodes", &["--all"]).stdout(broken()).output().unwrap();
    let _ = Ended::of(&pipe, stage.dir.path()).with_code(0);
}

/// A pipe that nobody reads.
fn broken() -> std::io::PipeWriter {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    writer
}

/// slurmctld gives its programs no variables.
#[test]
fn remedies_name_keys_of_the_configuration() {
    let stage = Fixture::new().running();
    fs::remove_file(stage.path("home/.oci/config")).unwrap();
    let words = ["OCI_CLI_CONFIG_FILE", "or with config_file in DIR/startnode.yaml"];
    stage.run("startnode", &[NODE]).with_code(2).saying(&words);
    stage.write("startnode.yaml", &format!("{}bootstrap_file: /nope\n", stage.configuration()));
    let words = ["cannot read /nope", "change bootstrap_file"];
    stage.run("startnode", &[NODE]).with_code(2).saying(&words);
    let clouds = "clouds: {a: {auth: {}}, b: {auth: {}}}\n";
    stage.write("home/.config/openstack/clouds.yaml", clouds);
    let bin = stage.slurm.bin().display().to_string();
    let conf = stage.path("etc/slurm.conf").display().to_string();
    let text = format!("csp: openstack\nslurm_bin: {bin}\nslurm_conf: {conf}\n");
    stage.write("startnode.yaml", &text);
    let words = ["OS_CLOUD", "or set cloud in DIR/startnode.yaml"];
    stage.run("startnode", &[NODE]).with_code(2).saying(&words);
}

#[test]
fn times_and_counts_are_refused_in_plain_words() {
    let stage = Fixture::new();
    let time = ["expected a time such as 90, 90s, 15m or 2h"];
    for (name, arguments) in [
        ("rebuild", &["submit", "--delay", "soon"][..]),
        ("rebuild", &["submit", "--deadline", "1x"]),
        ("resize", &["--patience", "1 day"]),
        ("reconcile", &["--watch", "1d"]),
    ] {
        stage.run(name, arguments).with_code(2).saying(&time);
    }
    let count = ["expected a whole number of at least 1"];
    stage.run("rebuild", &["submit", "--batch", "0"]).with_code(2).saying(&count);
    stage.run("reconcile", &["--watch", "0"]).with_code(2).saying(&["between 1 and 86400"]);
    fs::remove_file(stage.path("etc/slurm.conf")).unwrap();
    let call = ["submit", "--delay", "5m", "--deadline", "3600", "--batch", "2"];
    stage.run("rebuild", &call).with_code(2).saying(&["cannot read slurm.conf"]);
}

#[test]
fn a_partition_that_is_not_there_is_named() {
    let stage = Fixture::new().running();
    let words = ["slurm.conf has no partition nowhere"];
    for (name, arguments) in [
        ("listnodes", &["--partition", "nowhere"][..]),
        ("rebuild", &["submit", "--image", "citc-ol9-3", "--partition", "nowhere"]),
        ("resize", &["--to", "2", "--partition", "nowhere"]),
    ] {
        stage.run(name, arguments).with_code(2).saying(&words);
    }
}

/// The last that was said was what had been seen before slurmctld was told.
#[test]
fn a_finish_that_goes_well_says_so() {
    let stage = Fixture::new().running();
    stage.write("limits.yaml", "VM.Standard2.1: {1: 5}\n");
    let ended = stage.run("finish", &["--no-prove"]).with_code(0);
    assert!(ended.stdout.ends_with("slurmctld runs with the new file\n"), "{ended:?}");
}

#[test]
fn a_log_on_a_full_disk_is_a_warning() {
    let stage = Fixture::new().running();
    let ended = stage.run("startnode", &["--log", "/dev/full", NODE]).with_code(0);
    let told = ended.stderr.matches("warning: cannot write the log: ").count();
    assert_eq!(told, 1, "{ended:?}");
}

/// Its node had left slurm.conf, and the machine ran on unseen.
#[test]
fn a_machine_whose_node_slurm_conf_does_not_have_is_listed() {
    let stage = Fixture::new().running();
    let node = "vm-standard2-1-ad1-0004";
    stage.run("startnode", &[node]).with_code(0);
    let conf = stage.read("etc/slurm.conf").replace("[0001-0004]", "[0001-0003]");
    stage.write("etc/slurm.conf", &conf);
    let _ = stage.slurm.ask("scontrol", &["reconfigure"]);
    let known = || stage.slurm.node(node, "NodeName");
    crate::slurm::wait("slurmctld without it", || known().is_empty().then_some(()), known);
    let listed = stage.run("listnodes", &["--json"]).with_code(0);
    let rows: serde_json::Value = serde_json::from_str(&listed.stdout).unwrap();
    let row = rows.as_array().unwrap().iter().find(|row| row["node"] == node);
    let row = row.unwrap_or_else(|| panic!("{listed:#?}"));
    assert_eq!(row["why"], "no such node in slurm.conf", "{listed:#?}");
    assert_eq!(row["instance"], stage.machine(node).id.as_str());
    let some = stage.run("listnodes", &["--partition", "compute"]).with_code(0);
    assert!(!some.stdout.contains(node), "it is in no partition: {some:#?}");
}

#[test]
fn a_second_image_of_one_name_is_refused() {
    let stage = Fixture::new().running();
    let node = "vm-standard2-1-ad1-0001";
    stage.run("startnode", &[node]).with_code(0);
    let make = ["image", node, "--name", "golden"];
    let id = stage.run("rebuild", &make).with_code(0).stdout;
    stage.run("rebuild", &make).with_code(2).saying(&["golden already", id.trim()]);
    let dry = [&make[..], &["--dry-run"]].concat();
    stage.run("rebuild", &dry).with_code(2).saying(&["golden already"]);
    let creations = stage.cloud().requests().into_iter().filter(|it| it.operation == "CreateImage");
    assert_eq!(creations.count(), 1);
    let misspelt = ["submit", "--dry-run", "--image", "goldne"];
    let ended = stage.run("rebuild", &misspelt).with_code(2);
    let _ = ended.saying(&["the cloud has no image goldne; did you mean golden?"]);
}

#[test]
fn a_mistyped_command_is_not_taken_for_a_node() {
    let stage = Fixture::new().running();
    let ended = stage.run("rebuild", &["submitt"]).with_code(2);
    let _ = ended.saying(&["slurm.conf has no node submitt; did you mean `rebuild submit`?"]);
    // A word that is like no command is a node.
    let ended = stage.run("rebuild", &["n77"]).with_code(1);
    let _ = ended.saying(&["n77", "no such node in slurm.conf"]);
}

/// After `sudo listnodes` slurmctld's programs had no locks, and two of them could work on one node.
#[test]
fn a_state_directory_that_root_makes_belongs_to_slurmctld_s_user() {
    let daemon = |conf: &mut String| *conf = conf.replace("SlurmUser=root", "SlurmUser=daemon");
    let stage = Fixture::with(|_| {}, daemon);
    assert!(stage.read("etc/slurm.conf").contains("SlurmUser=daemon"), "these tests run as root");
    stage.silence();
    let keys = format!("config_file: {}\n", stage.path("home/.oci/config").display());
    let text = stage.read("startnode.yaml").replace("/state,", "/var/elastic,");
    stage.write("startnode.yaml", &format!("{text}{keys}"));
    let owner = |name: &str| fs::metadata(stage.path(name)).unwrap().uid();
    for (program, arguments) in [("listnodes", &[][..]), ("reconcile", &[]), ("stopnode", &[NODE])]
    {
        let ended = stage.run(program, arguments);
        for name in ["var/elastic", "var/elastic/nodes", "var/elastic/yield"] {
            assert_eq!(owner(name), 1, "{name}: {ended:#?}");
        }
        fs::remove_dir_all(stage.path("var/elastic")).unwrap();
    }
    // One that is there already is somebody's choice.
    fs::create_dir(stage.path("var/elastic")).unwrap();
    let ended = stage.run("listnodes", &[]);
    assert_eq!(owner("var/elastic"), 0, "{ended:#?}");
}

//! The example `hostlist` beside the scontrol of a real Slurm: the same bytes.

use slurm_testbed::Release;
use std::fs;
use std::process::{Command, Output};
use tempfile::NamedTempFile;

/// Separators, padding, products, suffixes, order and duplicates; nothing here is invalid.
const EXPRESSIONS: &[&str] = &[
    "n1",
    "n[1-4,7]",
    "n3,n1,n2,n1",
    "a, b\tc,,n[1-2]",
    "rack[1-2]n[01-03],login1",
    "a[1-2]b[1-2]c[1-2]",
    "n[1-2]-ib0,n1-ib0",
    "n[09-100]",
    "n[1-010],n[001-10]",
    "n[1-3],n[2-4]",
    "n9,n10,n010,n09",
    "nid0000[1-3],nid00004",
    "1,2,3",
    "n[0-65535,65536-70000]",
    "gpu-[1-3].cluster,gpu-4.cluster",
    "",
];

const INVALID: &[&str] = &["n[1-3", "n[5-1]", "n[]", "n[1-10/2]", "n[0-65536]", "n[1-2]m["];

fn example() -> Command {
    let folder = std::env::current_exe().unwrap();
    Command::new(folder.parent().unwrap().with_file_name("examples").join("hostlist"))
}

fn output(command: &mut Command) -> Output {
    command.output().unwrap()
}

/// A release's scontrol, which wants a slurm.conf even to fold.
struct Scontrol {
    release: Release,
    conf: NamedTempFile,
}

impl Scontrol {
    fn of(series: &str) -> Self {
        let release = Release::find(series);
        let plugins = release.plugin_dir();
        let conf = NamedTempFile::new().unwrap();
        let text =
            format!("ClusterName=test\nSlurmctldHost=localhost\nPluginDir={}\n", plugins.display());
        fs::write(conf.path(), text).unwrap();
        Self { release, conf }
    }

    fn show(&self, word: &str, expression: &str) -> Output {
        let command = &mut self.release.client("scontrol", self.conf.path());
        output(command.args(["show", word, expression]))
    }
}

#[test]
fn expanding_and_folding_print_what_scontrol_prints() {
    for scontrol in ["24.11", "26.05"].map(Scontrol::of) {
        for expression in EXPRESSIONS {
            for word in ["hostnames", "hostlist", "hostlistsorted"] {
                let ours = output(example().args([word, expression]));
                let theirs = scontrol.show(word, expression);
                let (ours, theirs) =
                    [ours, theirs].map(|output| String::from_utf8(output.stdout).unwrap()).into();
                assert_eq!(ours, theirs, "{word} {expression}");
            }
        }
    }
}

#[test]
fn what_scontrol_refuses_is_an_error() {
    let scontrol = Scontrol::of("24.11");
    for expression in INVALID {
        let ours = output(example().args(["hostlist", expression]));
        assert_eq!(ours.status.code(), Some(1), "{expression}");
        assert!(ours.stdout.is_empty(), "{expression}");
        assert!(!scontrol.show("hostlist", expression).status.success(), "{expression}");
    }
}

#[test]
fn sets_are_combined_from_left_to_right() {
    for (arguments, printed) in [
        (&["-f", "n[1-5]", "-x", "n[1-3]", "n2"][..], "n[2,4-5]"),
        (&["-f", "n[1-5]", "-X", "n[4-8]", "-x", "n7"], "n[1-3,6,8]"),
        (&["-f", "n[1-5]", "-i", "n[1-2]", "-X", "n9", "-i", "n9", "n1"], "n[1,9]"),
        (&["-c", "n[1-5],n3", "n9"], "6"),
        (&["-e", "-S", "+", "n[8-10]"], "n8+n9+n10"),
        (&["-f", "n[0-8/2]"], "n[0,2,4,6,8]"),
        (&["-f", "--autostep", "3", "n[0,2,4,6,9-11,20]"], "n[0-6/2,9-11,20]"),
        (&["-f", "--autostep", "3", "n[1,2,4,6,9,12,15,16,17]"], "n[1-2,4,6-15/3,16-17]"),
        (&["-f", "--autostep", "5", "n[0,2,4,6]"], "n[0,2,4,6]"),
    ] {
        let output = output(example().args(arguments));
        assert_eq!(String::from_utf8(output.stdout).unwrap().trim_end(), printed, "{arguments:?}");
    }
}

#[test]
fn wrong_arguments_exit_with_2() {
    for arguments in [
        &[][..],
        &["-f"],
        &["-f", "n1", "-x"],
        &["-f", "--autostep", "2", "n1"],
        &["-f", "n1", "--new"],
    ] {
        assert_eq!(output(example().args(arguments)).status.code(), Some(2), "{arguments:?}");
    }
}

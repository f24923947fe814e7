//! `./install` and `packaging/deb`, from what is built already, into a directory of the test's own.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use bins::config::Settings;
use slurmconf::{Config, Document, GenerateOptions, Limits, Markers, generate};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// The program without what debuggers need, as `--built` takes it.
fn built(folder: &Path) -> PathBuf {
    let to = folder.join("built");
    fs::create_dir_all(&to).unwrap();
    let mut command = Command::new("strip");
    command.arg("-o").arg(to.join("slurm-elastic")).arg(env!("CARGO_BIN_EXE_slurm-elastic"));
    well(&mut command);
    to
}

/// How it ended, if it ended well.
fn well(command: &mut Command) -> Output {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {output:?}");
    output
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Every file and link below a folder, by its path in it.
fn files(folder: &Path) -> BTreeSet<String> {
    let listed = well(Command::new("find").args([".", "-not", "-type", "d"]).current_dir(folder));
    text(&listed).lines().map(|line| line.trim_start_matches("./").to_owned()).collect()
}

#[test]
fn a_prefix_gets_programs_names_pages_units_and_examples() {
    let folder = TempDir::new().unwrap();
    let (prefix, tools) = (folder.path().join("usr"), folder.path().join("tools"));
    let mut command = Command::new(root().join("install"));
    command.arg("--built").arg(built(folder.path())).arg("--prefix").arg(&prefix);
    let said = text(&well(command.arg("--slurm-tools").arg(&tools).current_dir("/")));
    assert!(said.contains("write /etc/citc/startnode.yaml"), "where the programs read it: {said}");
    assert!(!prefix.join("etc/citc").exists(), "nobody would read it there");
    let files = files(&prefix);
    let programs = bins::programs::PROGRAMS.map(|program| program.name);
    for program in programs.into_iter().chain(["slurm-elastic"]) {
        for file in [
            format!("bin/{program}"),
            format!("share/man/man1/{program}.1"),
            format!("share/bash-completion/completions/{program}"),
            format!("share/zsh/site-functions/_{program}"),
            format!("share/fish/vendor_completions.d/{program}.fish"),
        ] {
            assert!(files.contains(&file), "{file}: {files:#?}");
        }
    }
    let whole = fs::metadata(prefix.join("bin/slurm-elastic")).unwrap();
    for name in bins::multicall::names() {
        let link = prefix.join("bin").join(name);
        assert_eq!(fs::metadata(&link).unwrap().ino(), whole.ino(), "{name} is no hard link");
        assert!(files.contains(&format!("share/man/man1/{name}.1")), "{name}");
        let alias = bins::alias::ALL.iter().find(|alias| alias.name == name);
        let program = alias.map_or(name, |alias| alias.program);
        let help = text(&well(Command::new(link).arg("--help").env_clear()));
        assert!(help.contains(&format!("Usage: {program}")), "{name}: {help}");
    }
    for program in &bins::programs::PROGRAMS {
        let page = format!("share/man/man1/slurm-elastic-{}.1", program.subcommand);
        assert!(files.contains(&page), "{page}");
    }
    for name in ["resume", "resumefail", "suspend", "rebuild"] {
        let link = tools.join(format!("slurm-openstack-{name}"));
        well(Command::new(link).arg("--version").env_clear());
    }
    for file in [
        "etc/logrotate.d/slurm-elastic",
        "share/doc/slurm-elastic/docs/configuration.md",
        "share/doc/slurm-elastic/examples/oci/startnode.yaml",
    ] {
        assert!(files.contains(file), "{file}: {files:#?}");
    }
    pages(&prefix.join("share/man/man1"));
    units(&prefix);
}

/// Every page has what a page has, and is one that can be shown.
fn pages(folder: &Path) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let page = fs::read_to_string(&path).unwrap();
        for section in ["NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "FILES", "\"SEE ALSO\""] {
            assert!(page.contains(&format!(".SH {section}")), "{}: no {section}", path.display());
        }
        assert!(!page.contains(".SH EXTRA"), "{}: examples are called so", path.display());
        // As man does it; man itself is a stub on machines that are kept small.
        let shown = well(
            Command::new("groff").args(["-Kutf8", "-Tutf8", "-P-cbou", "-man", "-ww"]).arg(&path),
        );
        assert!(text(&shown).contains("SYNOPSIS"), "{}: {shown:?}", path.display());
        assert!(shown.stderr.is_empty(), "{}: {shown:?}", path.display());
    }
}

/// Units call what was installed.
fn units(prefix: &Path) {
    let folder = prefix.join("lib/systemd/system");
    let mut calls = 0;
    for entry in fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        let unit = fs::read_to_string(&path).unwrap();
        assert!(!unit.contains('@'), "{unit}");
        for line in unit.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let section = line.starts_with('[') && line.ends_with(']');
            assert!(section || line.starts_with('#') || line.contains('='), "{line}");
            let call = line.strip_prefix("ExecStart=").and_then(|call| call.split(' ').next());
            if let Some(program) = call {
                assert!(Path::new(program).starts_with(prefix), "{line}");
                assert!(Path::new(program).is_file(), "{line}");
                calls += 1;
            }
        }
    }
    assert_eq!(calls, 2, "{}", folder.display());
}

#[test]
fn a_directory_without_the_program_is_refused() {
    let folder = TempDir::new().unwrap();
    let mut command = Command::new(root().join("install"));
    command.arg("--prefix").arg(folder.path()).arg("--built").arg(folder.path());
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("has no slurm-elastic: cargo build"), "{said}");
    assert_eq!(files(folder.path()), BTreeSet::new());
}

#[test]
fn a_package_has_what_install_installs() {
    let folder = TempDir::new().unwrap();
    // As hardened systems have it.
    let mut command = Command::new("sh");
    command.args(["-c", "umask 027; exec \"$@\"", "sh"]).arg(root().join("packaging/deb"));
    command.arg("--built").arg(built(folder.path())).arg(folder.path().join("out"));
    // Nobody keeps it.
    let package = text(&well(command.env("DPKG_DEB_COMPRESSOR_TYPE", "none")));
    let package = Path::new(package.trim());
    let field = ["--field", &package.display().to_string(), "Version"].map(str::to_owned);
    let version = text(&well(Command::new("dpkg-deb").args(field)));
    assert_eq!(version.contains("+git2"), root().join(".git").exists(), "it grows: {version}");
    let listed = text(&well(Command::new("dpkg-deb").arg("--contents").arg(package)));
    for path in [
        "./usr/local/share/man/man1/finish.1",
        "./usr/local/lib/systemd/system/slurm-elastic-reconcile.timer",
        "./etc/logrotate.d/slurm-elastic",
        "./etc/citc/",
        "./usr/share/doc/slurm-elastic/copyright",
    ] {
        assert!(listed.lines().any(|line| line.ends_with(path)), "{path}: {listed}");
    }
    // The archive has the executable once, under whichever name comes first.
    let programs: Vec<&str> =
        listed.lines().filter(|line| line.contains(" ./usr/local/bin/")).collect();
    let links = programs.iter().filter(|line| line.starts_with('h') && line.contains(" link to "));
    assert_eq!(links.count(), bins::multicall::names().len(), "{programs:#?}");
    for line in listed.lines() {
        let open = ["drwxr-xr-x", "-rwxr-xr-x", "hrwxr-xr-x", "-rw-r--r--", "lrwxrwxrwx"];
        assert!(open.iter().any(|mode| line.starts_with(mode)), "not for all: {line}");
    }
    let scripts = text(&well(Command::new("dpkg-deb").arg("--info").arg(package)));
    for name in ["postinst", "prerm"] {
        assert!(scripts.contains(name), "{name}: {scripts}");
    }
    let fields = text(&well(Command::new("dpkg-deb").arg("--field").arg(package)));
    assert!(
        fields.contains("Package: slurm-elastic\n") && fields.contains("libc6 (>= 2."),
        "{fields}"
    );
}

/// Neither `runcmd` nor user data that is a program runs at a later boot.
#[test]
fn nodes_of_the_examples_come_back_from_a_reboot() {
    for name in ["bootstrap-cloud-init.yaml", "bootstrap-ansible-pull.sh"] {
        let text = fs::read_to_string(root().join("examples").join(name)).unwrap();
        let starts: Vec<&str> = text.lines().filter(|line| line.contains("systemctl")).collect();
        assert!(!starts.is_empty(), "{name}");
        assert!(starts.iter().all(|line| line.contains("enable")), "{name}: {starts:?}");
        assert!(!text.contains("[mount"), "{name}: what is not in fstab is not mounted again");
    }
}

#[test]
fn sudo_finds_the_cargo_of_the_user_who_calls_it() {
    let root = root();
    for name in ["install", "demo", "test", "scripts/setup"] {
        let script = fs::read_to_string(root.join(name)).unwrap();
        let sourced = |line: &str| line.trim().starts_with(". ") && line.contains("/cargo-path");
        assert!(script.lines().any(sourced), "{name} calls cargo");
    }
    let home = TempDir::new().unwrap();
    let home = home.path();
    fs::create_dir_all(home.join(".cargo/bin")).unwrap();
    fs::create_dir(home.join("bin")).unwrap();
    let passwd = format!("#!/bin/sh\necho \"$2:x:1000:1000::{}:/bin/sh\"\n", home.display());
    for (name, script) in [(".cargo/bin/cargo", "#!/bin/sh\n"), ("bin/getent", &passwd)] {
        fs::write(home.join(name), script).unwrap();
        fs::set_permissions(home.join(name), fs::Permissions::from_mode(0o755)).unwrap();
    }
    std::os::unix::fs::symlink("/usr/bin/cut", home.join("bin/cut")).unwrap();
    let mut command = Command::new("/bin/bash");
    command.args(["-euc", ". scripts/cargo-path; command -v cargo"]).current_dir(&root);
    command.env_clear().env("PATH", home.join("bin")).env("SUDO_USER", "somebody");
    let found = text(&well(&mut command));
    assert_eq!(Path::new(found.trim_end()), home.join(".cargo/bin/cargo"));
}

#[test]
fn examples_are_read_without_errors_or_warnings() {
    let read = |name: &str| fs::read_to_string(root().join("examples").join(name)).unwrap();
    for cloud in ["oci", "openstack"] {
        let name = format!("{cloud}/startnode.yaml");
        let loaded = Settings::read(&name, &read(&name)).unwrap();
        assert!(loaded.warnings.is_empty(), "{:?}", loaded.warnings);
        let name = format!("{cloud}/limits.yaml");
        let (limits, errors) = Limits::read_all(&name, &read(&name));
        assert!(errors.is_empty() && !limits.groups.is_empty(), "{errors:?}");
        if cloud == "oci" {
            let cluster =
                generate(&limits, &slurm_testbed::shapes(), &GenerateOptions::default()).unwrap();
            assert!(!cluster.nodes.is_empty());
        }
    }
    let conf = read("slurm.conf");
    let config = Config::parse(&conf).unwrap();
    assert!(config.has_power_saving(), "{:?}", config.power);
    Document::parse(conf).section(Markers::NODES).unwrap();
}

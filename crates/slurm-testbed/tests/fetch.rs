//! Where `tests/slurm/fetch` takes releases from.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

/// Debian's own cloud images have a list of mirrors in a file, Ubuntu has none of Debian's, and others keep packages of their own
/// in a directory of that name.
#[test]
fn releases_came_from_no_mirror_or_from_that_of_somebody_else() {
    let public = "http://deb.debian.org/debian";
    let folder = TempDir::new().unwrap();
    let list = folder.path().join("debian.list");
    fs::write(
        &list,
        "# ours\nhttps://near.example.org/debian/\tpriority:1\nhttps://far.example.org/debian\n",
    )
    .unwrap();
    let list = format!("mirror+file:{}", list.display());
    let cases: [(&[&str], &[&str]); 5] = [
        (
            &["http://own.example.org/debian", "http://own.example.org/debian-security"],
            &["http://own.example.org/debian", public],
        ),
        (&[&list], &["https://near.example.org/debian", "https://far.example.org/debian", public]),
        (&["mirror+file:/nowhere/debian.list"], &[public]),
        (&["http://archive.example.org/ubuntu"], &[public]),
        (
            &["https://caddy.example.org/deb/debian", "http://own.example.org/debian"],
            &["https://caddy.example.org/deb/debian", "http://own.example.org/debian", public],
        ),
    ];
    let program = folder.path().join("apt-get");
    let path = format!("{}:/usr/bin:/bin", folder.path().display());
    for (addresses, expected) in cases {
        let lines = addresses.iter().map(|uri| {
            format!(
                "'{uri}/dists/bookworm/InRelease' name 0 \n'{uri}/dists/bookworm/main/x' name 0 \n"
            )
        });
        let text: String = lines.collect();
        fs::write(&program, format!("#!/bin/sh\ncat <<'END'\n{text}END\n")).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        let fetch = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/slurm/fetch");
        let mut command = Command::new(fetch);
        command.arg("--mirrors").env("PATH", &path).env_remove("DEBIAN_MIRROR");
        let output = command.output().unwrap();
        let tried = String::from_utf8(output.stdout).unwrap();
        assert_eq!(tried.lines().collect::<Vec<_>>(), expected, "{addresses:?}");
    }
}

//! The script that fetches the releases the other tests start.

use std::{fs, path::Path, process::Command};

#[test]
fn the_leftovers_of_a_killed_fetch_are_removed() {
    let cache = tempfile::tempdir().unwrap();
    let releases = cache.path().join("slurm");
    for name in ["22.05", "22.05.aB3dE6", "24.11.aB3dE6"] {
        fs::create_dir_all(releases.join(name)).unwrap();
    }
    // There already, so that nothing is downloaded.
    fs::write(releases.join("22.05/version"), "22.05.8\n").unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/slurm/fetch");
    let output = Command::new(script)
        .arg("22.05")
        .env("SLURM_ELASTIC_CACHE", cache.path())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(releases.join("22.05/version").exists());
    assert!(!releases.join("22.05.aB3dE6").exists());
    // Of another version, whose lock another fetch may hold.
    assert!(releases.join("24.11.aB3dE6").exists());
}

//! Texts as they were when somebody last read them.

use std::path::{Path, PathBuf};
use std::{env, fs};

/// Compares a text with `snapshots/<name>.txt`; with `UPDATE=1`, writes that instead.
pub(crate) fn matches(name: &str, text: &str) {
    let path = path(name);
    if env::var_os("UPDATE").is_some_and(|value| value == "1") {
        fs::write(&path, text).unwrap();
        return;
    }
    let expected = fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("{}: {error}; UPDATE=1 writes it", path.display()));
    assert_eq!(text, expected, "{} is not as it was; UPDATE=1 writes it anew", path.display());
}

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/snapshots").join(format!("{name}.txt"))
}

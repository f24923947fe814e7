//! See `bins::programs::rebuild`.

use bins::programs::rebuild;
use std::process::ExitCode;

fn main() -> ExitCode {
    bins::run(rebuild::run)
}

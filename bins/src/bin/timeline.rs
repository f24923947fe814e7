//! See `bins::programs::timeline`.

use bins::programs::timeline;
use std::process::ExitCode;

fn main() -> ExitCode {
    bins::run(timeline::run)
}

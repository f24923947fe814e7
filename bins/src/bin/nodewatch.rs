//! See `bins::programs::nodewatch`.

use bins::programs::nodewatch;
use std::process::ExitCode;

fn main() -> ExitCode {
    bins::run(nodewatch::run)
}

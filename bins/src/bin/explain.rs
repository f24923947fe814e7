//! See `bins::programs::explain`.

use bins::programs::explain;
use std::process::ExitCode;

fn main() -> ExitCode {
    bins::run(explain::run)
}

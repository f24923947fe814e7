//! See `bins::programs::stopnode`.

use bins::programs::stopnode;
use std::process::ExitCode;

fn main() -> ExitCode {
    bins::run(stopnode::run)
}

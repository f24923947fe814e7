//! See `bins::programs::startnode`.

use bins::programs::startnode;
use std::process::ExitCode;

fn main() -> ExitCode {
    bins::run(startnode::run)
}

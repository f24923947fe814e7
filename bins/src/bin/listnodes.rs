//! See `bins::programs::listnodes`.

use bins::programs::listnodes;
use std::process::ExitCode;

fn main() -> ExitCode {
    bins::run(listnodes::run)
}

//! See `bins::programs::cost`.

use bins::programs::cost;
use std::process::ExitCode;

fn main() -> ExitCode {
    bins::run(cost::run)
}

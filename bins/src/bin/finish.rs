//! See `bins::programs::finish`.

use bins::programs::finish;
use std::process::ExitCode;

fn main() -> ExitCode {
    bins::run(finish::run)
}

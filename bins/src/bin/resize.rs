//! See `bins::programs::resize`.

use bins::programs::resize;
use std::process::ExitCode;

fn main() -> ExitCode {
    bins::run(resize::run)
}

//! See `bins::programs::reconcile`.

use bins::programs::reconcile;
use std::process::ExitCode;

fn main() -> ExitCode {
    bins::run(reconcile::run)
}

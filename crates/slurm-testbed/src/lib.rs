//! What every test on a real Slurm needs, whichever crate it is of.
//!
//! [`Release`] is one of those that `tests/slurm/fetch` brings, [`munged`] and [`daemons`] let its
//! daemons run in a directory of the test's own beside any others, [`Guard`] ends them with it, and
//! [`wait`] is the one way to wait for them. A program that is missing panics, as it must fail its test.

#![expect(
    clippy::expect_used,
    clippy::missing_panics_doc,
    clippy::panic,
    reason = "a helper that fails fails its test"
)]

mod busy;
mod conf;
mod munge;
mod port;
mod process;
mod release;

pub use busy::{answer, is_busy};
pub use conf::{cgroup, daemons, hostname};
pub use munge::munged;
pub use port::own_port;
pub use process::{Guard, PATIENCE, wait};
pub use release::Release;

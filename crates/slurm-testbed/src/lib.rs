//! Real Slurm releases for tests.
//!
//! `tests/slurm/fetch` downloads a [`Release`]. [`munged`] and [`daemons`] run it in a directory of the test, [`Guard`]
//! ends its processes with the test, and [`wait`] waits for them. A missing program panics and so fails its test.

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
mod shapes;

pub use busy::{answer, is_busy};
pub use conf::{cgroup, daemons, hostname};
pub use munge::munged;
pub use port::own_port;
pub use process::{Guard, PATIENCE, wait};
pub use release::Release;
pub use shapes::shapes;

//! Which of the Slurm releases a scenario runs on.

pub use slurm_testbed::Release;

use std::env;

/// A module of tests for each scenario, a function of a series: one test on each series that scenarios may tell apart.
#[macro_export]
macro_rules! on_each_release {
    ($($name:ident: $scenario:expr;)*) => {$(
        mod $name {
            use super::*;

            #[test]
            fn on_22_05() {
                $crate::in_namespaces(|| ($scenario)("22.05"));
            }

            #[test]
            fn on_24_11() {
                $crate::in_namespaces(|| ($scenario)("24.11"));
            }

            #[test]
            fn on_26_05() {
                $crate::in_namespaces(|| ($scenario)("26.05"));
            }
        }
    )*};
}

/// The series of all other scenarios.
pub const USUAL: &str = "24.11";

/// The release of a series such as `24.11`, or of what `SLURM_VERSION` says.
pub(crate) fn find(series: &str) -> Release {
    let chosen = env::var("SLURM_VERSION").ok().filter(|value| !value.is_empty());
    let series = chosen.as_deref().unwrap_or(series);
    let release = Release::find(series);
    // A suite of Debian moves on; what it has now is as good, and said.
    let version = release.version().to_string();
    if !version.starts_with(series) {
        say(&format!("Slurm {series} has moved on: this is {version}"));
    }
    release
}

#[expect(clippy::print_stderr, reason = "for whoever reads the test's output")]
fn say(text: &str) {
    eprintln!("{text}");
}

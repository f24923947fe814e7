//! What a reconcile puts right, and what it says when it cannot.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test may")]

mod common;

use common::Bed;
use provision::run;
use provision::state::StateDir;

#[tokio::test(start_paused = true)]
async fn a_reconcile_that_could_not_remember_what_it_saw_never_said_so() {
    let directory = tempfile::tempdir().unwrap();
    let mut bed = Bed::new("n1");
    bed.state = Box::new(StateDir::open(directory.path()).unwrap());
    // What is no text cannot be read, and a directory in its place cannot be replaced.
    let path = directory.path().join("sightings.json");
    std::fs::create_dir(&path).unwrap();
    std::fs::write(path.join("file"), "").unwrap();
    let report = bed.run(async |run| run::reconcile(run).await).await;
    assert_eq!(report.exit_code(), 1, "{report:?}");
    assert!(report.failures.iter().any(|text| text.contains("sightings.json")), "{report:?}");
    let (_, look) = bed.run(async |run| run::preview_reconcile(run).await).await;
    assert!(look.warnings.iter().any(|text| text.contains("sightings.json")), "{look:?}");
}

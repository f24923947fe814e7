//! The cases that every cloud has to pass.

use crate::sim::fixture::SimFixture;
use cloud_core::conformance::{CASES, Verdict};
use cloud_sim::CloudSettings;

#[tokio::test]
async fn every_case_passes_and_none_is_skipped() {
    let fixture = SimFixture::start(CloudSettings::quick()).await;
    let mut wrong = Vec::new();
    for case in CASES {
        // Another for each, so that none is slowed down by what another has been refused.
        let provider = fixture.provider().await;
        match case.run(&provider, &fixture).await {
            Verdict::Passed => {}
            Verdict::Skipped(why) => wrong.push(format!("{}: skipped: {why}", case.name)),
            Verdict::Failed(why) => wrong.push(format!("{}: {why}", case.name)),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

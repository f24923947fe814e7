//! What the client tells the pacer, and how long it waits for it.

use crate::loopback::server::{Server, Step};
use crate::loopback::{config, request};
use cloud_core::ErrorKind;
use cloud_core::http::{Client, ClientConfig, Method, Retry, Unsigned, by_status};
use cloud_core::pace::{Experience, Lane, LaneExperience, Pace, Pacer};
use std::time::Duration;

fn client(config: ClientConfig, pacer: &Pacer) -> Client<Unsigned> {
    Client::new(config, Unsigned, by_status, pacer.clone()).expect("a client")
}

/// A pacer that knows how many looks a second the cloud takes.
fn knowing(limit: f64) -> Pacer {
    let reads = LaneExperience { limit: Some(limit), ..LaneExperience::default() };
    Pacer::with_experience(Pace::default(), Experience { reads, ..Experience::default() })
}

fn rate(pacer: &Pacer) -> f64 {
    pacer.rate(Lane::Read).expect("it is limited")
}

fn once() -> ClientConfig {
    let mut config = config();
    config.retry = Retry::never();
    config
}

#[tokio::test]
async fn the_pacer_hears_of_a_429_and_slows_down() {
    let pacer = knowing(10.0);
    let throttled = Step::Response(429, &["retry-after: 0"], String::new());
    let server = Server::start([throttled]).await;
    let before = rate(&pacer);
    let error = client(once(), &pacer).send(&request(&server, Method::GET)).await;
    assert_eq!(error.expect_err("an error").kind(), ErrorKind::Throttled);
    assert!(rate(&pacer) < before, "{} after {before}", rate(&pacer));
}

#[tokio::test]
async fn the_pacer_hears_of_what_was_taken_and_of_nothing_else() {
    for (step, grows) in [
        (Step::ok("done"), true),
        (Step::status(404), true),
        (Step::status(503), false),
        (Step::ResetRead, false),
    ] {
        // So slow that one request in a second is what it takes to grow.
        let pacer = knowing(1.0);
        let server = Server::start([step.clone()]).await;
        let _ = client(once(), &pacer).send(&request(&server, Method::GET)).await;
        assert_eq!(rate(&pacer) > 1.0, grows, "{step:?}: {}", rate(&pacer));
    }
}

#[tokio::test(start_paused = true)]
async fn a_queue_that_does_not_move_ends_in_an_error() {
    let pacer = Pacer::new(Pace { concurrency: 1, ..Pace::default() });
    let _all_there_is = pacer.acquire(Lane::Read).await;
    let server = Server::start([Step::ok("never")]).await;
    let mut config = config();
    config.longest_queue = Duration::from_secs(90);
    let begin = tokio::time::Instant::now();
    let result = client(config, &pacer).send(&request(&server, Method::GET)).await;
    let error = result.expect_err("an error");
    assert_eq!(error.kind(), ErrorKind::Throttled, "{error}");
    assert_eq!(begin.elapsed(), Duration::from_secs(90));
    assert_eq!(server.connections(), 0);
}

//! Whatever a server does, a request is not carried out twice that must not be.

use crate::loopback::server::{Server, Step};
use crate::loopback::{client, config, request, send_by};
use cloud_core::ErrorKind;
use cloud_core::http::{Effect, Method};
use proptest::prelude::*;

fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        Just(Step::ok("done")),
        prop::sample::select(vec![400, 401, 404, 409, 429, 500, 503]).prop_map(Step::status),
        Just(Step::Response(429, &["retry-after: 0"], String::new())),
        Just(Step::ResetUnread),
        Just(Step::ResetRead),
        Just(Step::CutShort),
    ]
}

/// True if a server that does this may have carried the request out.
fn may_be_done(step: &Step) -> bool {
    match step {
        Step::Response(status, _, _) => *status < 300 || *status >= 500,
        Step::ResetUnread | Step::ResetRead | Step::CutShort | Step::Stall => true,
    }
}

fn cases(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(cases(100))]

    #[test]
    fn nothing_is_done_twice_and_nothing_is_hidden(
        steps in prop::collection::vec(any_step(), 1..6),
        effect in prop::sample::select(vec![Effect::None, Effect::Idempotent, Effect::Once]),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let (taken, result) = runtime.expect("a runtime").block_on(async {
            let server = Server::start(steps.clone()).await;
            let request = request(&server, Method::POST).with_effect(effect);
            let result = send_by(&client(config()), &request).await;
            (steps.len() - server.steps_left(), result)
        });
        let done = steps.iter().take(taken).filter(|step| may_be_done(step)).count();
        // Three attempts, and one more if the token of the last was renewed.
        prop_assert!(taken <= 4, "{taken} requests");
        prop_assert!(effect != Effect::Once || done <= 1, "perhaps done {done} times");
        if let Err(error) = result && done > 0 && effect != Effect::None {
            let nothing_done = matches!(
                error.kind(),
                ErrorKind::Unavailable | ErrorKind::Throttled | ErrorKind::Unauthenticated
            );
            prop_assert!(!nothing_done, "{error}: but it may have been done");
        }
    }
}

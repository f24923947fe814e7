//! Client tokens: a request that comes again is answered again, and carried out once.

use super::answer::Answer;
use super::operation::Call;
use crate::shared::lock;
use hyper::StatusCode;
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use tokio::sync::OwnedMutexGuard;

/// Caller, operation and token.
type Key = (String, String, String);

/// What is known of one token; held while its request is carried out, so that a repeat waits.
type Slot = Arc<tokio::sync::Mutex<Option<Kept>>>;

/// The request that was carried out with a token, and its answer.
#[derive(Debug)]
struct Kept {
    form: BTreeMap<String, String>,
    answer: Answer,
}

/// All tokens that were used.
#[derive(Debug, Default)]
pub(super) struct ClientTokens {
    slots: Mutex<HashMap<Key, Slot>>,
    mismatches: AtomicU64,
}

/// What is to be done with a request.
pub(super) enum Turn {
    /// It is to be carried out; `keep` takes its answer.
    New(Place),
    /// It was answered before, or is refused.
    Answered(Answer),
}

/// Where the answer to a request with a token is kept.
pub(super) struct Place(Option<OwnedMutexGuard<Option<Kept>>>);

impl ClientTokens {
    /// Whether a request is to be carried out. Waits while one with the same token is.
    pub(super) async fn turn(&self, call: &Call) -> Turn {
        let Some(token) = call.client_token() else {
            return Turn::New(Place(None));
        };
        let key = (call.caller.clone(), call.operation.clone(), token.to_owned());
        let slot = Arc::clone(lock(&self.slots).entry(key).or_default());
        let kept = slot.lock_owned().await;
        match &*kept {
            None => Turn::New(Place(Some(kept))),
            Some(before) if before.form == call.form => Turn::Answered(before.answer.clone()),
            Some(_) => {
                self.mismatches.fetch_add(1, Ordering::Relaxed);
                Turn::Answered(Answer::error(
                    StatusCode::BAD_REQUEST,
                    "IdempotentParameterMismatch",
                    "The request uses the same client token as a previous, but non-identical request.",
                ))
            }
        }
    }

    pub(super) fn mismatches(&self) -> u64 {
        self.mismatches.load(Ordering::Relaxed)
    }
}

impl Place {
    /// Keeps an answer for repeats of its request, unless nothing was done.
    pub(super) fn keep(self, call: &Call, answer: &Answer) {
        let Some(mut place) = self.0 else { return };
        if answer.status.is_success() {
            *place = Some(Kept { form: call.form.clone(), answer: answer.clone() });
        }
    }
}

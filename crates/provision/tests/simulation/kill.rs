//! A process that is killed: its future is dropped after so many waits.

use crate::simulation::judge::{Judge, Who};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// Ends with `None` when it is killed. Whatever is done meanwhile is its doing.
pub(crate) struct Killable<F> {
    process: Option<Pin<Box<F>>>,
    /// Waits that are left to it; none to live on.
    waits: Option<u32>,
    judge: Arc<Judge>,
    who: Who,
}

impl<F: Future> Killable<F> {
    pub(crate) fn new(process: F, waits: Option<u32>, judge: Arc<Judge>, who: Who) -> Self {
        Self { process: Some(Box::pin(process)), waits, judge, who }
    }
}

impl<F: Future> Future for Killable<F> {
    type Output = Option<F::Output>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let Some(process) = &mut this.process else {
            return Poll::Ready(None);
        };
        let before = this.judge.turn(this.who);
        let polled = process.as_mut().poll(context);
        this.judge.turn(before);
        if let Poll::Ready(output) = polled {
            return Poll::Ready(Some(output));
        }
        let Some(waits) = &mut this.waits else {
            return Poll::Pending;
        };
        if *waits > 0 {
            *waits -= 1;
            return Poll::Pending;
        }
        // As kill -9 does it: nothing is said to anybody, and locks are open again.
        this.process = None;
        Poll::Ready(None)
    }
}

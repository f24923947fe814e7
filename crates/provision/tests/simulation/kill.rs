//! A process that is killed: its future is dropped after so many waits.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

/// Ends with `None` when it is killed.
pub(crate) struct Killable<F> {
    process: Option<Pin<Box<F>>>,
    /// Waits that are left to it; none to live on.
    waits: Option<u32>,
}

impl<F: Future> Killable<F> {
    pub(crate) fn new(process: F, waits: Option<u32>) -> Self {
        Self { process: Some(Box::pin(process)), waits }
    }
}

impl<F: Future> Future for Killable<F> {
    type Output = Option<F::Output>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(process) = &mut self.process else {
            return Poll::Ready(None);
        };
        if let Poll::Ready(output) = process.as_mut().poll(context) {
            return Poll::Ready(Some(output));
        }
        let Some(waits) = &mut self.waits else {
            return Poll::Pending;
        };
        if *waits > 0 {
            *waits -= 1;
            return Poll::Pending;
        }
        // As kill -9 does it: nothing is said to anybody, and locks are open again.
        self.process = None;
        Poll::Ready(None)
    }
}

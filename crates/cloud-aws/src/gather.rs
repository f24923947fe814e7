//! Sends terminations that are requested at the same time in one request.

use cloud_core::{ApiOperation, Error, ErrorKind, InstanceId, Result};
use std::future::Future;
use std::mem::take;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use tokio::sync::oneshot::{self, Receiver, Sender};
use tokio::time::sleep;

/// How long a request waits for others: the nodes of a plan are terminated at the same time.
const GATHER: Duration = Duration::from_millis(50);

/// Maximum number of instances in a request.
const MOST: usize = 1000;

/// The instances of one request, each with its caller.
type Batch = Mutex<Vec<(InstanceId, Sender<Result<()>>)>>;

/// Gathers simultaneous requests. The caller that opens a batch owns it: if it is dropped, the other callers get an error.
#[derive(Debug, Default)]
pub(crate) struct Gather(Mutex<Weak<Batch>>);

impl Gather {
    /// Calls `send` once for this and all simultaneous callers. The first caller sends.
    pub(crate) async fn ask<F: Future<Output = Result<()>>>(
        &self,
        id: &InstanceId,
        send: impl FnOnce(Vec<InstanceId>) -> F,
    ) -> Result<()> {
        let (opened, answered) = self.join(id);
        if let Some(batch) = opened {
            sleep(GATHER).await;
            let asked = take(&mut *locked(&batch));
            drop(batch);
            let result = send(asked.iter().map(|(id, _)| id.clone()).collect()).await;
            for (id, answer) in asked {
                // The caller may have been dropped.
                let _ = answer.send(result.clone().map_err(|error| error.on(id)));
            }
        }
        let unknown = |_| Err(Error::new(ErrorKind::Ambiguous, ApiOperation::Terminate).on(id));
        answered.await.unwrap_or_else(unknown)
    }

    /// Joins the open batch, or opens and returns a new one.
    fn join(&self, id: &InstanceId) -> (Option<Arc<Batch>>, Receiver<Result<()>>) {
        let (answer, answered) = oneshot::channel();
        let mut open = locked(&self.0);
        if let Some(batch) = open.upgrade() {
            let mut asked = locked(&batch);
            // An empty batch has just been sent.
            if (1..MOST).contains(&asked.len()) {
                asked.push((id.clone(), answer));
                return (None, answered);
            }
        }
        let batch = Arc::new(Mutex::new(vec![(id.clone(), answer)]));
        *open = Arc::downgrade(&batch);
        (Some(batch), answered)
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::future::join_all;
    use std::cell::RefCell;

    #[tokio::test(start_paused = true)]
    async fn simultaneous_requests_are_sent_once_and_every_caller_gets_a_result() {
        let (gather, sent) = (Gather::default(), RefCell::new(Vec::new()));
        let ids: Vec<InstanceId> = (0..2500).map(|n| InstanceId::new(format!("i-{n}"))).collect();
        let ask = |id| {
            gather.ask(id, |ids| {
                sent.borrow_mut().push(ids.len());
                async { Err(Error::new(ErrorKind::Throttled, ApiOperation::Terminate)) }
            })
        };
        let answers = join_all(ids.iter().map(ask)).await;
        assert_eq!(*sent.borrow(), [1000, 1000, 500]);
        for (id, answer) in ids.iter().zip(answers) {
            assert_eq!(answer.unwrap_err().subject(), Some(id.as_str()));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_dropped_caller_does_not_delay_the_others() {
        let gather = Gather::default();
        let id = InstanceId::new("i-1");
        let (first, _) = gather.join(&id);
        let (second, answered) = gather.join(&id);
        assert!(first.is_some() && second.is_none());
        drop(first);
        assert!(answered.await.is_err());
        gather
            .ask(&id, |ids| async move {
                assert_eq!(ids.len(), 1);
                Ok(())
            })
            .await
            .unwrap();
    }
}

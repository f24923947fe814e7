//! Launches: one by one, or gathered where the cloud launches many in one request.
//!
//! Each node asks for its own launch and gets its own answer. Where the cloud takes batches, the first node of those
//! that ask for the same opens a batch, waits a moment for the others, and sends the request for all.

use super::node::Permit;
use super::shared::Shared;
use cloud_core::{ApiOperation, Error, ErrorKind, Instance, InstanceSpec};
use std::cell::RefCell;
use std::rc::{Rc, Weak};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::sleep;

/// How long a batch is open: the nodes of a plan ask within a moment.
const GATHER: Duration = Duration::from_millis(200);

type Answer = Result<Instance, Error>;

/// Launches that go into one request.
#[derive(Debug, Default)]
struct Batch {
    specs: Vec<InstanceSpec>,
    answers: Vec<oneshot::Sender<Answer>>,
}

/// The batches that are open. Each lives with the node that opened it: if that is dropped, the others hear so.
#[derive(Debug, Default)]
pub(super) struct Batches(RefCell<Vec<Weak<RefCell<Batch>>>>);

impl Batches {
    /// Puts a launch into an open batch of launches that are alike, or opens one, which is then returned.
    fn join(
        &self,
        spec: InstanceSpec,
        most: usize,
    ) -> (Option<Rc<RefCell<Batch>>>, oneshot::Receiver<Answer>) {
        let (answer, answered) = oneshot::channel();
        let mut open = self.0.borrow_mut();
        open.retain(|batch| batch.strong_count() > 0);
        let fits = |batch: &Rc<RefCell<Batch>>| {
            let specs = &batch.borrow().specs;
            specs.len() < most && specs.first().is_some_and(|first| are_alike(first, &spec))
        };
        let found = open.iter().filter_map(Weak::upgrade).find(fits);
        let batch = found.clone().unwrap_or_default();
        batch.borrow_mut().specs.push(spec);
        batch.borrow_mut().answers.push(answer);
        if found.is_some() {
            return (None, answered);
        }
        open.push(Rc::downgrade(&batch));
        (Some(batch), answered)
    }

    /// Takes no more launches into the batch.
    fn close(&self, batch: &Rc<RefCell<Batch>>) -> Batch {
        self.0.borrow_mut().retain(|open| !open.ptr_eq(&Rc::downgrade(batch)));
        batch.take()
    }
}

/// True if two launches differ in name, tags and token alone.
fn are_alike(first: &InstanceSpec, other: &InstanceSpec) -> bool {
    let mut same = first.clone();
    same.name.clone_from(&other.name);
    same.tags.clone_from(&other.tags);
    same.token.clone_from(&other.token);
    same == *other
}

impl<'a> Shared<'a> {
    /// Launches an instance as the permit allows, together with others where the cloud takes batches.
    pub(super) async fn launch(&'a self, spec: InstanceSpec, permit: Permit<'a>) -> Answer {
        let cloud = self.tools.cloud;
        if self.cloud.batch <= 1 {
            let _permit = permit;
            return cloud.launch(&spec).await;
        }
        // A batch is one request, and needs one permit when it is sent.
        drop(permit);
        let unanswered = Error::new(ErrorKind::Ambiguous, ApiOperation::Launch).on(&spec.name);
        let (opened, answered) = self.batches.join(spec, self.cloud.batch);
        if let Some(batch) = opened {
            sleep(GATHER).await;
            let _permit = self.permit().await;
            let Batch { specs, answers } = self.batches.close(&batch);
            let results = cloud.launch_many(&specs).await;
            for (answer, result) in answers.into_iter().zip(results) {
                // Who does not wait any more finds its instance on record as asked for.
                let _ = answer.send(result);
            }
        }
        answered.await.unwrap_or(Err(unanswered))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cloud_core::{ImageId, InstanceName, ShapeName, Tags, Zone};

    fn spec(name: &str, zone: &str) -> InstanceSpec {
        let image = ImageId::new("image-1");
        let mut spec = InstanceSpec::new(InstanceName::new(name), ShapeName::new("small"), image);
        spec.zone = Some(Zone::new(zone));
        spec.tags = Tags::from([("node", name)]);
        spec
    }

    #[test]
    fn a_batch_takes_what_is_alike_until_it_is_full_or_closed() {
        let batches = Batches::default();
        let join = |name, zone| batches.join(spec(name, zone), 2).0;
        let first = join("n1", "a").unwrap();
        let elsewhere = join("n2", "b").unwrap();
        assert!(join("n3", "a").is_none(), "alike");
        let second = join("n4", "a").unwrap();
        assert_eq!(batches.close(&first).specs.len(), 2);
        assert_eq!(batches.close(&elsewhere).specs.len(), 1);
        drop(second);
        assert!(join("n5", "a").is_some(), "nobody is left to send the last one");
    }
}

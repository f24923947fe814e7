//! The cloud, with a line in the log about everything it is asked.

use crate::log::{Entry, Level, Log};
use crate::output::chain;
use async_trait::async_trait;
use cloud_core::{
    Capabilities, Image, ImageFilter, ImageId, ImageName, Instance, InstanceFilter, InstanceId,
    InstanceSpec, Limit, Operation, Provider, Reboot, Result, Shape,
};
use std::collections::BTreeMap;
use std::fmt::Display;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

/// A cloud that logs what it is asked, how long that took and what came of it.
#[derive(Debug)]
pub(crate) struct Traced {
    cloud: Box<dyn Provider>,
    log: Arc<Log>,
}

impl Traced {
    pub(crate) fn new(cloud: Box<dyn Provider>, log: Arc<Log>) -> Self {
        Self { cloud, log }
    }

    async fn tell<T>(
        &self,
        operation: Operation,
        on: impl Display + Send,
        answer: impl Future<Output = Result<T>> + Send,
    ) -> Result<T> {
        let begun = Instant::now();
        let answer = answer.await;
        let took = begun.elapsed().as_millis();
        let ended = answer.as_ref().map_or_else(|error| chain(error), |_| "done".to_owned());
        let message = format!("cloud: {operation} {on} ({took} ms): {ended}");
        self.log.write(Entry { level: Level::Debug, node: None, message: &message });
        answer
    }
}

#[async_trait]
impl Provider for Traced {
    fn capabilities(&self) -> Capabilities {
        self.cloud.capabilities()
    }

    async fn list(&self, filter: &InstanceFilter) -> Result<Vec<Instance>> {
        self.tell(Operation::List, "instances", self.cloud.list(filter)).await
    }

    async fn get(&self, id: &InstanceId) -> Result<Instance> {
        self.tell(Operation::Get, id, self.cloud.get(id)).await
    }

    async fn launch(&self, spec: &InstanceSpec) -> Result<Instance> {
        self.tell(Operation::Launch, &spec.name, self.cloud.launch(spec)).await
    }

    async fn terminate(&self, id: &InstanceId) -> Result<()> {
        self.tell(Operation::Terminate, id, self.cloud.terminate(id)).await
    }

    async fn rebuild(&self, id: &InstanceId, image: &ImageId) -> Result<()> {
        self.tell(Operation::Rebuild, id, self.cloud.rebuild(id, image)).await
    }

    async fn reboot(&self, id: &InstanceId, how: Reboot) -> Result<()> {
        self.tell(Operation::Reboot, id, self.cloud.reboot(id, how)).await
    }

    async fn start(&self, id: &InstanceId) -> Result<()> {
        self.tell(Operation::Start, id, self.cloud.start(id)).await
    }

    async fn addresses(&self, ids: &[InstanceId]) -> Result<BTreeMap<InstanceId, IpAddr>> {
        let on = format!("of {} instances", ids.len());
        self.tell(Operation::Addresses, on, self.cloud.addresses(ids)).await
    }

    async fn shapes(&self) -> Result<Vec<Shape>> {
        self.tell(Operation::Shapes, "", self.cloud.shapes()).await
    }

    async fn images(&self, filter: &ImageFilter) -> Result<Vec<Image>> {
        self.tell(Operation::Images, "", self.cloud.images(filter)).await
    }

    async fn limits(&self) -> Result<Vec<Limit>> {
        self.tell(Operation::Limits, "", self.cloud.limits()).await
    }

    async fn snapshot(&self, id: &InstanceId, name: &ImageName) -> Result<ImageId> {
        self.tell(Operation::Snapshot, id, self.cloud.snapshot(id, name)).await
    }
}

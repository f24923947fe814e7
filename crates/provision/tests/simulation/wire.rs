//! What is between programs and the cloud.

use crate::simulation::judge::Judge;
use crate::simulation::kill::Killable;
use async_trait::async_trait;
use cloud_core::{
    ApiOperation, Description, ErrorKind, ImageId, Instance, InstanceFilter, InstanceId,
    InstanceSpec, Provider, Reboot, Result,
};
use std::collections::BTreeMap;
use std::future::Future;
use std::net::IpAddr;
use std::sync::Arc;

/// A cloud at the other end of a wire: what was sent is carried out, also if the sender is killed.
#[derive(Debug)]
pub(crate) struct Wire {
    pub(crate) cloud: Arc<dyn Provider>,
    pub(crate) judge: Arc<Judge>,
    /// Requests outlive their senders.
    pub(crate) sends_on: bool,
    /// Listings show everything, whatever was asked for, as Nova's do.
    pub(crate) shows_all: bool,
}

impl Wire {
    /// Sends a request, which is the sender's doing whenever it is carried out.
    async fn send<T: Send + 'static>(
        &self,
        request: impl Future<Output = T> + Send + 'static,
    ) -> T {
        if !self.sends_on {
            return request.await;
        }
        let request = Killable::new(request, None, Arc::clone(&self.judge), self.judge.who());
        tokio::spawn(request).await.unwrap().unwrap()
    }
}

#[async_trait]
impl Provider for Wire {
    fn describe(&self) -> Description {
        self.cloud.describe()
    }

    async fn list(&self, filter: &InstanceFilter) -> Result<Vec<Instance>> {
        let all = InstanceFilter::default();
        self.cloud.list(if self.shows_all { &all } else { filter }).await
    }

    async fn get(&self, id: &InstanceId) -> Result<Instance> {
        self.cloud.get(id).await
    }

    async fn launch(&self, spec: &InstanceSpec) -> Result<Instance> {
        let (cloud, spec) = (Arc::clone(&self.cloud), spec.clone());
        let name = spec.name.clone();
        let launched = self.send(async move { cloud.launch(&spec).await }).await;
        if launched.as_ref().is_err_and(|error| error.kind() == ErrorKind::TokenUsedUp) {
            self.judge.used_up(name.as_str());
        }
        launched
    }

    async fn terminate(&self, id: &InstanceId) -> Result<()> {
        self.judge.sends(ApiOperation::Terminate, id);
        let (cloud, id) = (Arc::clone(&self.cloud), id.clone());
        self.send(async move { cloud.terminate(&id).await }).await
    }

    async fn rebuild(&self, id: &InstanceId, image: &ImageId) -> Result<()> {
        self.judge.sends(ApiOperation::Rebuild, id);
        self.cloud.rebuild(id, image).await
    }

    async fn reboot(&self, id: &InstanceId, how: Reboot) -> Result<()> {
        self.judge.sends(ApiOperation::Reboot, id);
        self.cloud.reboot(id, how).await
    }

    async fn stop(&self, id: &InstanceId) -> Result<()> {
        self.judge.sends(ApiOperation::Stop, id);
        let (cloud, id) = (Arc::clone(&self.cloud), id.clone());
        self.send(async move { cloud.stop(&id).await }).await
    }

    async fn start(&self, id: &InstanceId) -> Result<()> {
        let (cloud, id) = (Arc::clone(&self.cloud), id.clone());
        self.send(async move { cloud.start(&id).await }).await
    }

    async fn addresses(&self, ids: &[InstanceId]) -> Result<BTreeMap<InstanceId, IpAddr>> {
        self.cloud.addresses(ids).await
    }
}

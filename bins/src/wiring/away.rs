//! What stands for a cloud that does not let us in: it answers everything with the reason.

use async_trait::async_trait;
use cloud_core::{
    Error, ErrorKind, Instance, InstanceFilter, InstanceId, InstanceSpec, Operation, Provider,
    Reboot, Result,
};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// A cloud that does not let us in.
#[derive(Debug)]
pub(super) struct Away(String);

impl Away {
    pub(super) fn new(why: impl Into<String>) -> Self {
        Self(why.into())
    }

    fn answer<T>(&self, operation: Operation) -> Result<T> {
        Err(Error::new(ErrorKind::Unavailable, operation).because(&self.0))
    }
}

#[async_trait]
impl Provider for Away {
    async fn list(&self, _: &InstanceFilter) -> Result<Vec<Instance>> {
        self.answer(Operation::List)
    }

    async fn get(&self, _: &InstanceId) -> Result<Instance> {
        self.answer(Operation::Get)
    }

    async fn launch(&self, _: &InstanceSpec) -> Result<Instance> {
        self.answer(Operation::Launch)
    }

    async fn terminate(&self, _: &InstanceId) -> Result<()> {
        self.answer(Operation::Terminate)
    }

    async fn reboot(&self, _: &InstanceId, _: Reboot) -> Result<()> {
        self.answer(Operation::Reboot)
    }

    async fn addresses(&self, _: &[InstanceId]) -> Result<BTreeMap<InstanceId, IpAddr>> {
        self.answer(Operation::Addresses)
    }
}

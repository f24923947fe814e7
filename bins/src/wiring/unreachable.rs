//! What stands for a cloud that does not let us in: it answers everything with the reason.

use crate::diagnostic::Diagnostic;
use async_trait::async_trait;
use cloud_core::{
    Error, ErrorKind, Image, ImageFilter, Instance, InstanceFilter, InstanceId, InstanceSpec,
    Limit, Operation, Provider, Reboot, Result, Shape,
};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// A cloud that does not let us in.
#[derive(Debug)]
pub(crate) struct Unreachable(Diagnostic);

impl Unreachable {
    pub(crate) fn new(why: Diagnostic) -> Self {
        Self(why)
    }

    fn answer<T>(&self, operation: Operation) -> Result<T> {
        // What has to be mended is not asked for again and again.
        let kind = if self.0.is_transient() { ErrorKind::Unavailable } else { ErrorKind::Invalid };
        Err(Error::new(kind, operation).because(self.0.to_string()))
    }
}

#[async_trait]
impl Provider for Unreachable {
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

    async fn shapes(&self) -> Result<Vec<Shape>> {
        self.answer(Operation::Shapes)
    }

    async fn images(&self, _: &ImageFilter) -> Result<Vec<Image>> {
        self.answer(Operation::Images)
    }

    async fn limits(&self) -> Result<Vec<Limit>> {
        self.answer(Operation::Limits)
    }

    async fn addresses(&self, _: &[InstanceId]) -> Result<BTreeMap<InstanceId, IpAddr>> {
        self.answer(Operation::Addresses)
    }
}

//! A stand-in for an unreachable cloud.

use crate::{
    ApiOperation, Description, Error, ErrorKind, Image, ImageFilter, Instance, InstanceFilter,
    InstanceId, InstanceSpec, Limit, Provider, Reboot, Result, Shape,
};
use async_trait::async_trait;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// A stand-in for an unreachable cloud, whose requests all fail with the reason.
#[derive(Clone, Debug)]
pub struct Unreachable {
    kind: ErrorKind,
    why: String,
    description: Description,
}

impl Unreachable {
    /// Creates a stand-in whose requests all fail with this kind.
    #[must_use]
    pub fn new(kind: ErrorKind, why: impl Into<String>) -> Self {
        Self { kind, why: why.into(), description: Description::new("unreachable") }
    }

    /// Sets the description of the cloud that it stands in for.
    #[must_use]
    pub fn describing(self, description: Description) -> Self {
        Self { description, ..self }
    }

    fn answer<T>(&self, operation: ApiOperation) -> Result<T> {
        Err(Error::new(self.kind, operation).because(&self.why).given_up())
    }
}

#[async_trait]
impl Provider for Unreachable {
    fn describe(&self) -> Description {
        self.description.clone()
    }

    async fn list(&self, _: &InstanceFilter) -> Result<Vec<Instance>> {
        self.answer(ApiOperation::List)
    }

    async fn get(&self, _: &InstanceId) -> Result<Instance> {
        self.answer(ApiOperation::Get)
    }

    async fn launch(&self, _: &InstanceSpec) -> Result<Instance> {
        self.answer(ApiOperation::Launch)
    }

    async fn terminate(&self, _: &InstanceId) -> Result<()> {
        self.answer(ApiOperation::Terminate)
    }

    async fn reboot(&self, _: &InstanceId, _: Reboot) -> Result<()> {
        self.answer(ApiOperation::Reboot)
    }

    async fn shapes(&self) -> Result<Vec<Shape>> {
        self.answer(ApiOperation::Shapes)
    }

    async fn images(&self, _: &ImageFilter) -> Result<Vec<Image>> {
        self.answer(ApiOperation::Images)
    }

    async fn limits(&self) -> Result<Vec<Limit>> {
        self.answer(ApiOperation::Limits)
    }

    async fn addresses(&self, _: &[InstanceId]) -> Result<BTreeMap<InstanceId, IpAddr>> {
        self.answer(ApiOperation::Addresses)
    }
}

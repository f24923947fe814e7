//! The port: what a cloud has to be able to do for us.

use crate::{
    ApiOperation, Description, Error, Image, ImageFilter, ImageId, ImageName, Instance, InstanceId,
    InstanceName, InstanceSpec, Limit, Result, Shape, Tags,
};
use async_trait::async_trait;
use futures_util::future::join_all;
use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;

/// A cloud.
///
/// Used as `dyn Provider`. The conformance suite (feature `conformance`) checks what holds for
/// every implementation.
///
/// An error of kind [`Unavailable`](crate::ErrorKind::Unavailable) or
/// [`Throttled`](crate::ErrorKind::Throttled) says that nothing was done; if something may have
/// been done, the kind is [`Ambiguous`](crate::ErrorKind::Ambiguous).
#[async_trait]
pub trait Provider: fmt::Debug + Send + Sync + 'static {
    /// What the cloud says about itself: its names for things, and what it can do beyond the minimum.
    fn describe(&self) -> Description;

    /// The instances that the filter wants, from all pages.
    ///
    /// May lag behind: an instance just launched need not be there yet. Whatever the cloud says
    /// it has filtered is checked again ([`InstanceFilter::keep`]): Nova ignores a `metadata`
    /// filter without a word and returns every server.
    async fn list(&self, filter: &InstanceFilter) -> Result<Vec<Instance>>;

    /// One instance as it is now; [`NotFound`](crate::ErrorKind::NotFound) once it is forgotten.
    async fn get(&self, id: &InstanceId) -> Result<Instance>;

    /// Launches an instance and returns as soon as the cloud has accepted it.
    ///
    /// It can still fail: see [`Instance::fault`]. A token makes a repeat return the first
    /// instance, where the cloud knows tokens. A wish in the spec that the cloud cannot fulfil
    /// is [`Unsupported`](crate::ErrorKind::Unsupported), never silently left out.
    async fn launch(&self, spec: &InstanceSpec) -> Result<Instance>;

    /// Launches instances that are alike but for name, tags and token: one result for each, in their order.
    ///
    /// A cloud whose API launches many at once sends one request, and says how many it takes
    /// ([`Description::batch`]). Each instance is listed with the name and the tags of its own spec from the
    /// beginning. If the answer is lost, every result is [`Ambiguous`](crate::ErrorKind::Ambiguous): the caller
    /// looks for each instance by its tags, and does not rely on tokens. Other clouds launch one by one.
    async fn launch_many(&self, specs: &[InstanceSpec]) -> Vec<Result<Instance>> {
        join_all(specs.iter().map(|spec| self.launch(spec))).await
    }

    /// Begins to remove an instance; one that is gone already is a success.
    ///
    /// So is one that the cloud has never known: nobody can tell it from one that was forgotten,
    /// and there is nothing left to remove. That is the cloud's own answer about the instance; that
    /// a token or an endpoint is not found says nothing about it and is an error.
    async fn terminate(&self, id: &InstanceId) -> Result<()>;

    /// Begins to write a new image over the boot disk; id, name, tags and address stay.
    async fn rebuild(&self, id: &InstanceId, image: &ImageId) -> Result<()> {
        let _ = image;
        Err(Error::unsupported(ApiOperation::Rebuild).on(id))
    }

    /// Begins to reboot a running instance.
    async fn reboot(&self, id: &InstanceId, how: Reboot) -> Result<()>;

    /// Begins to start a stopped instance.
    async fn start(&self, id: &InstanceId) -> Result<()> {
        Err(Error::unsupported(ApiOperation::Start).on(id))
    }

    /// The first private address of each, in a few requests for all; those without one yet, and
    /// those unknown, are left out.
    async fn addresses(&self, ids: &[InstanceId]) -> Result<BTreeMap<InstanceId, IpAddr>>;

    /// The shapes on offer.
    async fn shapes(&self) -> Result<Vec<Shape>> {
        Err(Error::unsupported(ApiOperation::Shapes))
    }

    /// The images that the filter wants, newest first.
    async fn images(&self, filter: &ImageFilter) -> Result<Vec<Image>> {
        let _ = filter;
        Err(Error::unsupported(ApiOperation::Images))
    }

    /// What may be used, and is.
    async fn limits(&self) -> Result<Vec<Limit>> {
        Err(Error::unsupported(ApiOperation::Limits))
    }

    /// Begins to make an image of an instance.
    async fn snapshot(&self, id: &InstanceId, name: &ImageName) -> Result<ImageId> {
        let _ = name;
        Err(Error::unsupported(ApiOperation::Snapshot).on(id))
    }
}

/// How to reboot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reboot {
    /// Ask the operating system.
    Soft,
    /// Cut the power.
    Hard,
}

/// Which instances to list: those with all of these tags, and this name if one is given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InstanceFilter {
    /// Tags that an instance must have.
    pub tags: Tags,
    /// The exact name.
    pub name: Option<InstanceName>,
}

impl InstanceFilter {
    /// All instances with these tags.
    #[must_use]
    pub fn tagged(tags: Tags) -> Self {
        Self { tags, name: None }
    }

    /// Restricts the filter to instances with this name.
    #[must_use]
    pub fn named(mut self, name: InstanceName) -> Self {
        self.name = Some(name);
        self
    }

    /// True if the instance is wanted.
    #[must_use]
    pub fn matches(&self, instance: &Instance) -> bool {
        let named = self.name.as_ref().is_none_or(|name| *name == instance.name);
        named && instance.tags.include(&self.tags)
    }

    /// Checks the filter again on what a cloud answered.
    #[must_use]
    pub fn keep(&self, mut listed: Vec<Instance>) -> Vec<Instance> {
        listed.retain(|instance| self.matches(instance));
        listed
    }
}

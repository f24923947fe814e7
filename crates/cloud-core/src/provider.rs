//! The port to a cloud.

use crate::{
    ApiOperation, Description, Error, Image, ImageFilter, ImageId, ImageName, Instance, InstanceId,
    InstanceName, InstanceSpec, Limit, Result, Room, Shape, ShapeName, Tags, Zone,
};
use async_trait::async_trait;
use futures_util::future::join_all;
use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;

/// A cloud that launches and manages instances.
///
/// It is used as `dyn Provider`. The conformance suite (feature `conformance`) checks every implementation.
///
/// An error of kind [`Unavailable`](crate::ErrorKind::Unavailable) or [`Throttled`](crate::ErrorKind::Throttled) means that
/// nothing was done. If something may have been done, the kind is [`Ambiguous`](crate::ErrorKind::Ambiguous).
#[async_trait]
pub trait Provider: fmt::Debug + Send + Sync + 'static {
    /// Describes the cloud: its terms and its optional capabilities.
    fn describe(&self) -> Description;

    /// Lists the instances that pass the filter, from all pages.
    ///
    /// The listing may lag: a new instance may be missing. The filter is applied again to the response
    /// ([`InstanceFilter::keep`]), because Nova silently ignores a `metadata` filter and returns every server.
    async fn list(&self, filter: &InstanceFilter) -> Result<Vec<Instance>>;

    /// Gets the current state of an instance; [`NotFound`](crate::ErrorKind::NotFound) once the cloud has forgotten it.
    async fn get(&self, id: &InstanceId) -> Result<Instance>;

    /// Launches an instance and returns as soon as the cloud has accepted it.
    ///
    /// It can still fail: see [`Instance::fault`]. If the cloud supports tokens, a repeated launch with the same token
    /// returns the first instance. An option that the cloud does not support is an
    /// [`Unsupported`](crate::ErrorKind::Unsupported) error, never silently ignored.
    async fn launch(&self, spec: &InstanceSpec) -> Result<Instance>;

    /// Launches instances that differ only in name, tags and token. Returns one result for each, in order.
    ///
    /// A cloud whose API launches many instances at once sends one request of up to [`Description::batch`] instances;
    /// others launch one by one. Each instance has its own name and tags from the start. If the response is lost, every
    /// result is [`Ambiguous`](crate::ErrorKind::Ambiguous): the caller finds each instance by its tags, not by tokens.
    async fn launch_many(&self, specs: &[InstanceSpec]) -> Vec<Result<Instance>> {
        join_all(specs.iter().map(|spec| self.launch(spec))).await
    }

    /// Starts terminating an instance. Success if it is already gone.
    ///
    /// An unknown instance is also a success, because it cannot be distinguished from a forgotten one. Only the cloud's
    /// response about the instance counts; a missing token or endpoint is an error.
    async fn terminate(&self, id: &InstanceId) -> Result<()>;

    /// Starts replacing the image of the boot disk. Id, name, tags and address stay.
    async fn rebuild(&self, id: &InstanceId, image: &ImageId) -> Result<()> {
        let _ = image;
        Err(Error::unsupported(ApiOperation::Rebuild).on(id))
    }

    /// Starts a reboot of a running instance.
    async fn reboot(&self, id: &InstanceId, how: Reboot) -> Result<()>;

    /// Starts to shut an instance down. It keeps its id, tags and boot disk, and costs little or nothing until it is
    /// started again.
    async fn stop(&self, id: &InstanceId) -> Result<()> {
        Err(Error::unsupported(ApiOperation::Stop).on(id))
    }

    /// Starts a stopped instance.
    async fn start(&self, id: &InstanceId) -> Result<()> {
        Err(Error::unsupported(ApiOperation::Start).on(id))
    }

    /// Returns the first private address of each instance, in a few requests for all. Instances that are unknown or have no
    /// address yet are left out.
    async fn addresses(&self, ids: &[InstanceId]) -> Result<BTreeMap<InstanceId, IpAddr>>;

    /// Lists the shapes.
    async fn shapes(&self) -> Result<Vec<Shape>> {
        Err(Error::unsupported(ApiOperation::Shapes))
    }

    /// Lists the images that pass the filter, newest first.
    async fn images(&self, filter: &ImageFilter) -> Result<Vec<Image>> {
        let _ = filter;
        Err(Error::unsupported(ApiOperation::Images))
    }

    /// Lists the limits and their use.
    async fn limits(&self) -> Result<Vec<Limit>> {
        Err(Error::unsupported(ApiOperation::Limits))
    }

    /// Tells whether a zone has a machine of this shape now, without a launch and without counting quotas.
    async fn room(&self, shape: &ShapeName, zone: &Zone) -> Result<Room> {
        let _ = shape;
        Err(Error::unsupported(ApiOperation::Limits).on(zone))
    }

    /// Starts making an image of an instance.
    async fn snapshot(&self, id: &InstanceId, name: &ImageName) -> Result<ImageId> {
        let _ = name;
        Err(Error::unsupported(ApiOperation::Snapshot).on(id))
    }
}

/// How to reboot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reboot {
    /// Reboot through the operating system.
    Soft,
    /// Power cycle.
    Hard,
}

/// A filter of instances by tags and name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InstanceFilter {
    /// Tags that an instance must have.
    pub tags: Tags,
    /// The exact name.
    pub name: Option<InstanceName>,
}

impl InstanceFilter {
    /// Creates a filter for instances with these tags.
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

    /// True if the instance passes the filter.
    #[must_use]
    pub fn matches(&self, instance: &Instance) -> bool {
        let named = self.name.as_ref().is_none_or(|name| *name == instance.name);
        named && instance.tags.include(&self.tags)
    }

    /// Applies the filter to the response of a cloud.
    #[must_use]
    pub fn keep(&self, mut listed: Vec<Instance>) -> Vec<Instance> {
        listed.retain(|instance| self.matches(instance));
        listed
    }
}

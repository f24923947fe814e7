//! OpenStack as a [`Provider`].

use crate::api::{Api, join, with_query};
use crate::create::{self, LaunchOptions, Nic};
use crate::resolve::{Kind, Resolver, is_uuid};
use crate::wire::{CreatedBody, ServerBody, ServersBody, SnapshotBody};
use crate::{flavor, image, limits, server, tags};
use async_trait::async_trait;
use cloud_core::http::{Method, Request};
use cloud_core::{
    Capabilities, Capability, Error, ErrorKind, Image, ImageFilter, ImageId, ImageName, Instance,
    InstanceFilter, InstanceId, InstanceSpec, Limit, Operation, Provider, Reboot, Result, Shape,
};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use tokio::sync::OnceCell;

/// So many addresses are asked for one by one; more are looked for in a listing.
const FEW: usize = 3;

/// An OpenStack cloud, as one user in one project sees it.
#[derive(Debug)]
pub struct OpenStack {
    pub(crate) api: Api,
    pub(crate) resolver: Resolver,
    pub(crate) launch: LaunchOptions,
    pub(crate) address_network: Option<String>,
    pub(crate) primary: OnceCell<Option<String>>,
    pub(crate) page: u32,
    pub(crate) warnings: Vec<String>,
}

impl OpenStack {
    /// What an operator should know about the configuration and the cloud; one sentence each.
    #[must_use]
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Launches with options other than the usual ones.
    pub async fn launch_with(
        &self,
        spec: &InstanceSpec,
        options: &LaunchOptions,
    ) -> Result<Instance> {
        let (request, image) = create::request(&self.api, &self.resolver, spec, options).await?;
        let created: CreatedBody = self.api.read(&request).await?;
        let mut instance = Instance::launched(InstanceId::new(created.server.id), spec);
        instance.image = options.boot_volume.is_none().then(|| ImageId::new(image));
        Ok(instance)
    }

    /// All servers with these Nova tags, from all pages.
    async fn servers(&self, operation: Operation, tags: Option<&str>) -> Result<Vec<Instance>> {
        let primary = self.primary(operation).await?;
        let limit = self.page.to_string();
        let query: Vec<(&str, &str)> =
            [tags.map(|tags| ("tags", tags)), Some(("limit", limit.as_str()))]
                .into_iter()
                .flatten()
                .collect();
        let url = join(&self.api.endpoints.compute, &["servers", "detail"]);
        let url = with_query(url, &query);
        let ask = |url| self.api.compute_at(operation, Method::GET, url);
        let servers = self.api.list::<ServersBody>(operation, &url, ask).await?;
        Ok(servers.into_iter().map(|found| server::instance(found, primary)).collect())
    }

    async fn server(&self, operation: Operation, id: &InstanceId) -> Result<Instance> {
        let primary = self.primary(operation).await?;
        let request = self.api.compute(operation, Method::GET, &["servers", id.as_str()]).on(id);
        let body: ServerBody = self.api.read(&request).await?;
        Ok(server::instance(body.server, primary))
    }

    /// The name of the network whose address counts: Nova shows addresses by that, and not by id.
    async fn primary(&self, operation: Operation) -> Result<Option<&str>> {
        let find = || async {
            let first = match self.launch.nics.first() {
                Some(Nic::Network { network, .. }) if self.launch.nics.len() > 1 => network,
                // The only network needs no name; that of a port is not known.
                Some(Nic::Network { .. } | Nic::Port(_)) | None => return Ok(None),
            };
            if !is_uuid(first) {
                return Ok(Some(first.clone()));
            }
            let url = join(&self.api.endpoints.network, &["v2.0", "networks", first]);
            let request = Request::new(operation, Method::GET, url).on(first);
            let body: Value = self.api.read(&request).await?;
            let name = body.pointer("/network/name").and_then(Value::as_str);
            Ok(name.map(str::to_owned))
        };
        if self.address_network.is_some() {
            return Ok(self.address_network.as_deref());
        }
        self.primary.get_or_try_init(find).await.map(Option::as_deref)
    }

    /// An old Nova accepts to rebuild what boots from a volume, and leaves the volume as it is.
    async fn refuse_volume(&self, id: &InstanceId) -> Result<()> {
        let before = self.server(Operation::Rebuild, id).await?;
        if before.image.is_some() {
            return Ok(());
        }
        let why = "it boots from a volume, and this Nova is too old (2.93) to write an image there";
        Err(Error::unsupported(Operation::Rebuild).on(id).because(why))
    }
}

#[async_trait]
impl Provider for OpenStack {
    fn capabilities(&self) -> Capabilities {
        Capabilities::from([
            Capability::Rebuild,
            Capability::SoftReboot,
            Capability::Start,
            Capability::Snapshot,
            Capability::Limits,
        ])
    }

    async fn list(&self, filter: &InstanceFilter) -> Result<Vec<Instance>> {
        // The name is not asked for: Nova takes it for a regular expression.
        let tags = tags::query(&filter.tags);
        let servers = self.servers(Operation::List, tags.as_deref()).await?;
        Ok(filter.keep(servers))
    }

    async fn get(&self, id: &InstanceId) -> Result<Instance> {
        self.server(Operation::Get, id).await
    }

    async fn launch(&self, spec: &InstanceSpec) -> Result<Instance> {
        self.launch_with(spec, &self.launch).await
    }

    async fn terminate(&self, id: &InstanceId) -> Result<()> {
        let path = ["servers", id.as_str()];
        let request = self.api.compute(Operation::Terminate, Method::DELETE, &path).on(id);
        match self.api.accepted(&request).await {
            // Nova's own word about a server; a wrong address is answered otherwise.
            Err(error)
                if error.kind() == ErrorKind::NotFound && error.code() == Some("itemNotFound") =>
            {
                Ok(())
            }
            result => result,
        }
    }

    async fn rebuild(&self, id: &InstanceId, image: &ImageId) -> Result<()> {
        if !self.api.versions.rebuild_volumes() {
            self.refuse_volume(id).await?;
        }
        let image = self.resolver.id(&self.api, Kind::Image, image.as_str()).await;
        let image = image.map_err(|error| error.on(id))?;
        let action = json!({"rebuild": {"imageRef": image}});
        self.api.accepted(&self.api.rebuild(id.as_str(), &action)?).await
    }

    async fn reboot(&self, id: &InstanceId, how: Reboot) -> Result<()> {
        let how = match how {
            Reboot::Soft => "SOFT",
            Reboot::Hard => "HARD",
        };
        let action = json!({"reboot": {"type": how}});
        self.api.accepted(&self.api.action(Operation::Reboot, id.as_str(), &action)?).await
    }

    async fn start(&self, id: &InstanceId) -> Result<()> {
        let action = json!({"os-start": null});
        self.api.accepted(&self.api.action(Operation::Start, id.as_str(), &action)?).await
    }

    async fn addresses(&self, ids: &[InstanceId]) -> Result<BTreeMap<InstanceId, IpAddr>> {
        let mut instances = Vec::new();
        if ids.len() <= FEW {
            for id in ids {
                match self.server(Operation::Addresses, id).await {
                    Ok(instance) => instances.push(instance),
                    Err(error) if error.kind() == ErrorKind::NotFound => {}
                    Err(error) => return Err(error),
                }
            }
        } else {
            let wanted: BTreeSet<&InstanceId> = ids.iter().collect();
            instances = self.servers(Operation::Addresses, None).await?;
            instances.retain(|instance| wanted.contains(&instance.id));
        }
        let pairs = instances.into_iter();
        Ok(pairs.filter_map(|instance| Some((instance.id, instance.address?))).collect())
    }

    async fn shapes(&self) -> Result<Vec<Shape>> {
        let flavors = flavor::list(&self.api, Operation::Shapes).await?;
        Ok(flavors.into_iter().map(flavor::shape).collect())
    }

    async fn images(&self, filter: &ImageFilter) -> Result<Vec<Image>> {
        image::list(&self.api, filter).await
    }

    async fn limits(&self) -> Result<Vec<Limit>> {
        limits::list(&self.api).await
    }

    async fn snapshot(&self, id: &InstanceId, name: &ImageName) -> Result<ImageId> {
        let action = json!({"createImage": {"name": name.as_str()}});
        let request = self.api.action(Operation::Snapshot, id.as_str(), &action)?;
        let made: SnapshotBody = self.api.read(&request).await?;
        Ok(ImageId::new(made.image_id))
    }
}

//! OpenStack as a [`Provider`].

use crate::api::{Api, is_gone, join, with_query};
use crate::create::{self, LaunchOptions, Nic};
use crate::describe::describe;
use crate::legacy_tag::LegacyTag;
use crate::resolve::{Kind, Resolver, uuid};
use crate::server::Primary;
use crate::wire::{CreatedBody, Server, ServerBody, ServersBody, SnapshotBody, with};
use crate::{flavor, image, limits, server, tags};
use async_trait::async_trait;
use cloud_core::http::{Method, Request};
use cloud_core::{
    ApiOperation, Description, Error, ErrorKind, Image, ImageFilter, ImageId, ImageName, Instance,
    InstanceFilter, InstanceId, InstanceSpec, InstanceState, Limit, Provider, Reboot, Result,
    Shape,
};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::PoisonError;
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};

/// Maximum number of addresses to query one by one. More come from a listing.
const FEW: usize = 3;
/// How long to wait before querying the primary network's name again, if Neutron refused or failed.
const HOLD_OFF: Duration = Duration::from_mins(1);
const SHORT_HOLD_OFF: Duration = Duration::from_secs(10);
/// Timeout for that name, because listings wait for it.
const LONGEST_LOOK: Duration = Duration::from_secs(5);

fn hold_off(why: &Error) -> Duration {
    if why.kind().is_transient() { SHORT_HOLD_OFF } else { HOLD_OFF }
}

/// The name of the primary network, as far as it is known.
#[derive(Debug, Default)]
pub(crate) enum Looked {
    #[default]
    Never,
    Found(String),
    /// Time and reason of the failure.
    Failed(Instant, Error),
}

/// An OpenStack cloud, as one project.
#[derive(Debug)]
pub struct OpenStack {
    pub(crate) api: Api,
    pub(crate) resolver: Resolver,
    pub(crate) launch: LaunchOptions,
    pub(crate) address_network: Option<String>,
    pub(crate) legacy_tag: Option<LegacyTag>,
    pub(crate) shelve: bool,
    /// The Nova tags of the last listing.
    pub(crate) listed: std::sync::Mutex<Option<String>>,
    pub(crate) primary: Mutex<Looked>,
    pub(crate) page: u32,
    pub(crate) warnings: Vec<String>,
}

impl OpenStack {
    /// Warnings about the configuration and the cloud, one sentence each.
    #[must_use]
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Launches with other options than those of the connection.
    ///
    /// Even with other networks, the address of the instance is that on
    /// [`ConnectSettings::address_network`](crate::ConnectSettings::address_network) or on the first network of
    /// [`ConnectSettings::launch`](crate::ConnectSettings::launch).
    pub async fn launch_with(
        &self,
        spec: &InstanceSpec,
        options: &LaunchOptions,
    ) -> Result<Instance> {
        let (request, image) = create::request(&self.api, &self.resolver, spec, options).await?;
        let created = self.api.read::<CreatedBody>(&request).await.inspect_err(|error| {
            // Another image may have taken the name.
            if error.kind() == ErrorKind::Invalid {
                self.resolver.forget(Kind::Image, spec.image.as_str());
            }
        })?;
        let mut instance = Instance::launched(InstanceId::new(created.server.id), spec);
        instance.image = Some(ImageId::new(image));
        Ok(instance)
    }

    /// The id of the image with this name or id, in the format of instances.
    ///
    /// An error if there is none, or more than one.
    pub async fn resolve_image(&self, image: &ImageId) -> Result<ImageId> {
        let id =
            self.resolver.id(&self.api, ApiOperation::Images, Kind::Image, image.as_str()).await;
        id.map(ImageId::new).map_err(|error| error.on(image))
    }

    /// Lists all servers with these Nova tags. Servers of a cell that is down are omitted, because their tags are unknown.
    async fn servers(&self, operation: ApiOperation, tags: Option<&str>) -> Result<Vec<Instance>> {
        let primary = self.primary().await;
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
        let shown = servers.into_iter().filter(|server| !server.is_hidden());
        Ok(shown.map(|found| self.instance(found, &primary)).collect())
    }

    fn instance(&self, found: Server, primary: &Primary) -> Instance {
        let mut instance = server::instance(found, primary);
        if let Some(legacy_tag) = &self.legacy_tag {
            legacy_tag.read(&mut instance);
        }
        if self.shelve
            && let InstanceState::Other(word) = &instance.state
            && is_shelved(word)
        {
            instance.state = InstanceState::Stopped;
        }
        instance
    }

    /// Gets these servers with the filter of the last listing, because the project may have many others. If few are
    /// missing, gets these one by one.
    async fn many(&self, operation: ApiOperation, ids: &[InstanceId]) -> Result<Vec<Instance>> {
        let mut wanted: BTreeSet<&InstanceId> = ids.iter().collect();
        let listed = self.listed.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut instances = self.servers(operation, listed.as_deref()).await?;
        instances.retain(|instance| wanted.remove(&instance.id));
        if listed.is_some() && wanted.len() > FEW {
            let mut others = self.servers(operation, None).await?;
            others.retain(|instance| wanted.contains(&instance.id));
            instances.append(&mut others);
        } else if listed.is_some() {
            instances.append(&mut self.few(operation, wanted.into_iter()).await?);
        }
        Ok(instances)
    }

    /// Gets these servers one by one. Those that are gone or in a cell that is down are omitted, so that they do not hide
    /// the others.
    async fn few(
        &self,
        operation: ApiOperation,
        ids: impl Iterator<Item = &InstanceId> + Send,
    ) -> Result<Vec<Instance>> {
        let primary = self.primary().await;
        let mut instances = Vec::new();
        for id in ids {
            match self.shown(operation, id).await {
                Ok(server) => instances.extend(server.map(|it| self.instance(it, &primary))),
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Ok(instances)
    }

    /// Gets one server. A cell that is down is an error, because the tags are unknown.
    async fn server(&self, operation: ApiOperation, id: &InstanceId) -> Result<Server> {
        let shown = self.shown(operation, id).await?;
        shown.ok_or_else(|| {
            let why = "its cell does not answer, so Nova shows neither its name nor its tags";
            Error::new(ErrorKind::Unavailable, operation).on(id).because(why)
        })
    }

    /// Gets one server; none if its cell is down.
    async fn shown(&self, operation: ApiOperation, id: &InstanceId) -> Result<Option<Server>> {
        let request = self.api.compute(operation, Method::GET, &["servers", id.as_str()]).on(id);
        let body: ServerBody = self.api.read(&request).await?;
        Ok(Some(body.server).filter(|server| !server.is_hidden()))
    }

    /// The network whose address counts.
    ///
    /// A failed lookup is an error only for a request of addresses, because nothing else about servers depends on Neutron.
    async fn primary(&self) -> Primary {
        let told = self.address_network.as_ref().map(Nic::network);
        let first = match (told.as_ref(), &self.launch.nics[..]) {
            (Some(Nic::Network { network, .. }), _)
            | (None, [Nic::Network { network, .. }, ..])
                if uuid(network).is_none() =>
            {
                return Primary::Named(network.clone());
            }
            // A single network needs no name.
            (None, [] | [_]) => return Primary::Any,
            (Some(first), _) | (None, [first, ..]) => first,
        };
        let mut looked = self.primary.lock().await;
        match &*looked {
            Looked::Found(name) => return Primary::Named(name.clone()),
            Looked::Failed(when, why) if when.elapsed() < hold_off(why) => return Primary::Unknown,
            Looked::Failed(..) | Looked::Never => {}
        }
        let why = format!("no network name from Neutron within {LONGEST_LOOK:?}");
        let late = Error::new(ErrorKind::Unavailable, ApiOperation::Addresses).because(why);
        // Recorded before the request, so that a cancelled call does not repeat it immediately.
        *looked = Looked::Failed(Instant::now(), late);
        match timeout(LONGEST_LOOK, self.name_of_network(first)).await {
            Ok(Ok(name)) => {
                *looked = Looked::Found(name.clone());
                return Primary::Named(name);
            }
            Ok(Err(error)) => *looked = Looked::Failed(Instant::now(), error),
            Err(_elapsed) => {}
        }
        Primary::Unknown
    }

    /// The name of the network of an interface. Nova lists addresses by name and not by id.
    async fn name_of_network(&self, nic: &Nic) -> Result<String> {
        let fact = async |collection, id: &str, path| {
            let url = join(&self.api.endpoints.network, &["v2.0", collection, id]);
            let request = Request::new(ApiOperation::Addresses, Method::GET, url).on(id);
            let body: Value = self.api.read(&request).await?;
            let fact = body.pointer(path).and_then(Value::as_str).map(str::to_owned);
            fact.ok_or_else(|| request.error(ErrorKind::Protocol).because(format!("no {path}")))
        };
        let network = match nic {
            Nic::Network { network, .. } => network.clone(),
            Nic::Port(port) => {
                let port = self.resolver.id(&self.api, ApiOperation::Addresses, Kind::Port, port);
                fact("ports", &port.await?, "/port/network_id").await?
            }
        };
        fact("networks", &network, "/network/name").await
    }

    /// The action that rebuilds a server. Nova does not report the image of a boot volume, so it is recorded in the
    /// metadata, which the action replaces as a whole.
    fn rebuilding(&self, before: Server, image: &ImageId) -> Result<Value> {
        let action = json!({"imageRef": image.as_str()});
        if before.image.is_some() {
            return Ok(json!({"rebuild": action}));
        }
        // An old Nova accepts it without changing the volume.
        if !self.api.versions.rebuild_volumes() {
            let why =
                "it boots from a volume, and this Nova is too old (2.93) to write an image there";
            return Err(Error::unsupported(ApiOperation::Rebuild).on(&before.id).because(why));
        }
        let Some(mut metadata) = before.metadata else {
            return Ok(json!({"rebuild": action}));
        };
        metadata.insert(tags::BOOT_IMAGE.to_owned(), image.as_str().to_owned());
        Ok(json!({"rebuild": with(action, "metadata", json!(metadata))}))
    }
}

/// True for the status of a server that was shelved.
fn is_shelved(status: &str) -> bool {
    matches!(status, "SHELVED" | "SHELVED_OFFLOADED")
}

#[async_trait]
impl Provider for OpenStack {
    fn describe(&self) -> Description {
        describe()
    }

    async fn list(&self, filter: &InstanceFilter) -> Result<Vec<Instance>> {
        // Not filtered by name, which Nova takes for a regular expression.
        let tags = LegacyTag::query(self.legacy_tag.as_ref(), &filter.tags);
        let servers = self.servers(ApiOperation::List, tags.as_deref()).await?;
        *self.listed.lock().unwrap_or_else(PoisonError::into_inner) = tags;
        Ok(filter.keep(servers))
    }

    async fn get(&self, id: &InstanceId) -> Result<Instance> {
        let primary = self.primary().await;
        let server = self.server(ApiOperation::Get, id).await?;
        Ok(self.instance(server, &primary))
    }

    async fn launch(&self, spec: &InstanceSpec) -> Result<Instance> {
        self.launch_with(spec, &self.launch).await
    }

    async fn terminate(&self, id: &InstanceId) -> Result<()> {
        let path = ["servers", id.as_str()];
        let request = self.api.compute(ApiOperation::Terminate, Method::DELETE, &path).on(id);
        match self.api.accepted(&request).await {
            Err(error) if is_gone(&error) => Ok(()),
            result => result,
        }
    }

    async fn rebuild(&self, id: &InstanceId, image: &ImageId) -> Result<()> {
        // Waits compare this with Nova's format.
        if uuid(image.as_str()).as_deref() != Some(image.as_str()) {
            let why = format!("'{image}' is not an image id: look up its id first");
            return Err(Error::new(ErrorKind::Invalid, ApiOperation::Rebuild).on(id).because(why));
        }
        let before = self.server(ApiOperation::Rebuild, id).await?;
        let action = self.rebuilding(before, image)?;
        self.api.accepted(&self.api.rebuild(id.as_str(), &action)?).await
    }

    async fn reboot(&self, id: &InstanceId, how: Reboot) -> Result<()> {
        let how = match how {
            Reboot::Soft => "SOFT",
            Reboot::Hard => "HARD",
        };
        let action = json!({"reboot": {"type": how}});
        self.api.accepted(&self.api.action(ApiOperation::Reboot, id.as_str(), &action)?).await
    }

    async fn stop(&self, id: &InstanceId) -> Result<()> {
        let action = if self.shelve { json!({"shelve": null}) } else { json!({"os-stop": null}) };
        self.api.accepted(&self.api.action(ApiOperation::Stop, id.as_str(), &action)?).await
    }

    async fn start(&self, id: &InstanceId) -> Result<()> {
        // Nova wants to know which of the two it was.
        let shelved =
            self.shelve && is_shelved(&self.server(ApiOperation::Start, id).await?.status);
        let action = if shelved { json!({"unshelve": null}) } else { json!({"os-start": null}) };
        self.api.accepted(&self.api.action(ApiOperation::Start, id.as_str(), &action)?).await
    }

    async fn addresses(&self, ids: &[InstanceId]) -> Result<BTreeMap<InstanceId, IpAddr>> {
        let instances = if ids.len() <= FEW {
            self.few(ApiOperation::Addresses, ids.iter()).await?
        } else {
            self.many(ApiOperation::Addresses, ids).await?
        };
        let bare = |one: &Instance| one.address.is_none() && one.state == InstanceState::Running;
        if instances.iter().any(bare)
            && let Looked::Failed(_, error) = &*self.primary.lock().await
        {
            return Err(error.clone());
        }
        let pairs = instances.into_iter();
        Ok(pairs.filter_map(|instance| Some((instance.id, instance.address?))).collect())
    }

    async fn shapes(&self) -> Result<Vec<Shape>> {
        let flavors = flavor::list(&self.api, ApiOperation::Shapes).await?;
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
        let request = self.api.action(ApiOperation::Snapshot, id.as_str(), &action)?;
        let made: SnapshotBody = self.api.read(&request).await?;
        Ok(ImageId::new(made.image_id))
    }
}

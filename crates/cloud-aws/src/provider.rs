//! AWS as a [`Provider`].

use crate::api::{Api, MOST_VALUES};
use crate::auth::{Signer, Source};
use crate::classify::classify;
use crate::gather::Gather;
use crate::query::{EC2, Query, STS};
use crate::{Config, LaunchOptions, convert, wire};
use async_trait::async_trait;
use cloud_core::http::{self, Client, HeaderName, RequestIds, Url};
use cloud_core::pace::Pacer;
use cloud_core::{
    ApiOperation, Description, Error, ErrorKind, Image, ImageFilter, ImageId, ImageName, Instance,
    InstanceFilter, InstanceId, InstanceSpec, Limit, Provider, Reboot, Result, Shape,
};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};
use tokio::time::Instant;

const QUOTAS: &str = "servicequotas";

/// How long EC2 may answer "not found" about an instance that it has just launched.
const LAG: Duration = Duration::from_mins(1);

/// Settings of a connection.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ConnectSettings {
    /// Timeouts, proxies and retries.
    pub http: http::ClientConfig,
    /// Options of all launches.
    pub launch: LaunchOptions,
    /// The clock, for the time in signatures.
    pub now: fn() -> SystemTime,
}

impl ConnectSettings {
    /// Creates settings with this clock. Set other options in the fields.
    #[must_use]
    pub fn new(now: fn() -> SystemTime) -> Self {
        Self { http: http::ClientConfig::default(), launch: LaunchOptions::default(), now }
    }
}

/// A region of AWS, as one account.
#[derive(Debug)]
pub struct Aws {
    pub(crate) api: Api,
    pub(crate) quotas: Client<Signer>,
    pub(crate) quotas_url: Url,
    pub(crate) region: String,
    pub(crate) launch: LaunchOptions,
    pub(crate) root_devices: Mutex<BTreeMap<ImageId, String>>,
    /// Instances that were launched here, with the times of the launches.
    launched: Mutex<BTreeMap<InstanceId, Instant>>,
    terminations: Gather,
    random: Mutex<fastrand::Rng>,
}

impl Aws {
    /// Creates a provider whose requests share one pacer. It sends nothing.
    pub fn connect(config: &Config, settings: ConnectSettings, pacer: &Pacer) -> Result<Self> {
        let ConnectSettings { mut http, launch, now } = settings;
        let read = ["x-amzn-requestid", "x-amz-request-id"].map(HeaderName::from_static).to_vec();
        http.request_ids = RequestIds { send: None, read };
        let random = http.seed.map_or_else(fastrand::Rng::new, fastrand::Rng::with_seed);
        let source = Arc::new(Source::new(config, &http, pacer, now)?);
        let client = |service| {
            let (source, region) = (Arc::clone(&source), config.region.clone());
            let signer = Signer { source, service, region, now };
            Client::new(http.clone(), signer, classify, pacer.clone())
        };
        let url = |service| {
            let error = Error::new(ErrorKind::Invalid, ApiOperation::Configure);
            config.url(service).map_err(|cause| error.because("no URL").caused_by(cause))
        };
        Ok(Self {
            api: Api {
                client: client(EC2)?,
                url: url(EC2)?,
                sts: client(STS)?,
                sts_url: url(STS)?,
                decoded: AtomicUsize::new(0),
            },
            quotas: client(QUOTAS)?,
            quotas_url: url(QUOTAS)?,
            region: config.region.clone(),
            launch,
            root_devices: Mutex::default(),
            launched: Mutex::default(),
            terminations: Gather::default(),
            random: Mutex::new(random),
        })
    }

    /// A token for a request without one, so that its repetitions are recognized.
    pub(crate) fn random_token(&self) -> String {
        let mut random = self.random.lock().unwrap_or_else(PoisonError::into_inner);
        format!("{:016x}{:016x}", random.u64(..), random.u64(..))
    }

    pub(crate) fn note_launch(&self, id: &InstanceId) {
        let mut launched = self.launched.lock().unwrap_or_else(PoisonError::into_inner);
        launched.insert(id.clone(), Instant::now());
    }

    /// Corrects an error about an instance: "not found" soon after the launch only means that EC2 lags.
    fn about(&self, id: &InstanceId, error: Error) -> Error {
        let launched = self.launched.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = launched.get(id).is_some_and(|when| when.elapsed() < LAG);
        if error.kind() == ErrorKind::NotFound && is_new {
            return error.with_kind(ErrorKind::Unavailable);
        }
        error
    }

    /// Finds instances, with the images that they boot.
    async fn instances(
        &self,
        operation: ApiOperation,
        subject: &str,
        query: Query,
    ) -> Result<Vec<Instance>> {
        let found = self.api.all::<wire::Instances>(operation, subject, query).await?;
        self.shown(operation, found).await
    }

    async fn shown(
        &self,
        operation: ApiOperation,
        found: Vec<wire::Reservation>,
    ) -> Result<Vec<Instance>> {
        let instances = found.into_iter().flat_map(|reservation| reservation.instances_set.item);
        let instances = instances.map(convert::instance).collect();
        self.api.show_replacements(operation, instances).await
    }

    /// Sends an action on one instance.
    async fn act(&self, operation: ApiOperation, id: &InstanceId, query: Query) -> Result<()> {
        let query = query.list("InstanceId", [id]);
        let done = self.api.done(operation, id.as_str(), query).await;
        done.map_err(|error| self.about(id, error))
    }

    /// Terminates these instances. EC2 terminates all or none.
    async fn terminate_all(&self, ids: Vec<InstanceId>) -> Result<()> {
        let subject = ids.first().map(InstanceId::as_str).unwrap_or_default();
        let query = Query::change("TerminateInstances").list("InstanceId", &ids);
        self.api.done(ApiOperation::Terminate, subject, query).await
    }
}

#[async_trait]
impl Provider for Aws {
    fn describe(&self) -> Description {
        self.launch.describe()
    }

    async fn list(&self, filter: &InstanceFilter) -> Result<Vec<Instance>> {
        let mut query = Query::look("DescribeInstances");
        for (number, (key, value)) in (1..).zip(filter.tags.iter()) {
            // Of instances launched together, the name is in another tag.
            let values = [value, crate::names::BY_INDEX];
            query = query.filter(number, &format!("tag:{key}"), values);
        }
        Ok(filter.keep(self.instances(ApiOperation::List, "instances", query).await?))
    }

    async fn get(&self, id: &InstanceId) -> Result<Instance> {
        let query = Query::look("DescribeInstances").list("InstanceId", [id]);
        let found = self.api.read::<wire::Instances>(ApiOperation::Get, id.as_str(), query).await;
        let found = found.map_err(|error| self.about(id, error))?.reservation_set.item;
        let mut shown = self.shown(ApiOperation::Get, found).await?.into_iter();
        let missing = || self.about(id, Error::new(ErrorKind::NotFound, ApiOperation::Get).on(id));
        shown.find(|instance| instance.id == *id).ok_or_else(missing)
    }

    async fn launch(&self, spec: &InstanceSpec) -> Result<Instance> {
        let mut results = self.launch_many(std::slice::from_ref(spec)).await;
        let none = || Err(Error::new(ErrorKind::Protocol, ApiOperation::Launch).on(&spec.name));
        results.pop().unwrap_or_else(none)
    }

    async fn launch_many(&self, specs: &[InstanceSpec]) -> Vec<Result<Instance>> {
        self.launch_all(specs).await
    }

    async fn terminate(&self, id: &InstanceId) -> Result<()> {
        let together = self.terminations.ask(id, |ids| self.terminate_all(ids)).await;
        match together {
            // Of those that were asked for together, it may be another one that is wrong. A wrong key is that of all.
            Err(error)
                if !error.kind().is_transient() && error.kind() != ErrorKind::Unauthenticated =>
            {
                let alone = self.terminate_all(vec![id.clone()]).await;
                match alone.map_err(|error| self.about(id, error)) {
                    Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
                    result => result,
                }
            }
            result => result,
        }
    }

    async fn rebuild(&self, id: &InstanceId, image: &ImageId) -> Result<()> {
        let token = self.random_token();
        self.api.replace_root_volume(id, image, &token).await.map_err(|error| self.about(id, error))
    }

    /// EC2 reboots through the operating system, and cuts the power if that takes more than four minutes.
    async fn reboot(&self, id: &InstanceId, _how: Reboot) -> Result<()> {
        self.act(ApiOperation::Reboot, id, Query::change_once("RebootInstances")).await
    }

    async fn stop(&self, id: &InstanceId) -> Result<()> {
        self.act(ApiOperation::Stop, id, Query::change("StopInstances")).await
    }

    async fn start(&self, id: &InstanceId) -> Result<()> {
        self.act(ApiOperation::Start, id, Query::change("StartInstances")).await
    }

    async fn addresses(&self, ids: &[InstanceId]) -> Result<BTreeMap<InstanceId, IpAddr>> {
        let mut addresses = BTreeMap::new();
        for ids in ids.chunks(MOST_VALUES) {
            // By filter: asked for by id, one that is gone would keep the others' back.
            let query = Query::look("DescribeInstances").filter(1, "instance-id", ids);
            let found =
                self.api.all::<wire::Instances>(ApiOperation::Addresses, "addresses", query);
            let instances = found.await?.into_iter().flat_map(|it| it.instances_set.item);
            let instances = instances.map(|from| convert::instance(from).0);
            addresses.extend(instances.filter_map(|it| Some((it.id, it.address?))));
        }
        Ok(addresses)
    }

    async fn shapes(&self) -> Result<Vec<Shape>> {
        self.find_shapes().await
    }

    async fn images(&self, filter: &ImageFilter) -> Result<Vec<Image>> {
        self.find_images(filter).await
    }

    async fn limits(&self) -> Result<Vec<Limit>> {
        self.find_limits().await
    }

    async fn snapshot(&self, id: &InstanceId, name: &ImageName) -> Result<ImageId> {
        self.create_image(id, name).await
    }
}

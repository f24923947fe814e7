//! OCI as a [`Provider`].

use crate::api::{Api, Hosts, Service};
use crate::auth::{Identity, Signer, Source};
use crate::classify::classify;
use crate::image::Images;
use crate::instance_principal::{InstancePrincipal, Metadata};
use crate::missing::Seen;
use crate::page::{Listing, Of, once};
use crate::work_request::WorkRequests;
use crate::{Clock, Config, Credentials, LaunchOptions, Power, Region, convert, wire};
use async_trait::async_trait;
use cloud_core::http::{self, Client, HeaderName, Url};
use cloud_core::pace::Pacer;
use cloud_core::{
    ApiOperation, Description, Error, ErrorKind, Image, ImageFilter, ImageId, ImageName, Instance,
    InstanceFilter, InstanceId, InstanceSpec, Limit, Provider, Reboot, Result, Room, Shape,
    ShapeName, Zone,
};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

/// Oracle Cloud Infrastructure.
#[derive(Debug)]
pub struct Oci {
    pub(crate) api: Arc<Api>,
    pub(crate) site: LaunchOptions,
    pub(crate) tenancy: Option<String>,
    pub(crate) images: Images,
    pub(crate) seen: Seen,
    pub(crate) work_requests: WorkRequests,
    random: Mutex<fastrand::Rng>,
}

impl Oci {
    /// Connects a provider.
    ///
    /// Only an instance principal without a configured region and endpoint sends a request: to the metadata service, for
    /// the region.
    pub async fn connect(
        config: Config,
        site: LaunchOptions,
        mut http: http::ClientConfig,
        pacer: Pacer,
        clock: Clock,
    ) -> Result<Self> {
        let id = HeaderName::from_static("opc-request-id");
        http.request_ids = http::RequestIds { send: Some(id.clone()), read: vec![id] };
        let random = http.seed.map_or_else(fastrand::Rng::new, fastrand::Rng::with_seed);
        if let Some(roots) = &config.roots {
            http.roots = http::Roots::Only(roots.clone());
        }
        let (hosts, source) = resolve(&config, &http, &clock).await?;
        let signer = Signer { source: Arc::new(source), clock: clock.clone() };
        let client = Client::new(http, signer.clone(), classify, pacer)?;
        Ok(Self {
            api: Arc::new(Api { client, signer, hosts, clock, page_size: site.page_size }),
            site,
            tenancy: config.tenancy,
            images: Images::default(),
            seen: Seen::default(),
            work_requests: WorkRequests::default(),
            random: Mutex::new(random),
        })
    }

    /// A retry token for a single request, so that its retries are idempotent.
    pub(crate) fn token(&self) -> String {
        let mut random = self.random.lock().unwrap_or_else(PoisonError::into_inner);
        format!("{:016x}{:016x}", random.u64(..), random.u64(..))
    }
}

/// The services' addresses, and the signer.
async fn resolve(
    config: &Config,
    http: &http::ClientConfig,
    clock: &Clock,
) -> Result<(Hosts, Source)> {
    let hosts = |region: &Region| {
        let host = |url: String| match &config.endpoint {
            Some(endpoint) => Ok(endpoint.clone()),
            None => parse(&url),
        };
        Ok::<_, Error>(Hosts {
            core: host(region.core())?,
            identity: host(region.identity())?,
            limits: host(region.limits())?,
        })
    };
    match (&config.credentials, &config.region) {
        (Credentials::Key { key_id, key }, Some(region)) => {
            let identity = Identity {
                key_id: key_id.clone(),
                key: Arc::clone(key),
                tenancy: config.tenancy.clone(),
            };
            Ok((hosts(region)?, Source::Fixed(Arc::new(identity))))
        }
        (Credentials::Key { .. }, None) => Err(invalid("no region is set")),
        (Credentials::InstancePrincipal { metadata }, region) => {
            let metadata = Metadata::new(http, metadata.clone())?;
            // Only the region of the machine can authenticate it. Its requests may go to another region.
            let (region, auth) = match (region, &config.endpoint) {
                (Some(region), Some(endpoint)) => (region.clone(), endpoint.to_string()),
                (None, Some(endpoint)) => (metadata.region().await?, endpoint.to_string()),
                (other, None) => {
                    let own = metadata.region().await?;
                    (other.as_ref().unwrap_or(&own).clone(), own.auth())
                }
            };
            let federation = parse(&format!("{}/v1/x509", auth.trim_end_matches('/')))?;
            let principal =
                InstancePrincipal::new(metadata, http.clone(), federation, clock.clone())?;
            Ok((hosts(&region)?, Source::Instance(Box::new(principal))))
        }
    }
}

fn parse(url: &str) -> Result<Url> {
    Url::parse(url).map_err(|cause| invalid(&format!("bad URL {url}")).caused_by(cause))
}

fn invalid(why: &str) -> Error {
    Error::new(ErrorKind::Invalid, ApiOperation::Configure).because(why)
}

#[async_trait]
impl Provider for Oci {
    fn describe(&self) -> Description {
        self.site.describe()
    }

    /// OCI filters by name but not by tag, so this lists the whole compartment and filters it.
    async fn list(&self, filter: &InstanceFilter) -> Result<Vec<Instance>> {
        let name = filter.name.as_ref().map(|name| ("displayName", name.as_str()));
        let listing = Listing {
            operation: ApiOperation::List,
            service: Service::Core,
            path: &["instances"],
            of: Of::Compartment(&self.site.compartment),
            query: name.as_slice(),
        };
        let instances: Vec<wire::Instance> = listing.all(&self.api).await?;
        let instances = once(instances, |instance| instance.id.clone());
        let mut instances = filter.keep(instances.into_iter().map(convert::instance).collect());
        self.explain(&mut instances).await;
        Ok(instances)
    }

    async fn get(&self, id: &InstanceId) -> Result<Instance> {
        let mut instance = convert::instance(self.read_instance(id).await?);
        self.explain(std::slice::from_mut(&mut instance)).await;
        Ok(instance)
    }

    async fn launch(&self, spec: &InstanceSpec) -> Result<Instance> {
        self.send_launch(spec).await
    }

    async fn terminate(&self, id: &InstanceId) -> Result<()> {
        self.send_terminate(id).await
    }

    async fn rebuild(&self, id: &InstanceId, image: &ImageId) -> Result<()> {
        self.replace_boot_volume(id, image).await
    }

    async fn reboot(&self, id: &InstanceId, how: Reboot) -> Result<()> {
        let power = match how {
            Reboot::Soft => Power::SoftReset,
            Reboot::Hard => Power::Reset,
        };
        self.power(id, power).await
    }

    /// Through the operating system, so that disks are in order; OCI cuts the power after 15 minutes.
    async fn stop(&self, id: &InstanceId) -> Result<()> {
        self.power(id, Power::SoftStop).await
    }

    async fn start(&self, id: &InstanceId) -> Result<()> {
        self.power(id, Power::Start).await
    }

    async fn addresses(&self, ids: &[InstanceId]) -> Result<BTreeMap<InstanceId, IpAddr>> {
        self.find_addresses(ids).await
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

    async fn room(&self, shape: &ShapeName, zone: &Zone) -> Result<Room> {
        self.find_room(shape, zone).await
    }

    async fn snapshot(&self, id: &InstanceId, name: &ImageName) -> Result<ImageId> {
        self.make_image(id, name).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cloud_sim::{Cloud, CloudSettings};
    use std::time::SystemTime;

    /// The addresses of the services and of the identity service for a machine.
    async fn places(settings: CloudSettings, region: Option<Region>) -> [String; 2] {
        let cloud = Cloud::start(settings).await.unwrap();
        let metadata = Url::parse(&format!("{}/opc/v2", cloud.endpoint())).unwrap();
        let credentials = Credentials::InstancePrincipal { metadata };
        let config = Config { credentials, region, tenancy: None, endpoint: None, roots: None };
        let clock = Clock::new(SystemTime::now);
        let (hosts, source) =
            resolve(&config, &http::ClientConfig::default(), &clock).await.unwrap();
        let Source::Instance(principal) = source else { panic!("a fixed key") };
        [hosts.core, principal.federation].map(|url| url.host_str().unwrap().to_owned())
    }

    #[tokio::test]
    async fn an_instance_principal_authenticates_in_the_region_of_its_instance() {
        let places = places(CloudSettings::quick(), Region::find("iad")).await;
        let expected = ["iaas.us-ashburn-1.oraclecloud.com", "auth.us-phoenix-1.oraclecloud.com"];
        assert_eq!(places, expected);
    }

    #[tokio::test]
    async fn a_region_newer_than_our_table_has_its_hosts_in_the_realm_that_the_machine_is_told() {
        let settings = CloudSettings {
            region: "xx-atlantis-1".to_owned(),
            region_key: "atl".to_owned(),
            realm_domain: "oraclecloud99.com".to_owned(),
            ..CloudSettings::quick()
        };
        let expected =
            ["iaas.xx-atlantis-1.oraclecloud99.com", "auth.xx-atlantis-1.oraclecloud99.com"];
        assert_eq!(places(settings, None).await, expected);
    }
}

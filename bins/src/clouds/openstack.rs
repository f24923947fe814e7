//! OpenStack: its keys of `startnode.yaml`, and how it is connected.

use super::{CloudConfig, Entry, Wanted};
use crate::config::{Settings, between, texts};
use crate::diagnostic::Diagnostic;
use crate::output::chain;
use crate::wiring::{Connected, Purpose, features, http};
use async_trait::async_trait;
use cloud_core::{ConfigError, Description, ErrorKind, Sources, Zone};
use cloud_openstack::{
    BootVolume, Config, InstanceResource, LaunchOptions, LaunchResource, LegacyTag, Nic, Search,
};
use provision::Site;
use serde::Deserialize;
use slurmconf::MemoryPolicy;
use std::error::Error as _;
use std::sync::Arc;

/// The Nova tag that Cluster in the Cloud gives its servers.
const COMPUTE: &str = "compute";

pub(super) const ENTRY: Entry = Entry {
    csp: "openstack",
    read: |reader| Arc::new(reader.read::<OpenStack>().merged()),
    know: |reader| reader.know::<OpenStack>(),
};

/// An OpenStack.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(default)]
pub(super) struct OpenStack {
    /// The entry of `clouds.yaml`.
    cloud: Option<String>,
    /// The networks of the machines, by name or id; the first gives the address that Slurm is told.
    #[serde(deserialize_with = "texts")]
    networks: Vec<String>,
    /// The network whose address Slurm is told, if not the first.
    network_name: Option<String>,
    /// Security groups, by name or id.
    #[serde(deserialize_with = "texts")]
    security_groups: Vec<String>,
    /// The key pair's name.
    keypair: Option<String>,
    /// Where the machines are to be.
    availability_zone: Option<String>,
    /// With a size, machines boot from a volume of it.
    #[serde(deserialize_with = "between::<_, 1, 65_536>")]
    boot_volume_gb: Option<u32>,
    /// True to give machines their user data on a disk.
    config_drive: bool,
    /// The server group that machines belong to.
    server_group: Option<String>,
    // CitC names its two networks, and its security group, one by one.
    network_id: Option<String>,
    ceph_network: Option<String>,
    security_group: Option<String>,
}

impl OpenStack {
    /// With what CitC names one by one in the lists.
    fn merged(mut self) -> Self {
        self.networks.extend(self.network_id.take());
        self.networks.extend(self.ceph_network.take());
        self.security_groups.extend(self.security_group.take());
        self
    }
}

#[async_trait(?Send)]
impl CloudConfig for OpenStack {
    fn describe(&self) -> Description {
        cloud_openstack::describe()
    }

    async fn connect(&self, wanted: Wanted<'_>) -> Result<Connected, Diagnostic> {
        connect(self, wanted).await
    }

    fn endpoint(&self, _settings: &Settings) -> String {
        format!("openstack {}", self.cloud.as_deref().unwrap_or_default()).trim_end().to_owned()
    }

    fn complete(&self, site: &mut Site) {
        site.zones = self.availability_zone.iter().map(Zone::new).collect();
    }

    /// Nova takes the name and no keys, and knows itself which there are.
    fn keeps_key_pairs(&self) -> bool {
        true
    }

    fn citc_memory(&self) -> MemoryPolicy {
        MemoryPolicy::CitcOpenstack
    }

    fn variables(&self, settings: &Settings) -> (Vec<&'static str>, String) {
        let named = ["OS_CLOUD", "OS_AUTH_URL"].into_iter().filter(|_| self.cloud.is_none());
        let all = named.chain(["OS_CLIENT_CONFIG_FILE", "OS_CLIENT_SECURE_FILE"]);
        let file = &settings.file;
        let place = format!(
            "a clouds.yaml in ~/.config/openstack or /etc/openstack, and its entry as cloud into {file}"
        );
        (all.collect(), place)
    }
}

async fn connect(openstack: &OpenStack, wanted: Wanted<'_>) -> Result<Connected, Diagnostic> {
    let Wanted { settings, environment, purpose, slurm, pacer } = wanted;
    let variables = environment.variables.clone();
    let sources = Sources::of_system(environment.home.clone(), variables);
    let mut search = Search::usual(&sources);
    search.cloud.clone_from(&openstack.cloud);
    // What lies in an operator's current directory would be his alone: slurmctld's programs are called elsewhere.
    search.directories.retain(|directory| directory.is_absolute());
    let config = Config::load(&sources, &search).map_err(|error| unusable(error, settings))?;
    let mut options = cloud_openstack::ConnectSettings::default();
    options.http = http(settings, environment, purpose);
    options.launch = launch(openstack);
    options.legacy_tag = Some(LegacyTag::new(COMPUTE, ("type", "compute")));
    options.address_network.clone_from(&openstack.network_name);
    let cloud = cloud_openstack::OpenStack::connect(config, options, pacer.clone()).await;
    let cloud = cloud.map_err(unreachable)?;
    let mut warnings = cloud.warnings().to_vec();
    if settings.endpoint.is_some() {
        warnings.push("endpoint is for OCI; on OpenStack, clouds.yaml says where".to_owned());
    }
    // A launch says itself what it misses.
    let mut named = Vec::new();
    if purpose == Purpose::Check {
        let networks = features(slurm, "network").map(InstanceResource::Network);
        let own: Vec<InstanceResource> =
            networks.chain(features(slurm, "keypair").map(InstanceResource::KeyPair)).collect();
        named = resources(&cloud, &settings.file, &own).await;
    }
    Ok(Connected { cloud: Box::new(cloud), subnet: None, named, warnings, unreachable: None })
}

/// What launches name; what the features of nodes name is told to be there.
async fn resources(
    cloud: &cloud_openstack::OpenStack,
    file: &str,
    own: &[InstanceResource],
) -> Vec<Result<String, Diagnostic>> {
    let mentions = cloud.check_launch_resources(own).await;
    let all = mentions.len().saturating_sub(own.len());
    let told = |(index, it): (usize, LaunchResource)| match &it.found {
        Ok(()) => Ok(it.to_string()),
        Err(error) if error.kind() == ErrorKind::Invalid => {
            let place = if index < all { file } else { "the features of nodes in slurm.conf" };
            Err(Diagnostic::new(format!("{}; change it in {place}", chain(error))))
        }
        Err(error) => Err(Diagnostic::from_cloud(error)),
    };
    mentions.into_iter().enumerate().map(told).collect()
}

/// What is wrong with clouds.yaml; slurmctld passes its programs no variables.
fn unusable(error: ConfigError, settings: &Settings) -> Diagnostic {
    if error.is_unspecified() {
        let file = &settings.file;
        return Diagnostic::new(format!("{}, or say which with cloud in {file}", chain(&error)));
    }
    Diagnostic::from(error)
}

/// A cloud that does not answer is no wrong configuration.
fn unreachable(error: ConfigError) -> Diagnostic {
    let cause = error.source().and_then(|cause| cause.downcast_ref::<cloud_core::Error>());
    let passes = cause.is_some_and(|cause| Diagnostic::from_cloud(cause).is_transient());
    Diagnostic::from(error).transient(passes)
}

fn launch(openstack: &OpenStack) -> LaunchOptions {
    let mut options = LaunchOptions::default();
    options.nics = openstack.networks.iter().map(Nic::network).collect();
    options.security_groups.clone_from(&openstack.security_groups);
    options.keypair.clone_from(&openstack.keypair);
    options.config_drive = openstack.config_drive;
    options.server_group.clone_from(&openstack.server_group);
    let volume = |size_gb| BootVolume { size_gb, delete_on_termination: true, kind: None };
    options.boot_volume = openstack.boot_volume_gb.map(volume);
    // CitC's own tools look for this tag.
    options.extra_tags = vec![COMPUTE.to_owned()];
    options
}

//! OpenStack: its keys of `startnode.yaml`, and the connection.

use super::{CloudConfig, Entry, Wanted, endpoint, unusable};
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
    firmware: &["OpenStack"],
    // Nova's metadata service announces no interruptions.
    metadata: None,
};

/// The keys of `startnode.yaml` for OpenStack.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(default)]
pub(super) struct OpenStack {
    /// The entry of `clouds.yaml`.
    cloud: Option<String>,
    /// The networks of the machines, by name or id. Slurm gets the address in the first.
    #[serde(deserialize_with = "texts")]
    networks: Vec<String>,
    /// The network whose address Slurm gets, if not the first.
    network_name: Option<String>,
    /// Security groups, by name or id.
    #[serde(deserialize_with = "texts")]
    security_groups: Vec<String>,
    /// The name of the key pair.
    keypair: Option<String>,
    /// The availability zone of the machines.
    availability_zone: Option<String>,
    /// Size of the volume to boot from; without it, machines boot from a local disk.
    #[serde(deserialize_with = "between::<_, 1, 65_536>")]
    boot_volume_gb: Option<u32>,
    /// True to pass user data on a config drive.
    config_drive: bool,
    /// The server group of the machines.
    server_group: Option<String>,
    /// True to shelve machines that are kept warm, which frees their place on the host; they start later then.
    shelve: bool,
    // CitC has a key for each of its two networks, and one for its security group.
    network_id: Option<String>,
    ceph_network: Option<String>,
    security_group: Option<String>,
}

impl OpenStack {
    /// Moves CitC's single keys into the lists.
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
        endpoint("openstack", [self.cloud.as_deref()])
    }

    fn complete(&self, site: &mut Site) {
        site.zones = self.availability_zone.iter().map(Zone::new).collect();
    }

    /// Nova takes the name of a key pair, which it checks itself.
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
    // A file in an operator's current directory is not found by slurmctld's programs, which run elsewhere.
    search.directories.retain(|directory| directory.is_absolute());
    let config = Config::load(&sources, &search);
    let config = config.map_err(|error| unusable(error, "set cloud", settings))?;
    let mut options = cloud_openstack::ConnectSettings::default();
    options.http = http(settings, environment, purpose);
    options.launch = launch(openstack);
    options.legacy_tag = Some(LegacyTag::new(COMPUTE, ("type", "compute")));
    options.shelve = openstack.shelve;
    options.address_network.clone_from(&openstack.network_name);
    let cloud = cloud_openstack::OpenStack::connect(config, options, pacer.clone()).await;
    let cloud = cloud.map_err(unreachable)?;
    let mut warnings = cloud.warnings().to_vec();
    if settings.endpoint.is_some() {
        warnings.push("endpoint is for OCI; on OpenStack, clouds.yaml sets the address".to_owned());
    }
    // A launch reports missing resources itself.
    let mut named = Vec::new();
    if purpose == Purpose::Check {
        let networks = features(slurm, "network").map(InstanceResource::Network);
        let own: Vec<InstanceResource> =
            networks.chain(features(slurm, "keypair").map(InstanceResource::KeyPair)).collect();
        named = resources(&cloud, &settings.file, &own).await;
    }
    Ok(Connected { cloud: Box::new(cloud), subnet: None, named, warnings, unreachable: None })
}

/// Checks the resources that the configuration and the features of nodes name. An error says where the name is set.
async fn resources(
    cloud: &cloud_openstack::OpenStack,
    file: &str,
    own: &[InstanceResource],
) -> Vec<Result<String, Diagnostic>> {
    let mentions = cloud.check_launch_resources(own).await;
    let all = mentions.len().saturating_sub(own.len());
    let describe = |(index, it): (usize, LaunchResource)| match &it.found {
        Ok(()) => Ok(it.to_string()),
        Err(error) if error.kind() == ErrorKind::Invalid => {
            let place = if index < all { file } else { "the features of nodes in slurm.conf" };
            Err(Diagnostic::new(format!("{}; change it in {place}", chain(error))))
        }
        Err(error) => Err(Diagnostic::from_cloud(error)),
    };
    mentions.into_iter().enumerate().map(describe).collect()
}

/// Marks an error as transient if the cloud did not answer.
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

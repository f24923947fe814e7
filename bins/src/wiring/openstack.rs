//! An OpenStack, from the configuration.

use super::site::features;
use super::{Connected, Purpose, http};
use crate::config::{OpenStack, Settings};
use crate::diagnostic::Diagnostic;
use crate::environment::Environment;
use crate::output::chain;
use cloud_core::{ConfigError, ErrorKind, Sources};
use cloud_openstack::{
    BootVolume, Config, InstanceResource, LaunchOptions, LaunchResource, LegacyTag, Nic, Search,
};
use std::error::Error as _;

/// The Nova tag that Cluster in the Cloud gives its servers.
const COMPUTE: &str = "compute";

pub(super) async fn connect(
    openstack: &OpenStack,
    settings: &Settings,
    environment: &Environment,
    (purpose, slurm): (Purpose, &slurmconf::Config),
) -> Result<Connected, Diagnostic> {
    let variables = environment.variables.clone();
    let sources = Sources::of_system(environment.home.clone(), variables);
    let mut search = Search::usual(&sources);
    search.cloud.clone_from(&openstack.cloud);
    // What lies in an operator's current directory would be his alone: slurmctld's programs are called elsewhere.
    search.directories.retain(|directory| directory.is_absolute());
    let config = Config::load(&sources, &search).map_err(|error| unusable(error, settings))?;
    let mut options = cloud_openstack::Settings::default();
    options.http = http(settings, environment, purpose);
    options.launch = launch(openstack);
    options.legacy_tag = Some(LegacyTag::new(COMPUTE, ("type", "compute")));
    options.address_network.clone_from(&openstack.network_name);
    let cloud =
        cloud_openstack::OpenStack::connect(config, options, super::pacer(&settings.elastic)).await;
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

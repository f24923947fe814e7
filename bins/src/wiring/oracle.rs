//! Oracle's cloud, from the configuration.

use super::{Connected, http};
use crate::config::{Auth, Oracle, Settings};
use crate::environment::Environment;
use crate::trouble::Trouble;
use cloud_core::SubnetId;
use cloud_core::pace::Pacer;
use cloud_oci::{Clock, Config, Mode, Oci, Site, SourceDetails, Sources, Wish};
use std::time::SystemTime;

pub(super) async fn connect(
    oracle: &Oracle,
    settings: &Settings,
    environment: &Environment,
    pacer: Pacer,
) -> Result<Connected, Trouble> {
    let (home, variables) = (environment.home.clone(), environment.variables.clone());
    let sources = Sources::of_system(home, variables, SystemTime::now());
    let wish = Wish {
        file: oracle.config_file.as_deref().map(|file| environment.expand(file)),
        profile: oracle.profile.clone(),
        mode: match oracle.auth {
            // The file says whether it is a key or a session.
            Auth::ConfigFile => None,
            Auth::InstancePrincipal => Some(Mode::InstancePrincipal),
        },
        region: oracle.region.clone(),
        endpoint: settings.endpoint.clone(),
    };
    let config = Config::load(&sources, &wish).map_err(|error| Trouble::from_error(&error))?;
    let mut site = Site::new(&oracle.compartment_id);
    site.subnet = oracle.subnet_id.clone().map(SubnetId::new);
    if let Some(size) = oracle.boot_volume_gb {
        site.template.source_details = Some(SourceDetails {
            source_type: Some("image".to_owned()),
            boot_volume_size_in_gbs: Some(u64::from(size)),
            ..SourceDetails::default()
        });
    }
    let clock = Clock::new(SystemTime::now);
    let cloud = Oci::connect(config, site, http(environment), pacer, clock).await;
    let cloud = cloud.map_err(|error| Trouble::from_error(&error))?;
    Ok(Connected { cloud: Box::new(cloud), warnings: Vec::new() })
}

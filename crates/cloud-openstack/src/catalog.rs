//! Where the services are: the catalog that comes with a token, and what overrides it.

use crate::config::Config;
use crate::error::Error;
use crate::wire::{CatalogEntry, Endpoint};
use cloud_core::http::Url;
use std::collections::BTreeSet;
use std::fmt;

/// A service that we use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Service {
    /// Nova.
    Compute,
    /// Glance.
    Image,
    /// Neutron.
    Network,
}

impl Service {
    pub(crate) const ALL: [Self; 3] = [Self::Compute, Self::Image, Self::Network];

    /// Its type in the catalog.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Compute => "compute",
            Self::Image => "image",
            Self::Network => "network",
        }
    }

    /// The key of a clouds.yaml that says where it is.
    pub(crate) fn override_key(self) -> &'static str {
        match self {
            Self::Compute => "compute_endpoint_override",
            Self::Image => "image_endpoint_override",
            Self::Network => "network_endpoint_override",
        }
    }

    /// That key and the older ones.
    pub(crate) fn keys(self) -> [&'static str; 2] {
        let older = match self {
            Self::Compute => "compute_endpoint",
            Self::Image => "image_endpoint",
            Self::Network => "network_endpoint",
        };
        [self.override_key(), older]
    }
}

/// Which of a service's endpoints to use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interface {
    /// What everybody uses.
    Public,
    /// What those inside use.
    Internal,
    /// What operators use.
    Admin,
}

impl Interface {
    /// Reads the word, also in its older form (`internalURL`).
    #[must_use]
    pub fn new(word: &str) -> Option<Self> {
        let word = word.to_lowercase();
        match word.strip_suffix("url").unwrap_or(&word) {
            "public" => Some(Self::Public),
            "internal" => Some(Self::Internal),
            "admin" => Some(Self::Admin),
            _ => None,
        }
    }
}

impl fmt::Display for Interface {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Public => "public",
            Self::Internal => "internal",
            Self::Admin => "admin",
        })
    }
}

/// Where each service is, without a slash at the end.
#[derive(Clone, Debug)]
pub(crate) struct Endpoints {
    pub(crate) compute: Url,
    pub(crate) image: Url,
    pub(crate) network: Url,
}

impl Endpoints {
    pub(crate) fn new(config: &Config, catalog: &[CatalogEntry]) -> Result<Self, Error> {
        let find = |service| endpoint(config, catalog, service);
        Ok(Self {
            compute: find(Service::Compute)?,
            image: without_version(find(Service::Image)?, "/v2"),
            network: without_version(find(Service::Network)?, "/v2.0"),
        })
    }
}

/// Some catalogs name the version, some do not; our paths do.
fn without_version(mut url: Url, version: &str) -> Url {
    if let Some(path) = url.path().trim_end_matches('/').strip_suffix(version) {
        let path = path.to_owned();
        url.set_path(&path);
    }
    url
}

fn endpoint(config: &Config, catalog: &[CatalogEntry], service: Service) -> Result<Url, Error> {
    if let Some(url) = config.overrides.get(&service) {
        return Ok(url.clone());
    }
    let of_type = catalog.iter().filter(|entry| entry.kind == service.name());
    let mut fitting = of_type
        .flat_map(|entry| &entry.endpoints)
        .filter(|endpoint| endpoint.interface == config.interface.to_string())
        .filter(|endpoint| config.region.as_ref().is_none_or(|region| endpoint.is_in(region)));
    let url = fitting.next().and_then(|endpoint| Url::parse(&endpoint.url).ok());
    url.ok_or_else(|| {
        let region = config.region.as_ref().map(|region| format!(" in region {region}"));
        let place = format!(" ({}){}", config.interface, region.unwrap_or_default());
        let origin = config.origin.clone();
        Error::NoService { origin, service: service.name(), place, known: known(catalog, service) }
    })
}

/// Where else the service is, for those who look for the right word; if nowhere, what else there is.
fn known(catalog: &[CatalogEntry], service: Service) -> Vec<String> {
    let of_type = catalog.iter().filter(|entry| entry.kind == service.name());
    let places = of_type.flat_map(|entry| &entry.endpoints).map(|endpoint| {
        let Endpoint { interface, region, .. } = endpoint;
        format!("{interface} in {}", region.as_deref().unwrap_or("no region"))
    });
    let places: BTreeSet<String> = places.collect();
    if places.is_empty() {
        return catalog.iter().map(|entry| entry.kind.clone()).collect();
    }
    places.into_iter().collect()
}

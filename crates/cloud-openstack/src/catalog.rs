//! The addresses of services: the catalog of a token, and its overrides.

use crate::config::{Config, names};
use crate::wire::{CatalogEntry, Endpoint};
use cloud_core::ConfigError;
use cloud_core::http::Url;
use std::collections::BTreeSet;
use std::fmt;

/// A service.
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

    /// The key of a clouds.yaml with its address.
    pub(crate) fn override_key(self) -> &'static str {
        match self {
            Self::Compute => "compute_endpoint_override",
            Self::Image => "image_endpoint_override",
            Self::Network => "network_endpoint_override",
        }
    }

    /// The keys of a clouds.yaml with its address, the preferred one first.
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
    /// The public endpoint.
    Public,
    /// The internal endpoint.
    Internal,
    /// The endpoint for administrators.
    Admin,
}

impl Interface {
    /// Parses the name, also in its older form (`internalURL`).
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

/// The addresses of the services.
#[derive(Clone, Debug)]
pub(crate) struct Endpoints {
    pub(crate) compute: Url,
    pub(crate) image: Url,
    pub(crate) network: Url,
}

impl Endpoints {
    pub(crate) fn new(config: &Config, catalog: &[CatalogEntry]) -> Result<Self, ConfigError> {
        refuse_several_regions(config, catalog)?;
        let find = |service| endpoint(config, catalog, service);
        Ok(Self {
            compute: find(Service::Compute)?,
            image: without_version(find(Service::Image)?, "/v2"),
            network: without_version(find(Service::Network)?, "/v2.0"),
        })
    }
}

/// Some catalogs include the version, some do not; the paths here do.
fn without_version(mut url: Url, version: &str) -> Url {
    if let Some(path) = url.path().trim_end_matches('/').strip_suffix(version) {
        let path = path.to_owned();
        url.set_path(&path);
    }
    url
}

/// The endpoints of a service that match the configuration.
fn fitting<'a>(
    config: &'a Config,
    catalog: &'a [CatalogEntry],
    service: Service,
) -> impl Iterator<Item = &'a Endpoint> {
    let of_type = catalog.iter().filter(move |entry| entry.kind == service.name());
    of_type
        .flat_map(|entry| &entry.endpoints)
        .filter(|endpoint| endpoint.interface == config.interface.to_string())
        .filter(|endpoint| config.region.as_ref().is_none_or(|region| endpoint.is_in(region)))
}

/// Without a configured region, all services must be in a single one: the first region of the catalog would be arbitrary.
fn refuse_several_regions(config: &Config, catalog: &[CatalogEntry]) -> Result<(), ConfigError> {
    if config.region.is_some() {
        return Ok(());
    }
    let ours = Service::ALL.iter().filter(|service| !config.overrides.contains_key(service));
    let endpoints = ours.flat_map(|service| fitting(config, catalog, *service));
    let regions =
        endpoints.filter_map(|endpoint| endpoint.region_id.as_ref().or(endpoint.region.as_ref()));
    let known: BTreeSet<String> = regions.cloned().collect();
    if known.len() > 1 {
        let known = names(&known.iter().collect::<Vec<_>>());
        return Err(ConfigError::new(format!(
            "{}: which region of {known}: set region_name to one of these",
            config.origin
        )));
    }
    Ok(())
}

fn endpoint(
    config: &Config,
    catalog: &[CatalogEntry],
    service: Service,
) -> Result<Url, ConfigError> {
    if let Some(url) = config.overrides.get(&service) {
        return Ok(url.clone());
    }
    let first = fitting(config, catalog, service).next();
    let url = first.and_then(|endpoint| Url::parse(&endpoint.url).ok());
    url.ok_or_else(|| {
        let known = known(catalog, service);
        let region = config.region.as_ref().map(|region| format!(" in region {region}"));
        let (origin, interface, service) = (&config.origin, config.interface, service.name());
        let (region, known) = (region.unwrap_or_default(), names(&known));
        ConfigError::new(format!(
            "{origin}: no {service} service ({interface}){region} in the catalog (there is {known}): \
             check region_name and interface, or set {service}_endpoint_override"
        ))
    })
}

/// A hint about other endpoints of the service, or else about other services.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Search;
    use cloud_core::{File, Sources};
    use serde_json::{Value, json};
    use std::collections::BTreeMap;
    use std::io;
    use std::path::Path;

    fn config(more: &Value) -> Config {
        let mut entry = json!({"auth_type": "token", "auth": {"auth_url": "http://k", "token": "t", "project_id": "p"}});
        entry.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let text = json!({"clouds": {"blue": entry}}).to_string();
        let read = |path: &Path| match path.to_str() {
            Some("/etc/openstack/clouds.yaml") => {
                Ok(File { bytes: text.clone().into_bytes(), mode: Some(0o640) })
            }
            _ => Err(io::Error::from(io::ErrorKind::NotFound)),
        };
        {
            let sources = Sources::new(None, BTreeMap::new(), read);
            Config::load(&sources, &Search::usual(&sources))
        }
        .unwrap()
    }

    /// Builds a catalog from endpoints of service, interface, region and address.
    fn catalog(endpoints: &[(&str, &str, &str, &str)]) -> Vec<CatalogEntry> {
        let entry = |(service, interface, region, url): &(&str, &str, &str, &str)| {
            let endpoint =
                json!({"interface": interface, "region": region, "region_id": region, "url": url});
            serde_json::from_value(json!({"type": service, "endpoints": [endpoint]})).unwrap()
        };
        endpoints.iter().map(entry).collect()
    }

    fn two_regions() -> Vec<CatalogEntry> {
        catalog(&[
            ("compute", "public", "R1", "http://nova-1/v2.1"),
            ("compute", "public", "R2", "http://nova-2/v2.1"),
            ("compute", "internal", "R2", "http://nova-inside/v2.1"),
            ("image", "public", "R2", "http://glance-2/v2"),
            ("image", "public", "R1", "http://glance-1"),
            ("image", "internal", "R2", "http://glance-inside"),
            ("network", "public", "R1", "http://neutron-1/v2.0/"),
            ("network", "public", "R2", "http://neutron-2/net"),
            ("network", "internal", "R2", "http://neutron-inside"),
        ])
    }

    #[test]
    fn region_and_interface_choose_and_an_override_beats_them() {
        let table = [
            (json!({"region_name": "R1"}), ["nova-1", "glance-1", "neutron-1"]),
            (json!({"region_name": "R2"}), ["nova-2", "glance-2", "neutron-2"]),
            (json!({"interface": "internal"}), ["nova-inside", "glance-inside", "neutron-inside"]),
            (
                json!({"region_name": "R2", "image_endpoint_override": "http://mine"}),
                ["nova-2", "mine", "neutron-2"],
            ),
        ];
        for (more, expected) in table {
            let found = Endpoints::new(&config(&more), &two_regions()).unwrap();
            let hosts = [&found.compute, &found.image, &found.network].map(|url| url.host_str());
            assert_eq!(hosts, expected.map(Some), "{more}");
        }
        let found = Endpoints::new(&config(&json!({"region_name": "R1"})), &two_regions()).unwrap();
        let paths = [&found.compute, &found.image, &found.network].map(Url::path);
        assert_eq!(paths, ["/v2.1", "/", "/"], "our paths name the version");
    }

    #[test]
    fn several_regions_are_refused() {
        let expected = "cloud 'blue' in /etc/openstack/clouds.yaml: which region of 'R1', 'R2': \
                        set region_name to one of these";
        let apart = catalog(&[
            ("compute", "public", "R1", "http://nova"),
            ("image", "public", "R1", "http://glance"),
            ("network", "public", "R2", "http://neutron"),
        ]);
        for catalog in [two_regions(), apart] {
            let error = Endpoints::new(&config(&json!({})), &catalog).unwrap_err();
            assert_eq!(error.to_string(), expected);
        }
    }
}

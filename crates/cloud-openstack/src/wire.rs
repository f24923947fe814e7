//! The used parts of OpenStack's responses.

#[cfg(test)]
mod tests;

use serde::{Deserialize, Deserializer};
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::SystemTime;

/// The body of a new token.
#[derive(Debug, Deserialize)]
pub(crate) struct TokenBody {
    pub(crate) token: TokenFacts,
}

#[derive(Debug, Deserialize)]
pub(crate) struct TokenFacts {
    pub(crate) issued_at: String,
    pub(crate) expires_at: String,
    pub(crate) project: Option<Reference>,
    #[serde(default)]
    pub(crate) catalog: Vec<CatalogEntry>,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct CatalogEntry {
    #[serde(rename = "type")]
    pub(crate) kind: String,
    #[serde(default)]
    pub(crate) endpoints: Vec<Endpoint>,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Endpoint {
    pub(crate) interface: String,
    pub(crate) region: Option<String>,
    pub(crate) region_id: Option<String>,
    pub(crate) url: String,
}

impl Endpoint {
    pub(crate) fn is_in(&self, region: &str) -> bool {
        self.region.as_deref() == Some(region) || self.region_id.as_deref() == Some(region)
    }
}

/// Parses a time such as `2026-11-16T00:19:33Z`, with or without a fraction.
pub(crate) fn moment(text: &str) -> Option<SystemTime> {
    text.parse::<jiff::Timestamp>().ok().map(SystemTime::from)
}

/// Adds a field to an object.
pub(crate) fn with(mut object: Value, key: &str, field: Value) -> Value {
    if let Value::Object(map) = &mut object {
        map.insert(key.to_owned(), field);
    }
    object
}

/// A resource of which only the id is used.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Reference {
    pub(crate) id: String,
}

/// Nova's response about one or all versions.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum AboutNova {
    One(VersionBody),
    All { versions: Vec<VersionFacts> },
}

#[derive(Debug, Deserialize)]
pub(crate) struct VersionBody {
    pub(crate) version: VersionFacts,
}

#[derive(Debug, Deserialize)]
pub(crate) struct VersionFacts {
    #[serde(default)]
    pub(crate) id: String,
    #[serde(default)]
    pub(crate) version: String,
    #[serde(default)]
    pub(crate) links: Vec<Link>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct ServerBody {
    pub(crate) server: Server,
}

#[derive(Debug, Deserialize)]
pub(crate) struct CreatedBody {
    pub(crate) server: Reference,
}

#[derive(Debug, Deserialize)]
pub(crate) struct ServersBody {
    pub(crate) servers: Vec<Server>,
    #[serde(default)]
    pub(crate) servers_links: Vec<Link>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Link {
    pub(crate) rel: String,
    #[serde(default)]
    pub(crate) href: String,
}

/// True if there is another page.
pub(crate) fn has_next(links: &[Link]) -> bool {
    links.iter().any(|link| link.rel == "next")
}

/// A server. Everything but the id may be missing if its cell is down.
#[derive(Debug, Deserialize)]
pub(crate) struct Server {
    pub(crate) id: String,
    pub(crate) name: Option<String>,
    #[serde(default)]
    pub(crate) status: String,
    #[serde(default, rename = "OS-EXT-STS:task_state")]
    pub(crate) task_state: Option<String>,
    pub(crate) metadata: Option<BTreeMap<String, String>>,
    pub(crate) tags: Option<Vec<String>>,
    #[serde(default)]
    pub(crate) flavor: ServerFlavor,
    #[serde(default, deserialize_with = "image")]
    pub(crate) image: Option<Reference>,
    #[serde(default)]
    pub(crate) addresses: BTreeMap<String, Vec<Address>>,
    #[serde(default, rename = "OS-EXT-AZ:availability_zone")]
    pub(crate) zone: Option<String>,
    /// The host, as one project may tell it from others; empty while it has none.
    #[serde(default, rename = "hostId")]
    pub(crate) host: Option<String>,
    #[serde(default)]
    pub(crate) created: Option<String>,
    #[serde(default)]
    pub(crate) fault: Option<ServerFault>,
}

impl Server {
    /// True if its cell does not answer. Since microversion 2.69, Nova then lists it without name and tags:
    /// <https://docs.openstack.org/api-guide/compute/down_cells.html>.
    pub(crate) fn is_hidden(&self) -> bool {
        self.name.is_none() && self.metadata.is_none() && self.tags.is_none()
    }
}

/// A server that boots from a volume has an empty string as image.
fn image<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Reference>, D::Error> {
    let value = Value::deserialize(deserializer)?;
    let id = value.get("id").and_then(Value::as_str);
    Ok(id.map(|id| Reference { id: id.to_owned() }))
}

/// Before 2.47, it is only an id.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct ServerFlavor {
    pub(crate) original_name: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Address {
    pub(crate) addr: String,
    #[serde(default, rename = "OS-EXT-IPS:type")]
    pub(crate) kind: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct ServerFault {
    #[serde(default)]
    pub(crate) code: u16,
    #[serde(default)]
    pub(crate) message: String,
    #[serde(default)]
    pub(crate) details: String,
}

#[derive(Debug, Deserialize)]
pub(crate) struct ImagesBody {
    pub(crate) images: Vec<GlanceImage>,
    pub(crate) next: Option<String>,
}

/// An image. Its properties are next to Glance's own fields.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct GlanceImage {
    pub(crate) id: String,
    pub(crate) name: Option<String>,
    #[serde(default)]
    pub(crate) status: String,
    #[serde(default)]
    pub(crate) tags: Vec<String>,
    #[serde(default)]
    pub(crate) created_at: Option<String>,
    #[serde(flatten)]
    pub(crate) rest: BTreeMap<String, Value>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct SnapshotBody {
    pub(crate) image_id: String,
}

#[derive(Debug, Deserialize)]
pub(crate) struct FlavorsBody {
    pub(crate) flavors: Vec<NovaFlavor>,
    #[serde(default)]
    pub(crate) flavors_links: Vec<Link>,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct NovaFlavor {
    pub(crate) id: String,
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) vcpus: u32,
    #[serde(default)]
    pub(crate) ram: u64,
    /// Size of the ephemeral disk in GiB.
    #[serde(default, rename = "OS-FLV-EXT-DATA:ephemeral")]
    pub(crate) ephemeral: u64,
    #[serde(default)]
    pub(crate) extra_specs: BTreeMap<String, String>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct LimitsBody {
    pub(crate) limits: AbsoluteLimits,
}

#[derive(Debug, Deserialize)]
pub(crate) struct AbsoluteLimits {
    pub(crate) absolute: BTreeMap<String, i64>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct QuotaBody {
    pub(crate) quota: BTreeMap<String, QuotaDetail>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct QuotaDetail {
    pub(crate) limit: i64,
    pub(crate) used: i64,
}

/// A resource of Neutron or Nova that is looked up by name.
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct Named {
    pub(crate) id: String,
    pub(crate) name: String,
    /// Its project, if requested from Neutron.
    pub(crate) project_id: Option<String>,
}

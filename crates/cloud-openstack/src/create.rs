//! Creates servers.

use crate::api::Api;
use crate::resolve::{Kind, Resolver};
use crate::tags;
use crate::wire::with;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cloud_core::http::{Method, Request};
use cloud_core::{ApiOperation, Error, ErrorKind, InstanceSpec, Result, Secret};
use serde_json::{Map, Value, json};
use std::net::IpAddr;

/// Maximum length of encoded user data in Nova.
const LONGEST_USER_DATA: usize = 65_535;

/// Options of a launch in addition to an [`InstanceSpec`].
///
/// Names may also be ids. An ambiguous name is an error.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LaunchOptions {
    /// The networks, in the order of the interfaces. In [`ConnectSettings::launch`](crate::ConnectSettings::launch), the
    /// address on the first one counts. Without any, Nova uses the project's only network.
    pub nics: Vec<Nic>,
    /// Security groups; by default, the project's default one.
    pub security_groups: Vec<String>,
    /// The key pair for the login user.
    pub keypair: Option<String>,
    /// Passes user data on a config drive, for networks without a metadata service.
    pub config_drive: bool,
    /// The volume to boot from, instead of a local disk.
    pub boot_volume: Option<BootVolume>,
    /// The server group, for (anti-)affinity.
    pub server_group: Option<String>,
    /// Additional Nova tags.
    pub extra_tags: Vec<String>,
}

/// One network interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Nic {
    /// A new port on a network.
    Network {
        /// The network.
        network: String,
        /// Its address; by default, Neutron chooses.
        address: Option<IpAddr>,
    },
    /// An existing port.
    Port(String),
}

impl Nic {
    /// Creates a port on a network with any address.
    pub fn network(network: impl Into<String>) -> Self {
        Self::Network { network: network.into(), address: None }
    }
}

/// A boot volume, created from the image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BootVolume {
    /// Its size in GB.
    pub size_gb: u32,
    /// True to delete the volume with the server.
    pub delete_on_termination: bool,
    /// The volume type; by default, the cloud's default.
    pub kind: Option<String>,
}

/// A launch with resolved ids.
#[derive(Debug)]
struct Resolved {
    flavor: String,
    image: String,
    networks: Value,
    security_groups: Vec<String>,
    server_group: Option<String>,
}

/// The request, and the id of its image.
pub(crate) async fn request(
    api: &Api,
    resolver: &Resolver,
    spec: &InstanceSpec,
    options: &LaunchOptions,
) -> Result<(Request, String)> {
    let about = |error: Error| error.on(&spec.name);
    refuse_what_nova_cannot(spec).map_err(about)?;
    let ids = resolve(api, resolver, spec, options).await.map_err(about)?;
    let user_data =
        spec.user_data.as_ref().map(|data| data.clone().map(|text| STANDARD.encode(text)));
    let body = body(spec, options, &ids, user_data.as_ref()).map_err(about)?;
    let request = api.compute(ApiOperation::Launch, Method::POST, &["servers"]).on(&spec.name);
    let request = request.with_json(&body)?;
    // Nova echoes the whole body in some errors.
    let secrets = [user_data, spec.user_data.clone()];
    let request = secrets.into_iter().flatten().fold(request, Request::with_secret);
    Ok((request, ids.image))
}

/// Returns an error for an option that would otherwise be ignored.
fn refuse_what_nova_cannot(spec: &InstanceSpec) -> Result<()> {
    let reason = if spec.preemptible {
        "Nova has no preemptible servers"
    } else if spec.fault_domain.is_some() {
        "Nova has no fault domains; use a server group"
    } else if !spec.ssh_keys.is_empty() {
        "Nova takes the name of a key pair; set that, or put the keys into the user data"
    } else {
        return Ok(());
    };
    Err(Error::unsupported(ApiOperation::Launch).because(reason))
}

async fn resolve(
    api: &Api,
    resolver: &Resolver,
    spec: &InstanceSpec,
    options: &LaunchOptions,
) -> Result<Resolved> {
    let flavor = resolver.id(api, ApiOperation::Launch, Kind::Flavor, spec.shape.as_str()).await?;
    let image = resolver.id(api, ApiOperation::Launch, Kind::Image, spec.image.as_str()).await?;
    let own = spec.subnet.as_ref().map(|network| Nic::network(network.as_str()));
    let nics = own.as_ref().map_or(&options.nics[..], std::slice::from_ref);
    let mut networks = Vec::new();
    for nic in nics {
        networks.push(match nic {
            Nic::Network { network, address } => {
                let id = resolver.id(api, ApiOperation::Launch, Kind::Network, network).await?;
                match address {
                    Some(address) => json!({"uuid": id, "fixed_ip": address.to_string()}),
                    None => json!({"uuid": id}),
                }
            }
            Nic::Port(port) => {
                json!({"port": resolver.id(api, ApiOperation::Launch, Kind::Port, port).await?})
            }
        });
    }
    let networks = if networks.is_empty() { json!("auto") } else { Value::Array(networks) };
    let mut security_groups = Vec::new();
    for group in &options.security_groups {
        security_groups
            .push(resolver.id(api, ApiOperation::Launch, Kind::SecurityGroup, group).await?);
    }
    let server_group = match &options.server_group {
        Some(group) => {
            Some(resolver.id(api, ApiOperation::Launch, Kind::ServerGroup, group).await?)
        }
        None => None,
    };
    Ok(Resolved { flavor, image, networks, security_groups, server_group })
}

/// The body of the request.
fn body(
    spec: &InstanceSpec,
    options: &LaunchOptions,
    resolved: &Resolved,
    user_data: Option<&Secret<String>>,
) -> Result<Value> {
    let mut server = Map::new();
    let mut set = |key: &str, value: Value| server.insert(key.to_owned(), value);
    set("name", json!(spec.name.as_str()));
    set("flavorRef", json!(resolved.flavor));
    set("networks", resolved.networks.clone());
    let mut metadata = tags::metadata(&spec.tags)?;
    set("tags", json!(tags::nova_tags(&spec.tags, &options.extra_tags)?));
    match &options.boot_volume {
        Some(volume) => {
            metadata.insert(tags::BOOT_IMAGE.to_owned(), json!(resolved.image));
            set("block_device_mapping_v2", json!([boot_volume(volume, &resolved.image)]))
        }
        None => set("imageRef", json!(resolved.image)),
    };
    set("metadata", Value::Object(metadata));
    if !resolved.security_groups.is_empty() {
        let groups = resolved.security_groups.iter().map(|id| json!({"name": id}));
        set("security_groups", groups.collect());
    }
    let zone = spec.zone.as_ref().map(cloud_core::Zone::as_str);
    let keypair = spec.keypair.as_deref().or(options.keypair.as_deref());
    for (key, text) in [("key_name", keypair), ("availability_zone", zone)] {
        text.map(|text| set(key, json!(text)));
    }
    if options.config_drive {
        set("config_drive", json!(true));
    }
    if let Some(user_data) = user_data {
        set("user_data", fitting(user_data)?);
    }
    let body = json!({"server": server});
    Ok(match &resolved.server_group {
        Some(group) => with(body, "os:scheduler_hints", json!({"group": group})),
        None => body,
    })
}

/// Encodes the user data, up to Nova's limit.
fn fitting(user_data: &Secret<String>) -> Result<Value> {
    let length = user_data.expose().len();
    if length > LONGEST_USER_DATA {
        let message =
            format!("user data of {length} bytes, encoded; Nova takes {LONGEST_USER_DATA}");
        return Err(Error::new(ErrorKind::Invalid, ApiOperation::Launch).because(message));
    }
    Ok(json!(user_data.expose()))
}

fn boot_volume(volume: &BootVolume, image: &str) -> Value {
    let mapping = json!({
        "boot_index": 0,
        "uuid": image,
        "source_type": "image",
        "destination_type": "volume",
        "volume_size": volume.size_gb,
        "delete_on_termination": volume.delete_on_termination,
    });
    match &volume.kind {
        Some(kind) => with(mapping, "volume_type", json!(kind)),
        None => mapping,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cloud_core::{FaultDomain, ImageId, InstanceName, ShapeName, Tags, Zone};

    fn spec() -> InstanceSpec {
        let name = InstanceName::new("vm-1");
        let mut spec = InstanceSpec::new(name, ShapeName::new("tiny"), ImageId::new("image"));
        spec.tags = Tags::from([("cluster", "blue")]);
        spec
    }

    fn resolved() -> Resolved {
        Resolved {
            flavor: "f1".to_owned(),
            image: "i1".to_owned(),
            networks: json!([{"uuid": "n1"}, {"port": "p1"}]),
            security_groups: vec!["g1".to_owned()],
            server_group: Some("s1".to_owned()),
        }
    }

    #[test]
    fn a_launch_with_everything() {
        let mut spec = spec();
        spec.zone = Some(Zone::new("az-1"));
        let options = LaunchOptions {
            keypair: Some("key".to_owned()),
            config_drive: true,
            extra_tags: vec!["compute".to_owned()],
            ..LaunchOptions::default()
        };
        let user_data = Secret::new("I2Nsb3Vk".to_owned());
        let body = body(&spec, &options, &resolved(), Some(&user_data)).unwrap();
        let expected = json!({
            "server": {
                "name": "vm-1", "flavorRef": "f1", "imageRef": "i1",
                "networks": [{"uuid": "n1"}, {"port": "p1"}],
                "metadata": {"cluster": "blue"}, "tags": ["cluster=blue", "compute"],
                "security_groups": [{"name": "g1"}], "key_name": "key",
                "availability_zone": "az-1", "config_drive": true, "user_data": "I2Nsb3Vk",
            },
            "os:scheduler_hints": {"group": "s1"},
        });
        assert_eq!(body, expected);
    }

    #[test]
    fn a_launch_may_name_a_key_pair_of_its_own() {
        let options = LaunchOptions { keypair: Some("key".to_owned()), ..LaunchOptions::default() };
        let mut spec = spec();
        spec.keypair = Some("mine".to_owned());
        let body = body(&spec, &options, &resolved(), None).unwrap();
        assert_eq!(body["server"]["key_name"], "mine");
    }

    #[test]
    fn a_boot_volume_takes_the_place_of_the_image() {
        let volume =
            BootVolume { size_gb: 40, delete_on_termination: true, kind: Some("ssd".into()) };
        let options = LaunchOptions { boot_volume: Some(volume), ..LaunchOptions::default() };
        let body = body(&spec(), &options, &resolved(), None).unwrap();
        assert_eq!(body["server"].get("imageRef"), None);
        let mapping = json!([{"boot_index": 0, "uuid": "i1", "source_type": "image",
            "destination_type": "volume", "volume_size": 40, "delete_on_termination": true,
            "volume_type": "ssd"}]);
        assert_eq!(body["server"]["block_device_mapping_v2"], mapping);
        let metadata = json!({"cluster": "blue", "boot_image": "i1"});
        assert_eq!(body["server"]["metadata"], metadata, "Nova would not tell");
    }

    #[test]
    fn user_data_that_nova_would_refuse_is_refused() {
        let user_data = Secret::new("x".repeat(LONGEST_USER_DATA + 1));
        let error = body(&spec(), &LaunchOptions::default(), &resolved(), Some(&user_data));
        assert_eq!(error.unwrap_err().kind(), ErrorKind::Invalid);
    }

    #[test]
    fn no_wish_is_left_out_without_a_word() {
        let wishes: [fn(&mut InstanceSpec); 3] = [
            |spec| spec.preemptible = true,
            |spec| spec.fault_domain = Some(FaultDomain::new("1")),
            |spec| spec.ssh_keys = vec!["ssh-ed25519 AAAA".to_owned()],
        ];
        assert!(refuse_what_nova_cannot(&spec()).is_ok());
        for wish in wishes {
            let mut spec = spec();
            wish(&mut spec);
            let error = refuse_what_nova_cannot(&spec).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unsupported);
        }
    }
}

//! What a launch asks for, checked.

use crate::answer::Refusal;
use crate::query::Fields;
use crate::settings::ShapeSize;
use crate::world::World;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};
use std::net::Ipv4Addr;

/// The most bytes that metadata can have.
const METADATA_BYTES: usize = 32_000;

/// What a launch asks for.
#[derive(Debug)]
pub(crate) struct LaunchRequest {
    pub(crate) compartment: String,
    pub(crate) domain: String,
    pub(crate) fault_domain: String,
    pub(crate) shape: ShapeSize,
    pub(crate) ocpus: f64,
    pub(crate) memory: f64,
    pub(crate) baseline: Value,
    pub(crate) source: Option<Value>,
    pub(crate) image: Option<String>,
    pub(crate) boot_volume: Option<String>,
    pub(crate) subnet: String,
    pub(crate) label: Option<String>,
    pub(crate) address: Option<Ipv4Addr>,
    pub(crate) vnic_name: Option<String>,
    pub(crate) groups: Vec<Value>,
}

impl LaunchRequest {
    pub(crate) fn read(world: &World, body: &Map<String, Value>) -> Result<Self, Refusal> {
        let compartment = body.required("compartmentId")?;
        world.check_compartment(&compartment)?;
        let domain = body.required("availabilityDomain")?;
        world.check_domain(&domain)?;
        check_metadata(body)?;
        if let Some(id) = body.text("computeClusterId")?
            && !world.compute_clusters.contains_key(&id)
        {
            return Err(Refusal::related("compute cluster", &id));
        }
        let size = Size::read(world, body)?;
        let source = Source::read(world, body)?;
        let card = Card::read(world, body)?;
        Ok(Self {
            compartment,
            domain,
            fault_domain: fault_domain(body)?,
            shape: size.shape,
            ocpus: size.ocpus,
            memory: size.memory,
            baseline: size.baseline,
            source: source.details,
            image: source.image,
            boot_volume: source.boot_volume,
            subnet: card.subnet,
            label: card.label,
            address: card.address,
            vnic_name: card.name,
            groups: card.groups,
        })
    }

    /// The `shapeConfig` of the instance's answers.
    pub(crate) fn shape_config(&self) -> Value {
        json!({
            "ocpus": self.ocpus,
            "memoryInGBs": self.memory,
            "gpus": self.shape.gpus,
            "localDisks": 0,
            "maxVnicAttachments": 2,
            "networkingBandwidthInGbps": 1.0,
            "processorDescription": "simulated",
            "vcpus": self.ocpus * 2.0,
            "baselineOcpuUtilization": self.baseline,
        })
    }
}

fn fault_domain(body: &Map<String, Value>) -> Result<String, Refusal> {
    let name = body.text("faultDomain")?.unwrap_or_else(|| "FAULT-DOMAIN-1".to_owned());
    match name.as_str() {
        "FAULT-DOMAIN-1" | "FAULT-DOMAIN-2" | "FAULT-DOMAIN-3" => Ok(name),
        _ => Err(Refusal::invalid(format!("faultDomain {name} is not one of this region"))),
    }
}

pub(crate) fn check_metadata(body: &Map<String, Value>) -> Result<(), Refusal> {
    let mut bytes = 0;
    for name in ["metadata", "extendedMetadata"] {
        let Some(object) = body.object(name)? else {
            continue;
        };
        bytes += object.iter().map(|(key, value)| key.len() + length(value)).sum::<usize>();
        if name == "metadata" && object.values().any(|value| !value.is_string()) {
            return Err(Refusal::unparsable("metadata has a value that is not a string"));
        }
        if let Some(data) = object.text("user_data")?
            && STANDARD.decode(&data).is_err()
        {
            return Err(Refusal::invalid("user_data is not base64"));
        }
        if object.text("ssh_authorized_keys")?.is_some_and(|keys| keys.ends_with('\n')) {
            return Err(Refusal::invalid("ssh_authorized_keys ends with a line end"));
        }
    }
    if bytes > METADATA_BYTES {
        let message = format!("metadata of {bytes} bytes; {METADATA_BYTES} are allowed");
        return Err(Refusal::invalid(message));
    }
    Ok(())
}

fn length(value: &Value) -> usize {
    value.as_str().map_or_else(|| value.to_string().len(), str::len)
}

/// The size of the machine.
struct Size {
    shape: ShapeSize,
    ocpus: f64,
    memory: f64,
    baseline: Value,
}

impl Size {
    fn read(world: &World, body: &Map<String, Value>) -> Result<Self, Refusal> {
        let name = body.required("shape")?;
        let shape = world.shape(&name).cloned();
        let shape = shape.ok_or_else(|| Refusal::invalid(format!("shape {name} is not known")))?;
        let config = body.object("shapeConfig")?;
        if shape.flexible.is_some() && config.is_none() && world.settings.strict_launch {
            return Err(Refusal::missing("shapeConfig of a flexible shape"));
        }
        let none = Map::new();
        let config = config.unwrap_or(&none);
        let baseline = config.get("baselineOcpuUtilization").cloned().unwrap_or(Value::Null);
        let Some((most, most_memory)) = shape.flexible else {
            return Ok(Self { ocpus: shape.ocpus, memory: shape.memory, shape, baseline });
        };
        let ocpus = config.number("ocpus")?.unwrap_or(shape.ocpus);
        let usual = (ocpus * shape.memory).min(most_memory);
        let memory = config.number("memoryInGBs")?.unwrap_or(usual);
        let fits = (1.0..=most).contains(&ocpus) && (1.0..=most_memory).contains(&memory);
        if !fits {
            let message = format!("{ocpus} ocpus and {memory} GB are not possible for {name}");
            return Err(Refusal::invalid(message));
        }
        let (least, most) = ShapeSize::MEMORY_PER_OCPU;
        if !(least..=most).contains(&(memory / ocpus)) {
            return Err(Refusal::invalid(format!(
                "Invalid ratio of memory in GB to OCPUs: {memory} GB for {ocpus}. Valid ratio \
                 range: {least} - {most}"
            )));
        }
        Ok(Self { shape, ocpus, memory, baseline })
    }
}

/// What the machine boots from.
struct Source {
    details: Option<Value>,
    image: Option<String>,
    boot_volume: Option<String>,
}

impl Source {
    fn read(world: &World, body: &Map<String, Value>) -> Result<Self, Refusal> {
        let Some(details) = body.object("sourceDetails")? else {
            return Self::old(world, body);
        };
        let (image, boot_volume) = match details.required("sourceType")?.as_str() {
            "image" => (Some(details.required("imageId")?), None),
            "bootVolume" => (None, Some(details.required("bootVolumeId")?)),
            other => return Err(Refusal::invalid(format!("sourceType {other} is not known"))),
        };
        check_volume_size(details)?;
        image.as_ref().map_or(Ok(()), |id| world.check_image(id))?;
        boot_volume.as_ref().map_or(Ok(()), |id| world.check_boot_volume(id))?;
        Ok(Self { details: Some(Value::Object(details.clone())), image, boot_volume })
    }

    /// The way before there was `sourceDetails`, which still works.
    fn old(world: &World, body: &Map<String, Value>) -> Result<Self, Refusal> {
        let image = body.text("imageId")?;
        if image.is_none() && world.settings.strict_launch {
            return Err(Refusal::missing("sourceDetails"));
        }
        image.as_ref().map_or(Ok(()), |id| world.check_image(id))?;
        let details = image.as_ref().map(|id| json!({"sourceType": "image", "imageId": id}));
        Ok(Self { details, image, boot_volume: None })
    }
}

/// Refuses a size that no boot volume can have.
pub(crate) fn check_volume_size(source: &Map<String, Value>) -> Result<(), Refusal> {
    let size = source.number("bootVolumeSizeInGBs")?;
    match size.filter(|size| !(50.0..=32_768.0).contains(size)) {
        Some(size) => {
            let message = format!("bootVolumeSizeInGBs {size} is not from 50 to 32768");
            Err(Refusal::invalid(message))
        }
        None => Ok(()),
    }
}

/// The ids of security groups. There are none to look them up in, so any id of the kind will do.
fn groups(details: &Map<String, Value>) -> Result<Vec<Value>, Refusal> {
    let ids = match details.get("nsgIds") {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Array(ids)) => ids,
        Some(_) => return Err(Refusal::unparsable("nsgIds is not a list")),
    };
    for id in ids {
        let id = id.as_str().ok_or_else(|| Refusal::unparsable("nsgIds has what is no string"))?;
        if !id.starts_with("ocid1.networksecuritygroup.") {
            return Err(Refusal::related("network security group", id));
        }
    }
    Ok(ids.clone())
}

/// The network card.
struct Card {
    subnet: String,
    label: Option<String>,
    address: Option<Ipv4Addr>,
    name: Option<String>,
    groups: Vec<Value>,
}

impl Card {
    fn read(world: &World, body: &Map<String, Value>) -> Result<Self, Refusal> {
        let none = Map::new();
        let details = body.object("createVnicDetails")?.unwrap_or(&none);
        let subnet = match details.text("subnetId")?.or(body.text("subnetId")?) {
            Some(id) => id,
            None if world.settings.strict_launch => {
                return Err(Refusal::missing("createVnicDetails.subnetId"));
            }
            None => world.addresses.keys().next().cloned().unwrap_or_default(),
        };
        if !world.addresses.contains_key(&subnet) {
            return Err(Refusal::related("subnet", &subnet));
        }
        // As `prohibitPublicIpOnVnic` of every subnet says.
        if details.flag("assignPublicIp")? == Some(true) {
            let message = format!("assignPublicIp: subnet {subnet} prohibits public addresses");
            return Err(Refusal::invalid(message));
        }
        let label = details.text("hostnameLabel")?.or(body.text("hostnameLabel")?);
        if let Some(label) = &label
            && !is_label(label)
        {
            return Err(Refusal::invalid(format!("hostnameLabel {label} is not a host name")));
        }
        let address = details.text("privateIp")?;
        let parse = |text: String| {
            text.parse().map_err(|_| Refusal::invalid(format!("privateIp {text} is no address")))
        };
        Ok(Self {
            subnet,
            label,
            address: address.map(parse).transpose()?,
            name: details.text("displayName")?.or(body.text("displayName")?),
            groups: groups(details)?,
        })
    }
}

/// True for what RFC 1123 allows as one label of a host name.
fn is_label(text: &str) -> bool {
    let inside = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    inside && (1..=63).contains(&text.len()) && !text.starts_with('-') && !text.ends_with('-')
}

#[cfg(test)]
mod tests {
    use super::is_label;

    #[test]
    fn labels() {
        let long = "a".repeat(64);
        for (text, expected) in [
            ("vm-standard2-1-ad1-0001", true),
            ("A1", true),
            ("", false),
            ("-a", false),
            ("a-", false),
            ("a_b", false),
            ("a.b", false),
            (long.as_str(), false),
        ] {
            assert_eq!(is_label(text), expected, "{text}");
        }
    }
}

//! Launching: what the body says, and what of the answer is kept.

use crate::api::{Service, with_token};
use crate::provider::Oci;
use crate::wire::{
    self, CreateVnicDetails, InstanceOptions, LaunchDetails, PreemptibleConfig, PreemptionAction,
    ShapeConfig, SourceDetails,
};
use crate::work_request::Aim;
use crate::{Site, convert};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cloud_core::http::Method;
use cloud_core::{
    Error, ErrorKind, FaultDomain, Flex, Instance, InstanceSpec, Operation, Result, Secret,
};
use std::collections::BTreeMap;

/// Most bytes that OCI takes as metadata, keys included.
const MOST_METADATA: usize = 32_000;

impl Oci {
    pub(crate) async fn send_launch(&self, spec: &InstanceSpec) -> Result<Instance> {
        let wrong = |what: String| {
            Error::new(ErrorKind::Invalid, Operation::Launch).on(&spec.name).because(what)
        };
        let details = details(&self.site, spec).map_err(wrong)?;
        let place = (Service::Core, &["instances"][..]);
        let mut request =
            self.api.request(Operation::Launch, Method::POST, place, &[])?.on(&spec.name);
        request = request.with_json(&details)?;
        if let Some(token) = &spec.token {
            request = with_token(request, token.as_str())?;
        }
        if let Some(data) = &spec.user_data {
            let encoded = data.clone().map(|text| STANDARD.encode(text));
            request = request.with_secret(data.clone()).with_secret(encoded);
        }
        let answer = self.api.send(&request).await?;
        let instance = convert::instance(answer.json::<wire::Instance>(&request)?);
        self.works.began(&instance.id, Aim::Launch, &answer);
        Ok(instance)
    }
}

/// The body of a launch: the site's template with what the spec says filled in.
pub(crate) fn details(site: &Site, spec: &InstanceSpec) -> Result<LaunchDetails, String> {
    let template = site.template.clone();
    let zone = spec.zone.as_ref().or(site.zone.as_ref()).map(|zone| zone.as_str().to_owned());
    let zone = zone.or_else(|| template.availability_domain.clone());
    if zone.is_none() {
        return Err(
            "no availability domain: the launch names none, and neither does the site".into()
        );
    }
    Ok(LaunchDetails {
        availability_domain: zone,
        compartment_id: Some(site.compartment.clone()),
        create_vnic_details: Some(vnic(site, spec)?),
        display_name: Some(spec.name.as_str().to_owned()),
        fault_domain: spec.fault_domain.as_ref().map(fault_domain).or(template.fault_domain),
        freeform_tags: some_map(spec.tags.iter(), template.freeform_tags),
        instance_options: Some(
            template
                .instance_options
                .unwrap_or(InstanceOptions { are_legacy_imds_endpoints_disabled: Some(true) }),
        ),
        preemptible_instance_config: if spec.preemptible {
            Some(template.preemptible_instance_config.unwrap_or_else(terminate_when_preempted))
        } else {
            None
        },
        metadata: metadata(spec, template.metadata)?,
        shape: Some(spec.shape.as_str().to_owned()),
        shape_config: shape_config(spec, template.shape_config),
        source_details: Some(SourceDetails {
            source_type: Some("image".to_owned()),
            image_id: Some(spec.image.as_str().to_owned()),
            ..template.source_details.unwrap_or_default()
        }),
        ..template
    })
}

fn vnic(site: &Site, spec: &InstanceSpec) -> Result<CreateVnicDetails, String> {
    let template = site.template.create_vnic_details.clone().unwrap_or_default();
    let subnet = spec.subnet.as_ref().or(site.subnet.as_ref());
    let subnet = subnet.map(|subnet| subnet.as_str().to_owned()).or(template.subnet_id);
    if subnet.is_none() {
        return Err("no subnet: the launch names none, and neither does the site".into());
    }
    let name = spec.name.as_str();
    if site.hostname && !is_host_name(name) {
        return Err(format!(
            "{name} cannot be a host name: at most 63 letters, digits and hyphens, the first a letter"
        ));
    }
    Ok(CreateVnicDetails {
        hostname_label: site.hostname.then(|| name.to_owned()).or(template.hostname_label),
        subnet_id: subnet,
        ..template
    })
}

fn is_host_name(name: &str) -> bool {
    (1..=63).contains(&name.len())
        && name.starts_with(|first: char| first.is_ascii_alphabetic())
        && !name.ends_with('-')
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

/// A number is one of OCI's three, and any other name is taken as it is.
pub(crate) fn fault_domain(domain: &FaultDomain) -> String {
    let name = domain.as_str();
    if name.bytes().all(|byte| byte.is_ascii_digit()) {
        format!("FAULT-DOMAIN-{name}")
    } else {
        name.to_owned()
    }
}

fn terminate_when_preempted() -> PreemptibleConfig {
    let action = PreemptionAction {
        r#type: Some("TERMINATE".to_owned()),
        preserve_boot_volume: Some(false),
    };
    PreemptibleConfig { preemption_action: Some(action) }
}

fn shape_config(spec: &InstanceSpec, template: Option<ShapeConfig>) -> Option<ShapeConfig> {
    let Some(flex) = spec.flex else {
        return template;
    };
    let baseline_ocpu_utilization = template.and_then(|config| config.baseline_ocpu_utilization);
    Some(ShapeConfig { baseline_ocpu_utilization, ..ShapeConfig::from(flex) })
}

impl From<Flex> for ShapeConfig {
    fn from(flex: Flex) -> Self {
        Self {
            ocpus: Some(f64::from(flex.ocpus)),
            memory_in_gbs: flex.memory_gb.map(f64::from),
            baseline_ocpu_utilization: None,
        }
    }
}

fn metadata(
    spec: &InstanceSpec,
    template: Option<BTreeMap<String, String>>,
) -> Result<Option<BTreeMap<String, String>>, String> {
    let keys: Vec<&str> = spec.ssh_keys.iter().map(|key| key.trim()).collect();
    // OCI rejects a line end after the last key.
    let keys = keys.join("\n").trim().to_owned();
    let keys = (!keys.is_empty()).then_some(("ssh_authorized_keys", keys));
    let data = spec.user_data.as_ref().map(Secret::expose);
    let data = data.map(|text| ("user_data", STANDARD.encode(text)));
    let metadata = some_map(keys.into_iter().chain(data), template);
    let size: usize = metadata.iter().flatten().map(|(key, value)| key.len() + value.len()).sum();
    if size > MOST_METADATA {
        return Err(format!(
            "ssh keys and user data take {size} bytes as sent, and OCI takes {MOST_METADATA}"
        ));
    }
    Ok(metadata)
}

/// The pairs over what is there already; none if there is nothing at all.
fn some_map<K: Into<String>, V: Into<String>>(
    pairs: impl Iterator<Item = (K, V)>,
    template: Option<BTreeMap<String, String>>,
) -> Option<BTreeMap<String, String>> {
    let mut map = template.unwrap_or_default();
    map.extend(pairs.map(|(key, value)| (key.into(), value.into())));
    (!map.is_empty()).then_some(map)
}

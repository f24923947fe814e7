//! Launching: what the body says, and what of the answer is kept.

use crate::api::{Service, with_token};
use crate::classify::with_remark;
use crate::provider::Oci;
use crate::wire::{
    self, CreateVnicDetails, InstanceOptions, LaunchDetails, Metadata, PreemptibleConfig,
    PreemptionAction, ShapeConfig, SourceDetails,
};
use crate::work_request::Aim;
use crate::{Site, convert};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cloud_core::http::Method;
use cloud_core::{
    Error, ErrorKind, FaultDomain, Flex, Instance, InstanceSpec, LaunchToken, Operation, Result,
    Secret,
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
        let sent = details.metadata.as_ref().and_then(|metadata| metadata.0.get("user_data"));
        let sent = sent.cloned().map(Secret::new);
        for secret in spec.user_data.iter().chain(&sent) {
            request = request.with_secret(secret.clone());
        }
        let response = self.api.send(&request).await;
        let response = response.map_err(|error| explain(error, &self.site))?;
        let instance = convert::instance(response.json::<wire::Instance>(&request)?);
        // OCI rejects a token whose instance is gone, or answers as it did then, as long as it still shows it.
        if spec.token.is_some() && instance.state.is_leaving() {
            let why = format!("its token made {}, which is {}", instance.id, instance.state);
            let error = request.error(ErrorKind::Conflict).because(why);
            return Err(error.with_code(LaunchToken::USED_UP));
        }
        self.works.began(&instance.id, Aim::Launch, &response);
        Ok(instance)
    }
}

/// There is nothing of the launch yet that could not be found: something that it names is not there,
/// or there is no policy.
fn explain(error: Error, site: &Site) -> Error {
    if error.kind() != ErrorKind::NotFound {
        return error;
    }
    let remedy = format!(
        ": check compartment_id, which is {}, the subnet, the image and the policy of who asks",
        site.compartment
    );
    with_remark(error.with_kind(ErrorKind::Forbidden), &remedy)
}

/// The body of a launch: the site's template with what the spec says filled in.
pub(crate) fn details(site: &Site, spec: &InstanceSpec) -> Result<LaunchDetails, String> {
    let template = site.template.clone();
    let zone = spec.zone.as_ref().or(site.zone.as_ref()).map(|zone| zone.as_str().to_owned());
    let zone = zone.or_else(|| template.availability_domain.clone());
    if zone.is_none() {
        return Err(
            "no availability domain: the launch names none, and neither does the site; give the node's group `zone` in \
             limits.yaml, or the node the feature ad="
                .into(),
        );
    }
    Ok(LaunchDetails {
        availability_domain: zone,
        compute_cluster_id: template.compute_cluster_id.or_else(|| compute_cluster(site, spec)),
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
        metadata: metadata(spec, template.metadata.unwrap_or_default())?,
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
            "{name} cannot be a host name: at most 63 letters, digits and hyphens, the first a letter; \
             without host names (hostname_label: false) it may be called so"
        ));
    }
    Ok(CreateVnicDetails {
        hostname_label: site.hostname.then(|| name.to_owned()).or(template.hostname_label),
        subnet_id: subnet,
        ..template
    })
}

/// Virtual machines are refused in one.
fn compute_cluster(site: &Site, spec: &InstanceSpec) -> Option<String> {
    site.compute_cluster.clone().filter(|_| spec.shape.as_str().starts_with("BM."))
}

/// True if OCI takes it as the host name of an instance: its label in the subnet's DNS.
///
/// ```
/// assert!(cloud_oci::is_host_name("vm-standard2-1-ad1-0001"));
/// assert!(!cloud_oci::is_host_name("gpu_big-0001") && !cloud_oci::is_host_name("1st"));
/// ```
#[must_use]
pub fn is_host_name(name: &str) -> bool {
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

fn metadata(spec: &InstanceSpec, template: Metadata) -> Result<Option<Metadata>, String> {
    let keys: Vec<&str> = spec.ssh_keys.iter().map(|key| key.trim()).collect();
    // OCI rejects a line end after the last key.
    let keys = keys.join("\n").trim().to_owned();
    let keys = (!keys.is_empty()).then_some(("ssh_authorized_keys", keys));
    let data = spec.user_data.as_ref().map(Secret::expose);
    let data = data.map(|text| ("user_data", STANDARD.encode(text)));
    let metadata = some_map(keys.into_iter().chain(data), Some(template.0));
    let size: usize = metadata.iter().flatten().map(|(key, value)| key.len() + value.len()).sum();
    if size > MOST_METADATA {
        return Err(format!(
            "ssh keys and user data take {size} bytes as sent, and OCI takes {MOST_METADATA}"
        ));
    }
    Ok(metadata.map(Metadata))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{LaunchOptions, PreemptibleConfig};
    use cloud_core::{ImageId, InstanceName, ShapeName, SubnetId, Tags, Zone};
    use serde_json::{Value, json};

    /// What a row has the spec say.
    type Change = fn(&mut InstanceSpec);

    fn spec() -> InstanceSpec {
        let (name, shape) = (InstanceName::new("vm-1"), ShapeName::new("VM.Standard2.1"));
        let mut spec = InstanceSpec::new(name, shape, ImageId::new("img"));
        spec.zone = Some(Zone::new("AD-1"));
        spec.subnet = Some(SubnetId::new("sub"));
        spec
    }

    /// What is sent for the least that a launch can say.
    fn least() -> Value {
        json!({
            "availabilityDomain": "AD-1",
            "compartmentId": "c",
            "createVnicDetails": {"hostnameLabel": "vm-1", "subnetId": "sub"},
            "displayName": "vm-1",
            "instanceOptions": {"areLegacyImdsEndpointsDisabled": true},
            "shape": "VM.Standard2.1",
            "sourceDetails": {"sourceType": "image", "imageId": "img"},
        })
    }

    /// The least with these fields put in or replaced.
    fn least_and(more: Value) -> Value {
        let mut body = least();
        let (Some(body_fields), Value::Object(more)) = (body.as_object_mut(), more) else {
            panic!("two objects");
        };
        body_fields.extend(more);
        body
    }

    fn sent(site: &Site, spec: &InstanceSpec) -> Value {
        serde_json::to_value(details(site, spec).unwrap()).unwrap()
    }

    #[test]
    fn what_a_launch_says_was_never_looked_at_without_a_template() {
        let terminate =
            json!({"preemptionAction": {"type": "TERMINATE", "preserveBootVolume": false}});
        let rows: [(Change, Value); 8] = [
            (|_spec| {}, json!({})),
            (|spec| spec.preemptible = true, json!({"preemptibleInstanceConfig": terminate})),
            (
                |spec| spec.shape = ShapeName::new("BM.HPC2.36"),
                json!({"shape": "BM.HPC2.36", "computeClusterId": "rdma"}),
            ),
            (
                |spec| spec.fault_domain = Some(FaultDomain::new("2")),
                json!({"faultDomain": "FAULT-DOMAIN-2"}),
            ),
            (
                |spec| spec.fault_domain = Some(FaultDomain::new("Rack-7")),
                json!({"faultDomain": "Rack-7"}),
            ),
            (
                |spec| spec.flex = Some(Flex { ocpus: 2, memory_gb: None }),
                json!({"shapeConfig": {"ocpus": 2.0}}),
            ),
            (
                |spec| spec.tags = Tags::from([("cluster", "c1")]),
                json!({"freeformTags": {"cluster": "c1"}}),
            ),
            (
                |spec| {
                    spec.ssh_keys = vec!["one\n".to_owned(), "two\n".to_owned()];
                    spec.user_data = Some(Secret::new("#!".to_owned()));
                },
                json!({"metadata": {"ssh_authorized_keys": "one\ntwo", "user_data": "IyE="}}),
            ),
        ];
        let mut site = Site::new("c");
        site.compute_cluster = Some("rdma".to_owned());
        for (change, more) in rows {
            let mut spec = spec();
            change(&mut spec);
            assert_eq!(sent(&site, &spec), least_and(more));
        }
    }

    #[test]
    fn the_user_data_of_a_template_was_printed() {
        let mut site = Site::new("c");
        let data = [("user_data".to_owned(), "cGFzc3dvcmQ=".to_owned())];
        site.template.metadata = Some(Metadata(data.into()));
        let printed = format!("{site:?} {:?}", details(&site, &spec()));
        assert!(printed.contains("user_data") && !printed.contains("cGFz"), "{printed}");
        assert_eq!(sent(&site, &spec())["metadata"], json!({"user_data": "cGFzc3dvcmQ="}));
    }

    #[test]
    fn a_launch_that_may_not_be_was_not_found() {
        let error = |kind| Error::new(kind, Operation::Launch).because("no");
        let told = explain(error(ErrorKind::NotFound), &Site::new("c")).to_string();
        let remedy =
            "check compartment_id, which is c, the subnet, the image and the policy of who asks";
        assert_eq!(told, format!("launch: forbidden: no: {remedy}"));
        let told = explain(error(ErrorKind::Capacity), &Site::new("c")).to_string();
        assert_eq!(told, "launch: out of capacity: no");
    }

    #[test]
    fn a_template_fills_in_what_a_launch_does_not_say() {
        let mut site = Site::new("c");
        (site.zone, site.subnet) = (Some(Zone::new("AD-2")), Some(SubnetId::new("other")));
        site.template.fault_domain = Some("FAULT-DOMAIN-3".to_owned());
        site.template.instance_options = Some(InstanceOptions::default());
        site.template.launch_options =
            Some(LaunchOptions { network_type: Some("VFIO".to_owned()) });
        // Only how it is taken away: whether it may be is for the launch to say.
        site.template.preemptible_instance_config = Some(PreemptibleConfig::default());
        let more = json!({
            "faultDomain": "FAULT-DOMAIN-3", "instanceOptions": {}, "launchOptions": {"networkType": "VFIO"},
        });
        assert_eq!(
            sent(&site, &spec()),
            least_and(more.clone()),
            "the launch goes before the site"
        );
        let mut spec = spec();
        (spec.zone, spec.subnet, spec.preemptible) = (None, None, true);
        spec.fault_domain = Some(FaultDomain::new("1"));
        let mut expected = least_and(more);
        expected["availabilityDomain"] = json!("AD-2");
        expected["createVnicDetails"]["subnetId"] = json!("other");
        expected["faultDomain"] = json!("FAULT-DOMAIN-1");
        expected["preemptibleInstanceConfig"] = json!({});
        assert_eq!(sent(&site, &spec), expected);
    }

    #[test]
    fn what_oci_would_refuse_is_refused_before_it_is_sent() {
        // Those of `ssh_authorized_keys` count, too.
        const MOST: usize = 32_000 - 19;
        let rows: [(Change, Result<(), &str>); 5] = [
            (|spec| spec.zone = None, Err("no availability domain: ")),
            (|spec| spec.subnet = None, Err("no subnet: ")),
            (|spec| spec.name = InstanceName::new("1vm"), Err("1vm cannot be a host name: ")),
            (|spec| spec.ssh_keys = vec!["x".repeat(MOST)], Ok(())),
            (
                |spec| spec.ssh_keys = vec!["x".repeat(MOST + 1)],
                Err("ssh keys and user data take 32001 bytes as sent, and OCI takes 32000"),
            ),
        ];
        for (change, expected) in rows {
            let mut spec = spec();
            change(&mut spec);
            match (details(&Site::new("c"), &spec), expected) {
                (Ok(_), Ok(())) => {}
                (Err(why), Err(expected)) => assert!(why.starts_with(expected), "{why}"),
                (got, expected) => panic!("{:?} and not {expected:?}", got.err()),
            }
        }
    }
}

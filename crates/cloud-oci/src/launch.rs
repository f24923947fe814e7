//! Launches instances.

use crate::api::{Service, with_token};
use crate::provider::Oci;
use crate::size::sized;
use crate::work_request::Goal;
use crate::{LaunchOptions, convert, wire};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cloud_core::http::Method;
use cloud_core::{
    ApiOperation, Error, ErrorKind, FaultDomain, Instance, InstanceSpec, Result, Secret,
};
use serde_json::{Map, Value, json};

/// Maximum size of metadata in OCI, keys included, in bytes.
const MOST_METADATA: usize = 32_000;

impl Oci {
    pub(crate) async fn send_launch(&self, spec: &InstanceSpec) -> Result<Instance> {
        let wrong = |what: String| {
            Error::new(ErrorKind::Invalid, ApiOperation::Launch).on(&spec.name).because(what)
        };
        let details = details(&self.site, spec).map_err(wrong)?;
        let place = (Service::Core, &["instances"][..]);
        let mut request =
            self.api.request(ApiOperation::Launch, Method::POST, place, &[])?.on(&spec.name);
        request = request.with_json(&details)?;
        if let Some(token) = &spec.token {
            request = with_token(request, token.as_str())?;
        }
        let sent = details.pointer("/metadata/user_data").and_then(Value::as_str);
        let sent = sent.map(|data| Secret::new(data.to_owned()));
        for secret in spec.user_data.iter().chain(&sent) {
            request = request.with_secret(secret.clone());
        }
        let response = match self.api.send(&request).await {
            Ok(response) => response,
            Err(error) => return Err(self.name_missing(error, &details).await),
        };
        let instance = convert::instance(response.json::<wire::Instance>(&request)?);
        // OCI rejects a token whose instance is gone, or returns the old response while it still lists the instance.
        if spec.token.is_some() && instance.state.is_leaving() {
            let why = format!("its token made {}, which is {}", instance.id, instance.state);
            return Err(request.error(ErrorKind::TokenUsedUp).because(why));
        }
        self.work_requests.began(&instance.id, Goal::Launch, &response);
        Ok(instance)
    }
}

/// The body of a launch: the fields of the options, overlaid with the spec.
pub(crate) fn details(site: &LaunchOptions, spec: &InstanceSpec) -> Result<Value, String> {
    let mut body = site.shared_fields();
    let said = said(site, spec, &body)?;
    overlay(&mut body, said);
    let Value::Object(mut body) = body else {
        return Err("the template is not an object".into());
    };
    for key in ["metadata", "freeformTags"] {
        if body.get(key) == Some(&json!({})) {
            body.remove(key);
        }
    }
    body.entry("instanceOptions")
        .or_insert_with(|| json!({"areLegacyImdsEndpointsDisabled": true}));
    if spec.preemptible {
        let action = json!({"type": "TERMINATE", "preserveBootVolume": false});
        body.entry("preemptibleInstanceConfig")
            .or_insert_with(|| json!({"preemptionAction": action}));
    } else {
        body.remove("preemptibleInstanceConfig");
    }
    if let (_, Some(size)) = sized(&spec.shape) {
        let mut config = size.config();
        let baseline = body.get("shapeConfig").and_then(|it| it.get(BASELINE)).cloned();
        overlay(&mut config, json!({BASELINE: baseline}));
        body.insert("shapeConfig".to_owned(), config);
    }
    refuse_large_metadata(&body)?;
    Ok(Value::Object(body))
}

/// The fields from the spec and the options, which override the template.
fn said(site: &LaunchOptions, spec: &InstanceSpec, template: &Value) -> Result<Value, String> {
    let text = |pointer: &str| template.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
    let zone = spec.zone.as_ref().or(site.zone.as_ref()).map(|zone| zone.as_str().to_owned());
    let Some(zone) = zone.or_else(|| text("/availabilityDomain")) else {
        return Err(
            "no availability domain: set `zone` for the node's group in limits.yaml, or give the node the feature ad="
                .into(),
        );
    };
    let subnet = spec.subnet.as_ref().or(site.subnet.as_ref());
    let subnet = subnet.map(|subnet| subnet.as_str().to_owned());
    let Some(subnet) = subnet.or_else(|| text("/createVnicDetails/subnetId")) else {
        return Err("no subnet: neither the launch nor the site names one".into());
    };
    let cluster = text("/computeClusterId").or_else(|| compute_cluster(site, spec));
    Ok(json!({
        "availabilityDomain": zone,
        "compartmentId": site.compartment,
        "computeClusterId": cluster,
        "createVnicDetails": {"hostnameLabel": hostname(site, spec)?, "subnetId": subnet},
        "displayName": spec.name.as_str(),
        "faultDomain": spec.fault_domain.as_ref().map(fault_domain),
        "freeformTags": spec.tags.iter().collect::<Tagged>(),
        "metadata": metadata(spec),
        "shape": sized(&spec.shape).0,
        "sourceDetails": {"sourceType": "image", "imageId": spec.image.as_str()},
    }))
}

type Tagged<'a> = std::collections::BTreeMap<&'a str, &'a str>;

/// The baseline of a core, which only a template can set.
const BASELINE: &str = "baselineOcpuUtilization";

/// Merges one tree into another. A null keeps the existing value.
pub(crate) fn overlay(under: &mut Value, over: Value) {
    match (under, over) {
        (_, Value::Null) => {}
        (Value::Object(under), Value::Object(over)) => {
            for (key, value) in over.into_iter().filter(|(_, value)| !value.is_null()) {
                overlay(under.entry(key).or_insert(Value::Null), value);
            }
        }
        (under @ Value::Null, Value::Object(over)) => {
            *under = Value::Object(Map::new());
            overlay(under, Value::Object(over));
        }
        (under, over) => *under = over,
    }
}

fn hostname<'a>(site: &LaunchOptions, spec: &'a InstanceSpec) -> Result<Option<&'a str>, String> {
    let name = spec.name.as_str();
    if site.hostname && !is_host_name(name) {
        return Err(format!(
            "{name} cannot be a host name: at most 63 letters, digits and hyphens, the first a letter; \
             set hostname_label: false to allow the name"
        ));
    }
    Ok(site.hostname.then_some(name))
}

/// A compute cluster rejects virtual machines.
fn compute_cluster(site: &LaunchOptions, spec: &InstanceSpec) -> Option<String> {
    site.compute_cluster.clone().filter(|_| spec.shape.as_str().starts_with("BM."))
}

/// True for a valid host name of an instance, which is its label in the subnet's DNS.
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

/// The name of a fault domain: a number is one of OCI's three, and other names are used as they are.
pub(crate) fn fault_domain(domain: &FaultDomain) -> String {
    let name = domain.as_str();
    if name.bytes().all(|byte| byte.is_ascii_digit()) {
        format!("FAULT-DOMAIN-{name}")
    } else {
        name.to_owned()
    }
}

fn metadata(spec: &InstanceSpec) -> Value {
    let keys: Vec<&str> = spec.ssh_keys.iter().map(|key| key.trim()).collect();
    // OCI rejects a newline after the last key.
    let keys = keys.join("\n").trim().to_owned();
    let data = spec.user_data.as_ref().map(|data| STANDARD.encode(data.expose()));
    json!({"ssh_authorized_keys": Some(keys).filter(|keys| !keys.is_empty()), "user_data": data})
}

fn refuse_large_metadata(body: &Map<String, Value>) -> Result<(), String> {
    let metadata = body.get("metadata").and_then(Value::as_object);
    let length = |(key, value): (&String, &Value)| key.len() + value.as_str().map_or(0, str::len);
    let size: usize = metadata.into_iter().flatten().map(length).sum();
    if size > MOST_METADATA {
        return Err(format!(
            "ssh keys and user data take {size} bytes as sent, and OCI takes {MOST_METADATA}"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use cloud_core::{ImageId, InstanceName, ShapeName, SubnetId, Tags, Zone};

    /// The spec of a row.
    type Change = fn(&mut InstanceSpec);

    fn spec() -> InstanceSpec {
        let (name, shape) = (InstanceName::new("vm-1"), ShapeName::new("VM.Standard2.1"));
        let mut spec = InstanceSpec::new(name, shape, ImageId::new("img"));
        spec.zone = Some(Zone::new("AD-1"));
        spec.subnet = Some(SubnetId::new("sub"));
        spec
    }

    /// The body of a minimal launch.
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

    /// The minimal body with these fields added or replaced.
    fn least_and(more: Value) -> Value {
        let mut body = least();
        let (Some(body_fields), Value::Object(more)) = (body.as_object_mut(), more) else {
            panic!("two objects");
        };
        body_fields.extend(more);
        body
    }

    fn sent(site: &LaunchOptions, spec: &InstanceSpec) -> Value {
        details(site, spec).unwrap()
    }

    #[test]
    fn a_launch_without_a_template_says_what_the_spec_says() {
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
                |spec| spec.shape = ShapeName::new("VM.Standard.E5.Flex.2"),
                json!({"shape": "VM.Standard.E5.Flex", "shapeConfig": {"ocpus": 2.0}}),
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
        let mut site = LaunchOptions::new("c");
        site.compute_cluster = Some("rdma".to_owned());
        for (change, more) in rows {
            let mut spec = spec();
            change(&mut spec);
            assert_eq!(sent(&site, &spec), least_and(more));
        }
    }

    fn template(value: Value) -> Secret<Map<String, Value>> {
        let Value::Object(map) = value else { panic!("not an object") };
        Secret::new(map)
    }

    #[test]
    fn the_user_data_of_a_template_is_sent_and_not_printed() {
        let mut site = LaunchOptions::new("c");
        site.template = template(json!({"metadata": {"user_data": "cGFzc3dvcmQ="}}));
        let printed = format!("{site:?}");
        assert!(!printed.contains("cGFz"), "{printed}");
        assert_eq!(sent(&site, &spec())["metadata"], json!({"user_data": "cGFzc3dvcmQ="}));
    }

    #[test]
    fn a_template_fills_in_what_a_launch_does_not_say() {
        let mut site = LaunchOptions::new("c");
        (site.zone, site.subnet) = (Some(Zone::new("AD-2")), Some(SubnetId::new("other")));
        site.template = template(json!({
            "faultDomain": "FAULT-DOMAIN-3",
            "instanceOptions": {},
            "launchOptions": {"networkType": "VFIO"},
            // Only the action on preemption; the launch decides whether it is preemptible.
            "preemptibleInstanceConfig": {},
        }));
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
        // The keys in `ssh_authorized_keys` count, too.
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
            match (details(&LaunchOptions::new("c"), &spec), expected) {
                (Ok(_), Ok(())) => {}
                (Err(why), Err(expected)) => assert!(why.starts_with(expected), "{why}"),
                (got, expected) => panic!("{:?} and not {expected:?}", got.err()),
            }
        }
    }
}

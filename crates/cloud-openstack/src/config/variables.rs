//! The `OS_*` variables in the form of a cloud's entry in a clouds.yaml.

use cloud_core::Sources;
use serde_json::{Map, Value};

/// Variables that stand beside `auth`, and what they are called there; all others stand in it.
const BESIDE: &[(&str, &str)] = &[
    ("OS_AUTH_TYPE", "auth_type"),
    ("OS_REGION_NAME", "region_name"),
    ("OS_INTERFACE", "interface"),
    ("OS_ENDPOINT_TYPE", "endpoint_type"),
    ("OS_CACERT", "cacert"),
    ("OS_INSECURE", "insecure"),
    ("OS_IDENTITY_API_VERSION", "identity_api_version"),
];

pub(super) fn entry(sources: &Sources<'_>) -> Value {
    let (mut entry, mut auth) = (Map::new(), Map::new());
    for (name, value) in &sources.variables {
        let Some(rest) = name.strip_prefix("OS_").filter(|_| !value.is_empty()) else {
            continue;
        };
        let beside = BESIDE.iter().find(|(variable, _)| variable == name).map(|(_, key)| *key);
        let value = Value::String(value.clone());
        if let Some(key) = beside {
            entry.insert(key.to_owned(), value);
        } else if rest.ends_with("_ENDPOINT_OVERRIDE") {
            entry.insert(rest.to_lowercase(), value);
        } else if rest.starts_with("TENANT_") {
            // The names of before there were projects, which count where the new ones say nothing.
            let key = rest.to_lowercase().replace("tenant", "project");
            auth.entry(key).or_insert(value);
        } else {
            auth.insert(rest.to_lowercase(), value);
        }
    }
    entry.insert("auth".to_owned(), Value::Object(auth));
    Value::Object(entry)
}

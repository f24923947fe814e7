//! Converts the `OS_*` variables to an entry of a clouds.yaml.

use cloud_core::Sources;
use serde_json::{Map, Value};

/// Variables for top-level keys, with their names there. All others belong into `auth`.
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
            // The names from before there were projects, used if the new ones are not set.
            let key = rest.to_lowercase().replace("tenant", "project");
            auth.entry(key).or_insert(value);
        } else {
            auth.insert(rest.to_lowercase(), value);
        }
    }
    entry.insert("auth".to_owned(), Value::Object(auth));
    Value::Object(entry)
}

//! What only the environment of this call says: slurmctld gives its programs nothing of it.

use super::Point::{self, Odd};
use crate::config::{Auth, Cloud, Settings};
use crate::environment::Environment;

/// Variables that matter here, and not to what slurmctld calls; their values may be secret.
pub(super) fn points(settings: &Settings, environment: &Environment) -> Vec<Point> {
    let file = &settings.file;
    let credentials = match &settings.cloud {
        Cloud::Oracle(_) => {
            format!("~/.oci/config, or as config_file, profile or region into {file}")
        }
        Cloud::OpenStack(_) => {
            format!(
                "a clouds.yaml in ~/.config/openstack or /etc/openstack, and its entry as cloud into {file}"
            )
        }
    };
    let all = [
        (proxies(settings), format!("{file} as proxy and no_proxy")),
        (accounts(settings), credentials),
    ];
    let odd = |(names, place): (Vec<&str>, String)| {
        let set = names.into_iter().filter(|name| environment.get(name).is_some());
        let set = set.collect::<Vec<_>>().join(", ");
        let text = format!(
            "what this shell has in {set} counts here, and startnode and stopnode do not get it from slurmctld: write it into {place}"
        );
        (!set.is_empty()).then_some(Odd(text))
    };
    all.into_iter().filter_map(odd).collect()
}

fn proxies(settings: &Settings) -> Vec<&'static str> {
    if settings.proxies.https.is_some() {
        return Vec::new();
    }
    vec!["http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"]
}

/// The variables of the cloud's own tools that nothing in the configuration goes before.
fn accounts(settings: &Settings) -> Vec<&'static str> {
    let unless = |told: bool, name| (!told).then_some(name);
    match &settings.cloud {
        Cloud::OpenStack(openstack) => {
            let told = openstack.cloud.is_some();
            let names = ["OS_CLOUD", "OS_AUTH_URL"].map(|name| unless(told, name));
            let files = ["OS_CLIENT_CONFIG_FILE", "OS_CLIENT_SECURE_FILE"].map(Some);
            names.into_iter().chain(files).flatten().collect()
        }
        Cloud::Oracle(oracle) => {
            let machine = oracle.auth == Auth::InstancePrincipal;
            let files = [
                unless(machine || oracle.config_file.is_some(), "OCI_CLI_CONFIG_FILE"),
                unless(machine || oracle.profile.is_some(), "OCI_CLI_PROFILE"),
                unless(oracle.region.is_some(), "OCI_CLI_REGION"),
                unless(settings.endpoint.is_some(), "OCI_CLI_ENDPOINT"),
            ];
            let keys = [
                "OCI_CLI_AUTH",
                "OCI_CLI_USER",
                "OCI_CLI_TENANCY",
                "OCI_CLI_FINGERPRINT",
                "OCI_CLI_KEY_FILE",
                "OCI_CLI_PASSPHRASE",
                "OCI_CLI_SECURITY_TOKEN_FILE",
            ];
            let keys = keys.map(|name| unless(machine, name));
            files.into_iter().chain(keys).chain([Some("OCI_CLI_CERT_BUNDLE")]).flatten().collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_only_this_shell_says_was_all_well() {
        let oracle = "compartment_id: c\n";
        let openstack = "csp: openstack\n";
        for (text, variable, odd) in [
            (oracle, "https_proxy", true),
            (oracle, "ALL_PROXY", true),
            ("compartment_id: c\nproxy: http://p:3128\n", "https_proxy", false),
            ("compartment_id: c\nno_proxy: x\n", "https_proxy", true),
            (oracle, "OCI_CLI_PROFILE", true),
            ("compartment_id: c\nprofile: p\n", "OCI_CLI_PROFILE", false),
            (oracle, "OCI_CLI_KEY_FILE", true),
            ("compartment_id: c\nauth: instance_principal\n", "OCI_CLI_KEY_FILE", false),
            (oracle, "OS_CLOUD", false),
            (openstack, "OS_CLOUD", true),
            (openstack, "OS_AUTH_URL", true),
            (openstack, "OS_PASSWORD", false),
            ("csp: openstack\ncloud: c\n", "OS_CLOUD", false),
            ("csp: openstack\ncloud: c\n", "OS_CLIENT_CONFIG_FILE", true),
            (openstack, "PATH", false),
        ] {
            let settings = Settings::read("s.yaml", text).unwrap().settings;
            let mut environment = Environment::default();
            environment.variables.insert(variable.to_owned(), "hunter2".to_owned());
            let found = points(&settings, &environment);
            match &found[..] {
                [] if !odd => {}
                [Odd(said)] if odd => {
                    assert!(said.contains(variable) && !said.contains("hunter2"), "{said}");
                }
                _ => panic!("{variable}: {text}"),
            }
        }
    }
}

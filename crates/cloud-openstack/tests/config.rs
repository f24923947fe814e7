//! Configurations, good and bad: where they are looked for, what they say, and what is said about them.

use cloud_core::http::{Retry, Roots};
use cloud_core::pace::{Pace, Pacer};
use cloud_core::{File, Sources};
use cloud_openstack::{
    Account, ApplicationCredential, Config, ConnectSettings, Credentials, Domain, Interface,
    OpenStack, Search, Service,
};
use proptest::prelude::*;
use rcgen::{CertificateParams, KeyPair};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

/// A machine's files and variables.
#[derive(Default)]
struct Machine {
    files: BTreeMap<PathBuf, File>,
    closed: Option<&'static str>,
    variables: BTreeMap<String, String>,
    cloud: Option<String>,
}

impl Machine {
    fn file(mut self, path: &str, text: &str) -> Self {
        let content = File { bytes: text.as_bytes().to_vec(), mode: Some(0o640) };
        self.files.insert(PathBuf::from(path), content);
        self
    }

    fn variable(mut self, name: &str, value: &str) -> Self {
        self.variables.insert(name.to_owned(), value.to_owned());
        self
    }

    fn load(&self) -> Result<Config, cloud_core::ConfigError> {
        let read = |path: &Path| {
            if self.closed.is_some_and(|closed| path.starts_with(closed)) {
                return Err(io::Error::from(io::ErrorKind::PermissionDenied));
            }
            self.files.get(path).cloned().ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
        };
        let home = Some(PathBuf::from("/home/slurm"));
        let sources = Sources::new(home, self.variables.clone(), read);
        let mut search = Search::usual(&sources);
        search.cloud.clone_from(&self.cloud);
        Config::load(&sources, &search)
    }

    fn complaint(&self) -> String {
        self.load().expect_err("an error").to_string()
    }
}

const ETC: &str = "/etc/openstack/clouds.yaml";

/// A clouds.yaml with one cloud, which has an application credential.
fn application(auth_url: &str) -> String {
    format!(
        "clouds:\n  blue:\n    auth_type: v3applicationcredential\n    region_name: R1\n    auth:\n      \
         auth_url: {auth_url}\n      application_credential_id: c1\n      \
         application_credential_secret: hunter2\n"
    )
}

const TWO: &str = "clouds: {a: {auth: {auth_url: 'http://a'}}, b: {auth: {auth_url: 'http://b'}}}";

#[test]
fn bad_configurations_are_told_in_one_sentence_with_file_cloud_and_remedy() {
    let ends = |text: &str| Machine::default().file(ETC, &format!("clouds: {{blue: {text}}}"));
    let table: [(Machine, &str); 12] = [
        (
            Machine::default()
                .variable("OS_CLIENT_CONFIG_FILE", "/x/clouds.yaml")
                .variable("OS_CLOUD", "red"),
            "no clouds.yaml for cloud 'red' in /x/clouds.yaml: put one there, or set OS_CLIENT_CONFIG_FILE to it, or set OS_AUTH_URL and its like",
        ),
        (
            Machine::default().variable("OS_CLIENT_CONFIG_FILE", "/x/clouds.yaml"),
            "no clouds.yaml in /x/clouds.yaml: put one there, or set OS_CLIENT_CONFIG_FILE to it, or set OS_AUTH_URL and its like",
        ),
        (
            Machine::default().file(ETC, TWO).variable("OS_CLOUD", "red"),
            "/etc/openstack/clouds.yaml: no cloud 'red' (there is 'a', 'b'): set OS_CLOUD to one of these, or add it",
        ),
        (
            Machine::default().file(ETC, TWO),
            "/etc/openstack/clouds.yaml: which cloud of 'a', 'b': set OS_CLOUD to one of these",
        ),
        (
            Machine::default().file(ETC, "clouds: {blue: {password: 'hunter2"),
            "/etc/openstack/clouds.yaml: no YAML, at line 1 column 27: correct it",
        ),
        (
            Machine::default().file(ETC, "clouds: [a]"),
            "/etc/openstack/clouds.yaml: 'clouds' is no mapping of names to clouds: correct it",
        ),
        (
            ends("{auth: {username: u}}"),
            "cloud 'blue' in /etc/openstack/clouds.yaml: auth_url is missing: set it to Keystone's address, such as https://cloud.example:5000/v3",
        ),
        (
            ends("{auth: {auth_url: 'ftp://x'}}"),
            "cloud 'blue' in /etc/openstack/clouds.yaml: auth_url is not an http or https URL: correct it",
        ),
        (
            ends("{auth: {auth_url: 'http://x', username: u, project_name: p}}"),
            "cloud 'blue' in /etc/openstack/clouds.yaml: password is missing: add it here or in secure.yaml",
        ),
        (
            ends("{auth_type: v3oidcpassword, auth: {auth_url: 'http://x'}}"),
            "cloud 'blue' in /etc/openstack/clouds.yaml: auth_type is 'v3oidcpassword', which is not supported: use v3applicationcredential, v3password or v3token",
        ),
        (
            ends("{cacert: /no/file, auth: {auth_url: 'http://x'}}"),
            "cloud 'blue' in /etc/openstack/clouds.yaml: cacert is the file /no/file, which cannot be read (entity not found): correct its path or its permissions",
        ),
        (
            ends("{profile: vexxhost}"),
            "cloud 'blue' in /etc/openstack/clouds.yaml: profile is not supported: write its auth_url and the rest into the cloud's own entry",
        ),
    ];
    for (machine, expected) in table {
        assert_eq!(machine.complaint(), expected);
    }
    let nowhere = Machine::default().complaint();
    for place in ["./clouds.yaml", "/home/slurm/.config/openstack/clouds.yaml", ETC] {
        assert!(nowhere.contains(place), "{nowhere}");
    }
}

#[test]
fn files_are_found_in_the_usual_order() {
    let etc = Machine::default().file(ETC, &application("http://etc:5000"));
    let host = |machine: &Machine| {
        machine.load().expect("a configuration").auth_url.host_str().map(str::to_owned)
    };
    assert_eq!(host(&etc).as_deref(), Some("etc"));
    let home = etc.file("/home/slurm/.config/openstack/clouds.yaml", &application("http://home"));
    assert_eq!(host(&home).as_deref(), Some("home"));
    let here = home.file("./clouds.yaml", &application("http://here"));
    assert_eq!(host(&here).as_deref(), Some("here"));
    let named = here.file("/x.yaml", &application("http://named"));
    let named = named.variable("OS_CLIENT_CONFIG_FILE", "/x.yaml");
    assert_eq!(host(&named).as_deref(), Some("named"));
    let variables = named
        .variable("OS_AUTH_URL", "http://variables/v3")
        .variable("OS_USERNAME", "u")
        .variable("OS_PASSWORD", "p")
        .variable("OS_PROJECT_NAME", "p");
    assert_eq!(host(&variables).as_deref(), Some("variables"));
    let cloud = variables.variable("OS_CLOUD", "blue");
    assert_eq!(host(&cloud).as_deref(), Some("named"), "OS_CLOUD is asked for by name");
}

#[test]
fn a_cloud_called_openstack_is_meant_where_none_is_named() {
    let text = TWO.replace("b: {", "openstack: {token: t, project_id: p, auth_type: token, ");
    let config = Machine::default().file(ETC, &text).load().expect("a configuration");
    assert_eq!(config.auth_url.as_str(), "http://b/v3");
}

#[test]
fn a_token_without_a_project_is_refused() {
    let cloud = "clouds: {blue: {auth_type: v3token, auth: {auth_url: 'http://x', token: t}}}";
    assert_eq!(
        Machine::default().file(ETC, cloud).complaint(),
        "cloud 'blue' in /etc/openstack/clouds.yaml: project_name is missing: add it here or in secure.yaml"
    );
}

#[test]
fn secrets_may_stand_in_a_file_of_their_own() {
    let public =
        application("http://x").replace("      application_credential_secret: hunter2\n", "");
    let secure = "clouds: {blue: {auth: {application_credential_secret: 12345}}}";
    let mut machine =
        Machine::default().file(ETC, &public).file("/etc/openstack/secure.yaml", secure);
    let config = machine.load().expect("a configuration");
    assert!(config.warnings.is_empty(), "{:?}", config.warnings);
    let Credentials::ApplicationCredential { identity, secret } = config.credentials else {
        unreachable!("it is an application credential");
    };
    assert_eq!(identity, ApplicationCredential::Id("c1".to_owned()));
    assert_eq!(secret.expose(), "12345");
    for content in machine.files.values_mut() {
        content.mode = Some(0o644);
    }
    let warnings = machine.load().expect("a configuration").warnings;
    let expected = "/etc/openstack/secure.yaml: others can read the secrets in it: chmod o-r /etc/openstack/secure.yaml";
    assert_eq!(warnings, [expected]);
}

#[test]
fn everything_in_an_entry_is_read() {
    let text = "clouds: {blue: {auth: {auth_url: 'https://x:5000/identity/', username: u, password: p, \
         project_id: p1, user_domain_name: D}, region_name: R1, interface: internalURL, verify: false, \
         compute_endpoint_override: 'http://nova/v2.1', identity_api_version: 3}}";
    let config = Machine::default().file(ETC, text).load().expect("a configuration");
    assert_eq!(config.auth_url.as_str(), "https://x:5000/identity/v3");
    assert_eq!(config.interface, Interface::Internal);
    assert_eq!(config.region.as_deref(), Some("R1"));
    assert_eq!(config.roots, Roots::Unchecked);
    assert_eq!(config.warnings.len(), 1, "{:?}", config.warnings);
    assert_eq!(config.overrides[&Service::Compute].as_str(), "http://nova/v2.1");
    let Credentials::Password { user, scope, .. } = config.credentials else {
        unreachable!("it is a password");
    };
    let domain = Domain::Name("D".to_owned());
    assert_eq!(user, Account::Name { name: "u".to_owned(), domain });
    assert_eq!(scope, Account::Id("p1".to_owned()));
}

#[test]
fn variables_say_the_same_as_a_file() {
    let config = Machine::default()
        .variable("OS_AUTH_URL", "http://x/v3")
        .variable("OS_AUTH_TYPE", "v3applicationcredential")
        .variable("OS_APPLICATION_CREDENTIAL_NAME", "slurm")
        .variable("OS_APPLICATION_CREDENTIAL_SECRET", "s")
        .variable("OS_USERNAME", "u")
        .variable("OS_REGION_NAME", "R1")
        .load()
        .expect("a configuration");
    assert_eq!(config.origin.to_string(), "the cloud of the OS_* variables");
    assert_eq!(config.region.as_deref(), Some("R1"));
    assert!(!format!("{config:?}").contains("\"s\""), "no secret is printed");
}

#[test]
fn an_old_name_of_a_project_won_over_the_new_one() {
    let scope = |machine: Machine| match machine.load().expect("a configuration").credentials {
        Credentials::Password { scope, .. } => scope,
        other => unreachable!("{other:?} is no password"),
    };
    let openrc = || {
        Machine::default()
            .variable("OS_AUTH_URL", "http://x/v3")
            .variable("OS_USERNAME", "u")
            .variable("OS_PASSWORD", "p")
            .variable("OS_TENANT_NAME", "old")
    };
    let named = |name: &str| Account::Name {
        name: name.to_owned(),
        domain: Domain::Id("default".to_owned()),
    };
    assert_eq!(scope(openrc().variable("OS_PROJECT_NAME", "new")), named("new"));
    assert_eq!(scope(openrc()), named("old"));
    assert_eq!(scope(openrc().variable("OS_TENANT_ID", "t1")), Account::Id("t1".to_owned()));
    let text =
        "clouds: {blue: {auth: {auth_url: 'http://x', username: u, password: p, tenant_id: t1}}}";
    assert_eq!(scope(Machine::default().file(ETC, text)), Account::Id("t1".to_owned()));
}

#[test]
fn unsupported_settings_are_refused() {
    let entry = |more: &str| {
        let auth = "auth: {auth_url: 'http://x', username: u, password: p, project_name: p}";
        Machine::default().file(ETC, &format!("clouds: {{blue: {{{auth}, {more}}}}}"))
    };
    for (more, words) in [
        ("cert: /c.pem", "cert is not supported"),
        ("key: /k.pem", "key is not supported"),
        ("trust_id: t", "trust_id is not supported"),
        (
            "regions: [R1, {name: R2}]",
            "region_name is missing, and regions has several: set it to one of R1, R2",
        ),
        (
            "compute_endpoint_override: 'http://u:hunter2@nova'",
            "compute_endpoint_override has a user name or password in it",
        ),
    ] {
        let complaint = entry(more).complaint();
        assert!(complaint.contains(words), "{complaint}");
        assert!(!complaint.contains("hunter2"), "{complaint}");
    }
    let config = entry("regions: [{name: R1}]").load().expect("a configuration");
    assert_eq!(config.region.as_deref(), Some("R1"));
    let home = entry("cacert: '~/ca.pem'").file("/home/slurm/ca.pem", "pem");
    let config = home.variable("HOME", "/root").load().expect("a configuration");
    assert_eq!(config.roots, Roots::SystemAnd(b"pem".to_vec()));
}

#[test]
fn a_file_in_a_closed_directory_does_not_end_the_search() {
    let mut machine = Machine::default().file(ETC, &application("http://etc"));
    machine.closed = Some("/home/slurm");
    let config = machine.load().expect("a configuration");
    assert_eq!(config.auth_url.as_str(), "http://etc/v3");
    let warnings = config.warnings.join("\n");
    assert!(
        warnings.contains("/home/slurm/.config/openstack/clouds.yaml: cannot be read"),
        "{warnings}"
    );
    machine.files.clear();
    let complaint = machine.complaint();
    assert!(
        complaint.starts_with("/home/slurm/.config/openstack/clouds.yaml: cannot be read"),
        "{complaint}"
    );
}

#[test]
fn a_missing_secure_file_is_an_error_if_it_is_named() {
    let machine = Machine::default()
        .file(ETC, &application("http://x"))
        .variable("OS_CLIENT_SECURE_FILE", "/no/secure.yaml");
    let expected = "/no/secure.yaml: cannot be read: check its path and permissions";
    assert_eq!(machine.complaint(), expected);
}

#[test]
fn debug_output_does_not_show_the_bytes_of_a_file() {
    let content = File { bytes: b"hunter2".to_vec(), mode: Some(0o640) };
    let printed = format!("{content:?}");
    assert!(printed.contains('7') && !printed.contains("104"), "{printed}");
}

async fn complaint_of_connecting(auth_url: &str) -> String {
    let machine = Machine::default().file(ETC, &application(auth_url));
    let mut settings = ConnectSettings::default();
    settings.http.retry = Retry::never();
    let pacer = Pacer::new(Pace::default());
    let config = machine.load().expect("a configuration");
    OpenStack::connect(config, settings, pacer).await.expect_err("an error").to_string()
}

#[tokio::test]
async fn an_unreachable_host_is_told_with_file_cloud_and_remedy() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    drop(listener);
    let complaint = complaint_of_connecting(&format!("http://{address}")).await;
    let expected = format!(
        "cloud 'blue' in {ETC}: no answer from http://{address}/v3: check that address, the network and the proxy"
    );
    assert_eq!(complaint, expected);
}

#[tokio::test]
async fn a_certificate_that_signs_itself_is_told_with_file_cloud_and_remedy() {
    let key = KeyPair::generate().expect("a key");
    let params = CertificateParams::new(["127.0.0.1".to_owned()]).expect("parameters");
    let certificate = params.self_signed(&key).expect("a certificate");
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let config = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key)
        .expect("a configuration");
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let acceptor = TlsAcceptor::from(Arc::new(config));
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            let _ = acceptor.accept(socket).await;
        }
    });
    let complaint = complaint_of_connecting(&format!("https://{address}")).await;
    let expected = format!(
        "cloud 'blue' in {ETC}: no trusted connection to https://{address}/v3: check that it speaks https, the host name and the date of its certificate, and set cacert to the file of the authority that signed it"
    );
    assert_eq!(complaint, expected);
}

proptest! {
    #[test]
    fn no_file_makes_it_panic(text in "\\PC{0,200}", yaml in "(clouds|auth|: |\\{|\\}|\\[|\\]|\n|  |blue|\\*a|&a|'|\"|-){0,40}") {
        for text in [text, yaml] {
            let _ = Machine::default().file(ETC, &text).load();
        }
    }
}

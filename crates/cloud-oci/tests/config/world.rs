//! Files and variables of a test.

use cloud_core::{ConfigError, File, Sources};
use cloud_oci::{Config, Credentials, Overrides};
use serde_json::Value;
use std::collections::BTreeMap;
use std::error::Error as _;
use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime};

pub(crate) const TENANCY: &str = "ocid1.tenancy.oc1..aaaaaaaathrowawaytenancy";
pub(crate) const USER: &str = "ocid1.user.oc1..aaaaaaaathrowawayuser";
pub(crate) const FINGERPRINT: &str = "15:5e:3d:0c:de:be:3f:05:94:98:f1:2c:5b:d3:ed:82";
pub(crate) const TOKEN: &str = "eyJhbGciOiJSUzI1NiJ9.eyJleHAiOjQxMDI0NDQ4MDB9.c2ln";

/// Files and variables of a test.
#[derive(Clone, Default)]
pub(crate) struct World {
    pub(crate) files: BTreeMap<String, (String, u32)>,
    pub(crate) variables: BTreeMap<String, String>,
}

impl World {
    /// A home with a good configuration.
    pub(crate) fn good() -> Self {
        let vectors: Value =
            serde_json::from_str(include_str!("../data/signing-vectors.json")).expect("JSON");
        let key = vectors.get("private_key_pem_pkcs1").and_then(Value::as_str).expect("a key");
        let config = format!(
            "[DEFAULT]\nuser={USER}\nfingerprint={FINGERPRINT}\nkey_file=~/.oci/key.pem\n\
             tenancy={TENANCY}\nregion=uk-london-1\n"
        );
        Self::default().file("/h/.oci/config", &config).file("/h/.oci/key.pem", key)
    }

    /// A home with a key and no configuration, which is all in variables.
    pub(crate) fn of_variables() -> Self {
        let mut world = Self::good();
        world.files.remove("/h/.oci/config");
        world
            .variable("OCI_CLI_USER", USER)
            .variable("OCI_CLI_TENANCY", TENANCY)
            .variable("OCI_CLI_FINGERPRINT", FINGERPRINT)
            .variable("OCI_CLI_KEY_FILE", "~/.oci/key.pem")
            .variable("OCI_REGION", "iad")
    }

    pub(crate) fn file(mut self, path: &str, text: &str) -> Self {
        self.files.insert(path.to_owned(), (text.to_owned(), 0o600));
        self
    }

    /// The text of the configuration file.
    pub(crate) fn config(&self) -> String {
        self.files.get("/h/.oci/config").expect("there").0.clone()
    }

    /// Replaces something in the configuration file.
    pub(crate) fn with(self, from: &str, to: &str) -> Self {
        let text = self.config();
        assert!(text.contains(from), "{from} is not there");
        self.file("/h/.oci/config", &text.replace(from, to))
    }

    pub(crate) fn variable(mut self, name: &str, value: &str) -> Self {
        self.variables.insert(name.to_owned(), value.to_owned());
        self
    }

    pub(crate) fn load(&self, overrides: &Overrides) -> Result<Config, ConfigError> {
        let files = self.files.clone();
        let read = move |path: &Path| {
            let found = files.get(path.to_str().expect("text"));
            let (text, mode) = found.ok_or(io::Error::from(io::ErrorKind::NotFound))?.clone();
            Ok(File { bytes: text.into_bytes(), mode: Some(mode) })
        };
        let now = SystemTime::UNIX_EPOCH + Duration::from_hours(500_000);
        let sources = Sources::new(Some("/h".into()), self.variables.clone(), read);
        Config::load(&sources, overrides, now)
    }

    /// The whole chain of the error, as a program prints it.
    pub(crate) fn refused(&self, overrides: &Overrides) -> String {
        let error = self.load(overrides).expect_err("it should be refused");
        let source = error.source().map_or(String::new(), |cause| format!(": {cause}"));
        format!("{error}{source}")
    }
}

pub(crate) fn key_id(config: &Config) -> String {
    match &config.credentials {
        Credentials::Key { key_id, .. } => key_id.expose().clone(),
        Credentials::InstancePrincipal { metadata } => format!("instance {metadata}"),
    }
}

pub(crate) fn profile(name: &str) -> Overrides {
    Overrides { profile: Some(name.to_owned()), ..Overrides::default() }
}

//! Who may call: a ready-made user with a key that everybody knows.

use crate::error::Error;
use crate::settings::{CloudSettings, User};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// The private key of the ready-made user. It guards nothing: the cloud is on loopback.
const PRIVATE_KEY: &str = include_str!("throwaway-key.pem");
const PUBLIC_KEY: &str = include_str!("throwaway-key.pub.pem");
const FINGERPRINT: &str = "15:5e:3d:0c:de:be:3f:05:94:98:f1:2c:5b:d3:ed:82";
pub(crate) const USER: &str = "ocid1.user.oc1..aaaaaaaathrowawayuser";
pub(crate) const TENANCY: &str = "ocid1.tenancy.oc1..aaaaaaaathrowawaytenancy";

/// What a client needs to sign requests as the ready-made user.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Credentials {
    /// The tenancy's id.
    pub tenancy: String,
    /// The user's id.
    pub user: String,
    /// The fingerprint of the key: MD5 of its public half.
    pub fingerprint: String,
    /// The private key, PKCS#8 in PEM form, without a pass phrase.
    pub private_key_pem: String,
    /// The region's name.
    pub region: String,
}

impl Credentials {
    pub(crate) fn new(settings: &CloudSettings) -> Self {
        Self {
            tenancy: settings.tenancy.clone(),
            user: USER.to_owned(),
            fingerprint: FINGERPRINT.to_owned(),
            private_key_pem: PRIVATE_KEY.to_owned(),
            region: settings.region.clone(),
        }
    }

    /// Writes `config` and `key.pem` in the form that OCI's SDKs and CLI read.
    pub fn write_config(&self, directory: &Path) -> Result<(), Error> {
        let key = directory.join("key.pem");
        let config = format!(
            "[DEFAULT]\nuser={}\nfingerprint={}\ntenancy={}\nregion={}\nkey_file={}\n",
            self.user,
            self.fingerprint,
            self.tenancy,
            self.region,
            key.display()
        );
        fs::create_dir_all(directory)
            .map_err(|source| Error::File { path: directory.to_owned(), source })?;
        private(&key, &self.private_key_pem)?;
        private(&directory.join("config"), &config)
    }
}

/// Writes a file that only its owner can read, as the SDKs want it.
fn private(path: &Path, text: &str) -> Result<(), Error> {
    let write = || {
        fs::write(path, text)?;
        fs::set_permissions(path, fs::Permissions::from_mode(0o600))
    };
    write().map_err(|source| Error::File { path: path.to_owned(), source })
}

/// The ready-made user, as the cloud knows it.
pub(crate) fn known_user() -> User {
    User {
        id: USER.to_owned(),
        fingerprint: FINGERPRINT.to_owned(),
        public_key_pem: PUBLIC_KEY.to_owned(),
    }
}

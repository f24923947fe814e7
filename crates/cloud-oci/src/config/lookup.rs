//! Looks up the values of a profile: in the environment, then in the file.

use super::error::{bad_key, malformed, no_file, no_named_file, unreadable};
use super::ini::Ini;
use super::{Credentials, Origin, Overrides};
use crate::jwt;
use crate::key::{KeyError, PrivateKey};
use cloud_core::{ConfigError, File, Secret, Sources};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

/// A value and its source.
pub(super) struct Found {
    pub(super) value: String,
    pub(super) place: Origin,
}

/// Reads the values of a profile: from the environment, then from the file.
pub(super) struct Lookup<'a> {
    sources: &'a Sources<'a>,
    now: SystemTime,
    path: PathBuf,
    ini: Option<Ini>,
    profile: String,
}

impl<'a> Lookup<'a> {
    pub(super) fn open(
        sources: &'a Sources<'a>,
        overrides: &Overrides,
        now: SystemTime,
    ) -> Result<Self, ConfigError> {
        let overridden =
            overrides.profile.as_deref().or_else(|| sources.variable("OCI_CLI_PROFILE"));
        let profile = overridden.unwrap_or("DEFAULT").to_owned();
        let (path, ini) = config_file(sources, overrides)?;
        if let Some(ini) = &ini
            && !ini.has(&profile)
        {
            let path = path.display();
            let have: Vec<String> = ini.names().iter().map(|name| format!("[{name}]")).collect();
            let have = match &have[..] {
                [] => "none, the file is empty".to_owned(),
                have => have.join(", "),
            };
            return Err(ConfigError::new(format!(
                "{path}: no profile [{profile}]: choose one of {have}"
            )));
        }
        let lookup = Self { sources, now, path, ini, profile };
        let told = ["user", "security_token_file"].iter().any(|key| lookup.get(key).is_some());
        if lookup.ini.is_none() && !told {
            return Err(no_file(&lookup.path));
        }
        Ok(lookup)
    }

    pub(super) fn get(&self, key: &str) -> Option<Found> {
        let variable = VARIABLES.iter().find(|(name, _)| *name == key).map(|(_, name)| *name);
        if let Some((name, value)) =
            variable.and_then(|name| Some((name, self.sources.variable(name)?)))
        {
            return Some(Found { value: value.to_owned(), place: Origin::Variable(name) });
        }
        let entry = self.ini.as_ref()?.get(&self.profile, key)?;
        let place = Origin::Line(self.path.clone(), entry.line);
        Some(Found { value: entry.value.clone(), place })
    }

    /// True for a token without a user. A user in `DEFAULT` does not count.
    pub(super) fn is_session(&self) -> bool {
        let own = |key: &str| self.ini.as_ref().is_some_and(|ini| ini.has_own(&self.profile, key));
        let told = self.sources.variable("OCI_CLI_USER").is_some();
        let inherited = own("security_token_file") && !own("user") && !told;
        self.get("security_token_file").is_some() && (inherited || self.get("user").is_none())
    }

    fn need(&self, key: &'static str) -> Result<Found, ConfigError> {
        self.get(key).ok_or_else(|| {
            let (path, profile) = (self.path.display(), &self.profile);
            ConfigError::new(format!("{path}: profile [{profile}] has no {key}: add `{key}=…`"))
        })
    }

    /// The region that the SDK uses if a profile has none.
    pub(super) fn region_variable(&self) -> Result<Found, ConfigError> {
        let name = "OCI_REGION";
        match self.sources.variable(name) {
            Some(value) => Ok(Found { value: value.to_owned(), place: Origin::Variable(name) }),
            None => self.need("region"),
        }
    }

    pub(super) fn ocid(&self, key: &'static str) -> Result<String, ConfigError> {
        let Found { value, place } = self.need(key)?;
        let plain = value.bytes().all(|byte| byte.is_ascii_graphic() && !b"\"/".contains(&byte));
        // The second format is that of early tenancies and users.
        let known = [format!("ocid1.{key}."), format!("ocidv1:{key}:")];
        if plain && known.iter().any(|beginning| value.starts_with(beginning)) {
            return Ok(value);
        }
        let what = format!("not an OCID: copy it from the console, it begins with ocid1.{key}.");
        Err(malformed(&place, key, &what))
    }

    pub(super) fn api_key(&self, tenancy: &str) -> Result<Credentials, ConfigError> {
        let user = self.ocid("user")?;
        let fingerprint = self.need("fingerprint")?;
        if !is_fingerprint(&fingerprint.value) {
            let what = "not 16 pairs of hex digits with colons between: copy it from the console";
            return Err(malformed(&fingerprint.place, "fingerprint", what));
        }
        let (path, key) = self.private_key()?;
        let actual = key.fingerprint().map_err(|source| bad_key(&path, source))?;
        if actual != fingerprint.value {
            let Found { value: given, place } = fingerprint;
            return Err(ConfigError::new(format!(
                "{place}: fingerprint {given} is not that of {}, which is {actual}: set the fingerprint \
                 or name the other key",
                path.display()
            )));
        }
        let key_id = Secret::new(format!("{tenancy}/{user}/{actual}"));
        Ok(Credentials::Key { key_id, key: Arc::new(key) })
    }

    pub(super) fn session(&self) -> Result<Credentials, ConfigError> {
        let (path, text) = self.file_of("security_token_file")?;
        let token = text.trim();
        if token.is_empty() {
            return Err(no_token(&self.need("security_token_file")?.place, &path));
        }
        let now = self.now;
        if let Some(end) = jwt::expiry(token).filter(|end| *end <= now) {
            let [end, now] = [end, now].map(httpdate::fmt_http_date);
            return Err(ConfigError::new(format!(
                "{}: the session has expired, at {end} by our clock, which says {now}: \
                 run `oci session authenticate`, or set the clock",
                path.display()
            )));
        }
        let (_path, key) = self.private_key()?;
        let key_id = Secret::new(format!("ST${token}"));
        Ok(Credentials::Key { key_id, key: Arc::new(key) })
    }

    fn private_key(&self) -> Result<(PathBuf, PrivateKey), ConfigError> {
        let (path, text) = self.file_of("key_file")?;
        let passphrase = self.get("pass_phrase").map(|found| Secret::new(found.value));
        let key = PrivateKey::from_pem(&text, passphrase.as_ref());
        let key = key.map_err(|source| bad_key(&path, source))?;
        Ok((path, key))
    }

    /// Reads a file that others must not be able to read. Its group may, as with `root:slurm 0640`.
    fn file_of(&self, key: &'static str) -> Result<(PathBuf, String), ConfigError> {
        let Found { value, place } = self.need(key)?;
        let path = self.sources.expand(&value);
        let read = self.sources.read(&path);
        let read = read.and_then(|file| Ok((file.mode, file.into_text()?)));
        let (mode, text) = match read {
            Ok(read) => read,
            Err(source) if source.kind() == ErrorKind::NotFound => {
                return Err(no_named_file(&place, key, &path, source));
            }
            Err(source) if source.kind() == ErrorKind::InvalidData => {
                return Err(not_text(&place, key, &path));
            }
            Err(source) => {
                let path = path.display();
                return Err(ConfigError::new(format!(
                    "{path}: {key} cannot be read: make the user of this program its owner, and run \
                     `chmod 600 {path}`"
                ))
                .caused_by(source));
            }
        };
        match mode {
            Some(mode) if mode & 0o027 != 0 => {
                let path = path.display();
                Err(ConfigError::new(format!(
                    "{path}: {key} can be read by others (mode {mode:o}): make the user of this \
                     program its owner, and run `chmod 600 {path}`"
                )))
            }
            _ => Ok((path, text)),
        }
    }
}

/// The error for a file that is not UTF-8.
fn not_text(place: &Origin, key: &'static str, path: &Path) -> ConfigError {
    match key {
        "security_token_file" => no_token(place, path),
        _key_file => bad_key(path, KeyError::NotPem),
    }
}

fn no_token(place: &Origin, path: &Path) -> ConfigError {
    let what = format!("without a token in {}: run `oci session authenticate`", path.display());
    malformed(place, "security_token_file", &what)
}

/// Keys of a profile, and the variables that override them.
const VARIABLES: &[(&str, &str)] = &[
    ("user", "OCI_CLI_USER"),
    ("tenancy", "OCI_CLI_TENANCY"),
    ("fingerprint", "OCI_CLI_FINGERPRINT"),
    ("key_file", "OCI_CLI_KEY_FILE"),
    ("pass_phrase", "OCI_CLI_PASSPHRASE"),
    ("region", "OCI_CLI_REGION"),
    ("security_token_file", "OCI_CLI_SECURITY_TOKEN_FILE"),
];

/// Finds the configuration file, if there is one.
fn config_file(
    sources: &Sources<'_>,
    overrides: &Overrides,
) -> Result<(PathBuf, Option<Ini>), ConfigError> {
    let named = overrides
        .file
        .clone()
        .or_else(|| sources.variable("OCI_CLI_CONFIG_FILE").map(|path| sources.expand(path)));
    if let Some(path) = named {
        return match read_ini(sources, &path)? {
            Some(ini) => Ok((path, Some(ini))),
            None => Err(no_file(&path)),
        };
    }
    let usual = sources.at_home(".oci/config");
    let other = sources.variable("OCI_CONFIG_FILE").map(|path| sources.expand(path));
    let old = sources.at_home(".oraclebmc/config");
    for path in [&usual, &other, &old].into_iter().flatten() {
        if let Some(ini) = read_ini(sources, path)? {
            return Ok((path.clone(), Some(ini)));
        }
    }
    let first = usual.or(other);
    Ok((first.unwrap_or_else(|| PathBuf::from("~/.oci/config")), None))
}

fn read_ini(sources: &Sources<'_>, path: &Path) -> Result<Option<Ini>, ConfigError> {
    match sources.read(path).and_then(File::into_text) {
        Ok(text) => Ini::parse(&text).map(Some).map_err(|wrong| {
            ConfigError::new(format!("{} line {}: {}", path.display(), wrong.line, wrong.what))
        }),
        Err(source) if source.kind() == ErrorKind::NotFound => Ok(None),
        Err(source) => Err(unreadable(path, source)),
    }
}

fn is_fingerprint(text: &str) -> bool {
    let pairs: Vec<&str> = text.split(':').collect();
    let is_pair = |pair: &&str| {
        pair.len() == 2 && pair.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
    };
    pairs.len() == 16 && pairs.iter().all(is_pair)
}

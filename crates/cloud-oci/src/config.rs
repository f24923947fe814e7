//! Who we are and where: `~/.oci/config`, its overrides in the environment, instance principals.

mod error;
mod ini;
mod sources;

pub use error::{ConfigError, Place};
pub use sources::{File, Sources};

use crate::Region;
use crate::instance_principal::METADATA;
use crate::jwt;
use crate::key::PrivateKey;
use cloud_core::Secret;
use cloud_core::http::Url;
use ini::Ini;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What a program was told, which goes before environment and file.
#[derive(Clone, Debug, Default)]
pub struct Wish {
    /// The configuration file.
    pub file: Option<PathBuf>,
    /// The profile.
    pub profile: Option<String>,
    /// The way to prove who we are.
    pub mode: Option<Mode>,
    /// The region, by its name or its short name.
    pub region: Option<String>,
    /// The domain of the realm, for regions that this program does not know.
    pub realm: Option<String>,
    /// Another host for all services, such as a loopback cloud.
    pub endpoint: Option<String>,
    /// The file that all this stands in, if it does; errors name it.
    pub told_in: Option<PathBuf>,
}

impl Wish {
    fn place(&self) -> Place {
        self.told_in.clone().map_or(Place::Program, Place::File)
    }
}

/// A way to prove who we are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// A user's key.
    ApiKey,
    /// A session that `oci session authenticate` has begun.
    SecurityToken,
    /// The certificate of the machine that we run on.
    InstancePrincipal,
}

/// Who we are, and where.
#[derive(Clone, Debug)]
pub struct Config {
    /// Who we are.
    pub credentials: Credentials,
    /// Where; an instance principal can find out from the metadata service.
    pub region: Option<Region>,
    /// The tenancy; an instance principal's is in its certificate.
    pub tenancy: Option<String>,
    /// Another host for all services.
    pub endpoint: Option<Url>,
    /// The certificate authorities to trust, in PEM, in place of the system's.
    pub roots: Option<Vec<u8>>,
}

/// How we prove who we are.
#[derive(Clone, Debug)]
pub enum Credentials {
    /// With a key that never changes.
    Key {
        /// By what name the cloud knows the key; for a session it holds the token.
        key_id: Secret<String>,
        /// The key.
        key: Arc<PrivateKey>,
    },
    /// With the certificate of the machine that we run on.
    InstancePrincipal {
        /// The metadata service, with its version in the path.
        metadata: Url,
    },
}

/// A value and where it comes from.
struct Found {
    value: String,
    place: Place,
}

/// Reads values for one profile: environment first, then file.
struct Lookup<'a> {
    sources: &'a Sources,
    path: PathBuf,
    ini: Option<Ini>,
    profile: String,
}

impl Config {
    /// Reads the configuration; every error says where and what to do, and nothing is sent.
    ///
    /// The file is `wish.file`, `OCI_CLI_CONFIG_FILE`, `~/.oci/config`, `OCI_CONFIG_FILE` (as in
    /// the SDK, only if that is not there) or `~/.oraclebmc/config`. Without any file the
    /// variables `OCI_CLI_USER`, `_TENANCY`, `_FINGERPRINT`, `_KEY_FILE` and `_REGION` are enough;
    /// with one they go before it. `OCI_CLI_CERT_BUNDLE` names the certificate authorities to trust.
    pub fn load(sources: &Sources, wish: &Wish) -> Result<Self, ConfigError> {
        let endpoint = endpoint(sources, wish)?;
        let mode = mode(sources, wish)?;
        if mode == Some(Mode::InstancePrincipal) {
            return instance_principal(sources, wish, endpoint);
        }
        let lookup = Lookup::open(sources, wish)?;
        let wished = wish.region.clone().map(|value| Found { value, place: wish.place() });
        let region = match wished {
            Some(region) => region,
            None => lookup.get("region").map_or_else(|| lookup.region_variable(), Ok)?,
        };
        let region = known((sources, wish), &region, endpoint.is_some())?;
        let tenancy = lookup.ocid("tenancy")?;
        let credentials = match mode {
            Some(Mode::SecurityToken) => lookup.session()?,
            None if lookup.is_session() => lookup.session()?,
            None | Some(Mode::ApiKey | Mode::InstancePrincipal) => lookup.api_key(&tenancy)?,
        };
        let (region, tenancy) = (Some(region), Some(tenancy));
        Ok(Self { credentials, region, tenancy, endpoint, roots: roots(sources)? })
    }
}

impl<'a> Lookup<'a> {
    fn open(sources: &'a Sources, wish: &Wish) -> Result<Self, ConfigError> {
        let wished = wish.profile.as_deref().or_else(|| sources.variable("OCI_CLI_PROFILE"));
        let profile = wished.unwrap_or("DEFAULT").to_owned();
        let (path, ini) = config_file(sources, wish)?;
        if let Some(ini) = &ini
            && !ini.has(&profile)
        {
            let have = ini.names().into_iter().map(str::to_owned).collect();
            return Err(ConfigError::NoProfile { path, profile, have });
        }
        let lookup = Self { sources, path, ini, profile };
        if lookup.ini.is_none() && lookup.get("user").is_none() {
            return Err(ConfigError::NoFile(lookup.path));
        }
        Ok(lookup)
    }

    fn get(&self, key: &str) -> Option<Found> {
        let variable = VARIABLES.iter().find(|(name, _)| *name == key).map(|(_, name)| *name);
        if let Some((name, value)) =
            variable.and_then(|name| Some((name, self.sources.variable(name)?)))
        {
            return Some(Found { value: value.to_owned(), place: Place::Variable(name) });
        }
        let entry = self.ini.as_ref()?.get(&self.profile, key)?;
        let place = Place::Line(self.path.clone(), entry.line);
        Some(Found { value: entry.value.clone(), place })
    }

    /// True for a token without a user beside it; a user that all profiles inherit is another's.
    fn is_session(&self) -> bool {
        let own = |key: &str| self.ini.as_ref().is_some_and(|ini| ini.has_own(&self.profile, key));
        let told = self.sources.variable("OCI_CLI_USER").is_some();
        let inherited = own("security_token_file") && !own("user") && !told;
        self.get("security_token_file").is_some() && (inherited || self.get("user").is_none())
    }

    fn need(&self, key: &'static str) -> Result<Found, ConfigError> {
        let missing =
            || ConfigError::Missing { path: self.path.clone(), profile: self.profile.clone(), key };
        self.get(key).ok_or_else(missing)
    }

    /// The region that the SDK takes where a profile has none.
    fn region_variable(&self) -> Result<Found, ConfigError> {
        let name = "OCI_REGION";
        match self.sources.variable(name) {
            Some(value) => Ok(Found { value: value.to_owned(), place: Place::Variable(name) }),
            None => self.need("region"),
        }
    }

    fn ocid(&self, key: &'static str) -> Result<String, ConfigError> {
        let Found { value, place } = self.need(key)?;
        let plain = value.bytes().all(|byte| byte.is_ascii_graphic() && !b"\"/".contains(&byte));
        // The second form is that of tenancies and users of the first years.
        let known = [format!("ocid1.{key}."), format!("ocidv1:{key}:")];
        if plain && known.iter().any(|beginning| value.starts_with(beginning)) {
            return Ok(value);
        }
        let what = format!("not an OCID: copy it from the console, it begins with ocid1.{key}.");
        Err(ConfigError::Malformed { place, key, what })
    }

    fn api_key(&self, tenancy: &str) -> Result<Credentials, ConfigError> {
        let user = self.ocid("user")?;
        let fingerprint = self.need("fingerprint")?;
        if !is_fingerprint(&fingerprint.value) {
            let what = "not 16 pairs of hex digits with colons between: copy it from the console";
            let (place, what) = (fingerprint.place, what.to_owned());
            return Err(ConfigError::Malformed { place, key: "fingerprint", what });
        }
        let (path, key) = self.private_key()?;
        let refused = |source| ConfigError::Key { path: path.clone(), source };
        let actual = key.fingerprint().map_err(refused)?;
        if actual != fingerprint.value {
            let (place, given) = (fingerprint.place, fingerprint.value);
            return Err(ConfigError::Fingerprint { place, given, actual, path });
        }
        let key_id = Secret::new(format!("{tenancy}/{user}/{actual}"));
        Ok(Credentials::Key { key_id, key: Arc::new(key) })
    }

    fn session(&self) -> Result<Credentials, ConfigError> {
        let (path, text) = self.file_of("security_token_file")?;
        let token = text.trim();
        if jwt::expiry(token).is_some_and(|expiry| expiry <= self.sources.now()) {
            return Err(ConfigError::Expired(path));
        }
        let (_path, key) = self.private_key()?;
        let key_id = Secret::new(format!("ST${token}"));
        Ok(Credentials::Key { key_id, key: Arc::new(key) })
    }

    fn private_key(&self) -> Result<(PathBuf, PrivateKey), ConfigError> {
        let (path, text) = self.file_of("key_file")?;
        let passphrase = self.get("pass_phrase").map(|found| Secret::new(found.value));
        match PrivateKey::from_pem(&text, passphrase.as_ref()) {
            Ok(key) => Ok((path, key)),
            Err(source) => Err(ConfigError::Key { path, source }),
        }
    }

    /// A file that only its owner may read.
    fn file_of(&self, key: &'static str) -> Result<(PathBuf, String), ConfigError> {
        let Found { value, place } = self.need(key)?;
        let path = self.sources.expand(&value);
        let file = match self.sources.read(&path) {
            Ok(file) => file,
            Err(source) if source.kind() == ErrorKind::NotFound => {
                return Err(ConfigError::NoKeyFile { place, key, path, source });
            }
            Err(source) => return Err(ConfigError::Unreadable { path, source }),
        };
        match file.mode {
            Some(mode) if mode & 0o077 != 0 => Err(ConfigError::Open { path, key, mode }),
            _ => Ok((path, file.text)),
        }
    }
}

/// Keys of a profile and the variables that go before them.
const VARIABLES: &[(&str, &str)] = &[
    ("user", "OCI_CLI_USER"),
    ("tenancy", "OCI_CLI_TENANCY"),
    ("fingerprint", "OCI_CLI_FINGERPRINT"),
    ("key_file", "OCI_CLI_KEY_FILE"),
    ("region", "OCI_CLI_REGION"),
    ("security_token_file", "OCI_CLI_SECURITY_TOKEN_FILE"),
];

/// The configuration file that is to be read, if there is one.
fn config_file(sources: &Sources, wish: &Wish) -> Result<(PathBuf, Option<Ini>), ConfigError> {
    let named = wish
        .file
        .clone()
        .or_else(|| sources.variable("OCI_CLI_CONFIG_FILE").map(|path| sources.expand(path)));
    if let Some(path) = named {
        return match read_ini(sources, &path)? {
            Some(ini) => Ok((path, Some(ini))),
            None => Err(ConfigError::NoFile(path)),
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

fn read_ini(sources: &Sources, path: &Path) -> Result<Option<Ini>, ConfigError> {
    match sources.read(path) {
        Ok(file) => Ini::parse(&file.text).map(Some).map_err(|wrong| ConfigError::Syntax {
            path: path.to_owned(),
            line: wrong.line,
            what: wrong.what,
        }),
        Err(source) if source.kind() == ErrorKind::NotFound => Ok(None),
        Err(source) => Err(ConfigError::Unreadable { path: path.to_owned(), source }),
    }
}

fn mode(sources: &Sources, wish: &Wish) -> Result<Option<Mode>, ConfigError> {
    let variable = "OCI_CLI_AUTH";
    match (wish.mode, sources.variable(variable)) {
        (Some(mode), _) => Ok(Some(mode)),
        (None, None) => Ok(None),
        (None, Some("api_key")) => Ok(Some(Mode::ApiKey)),
        (None, Some("security_token")) => Ok(Some(Mode::SecurityToken)),
        (None, Some("instance_principal")) => Ok(Some(Mode::InstancePrincipal)),
        (None, Some(other)) => Err(ConfigError::Malformed {
            place: Place::Variable(variable),
            key: "auth",
            what: format!("{other}: set api_key, security_token or instance_principal"),
        }),
    }
}

/// The certificate authorities that the CLI trusts, too.
fn roots(sources: &Sources) -> Result<Option<Vec<u8>>, ConfigError> {
    let variable = "OCI_CLI_CERT_BUNDLE";
    let Some(path) = sources.variable(variable).map(|path| sources.expand(path)) else {
        return Ok(None);
    };
    match sources.read(&path) {
        Ok(file) => Ok(Some(file.text.into_bytes())),
        Err(source) if source.kind() == ErrorKind::NotFound => {
            let (place, key) = (Place::Variable(variable), "the bundle of certificates");
            Err(ConfigError::NoKeyFile { place, key, path, source })
        }
        Err(source) => Err(ConfigError::Unreadable { path, source }),
    }
}

fn endpoint(sources: &Sources, wish: &Wish) -> Result<Option<Url>, ConfigError> {
    let variable = "OCI_CLI_ENDPOINT";
    match (&wish.endpoint, sources.variable(variable)) {
        (Some(url), _) => parse_url(url, wish.place(), "endpoint").map(Some),
        (None, Some(url)) => parse_url(url, Place::Variable(variable), "endpoint").map(Some),
        (None, None) => Ok(None),
    }
}

fn parse_url(text: &str, place: Place, key: &'static str) -> Result<Url, ConfigError> {
    let url = Url::parse(text).ok().filter(|url| ["http", "https"].contains(&url.scheme()));
    let wrong = || ConfigError::Malformed {
        place,
        key,
        what: format!("not a URL: {text}: write https://HOST"),
    };
    url.ok_or_else(wrong)
}

fn instance_principal(
    sources: &Sources,
    wish: &Wish,
    endpoint: Option<Url>,
) -> Result<Config, ConfigError> {
    let variable = "OCI_METADATA_BASE_URL";
    let base = sources.variable(variable).unwrap_or(METADATA);
    let metadata = parse_url(base, Place::Variable(variable), "the metadata service")?;
    let found = |value: &str, place| Found { value: value.to_owned(), place };
    let region = match (&wish.region, sources.variable("OCI_CLI_REGION")) {
        (Some(name), _) => Some(found(name, wish.place())),
        (None, Some(name)) => Some(found(name, Place::Variable("OCI_CLI_REGION"))),
        (None, None) => None,
    };
    let region =
        region.map(|region| known((sources, wish), &region, endpoint.is_some())).transpose()?;
    let credentials = Credentials::InstancePrincipal { metadata };
    Ok(Config { credentials, region, tenancy: None, endpoint, roots: roots(sources)? })
}

/// The region of this name; one that nobody knows is taken where no host is made of it.
fn known(
    (sources, wish): (&Sources, &Wish),
    found: &Found,
    has_endpoint: bool,
) -> Result<Region, ConfigError> {
    let region = found.value.clone();
    if let Some(region) = Region::find(&region) {
        return Ok(region);
    }
    match wish.realm.as_deref().or_else(|| sources.variable("OCI_DEFAULT_REALM")) {
        Some(domain) => Ok(Region::in_realm(region, domain)),
        None if has_endpoint => Ok(Region::in_realm(region, "invalid")),
        None => {
            let nearest = Region::nearest(&region);
            Err(ConfigError::Region { place: found.place.clone(), region, nearest })
        }
    }
}

fn is_fingerprint(text: &str) -> bool {
    let pairs: Vec<&str> = text.split(':').collect();
    let is_pair = |pair: &&str| {
        pair.len() == 2 && pair.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
    };
    pairs.len() == 16 && pairs.iter().all(is_pair)
}

//! Credentials and region: the environment, `~/.aws`, the role of the machine.

use crate::profile::{Profile, Profiles};
use cloud_core::http::Url;
use cloud_core::{ConfigError, Secret, Sources};
use std::path::PathBuf;
use std::time::Duration;

/// The metadata service of instances.
pub(crate) const METADATA: &str = "http://169.254.169.254/";

/// Maximum length of a chain of `source_profile`.
const MOST_ROLES: usize = 8;

/// A program's own settings, which override environment and files.
#[derive(Clone, Debug, Default)]
pub struct Overrides {
    /// The profile of `~/.aws/config` and `~/.aws/credentials`.
    pub profile: Option<String>,
    /// The file to read instead of `~/.aws/credentials`.
    pub credentials_file: Option<PathBuf>,
    /// A file of the same format that is read if there are no other credentials.
    pub last_resort: Option<PathBuf>,
    /// The region.
    pub region: Option<String>,
    /// Another host for all services, such as a loopback cloud.
    pub endpoint: Option<String>,
}

/// Credentials and region of a connection.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Config {
    /// The region, such as `eu-west-1`.
    pub region: String,
    /// The credentials.
    pub credentials: Credentials,
    /// Another host for all services.
    pub endpoint: Option<Url>,
    /// The metadata service of this machine.
    pub metadata: Url,
    /// Warnings for an operator, one sentence each.
    pub warnings: Vec<String>,
}

/// How requests are authenticated.
#[derive(Clone, Debug)]
pub enum Credentials {
    /// With a fixed key.
    Keys(Keys),
    /// With keys that a program prints; its command line, in words.
    Process(Vec<String>),
    /// With a role, which these credentials may assume.
    AssumeRole(Role, Box<Credentials>),
    /// With a role, which the bearer of the token in this file may assume.
    WebIdentity(Role, PathBuf),
    /// With the role of this machine.
    InstanceRole,
}

/// An access key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keys {
    /// The key id.
    pub id: String,
    /// The secret key.
    pub secret: Secret<String>,
    /// The session token of a temporary key.
    pub token: Option<Secret<String>>,
}

/// A role to assume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Role {
    /// Its ARN.
    pub arn: String,
    /// The name of the session in logs.
    pub session: String,
    /// The external id, agreed with the role's owner.
    pub external_id: Option<String>,
    /// The lifetime of the keys.
    pub duration: Option<Duration>,
}

impl Config {
    /// Reads the configuration, without a request. Every error names the place and the remedy.
    ///
    /// Credentials are those of the program's profile, or else of the variables `AWS_ACCESS_KEY_ID` and
    /// `AWS_SECRET_ACCESS_KEY`, of `AWS_PROFILE` or the profile `default`, of `AWS_WEB_IDENTITY_TOKEN_FILE`, or of the
    /// role of the machine, in this order.
    ///
    /// ```
    /// use cloud_aws::{Config, Credentials, Overrides};
    /// use cloud_core::Sources;
    ///
    /// let variables = [("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE"), ("AWS_SECRET_ACCESS_KEY", "k"), ("AWS_REGION", "eu-west-1")];
    /// let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
    /// let nothing = |_: &std::path::Path| Err(std::io::ErrorKind::NotFound.into());
    /// let config = Config::load(&Sources::new(None, variables.into(), nothing), &Overrides::default())?;
    /// assert_eq!(config.region, "eu-west-1");
    /// assert!(matches!(config.credentials, Credentials::Keys(keys) if keys.id == "AKIDEXAMPLE"));
    /// # Ok::<(), cloud_core::ConfigError>(())
    /// ```
    pub fn load(sources: &Sources<'_>, overrides: &Overrides) -> Result<Self, ConfigError> {
        let profiles = Profiles::read(sources, overrides)?;
        let named = overrides.profile.as_deref().or_else(|| sources.variable("AWS_PROFILE"));
        let profile = match named {
            Some(name) => Some(profiles.get(name)?),
            None => profiles.get("default").ok(),
        };
        let region = overrides.region.as_deref();
        let region = region.or_else(|| sources.variable("AWS_REGION"));
        let region = region.or_else(|| sources.variable("AWS_DEFAULT_REGION"));
        let region = region.or_else(|| profile?.get("region"));
        let region = region.ok_or_else(|| {
            ConfigError::new("no region is set: set AWS_REGION, or region in ~/.aws/config")
                .unspecified()
        })?;
        let credentials = credentials(sources, overrides, &profiles, profile)?;
        let named = overrides.endpoint.as_deref();
        let named = named.or_else(|| sources.variable("AWS_ENDPOINT_URL"));
        let endpoint = named.map(|text| url("the endpoint", text)).transpose()?;
        let metadata = sources.variable("AWS_EC2_METADATA_SERVICE_ENDPOINT").unwrap_or(METADATA);
        let metadata = url("AWS_EC2_METADATA_SERVICE_ENDPOINT", metadata)?;
        let warnings = profiles.warnings.clone();
        Ok(Self { region: is_region(region)?, credentials, endpoint, metadata, warnings })
    }

    /// The URL of a service.
    pub(crate) fn url(&self, service: &str) -> Result<Url, ConfigError> {
        if let Some(endpoint) = &self.endpoint {
            return Ok(endpoint.clone());
        }
        let domain = match self.region.split('-').next() {
            Some("cn") => "amazonaws.com.cn",
            Some(_) | None => "amazonaws.com",
        };
        url("region", &format!("https://{service}.{}.{domain}/", self.region))
    }
}

/// Checks a region, which becomes part of a host name.
fn is_region(text: &str) -> Result<String, ConfigError> {
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if !text.is_empty() && text.bytes().all(fits) {
        return Ok(text.to_owned());
    }
    Err(ConfigError::new(format!("'{text}' is not a region: write it as eu-west-1")))
}

fn url(what: &str, text: &str) -> Result<Url, ConfigError> {
    let wrong = || ConfigError::new(format!("{what} is not a URL: {text}"));
    let url = Url::parse(text).map_err(|cause| wrong().caused_by(cause))?;
    if url.has_host() { Ok(url) } else { Err(wrong()) }
}

fn credentials(
    sources: &Sources<'_>,
    overrides: &Overrides,
    profiles: &Profiles,
    profile: Option<&Profile>,
) -> Result<Credentials, ConfigError> {
    if overrides.profile.is_none()
        && let Some(keys) = environment(sources)?
    {
        return Ok(Credentials::Keys(keys));
    }
    let of_profile = profile.map(|it| of_profile(sources, profiles, it, MOST_ROLES)).transpose()?;
    if let Some(credentials) = of_profile.flatten() {
        return Ok(credentials);
    }
    if let (Some(file), Some(arn)) =
        (sources.variable("AWS_WEB_IDENTITY_TOKEN_FILE"), sources.variable("AWS_ROLE_ARN"))
    {
        let role = role(arn, sources.variable("AWS_ROLE_SESSION_NAME"));
        return Ok(Credentials::WebIdentity(role, sources.expand(file)));
    }
    let is_off = |value: &str| value.eq_ignore_ascii_case("true");
    match &overrides.profile {
        Some(name) => Err(ConfigError::new(format!(
            "profile '{name}' has no credentials: give it aws_access_key_id and aws_secret_access_key, role_arn or \
             credential_process"
        ))),
        None if sources.variable("AWS_EC2_METADATA_DISABLED").is_some_and(is_off) => {
            let why = "no credentials are set, and AWS_EC2_METADATA_DISABLED forbids to ask for the role of the machine";
            Err(ConfigError::new(why))
        }
        None => Ok(Credentials::InstanceRole),
    }
}

/// The key in the environment variables.
fn environment(sources: &Sources<'_>) -> Result<Option<Keys>, ConfigError> {
    let get = |name| sources.variable(name);
    match (get("AWS_ACCESS_KEY_ID"), get("AWS_SECRET_ACCESS_KEY")) {
        (Some(id), Some(secret)) => Ok(Some(keys(id, secret, get("AWS_SESSION_TOKEN")))),
        (None, None) => Ok(None),
        (Some(_), None) => {
            Err(ConfigError::new("AWS_ACCESS_KEY_ID is set, and AWS_SECRET_ACCESS_KEY is not"))
        }
        (None, Some(_)) => {
            Err(ConfigError::new("AWS_SECRET_ACCESS_KEY is set, and AWS_ACCESS_KEY_ID is not"))
        }
    }
}

fn keys(id: &str, secret: &str, token: Option<&str>) -> Keys {
    let hide = |text: &str| Secret::new(text.to_owned());
    Keys { id: id.to_owned(), secret: hide(secret), token: token.map(hide) }
}

fn role(arn: &str, session: Option<&str>) -> Role {
    let session = session.unwrap_or("slurm-elastic").to_owned();
    Role { arn: arn.to_owned(), session, external_id: None, duration: None }
}

/// The credentials of a profile, if it has any.
fn of_profile(
    sources: &Sources<'_>,
    profiles: &Profiles,
    profile: &Profile,
    left: usize,
) -> Result<Option<Credentials>, ConfigError> {
    let own = || own_keys(profile);
    let Some(arn) = profile.get("role_arn") else {
        return Ok(match (own()?, profile.get("credential_process")) {
            (Some(keys), _) => Some(Credentials::Keys(keys)),
            (None, Some(command)) => Some(Credentials::Process(words(command))),
            (None, None)
                if profile.get("sso_session").or(profile.get("sso_start_url")).is_some() =>
            {
                return Err(
                    profile.error("single sign-on is for people; use a role or credential_process")
                );
            }
            (None, None) => None,
        });
    };
    let mut role = role(arn, profile.get("role_session_name"));
    role.external_id = profile.get("external_id").map(str::to_owned);
    let seconds = profile.get("duration_seconds").map(str::parse).transpose();
    let seconds = seconds.map_err(|_| profile.error("duration_seconds is not a number"))?;
    role.duration = seconds.map(Duration::from_secs);
    if let Some(file) = profile.get("web_identity_token_file") {
        return Ok(Some(Credentials::WebIdentity(role, sources.expand(file))));
    }
    let source = match (profile.get("source_profile"), profile.get("credential_source")) {
        (Some(_), _) if left == 0 => {
            return Err(profile.error("its source_profile leads in a circle"));
        }
        // A profile with a key may be its own source.
        (Some(name), _) if name == profile.name() => own()?.map(Credentials::Keys),
        (Some(name), _) => {
            of_profile(sources, profiles, profiles.get(name)?, left.saturating_sub(1))?
        }
        (None, Some("Environment")) => environment(sources)?.map(Credentials::Keys),
        (None, Some("Ec2InstanceMetadata")) => Some(Credentials::InstanceRole),
        (None, Some(_) | None) => {
            let why = "role_arn needs source_profile, or credential_source Environment or Ec2InstanceMetadata";
            return Err(profile.error(why));
        }
    };
    let source =
        source.ok_or_else(|| profile.error("the source of role_arn has no credentials"))?;
    Ok(Some(Credentials::AssumeRole(role, Box::new(source))))
}

fn own_keys(profile: &Profile) -> Result<Option<Keys>, ConfigError> {
    match (profile.get("aws_access_key_id"), profile.get("aws_secret_access_key")) {
        (Some(id), Some(secret)) => Ok(Some(keys(id, secret, profile.get("aws_session_token")))),
        (None, None) => Ok(None),
        (Some(_), None) | (None, Some(_)) => {
            Err(profile.error("aws_access_key_id and aws_secret_access_key go together"))
        }
    }
}

/// The words of a command line, with quotes and backslashes as a shell has them.
fn words(command: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    let mut letters = command.chars();
    while let Some(letter) = letters.next() {
        if quote == Some(letter) {
            quote = None;
        } else if quote.is_none() && letter.is_ascii_whitespace() {
            words.extend(word.take());
        } else {
            let word = word.get_or_insert_with(String::new);
            match (quote, letter) {
                (None, '"' | '\'') => quote = Some(letter),
                (None | Some('"'), '\\') => word.extend(letters.next()),
                (_, letter) => word.push(letter),
            }
        }
    }
    words.extend(word);
    words
}

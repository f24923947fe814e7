//! Converts an entry of a clouds.yaml into a [`Config`].

use super::{Account, ApplicationCredential, Config, Credentials, Domain, Origin};
use crate::catalog::{Interface, Service};
use cloud_core::http::{Roots, Url};
use cloud_core::{ConfigError, Secret, Sources};
use serde_json::Value;

/// An entry, and its position for errors.
struct Entry<'a> {
    origin: &'a Origin,
    value: &'a Value,
}

pub(super) fn config(
    origin: Origin,
    value: &Value,
    sources: &Sources<'_>,
) -> Result<Config, ConfigError> {
    let entry = Entry { origin: &origin, value };
    entry.refuse_what_we_cannot()?;
    let mut warnings = Vec::new();
    let roots = entry.roots(sources, &mut warnings)?;
    let auth_url = entry.auth_url()?;
    let credentials = entry.credentials()?;
    let interface = entry.interface()?;
    let overrides = Service::ALL
        .iter()
        .filter_map(|service| {
            let url = service.keys().iter().find_map(|key| entry.text(key))?;
            Some(entry.url(service.override_key(), &url).map(|url| (*service, url)))
        })
        .collect::<Result<_, ConfigError>>()?;
    let region = entry.region()?;
    Ok(Config { origin, auth_url, credentials, region, interface, overrides, roots, warnings })
}

/// An error for a missing or invalid setting.
pub(crate) fn bad_setting(origin: &Origin, key: &str, problem: &str, remedy: &str) -> ConfigError {
    ConfigError::new(format!("{origin}: {key} {problem}: {remedy}"))
}

impl Entry<'_> {
    /// A non-empty setting as text, because numbers are often written without quotes.
    fn text(&self, key: &str) -> Option<String> {
        as_text(self.value.get(key)?)
    }

    /// A setting of `auth`. OpenStack's client also accepts these on the top level.
    fn auth(&self, key: &str) -> Option<String> {
        self.value.get("auth").and_then(|auth| as_text(auth.get(key)?)).or_else(|| self.text(key))
    }

    fn bad(&self, key: &'static str, problem: &str, remedy: &str) -> ConfigError {
        bad_setting(self.origin, key, problem, remedy)
    }

    /// Rejects settings that OpenStack's client would interpret differently.
    fn refuse_what_we_cannot(&self) -> Result<(), ConfigError> {
        if self.text("profile").is_some() || self.text("cloud").is_some() {
            let remedy = "write its auth_url and the rest into the cloud's own entry";
            return Err(self.bad("profile", "is not supported", remedy));
        }
        for key in ["cert", "key", "trust_id"] {
            if self.auth(key).is_some() {
                let remedy = "remove it, and use an application credential or a password";
                return Err(self.bad(key, "is not supported", remedy));
            }
        }
        match self.text("identity_api_version").as_deref() {
            None | Some("3" | "v3" | "3.0") => Ok(()),
            Some(_) => {
                Err(self.bad("identity_api_version", "is not 3", "remove it, or set it to 3"))
            }
        }
    }

    fn auth_url(&self) -> Result<Url, ConfigError> {
        let Some(text) = self.auth("auth_url") else {
            let remedy = "set it to Keystone's address, such as https://cloud.example:5000/v3";
            return Err(self.bad("auth_url", "is missing", remedy));
        };
        let mut url = self.url("auth_url", &text)?;
        let path = url.path().trim_end_matches('/').to_owned();
        let path = path.strip_suffix("/v2.0").unwrap_or(&path);
        let versioned = if path.ends_with("/v3") { path.to_owned() } else { format!("{path}/v3") };
        url.set_path(&versioned);
        Ok(url)
    }

    fn url(&self, key: &'static str, text: &str) -> Result<Url, ConfigError> {
        let url = Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
        let Some(url) = url else {
            return Err(self.bad(key, "is not an http or https URL", "correct it"));
        };
        // Addresses are printed, so they must not contain a password.
        if !url.username().is_empty() || url.password().is_some() {
            let remedy = "take them out: what proves who we are stands under auth";
            return Err(self.bad(key, "has a user name or password in it", remedy));
        }
        Ok(url)
    }

    /// The region. Several under `regions` are ambiguous.
    fn region(&self) -> Result<Option<String>, ConfigError> {
        if let Some(region) = self.text("region_name") {
            return Ok(Some(region));
        }
        let name = |region: &Value| as_text(region.get("name").unwrap_or(region));
        let regions = self.value.get("regions").and_then(Value::as_array);
        let regions: Vec<String> = regions.into_iter().flatten().filter_map(name).collect();
        match &regions[..] {
            [] => Ok(None),
            [only] => Ok(Some(only.clone())),
            [_, _, ..] => {
                let remedy = format!("set it to one of {}", regions.join(", "));
                Err(self.bad("region_name", "is missing, and regions has several", &remedy))
            }
        }
    }

    fn interface(&self) -> Result<Interface, ConfigError> {
        let Some(text) = self.text("interface").or_else(|| self.text("endpoint_type")) else {
            return Ok(Interface::Public);
        };
        Interface::new(&text).ok_or_else(|| {
            self.bad("interface", "is unknown", "set it to public, internal or admin")
        })
    }

    fn roots(
        &self,
        sources: &Sources<'_>,
        warnings: &mut Vec<String>,
    ) -> Result<Roots, ConfigError> {
        let unchecked = self.flag("verify") == Some(false) || self.flag("insecure") == Some(true);
        if unchecked {
            warnings.push(format!(
                "{}: certificates are not checked, so anybody on the way can read the credentials: \
                 set cacert and remove insecure and verify",
                self.origin
            ));
            return Ok(Roots::Unchecked);
        }
        // A file in `verify` is an older form of cacert.
        let verify = self.text("verify").filter(|_| self.flag("verify").is_none());
        let Some(file) = self.text("cacert").or(verify) else {
            return Ok(Roots::System);
        };
        let file = sources.expand(&file);
        let content = sources.read(&file).map_err(|error| {
            let file = file.display();
            let problem = format!("is the file {file}, which cannot be read ({error})");
            self.bad("cacert", &problem, "correct its path or its permissions")
        })?;
        Ok(Roots::SystemAnd(content.bytes))
    }

    fn flag(&self, key: &str) -> Option<bool> {
        match self.text(key)?.to_lowercase().as_str() {
            "true" | "yes" | "on" | "1" => Some(true),
            "false" | "no" | "off" | "0" => Some(false),
            _ => None,
        }
    }

    fn credentials(&self) -> Result<Credentials, ConfigError> {
        let kind = self.text("auth_type").or_else(|| self.text("auth_plugin"));
        match kind.as_deref() {
            Some("v3applicationcredential" | "application_credential") => self.application(),
            Some("v3token" | "token") => self.token(),
            None if self.auth("application_credential_secret").is_some() => self.application(),
            None if self.auth("token").is_some() => self.token(),
            Some("v3password" | "password") | None => self.password(),
            Some(other) => {
                let problem = format!("is '{other}', which is not supported");
                let remedy = "use v3applicationcredential, v3password or v3token";
                Err(self.bad("auth_type", &problem, remedy))
            }
        }
    }

    fn application(&self) -> Result<Credentials, ConfigError> {
        let secret = self.needed("application_credential_secret")?;
        let identity = match self.auth("application_credential_id") {
            Some(id) => ApplicationCredential::Id(id),
            None => ApplicationCredential::Name {
                name: self.needed("application_credential_name")?,
                user: self.account(&USER)?,
            },
        };
        Ok(Credentials::ApplicationCredential { identity, secret: Secret::new(secret) })
    }

    fn token(&self) -> Result<Credentials, ConfigError> {
        let token = Secret::new(self.needed("token")?);
        Ok(Credentials::Token { token, scope: self.account(&PROJECT)? })
    }

    fn password(&self) -> Result<Credentials, ConfigError> {
        let user = self.account(&USER)?;
        let password = Secret::new(self.needed("password")?);
        Ok(Credentials::Password { user, password, scope: self.account(&PROJECT)? })
    }

    fn needed(&self, key: &'static str) -> Result<String, ConfigError> {
        let remedy = "add it here or in secure.yaml";
        self.auth(key).ok_or_else(|| self.bad(key, "is missing", remedy))
    }

    fn account(&self, keys: &AccountKeys) -> Result<Account, ConfigError> {
        if let Some(id) = keys.ids.iter().find_map(|key| self.auth(key)) {
            return Ok(Account::Id(id));
        }
        let name = keys.names.iter().find_map(|key| self.auth(key));
        let Some(name) = name else {
            let remedy = "add it here or in secure.yaml";
            return Err(self.bad(keys.name, "is missing", remedy));
        };
        let by_id = [keys.domain_id, "domain_id", "default_domain_id", "default_domain"];
        let by_name = [keys.domain_name, "domain_name"];
        let domain = self
            .auth(keys.domain_id)
            .map(Domain::Id)
            .or_else(|| by_name.iter().find_map(|key| self.auth(key)).map(Domain::Name))
            .or_else(|| by_id.iter().find_map(|key| self.auth(key)).map(Domain::Id))
            .unwrap_or_else(|| Domain::Id("default".to_owned()));
        Ok(Account::Name { name, domain })
    }
}

struct AccountKeys {
    ids: &'static [&'static str],
    name: &'static str,
    names: &'static [&'static str],
    domain_id: &'static str,
    domain_name: &'static str,
}

const USER: AccountKeys = AccountKeys {
    ids: &["user_id"],
    name: "username",
    names: &["username", "user_name"],
    domain_id: "user_domain_id",
    domain_name: "user_domain_name",
};

const PROJECT: AccountKeys = AccountKeys {
    ids: &["project_id", "tenant_id"],
    name: "project_name",
    names: &["project_name", "tenant_name"],
    domain_id: "project_domain_id",
    domain_name: "project_domain_name",
};

fn as_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => (!text.is_empty()).then(|| text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(flag) => Some(flag.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

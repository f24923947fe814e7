//! Keystone: getting a token, and putting it into requests.

use crate::config::{Account, ApplicationCredential, Config, Credentials, Domain};
use crate::wire::{CatalogEntry, TokenBody, moment, with};
use cloud_core::http::{Authorize, Client, HeaderName, Method, Outgoing, Request, Unsigned, Url};
use cloud_core::{ApiOperation, ErrorKind, Generation, Held, Result, Secret, Token, TokenCache};
use serde_json::{Value, json};
use std::time::Duration;

const SUBJECT_TOKEN: HeaderName = HeaderName::from_static("x-subject-token");
const AUTH_TOKEN: HeaderName = HeaderName::from_static("x-auth-token");

/// The catalog and times of a token.
#[derive(Debug)]
pub(crate) struct Session {
    token: Secret<String>,
    pub(crate) project: Option<String>,
    pub(crate) catalog: Vec<CatalogEntry>,
}

/// Gets tokens and puts them into requests.
#[derive(Debug)]
pub(crate) struct Keystone {
    client: Client<Unsigned>,
    url: Url,
    credentials: Credentials,
    cache: TokenCache<Session>,
}

impl Keystone {
    /// Remaining lifetime at which tokens are renewed.
    pub(crate) fn new(client: Client<Unsigned>, config: &Config, renew_before: Duration) -> Self {
        let url = crate::api::join(&config.auth_url, &["auth", "tokens"]);
        let credentials = config.credentials.clone();
        Self { client, url, credentials, cache: TokenCache::new(renew_before) }
    }

    async fn fetch(&self) -> Result<Token<Session>> {
        let request = Request::new(ApiOperation::Authenticate, Method::POST, self.url.clone())
            .on(self.url.host_str().unwrap_or_default())
            .with_json(&body(&self.credentials))?
            .with_secret(secret(&self.credentials).clone());
        let response = self.client.send(&request).await?;
        let Some(token) = response.header(&SUBJECT_TOKEN) else {
            return Err(request.error(ErrorKind::Protocol).because("no token in the answer"));
        };
        let token = Secret::new(token.to_owned());
        let TokenBody { token: facts } = response.json(&request)?;
        // Both are by Keystone's clock, so the local one does not matter.
        let times = (moment(&facts.issued_at), moment(&facts.expires_at));
        let (Some(issued), Some(expires)) = times else {
            return Err(request.error(ErrorKind::Protocol).because("no times in the token"));
        };
        let life = expires.duration_since(issued).unwrap_or_default();
        let project = facts.project.map(|project| project.id);
        Ok(Token { value: Session { token, project, catalog: facts.catalog }, life })
    }
}

impl Authorize for Keystone {
    type Credential = Session;

    async fn credential(&self) -> Result<Held<Session>> {
        self.cache.get(|| self.fetch()).await
    }

    fn sign(&self, session: &Session, request: &mut Outgoing<'_>) -> Result<()> {
        request.set_secret(AUTH_TOKEN, session.token.clone())
    }

    fn reject(&self, generation: Generation) -> bool {
        self.cache.forget(generation);
        true
    }
}

fn secret(credentials: &Credentials) -> &Secret<String> {
    match credentials {
        Credentials::Password { password, .. } => password,
        Credentials::ApplicationCredential { secret, .. } => secret,
        Credentials::Token { token, .. } => token,
    }
}

/// The body of a request for a token. An application credential knows its project, and Keystone
/// refuses one that names it.
fn body(credentials: &Credentials) -> Value {
    let (method, identity, scope) = match credentials {
        Credentials::Password { user, password, scope } => {
            let user = with(account(user), "password", json!(password.expose()));
            ("password", json!({"user": user}), Some(scope))
        }
        Credentials::ApplicationCredential { identity, secret } => {
            let credential = match identity {
                ApplicationCredential::Id(id) => json!({"id": id}),
                ApplicationCredential::Name { name, user } => {
                    json!({"name": name, "user": account(user)})
                }
            };
            let credential = with(credential, "secret", json!(secret.expose()));
            ("application_credential", credential, None)
        }
        Credentials::Token { token, scope } => {
            ("token", json!({"id": token.expose()}), Some(scope))
        }
    };
    let auth = json!({"identity": {"methods": [method], method: identity}});
    let auth = match scope {
        Some(scope) => with(auth, "scope", json!({"project": account(scope)})),
        None => auth,
    };
    json!({"auth": auth})
}

fn account(account: &Account) -> Value {
    match account {
        Account::Id(id) => json!({"id": id}),
        Account::Name { name, domain: Domain::Id(id) } => {
            json!({"name": name, "domain": {"id": id}})
        }
        Account::Name { name, domain: Domain::Name(domain) } => {
            json!({"name": name, "domain": {"name": domain}})
        }
    }
}

//! Temporary keys: of a program, of a role, of the machine that we run on.

use crate::auth::{Signer, Source};
use crate::classify::classify;
use crate::config::{Config, Credentials, Keys, Role};
use crate::metadata_service::Metadata;
use crate::query::{Query, STS};
use crate::wire::{self, AssumedRole, StsKeys};
use cloud_core::http::{self, Authorize, Client, Unsigned};
use cloud_core::pace::Pacer;
use cloud_core::{ApiOperation, Error, ErrorKind, Result, Secret, Token};
use serde::Deserialize;
use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::process::Command;
use tokio::time::timeout;

/// How long a program may take for its keys.
const PROCESS_TIMEOUT: Duration = Duration::from_mins(1);
/// How long keys are used that do not say when they expire.
const UNKNOWN_LIFE: Duration = Duration::from_mins(15);

/// Gets temporary keys.
pub(crate) struct Issuer {
    config: Config,
    http: http::ClientConfig,
    pacer: Pacer,
    metadata: Metadata,
    now: fn() -> SystemTime,
}

type Issued<'a> = Pin<Box<dyn Future<Output = Result<Token<Keys>>> + Send + 'a>>;

/// Keys as programs and the metadata service write them.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Written {
    access_key_id: String,
    secret_access_key: String,
    #[serde(alias = "SessionToken")]
    token: Option<String>,
    pub(crate) expiration: Option<String>,
}

impl Issuer {
    pub(crate) fn new(
        config: Config,
        http: http::ClientConfig,
        pacer: Pacer,
        now: fn() -> SystemTime,
    ) -> Result<Self> {
        let metadata = Metadata::new(&http, config.metadata.clone(), &pacer)?;
        Ok(Self { config, http, pacer, metadata, now })
    }

    /// Keys, as the configuration says.
    pub(crate) async fn issue(&self) -> Result<Token<Keys>> {
        self.issue_by(&self.config.credentials).await
    }

    fn issue_by<'a>(&'a self, credentials: &'a Credentials) -> Issued<'a> {
        Box::pin(async move {
            match credentials {
                Credentials::Keys(keys) => Ok(Token { value: keys.clone(), life: Duration::MAX }),
                Credentials::Process(words) => self.of_process(words).await,
                Credentials::AssumeRole(role, source) => {
                    let keys = self.issue_by(source).await?.value;
                    let signer = Signer {
                        source: Arc::new(Source::Fixed(Arc::new(keys))),
                        service: STS,
                        region: self.config.region.clone(),
                        now: self.now,
                    };
                    let query = Query::sts("AssumeRole").with("RoleArn", &role.arn);
                    let query = query.with("RoleSessionName", &role.session);
                    let query = query.some("ExternalId", role.external_id.as_ref());
                    self.of_sts(signer, role, query).await
                }
                Credentials::WebIdentity(role, file) => {
                    let token = read(file)?;
                    let query = Query::sts("AssumeRoleWithWebIdentity").with("RoleArn", &role.arn);
                    let query = query.with("RoleSessionName", &role.session);
                    self.of_sts(Unsigned, role, query.with_secret("WebIdentityToken", token)).await
                }
                Credentials::InstanceRole => self.of_machine().await,
            }
        })
    }

    async fn of_sts<A: Authorize>(
        &self,
        authorize: A,
        role: &Role,
        query: Query,
    ) -> Result<Token<Keys>> {
        let client = Client::new(self.http.clone(), authorize, classify, self.pacer.clone())?;
        let seconds = role.duration.map(|duration| duration.as_secs());
        let action = query.action();
        let query = query.some("DurationSeconds", seconds);
        let url =
            self.config.url(STS).map_err(|cause| refused("no URL of STS").caused_by(cause))?;
        let request = query.request(ApiOperation::Authenticate, url).on(&role.arn);
        let response = client.send(&request).await?;
        let body: AssumedRole = wire::read(&response, &request, action)?;
        let StsKeys { access_key_id, secret_access_key, session_token, expiration } =
            body.result.credentials;
        self.token(Written {
            access_key_id,
            secret_access_key,
            token: Some(session_token),
            expiration: Some(expiration),
        })
    }

    async fn of_process(&self, words: &[String]) -> Result<Token<Keys>> {
        let Some((program, arguments)) = words.split_first() else {
            return Err(refused("credential_process is empty"));
        };
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
        let why = format!("credential_process {program}");
        let output = timeout(PROCESS_TIMEOUT, command.output()).await;
        let output = output.map_err(|late| refused(&why).caused_by(late))?;
        let output = output.map_err(|cause| refused(&why).caused_by(cause))?;
        if !output.status.success() {
            return Err(refused(&format!("{why}: {}", output.status)));
        }
        // The cause may quote a key.
        let keys = serde_json::from_slice(&output.stdout);
        self.token(
            keys.map_err(|_| refused(&format!("{why}: its output is not what AWS describes")))?,
        )
    }

    /// The keys of the machine's role, by the metadata service.
    async fn of_machine(&self) -> Result<Token<Keys>> {
        let roles = "latest/meta-data/iam/security-credentials/";
        let no_role = "no credentials are set, and this machine has no role that could be used instead: set \
                       AWS_ACCESS_KEY_ID, write ~/.aws/credentials, or give the machine an instance profile";
        let names = self.metadata.read(ApiOperation::Authenticate, roles).await;
        let names = names.map_err(|cause| refused(no_role).caused_by(cause))?;
        let name = names.lines().next().unwrap_or_default();
        let text =
            self.metadata.read(ApiOperation::Authenticate, &format!("{roles}{name}")).await?;
        let keys = serde_json::from_str(&text);
        self.token(
            keys.map_err(|_| {
                refused(&format!("the metadata service gives no keys for role {name}"))
            })?,
        )
    }

    fn token(&self, written: Written) -> Result<Token<Keys>> {
        let life = match &written.expiration {
            None => UNKNOWN_LIFE,
            Some(text) => {
                let end = wire::moment(text).ok_or_else(|| refused("keys with a bad expiry"))?;
                end.duration_since((self.now)()).unwrap_or_default()
            }
        };
        let keys = Keys {
            id: written.access_key_id,
            secret: Secret::new(written.secret_access_key),
            token: written.token.filter(|token| !token.is_empty()).map(Secret::new),
        };
        Ok(Token { value: keys, life })
    }
}

/// A token is exchanged for another while we run, so it is read each time.
fn read(file: &Path) -> Result<Secret<String>> {
    let text = std::fs::read_to_string(file);
    let why = || refused(&format!("cannot read the web identity token {}", file.display()));
    text.map(|text| Secret::new(text.trim().to_owned())).map_err(|cause| why().caused_by(cause))
}

fn refused(why: &str) -> Error {
    Error::new(ErrorKind::Unauthenticated, ApiOperation::Authenticate).because(why)
}

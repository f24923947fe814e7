//! What a machine of EC2 learns about itself, by version 2 of the metadata service.

use crate::config::METADATA;
use crate::wire;
use async_trait::async_trait;
use cloud_core::http::{
    self, Authorize, Client, HeaderName, HeaderValue, Method, Outgoing, Request, Unsigned, Url,
};
use cloud_core::pace::{Pace, Pacer};
use cloud_core::{
    ApiOperation, Error, ErrorKind, Generation, Held, Interruption, InterruptionKind,
    MachineMetadata, Result, Secret, Token, TokenCache,
};
use jiff::fmt::rfc2822;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::fmt;
use std::time::{Duration, SystemTime};

/// The metadata service is on the machine itself: an answer comes at once or never.
const TIMEOUT: Duration = Duration::from_secs(2);
/// How long a session is asked for, in seconds: six hours, the longest there is.
const SESSION_SECONDS: u32 = 21_600;
/// Remaining lifetime at which a session is renewed.
const LEAST_LIFE: Duration = Duration::from_mins(5);

const SPOT: &str = "latest/meta-data/spot/instance-action";
const EVENTS: &str = "latest/meta-data/events/maintenance/scheduled";

/// The metadata service of EC2, asked by a machine about itself.
pub struct MetadataService(Metadata);

impl MetadataService {
    /// Asks at this base, or in the usual place.
    pub fn new(http: &http::ClientConfig, base: Option<Url>) -> Result<Self> {
        let usual = || Url::parse(METADATA).map_err(|cause| unusable().caused_by(cause));
        let base = base.map_or_else(usual, Ok)?;
        Ok(Self(Metadata::new(http, base, &Pacer::new(Pace::default()))?))
    }

    /// The document there, if there is one.
    async fn document<T: DeserializeOwned>(&self, path: &str) -> Result<Option<T>> {
        let text = match self.0.read(ApiOperation::Metadata, path).await {
            Ok(text) if text.trim().is_empty() => return Ok(None),
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let document = serde_json::from_str(&text);
        document.map(Some).map_err(|cause| strange(path).caused_by(cause))
    }
}

#[async_trait]
impl MachineMetadata for MetadataService {
    async fn interruption(&self) -> Result<Option<Interruption>> {
        if let Some(action) = self.document::<SpotAction>(SPOT).await? {
            return Ok(Some(action.interruption()));
        }
        let events = self.document::<Vec<Event>>(EVENTS).await?;
        maintenance(events.unwrap_or_default())
    }

    /// EC2 tells nothing of racks to a machine.
    async fn location(&self) -> Result<Vec<String>> {
        Ok(Vec::new())
    }
}

impl fmt::Debug for MetadataService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MetadataService").finish_non_exhaustive()
    }
}

/// The notice of a spot machine that is reclaimed, two minutes before.
#[derive(Deserialize)]
pub(crate) struct SpotAction {
    time: Option<String>,
}

impl SpotAction {
    pub(crate) fn interruption(self) -> Interruption {
        let at = self.time.as_deref().and_then(wire::moment);
        Interruption { kind: InterruptionKind::Preemption, at }
    }
}

/// A scheduled event of the machine or its host.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Event {
    not_before: String,
    state: Option<String>,
}

/// The first of the events that are still to come.
pub(crate) fn maintenance(events: Vec<Event>) -> Result<Option<Interruption>> {
    let is_over = |event: &Event| matches!(event.state.as_deref(), Some("completed" | "canceled"));
    let due = events.into_iter().filter(|event| !is_over(event)).map(|event| {
        // Not as in the rest of EC2: 21 Jan 2019 09:00:43 GMT.
        let at = rfc2822::DateTimeParser::new().parse_timestamp(&event.not_before);
        at.map(SystemTime::from).map_err(|cause| strange(EVENTS).caused_by(cause))
    });
    let due = due.collect::<Result<Vec<_>>>()?;
    let maintenance = |at| Interruption { kind: InterruptionKind::Maintenance, at: Some(at) };
    Ok(due.into_iter().min().map(maintenance))
}

fn strange(path: &str) -> Error {
    Error::new(ErrorKind::Protocol, ApiOperation::Metadata).on(format!("metadata {path}"))
}

fn unusable() -> Error {
    Error::new(ErrorKind::Invalid, ApiOperation::Configure)
        .because("no URL of the metadata service")
}

/// A client of the metadata service.
pub(crate) struct Metadata {
    client: Client<Session>,
    base: Url,
}

impl Metadata {
    /// Creates a client with this base address, without proxy.
    pub(crate) fn new(http: &http::ClientConfig, base: Url, pacer: &Pacer) -> Result<Self> {
        let mut near = http.clone();
        (near.connect_timeout, near.timeout) = (TIMEOUT, TIMEOUT);
        // It has a link-local address, and whoever else answers there must not give us keys.
        near.proxies = http::Proxies::none();
        near.retry.attempts = near.retry.attempts.min(3);
        let client = Client::new(near.clone(), Unsigned, http::by_status, pacer.clone())?;
        let session = Session { client, base: base.clone(), tokens: TokenCache::new(LEAST_LIFE) };
        let client = Client::new(near, session, http::by_status, pacer.clone())?;
        Ok(Self { client, base })
    }

    /// What is at a path below the base.
    pub(crate) async fn read(&self, operation: ApiOperation, path: &str) -> Result<String> {
        let request = request(operation, Method::GET, &self.base, path)?;
        let response = self.client.send(&request).await?;
        Ok(String::from_utf8_lossy(&response.body).into_owned())
    }
}

/// Asks the metadata service to know us, as version 2 demands.
struct Session {
    client: Client<Unsigned>,
    base: Url,
    tokens: TokenCache<Secret<String>>,
}

impl Session {
    async fn open(&self) -> Result<Token<Secret<String>>> {
        let (operation, path) = (ApiOperation::Authenticate, "latest/api/token");
        let lifetime = HeaderName::from_static("x-aws-ec2-metadata-token-ttl-seconds");
        let request = request(operation, Method::PUT, &self.base, path)?
            .with_header(lifetime, HeaderValue::from(SESSION_SECONDS));
        let response = self.client.send(&request).await?;
        let value = Secret::new(String::from_utf8_lossy(&response.body).into_owned());
        Ok(Token { value, life: Duration::from_secs(SESSION_SECONDS.into()) })
    }
}

impl Authorize for Session {
    type Credential = Secret<String>;

    async fn credential(&self) -> Result<Held<Secret<String>>> {
        self.tokens.get(|| self.open()).await
    }

    fn sign(&self, token: &Secret<String>, request: &mut Outgoing<'_>) -> Result<()> {
        request.set_secret(HeaderName::from_static("x-aws-ec2-metadata-token"), token.clone())
    }

    fn reject(&self, generation: Generation) -> bool {
        self.tokens.forget(generation);
        true
    }
}

fn request(operation: ApiOperation, method: Method, base: &Url, path: &str) -> Result<Request> {
    let url = base.join(path).map_err(|cause| unusable().caused_by(cause))?;
    Ok(Request::new(operation, method, url).on(format!("metadata {path}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(events: &str) -> Option<u64> {
        let found = maintenance(serde_json::from_str(events).unwrap()).unwrap()?;
        assert_eq!(found.kind, InterruptionKind::Maintenance);
        found.at?.duration_since(SystemTime::UNIX_EPOCH).ok().map(|since| since.as_secs())
    }

    #[test]
    fn the_first_event_that_is_still_to_come_counts() {
        let event = |day: u32, state: &str| {
            format!(
                "{{\"NotBefore\": \"{day} Jan 1970 00:00:00 GMT\", \"Code\": \"system-reboot\", \"EventId\": \"e\", \
                 \"Description\": \"scheduled reboot\", \"NotAfter\": \"31 Jan 1970 00:00:00 GMT\", \"State\": \"{state}\"}}"
            )
        };
        assert_eq!(at("[]"), None);
        assert_eq!(at(&format!("[{}]", event(2, "active"))), Some(86_400));
        let all = [(2, "completed"), (3, "canceled"), (5, "active"), (4, "active")];
        let all = all.map(|(day, state)| event(day, state)).join(", ");
        assert_eq!(at(&format!("[{all}]")), Some(3 * 86_400));
    }

    #[test]
    fn an_event_without_a_readable_time_is_an_error() {
        let events = serde_json::from_str(r#"[{"NotBefore": "soon", "State": "active"}]"#).unwrap();
        assert_eq!(maintenance(events).unwrap_err().kind(), ErrorKind::Protocol);
    }
}

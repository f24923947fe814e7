//! Sends notifications to webhooks.

use super::proxies;
use crate::config::{Notify, Settings};
use crate::environment::Environment;
use crate::output::chain;
use cloud_core::http::{self, Client, Method, Request, Retry, Unsigned, Url};
use cloud_core::pace::{Pace, Pacer};
use cloud_core::{ApiOperation, Error, ErrorKind};
use provision::notice::{Notice, message};
use serde_json::json;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// Maximum time for all webhooks together. Nothing is sent twice.
const PATIENCE: Duration = Duration::from_secs(5);

/// Posts at most one message to each webhook. Returns the failures, without the addresses, which are secret.
pub async fn notify(
    settings: &Settings,
    environment: &Environment,
    notices: &[Notice],
) -> Vec<String> {
    let cluster = settings.cluster_id.as_deref().unwrap_or("cluster");
    let deadline = Instant::now() + PATIENCE;
    let mut failures = Vec::new();
    for (to, number) in settings.notify.iter().zip(1_u32..) {
        let about: Vec<&Notice> = notices.iter().filter(|it| to.on.contains(&it.topic)).collect();
        let Some(text) = message(cluster, &about) else { continue };
        let posted = timeout_at(deadline, post(settings, environment, to, &text)).await;
        let failure = match posted {
            Ok(Ok(())) => continue,
            Ok(Err(error)) => chain(&error),
            Err(_) => "no answer in time".to_owned(),
        };
        failures.push(format!("notify: webhook {number}: {failure}"));
    }
    failures
}

async fn post(
    settings: &Settings,
    environment: &Environment,
    to: &Notify,
    text: &str,
) -> Result<(), Error> {
    let invalid = |why: &str| Error::new(ErrorKind::Invalid, ApiOperation::Configure).because(why);
    let secret = to.webhook.clone().ok_or_else(|| invalid("no address is set"))?;
    let url = Url::parse(secret.expose()).map_err(|_| invalid("not an address"))?;
    let mut config = http::ClientConfig::default();
    (config.connect_timeout, config.timeout) = (PATIENCE, PATIENCE);
    config.retry = Retry::never();
    config.proxies = proxies(settings, environment);
    let pacer = Pacer::new(Pace::default());
    let client = Client::new(config, Unsigned, http::by_status, pacer)?;
    let path = cloud_core::Secret::new(url.path().to_owned());
    let request = Request::new(ApiOperation::Configure, Method::POST, url).on("notification");
    // Slack and Teams both accept an object with a text.
    let request = request.with_secret(path).with_json(&json!({ "text": text }))?;
    client.send(&request).await.map(drop)
}

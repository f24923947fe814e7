//! Refusals whose reason EC2 encodes: STS decodes it for those who may ask.

use crate::api::Api;
use crate::query::Query;
use crate::wire;
use cloud_core::{ApiOperation, Error, Result};
use serde::Deserialize;
use std::sync::atomic::Ordering;

/// How many refusals are decoded: those of a thousand launches all have the same reason.
const MOST: usize = 3;

#[derive(Deserialize)]
pub(crate) struct Answer {
    #[serde(rename = "DecodeAuthorizationMessageResult")]
    result: Message,
}

#[derive(Deserialize)]
struct Message {
    #[serde(rename = "DecodedMessage")]
    text: String,
}

/// What was refused, and whether a statement denies it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Decoded {
    explicit_deny: bool,
    context: Context,
}

#[derive(Deserialize)]
struct Context {
    principal: Principal,
    action: String,
    #[serde(default)]
    resource: String,
}

#[derive(Deserialize)]
struct Principal {
    arn: String,
}

impl Api {
    /// Says what a refusal refuses, if it says so and we may read it.
    pub(crate) async fn explained(&self, error: Error) -> Error {
        let Some(encoded) = error.encoded() else {
            return error;
        };
        if self.decoded.fetch_add(1, Ordering::Relaxed) >= MOST {
            return error;
        }
        let Some(reason) = self.decode(encoded).await.ok().as_deref().and_then(reason) else {
            return error;
        };
        let said = error.message().unwrap_or_default().trim().to_owned();
        error.because(format!("{reason}; {said}"))
    }

    async fn decode(&self, encoded: &str) -> Result<String> {
        let query = Query::sts("DecodeAuthorizationMessage").with("EncodedMessage", encoded);
        let request = query.request(ApiOperation::Authenticate, self.sts_url.clone());
        let request = request.on("refusal");
        let response = self.sts.send(&request).await?;
        let answer: Answer = wire::read(&response, &request, "DecodeAuthorizationMessage")?;
        Ok(answer.result.text)
    }
}

/// The reason in a decoded message.
pub(crate) fn reason(text: &str) -> Option<String> {
    let decoded: Decoded = serde_json::from_str(text).ok()?;
    let Context { principal, action, resource } = decoded.context;
    let why =
        if decoded.explicit_deny { "a statement denies it" } else { "no statement allows it" };
    let on = if resource.is_empty() { String::new() } else { format!(" on {resource}") };
    Some(format!("{} lacks {action}{on}: {why}", principal.arn))
}

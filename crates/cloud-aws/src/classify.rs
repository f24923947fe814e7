//! Classifies failed responses, in one table.

use cloud_core::ErrorKind;
use cloud_core::http::{Classification, Response, by_status};
use serde::Deserialize;

/// Precedes a text of a thousand characters that only `sts:DecodeAuthorizationMessage` can decode.
const ENCODED: &str = "Encoded authorization failure message";

/// The body of an error: EC2 has a list of errors, other services have one error.
#[derive(Deserialize)]
struct Body {
    #[serde(rename = "Errors")]
    errors: Option<Errors>,
    #[serde(rename = "Error")]
    error: Option<Said>,
}

#[derive(Deserialize)]
struct Errors {
    #[serde(rename = "Error")]
    error: Said,
}

#[derive(Deserialize)]
struct Said {
    #[serde(rename = "Code", alias = "__type")]
    code: String,
    #[serde(rename = "Message", alias = "message", default)]
    message: String,
}

/// Classifies a failed response.
pub(crate) fn classify(response: &Response) -> Classification {
    let base = by_status(response);
    let Some(Said { code, message }) = said(&response.body) else {
        // A load balancer's page: that something is not found there says nothing about an instance.
        let kind = if base.kind == ErrorKind::NotFound { ErrorKind::Protocol } else { base.kind };
        return Classification { kind, ..base };
    };
    let kind = meaning(&code, &message).unwrap_or(match response.status.as_u16() {
        500..=599 => ErrorKind::Unavailable,
        _ => ErrorKind::Invalid,
    });
    let (message, encoded) = match message.split_once(ENCODED) {
        Some((said, rest)) => (said.to_owned(), Some(rest.trim_matches([':', ' ']).to_owned())),
        None => (message, None),
    };
    let retryable = kind == ErrorKind::Throttled || code == CONCURRENT_TAGS;
    Classification { kind, code: Some(code), message, retryable, encoded }
}

fn said(body: &[u8]) -> Option<Said> {
    let text = std::str::from_utf8(body).ok()?;
    if text.trim_start().starts_with('{') {
        let said: Said = serde_json::from_str(text).ok()?;
        // com.amazonaws.service#NoSuchThing
        let code = said.code.rsplit('#').next().unwrap_or_default().to_owned();
        return Some(Said { code, ..said });
    }
    let body: Body = quick_xml::de::from_str(text).ok()?;
    body.errors.map(|errors| errors.error).or(body.error)
}

/// The table of codes whose meaning does not depend on the message.
const CODES: [(ErrorKind, &[&str]); 10] = [
    // The place has no room.
    (
        ErrorKind::Capacity,
        &[
            "InsufficientInstanceCapacity",
            "InsufficientHostCapacity",
            "InsufficientReservedInstanceCapacity",
            "InsufficientCapacity",
            "InsufficientCapacityOnHost",
            "InsufficientVolumeCapacity",
            "InsufficientFreeAddressesInSubnet",
            "InsufficientAddressCapacity",
            "ReservationCapacityExceeded",
            "UnfulfillableCapacity",
            "SpotMaxPriceTooLow",
        ],
    ),
    // Too fast; among the limits that are reached, this one passes by itself.
    (
        ErrorKind::Throttled,
        &[
            "RequestLimitExceeded",
            "Throttling",
            "ThrottlingException",
            "RequestThrottled",
            "RequestThrottledException",
            "TooManyRequestsException",
            "EC2ThrottledException",
            "BandwidthLimitExceeded",
        ],
    ),
    (
        ErrorKind::Quota,
        &[
            "InstanceLimitExceeded",
            "VcpuLimitExceeded",
            "MaxSpotInstanceCountExceeded",
            "ResourceCountExceeded",
            "AMIQuotaExceeded",
        ],
    ),
    (
        ErrorKind::Unauthenticated,
        &[
            "AuthFailure",
            "InvalidClientTokenId",
            "SignatureDoesNotMatch",
            "InvalidSignatureException",
            "IncompleteSignature",
            "MissingAuthenticationToken",
            "UnrecognizedClientException",
            "ExpiredToken",
            "ExpiredTokenException",
            "RequestExpired",
            "InvalidIdentityToken",
        ],
    ),
    (
        ErrorKind::Forbidden,
        &[
            "UnauthorizedOperation",
            "AccessDenied",
            "AccessDeniedException",
            "AuthFailure.ServiceLinkedRoleCreationNotPermitted",
            "OptInRequired",
            "PendingVerification",
            "Blocked",
            "OperationNotPermitted",
        ],
    ),
    // Of all that can be missing, only an instance is what we ask about; the rest is what a launch names.
    (ErrorKind::NotFound, &["InvalidInstanceID.NotFound", "NoSuchResourceException"]),
    // The token is used: that instance is gone, or another request was sent with it.
    (ErrorKind::TokenUsedUp, &["IdempotentInstanceTerminated", "IdempotentParameterMismatch"]),
    (
        ErrorKind::Conflict,
        &[
            "IncorrectInstanceState",
            "IncorrectState",
            "InvalidState",
            "IncorrectSpotRequestState",
            "DependencyViolation",
            "VolumeInUse",
            CONCURRENT_TAGS,
        ],
    ),
    (
        ErrorKind::Unavailable,
        &[
            "InternalError",
            "InternalFailure",
            "ServerInternal",
            "Unavailable",
            "ServiceUnavailable",
        ],
    ),
    (ErrorKind::Unsupported, &["Unsupported", "UnsupportedOperation", "InvalidAction"]),
];

/// The code for simultaneous changes of the tags of an instance.
const CONCURRENT_TAGS: &str = "ConcurrentTagAccess";

/// Classifies a code.
fn meaning(code: &str, message: &str) -> Option<ErrorKind> {
    if let Some(kind) = by_message(code, message) {
        return Some(kind);
    }
    let known = CODES.iter().find(|(_, codes)| codes.contains(&code)).map(|(kind, _)| *kind);
    known.or_else(|| match code {
        "TagLimitExceeded" | "FilterLimitExceeded" => Some(ErrorKind::Invalid),
        code if code.ends_with("LimitExceeded") => Some(ErrorKind::Quota),
        _ => None,
    })
}

/// Classifies codes that have more than one meaning.
fn by_message(code: &str, message: &str) -> Option<ErrorKind> {
    let message = message.to_ascii_lowercase();
    let says = |text: &str| message.contains(text);
    match code {
        // The shape is not in this zone; elsewhere it may be.
        "Unsupported"
            if says("availability zone") || says("configuration is currently not supported") =>
        {
            Some(ErrorKind::Capacity)
        }
        "UnsupportedOperation" | "InvalidParameterCombination" if says("availability zone") => {
            Some(ErrorKind::Capacity)
        }
        // We are known, and may not use the image.
        "AuthFailure" if says("not authorized for") => Some(ErrorKind::Forbidden),
        _ => None,
    }
}

/// Classifies the reason for which an instance ended by itself.
pub(crate) fn classify_end(code: &str) -> Option<ErrorKind> {
    match code {
        "Server.InsufficientInstanceCapacity"
        | "Server.SpotInstanceTermination"
        | "Server.SpotInstanceShutdown" => Some(ErrorKind::Capacity),
        "Client.VolumeLimitExceeded" => Some(ErrorKind::Quota),
        "Server.InternalError" => Some(ErrorKind::Unavailable),
        // A key of an encrypted volume that may not be used, a snapshot that is not there.
        "Client.InternalError" | "Client.InvalidSnapshot.NotFound" | "Client.LaunchTimeout" => {
            Some(ErrorKind::Invalid)
        }
        // By somebody's hand, or from within.
        _ => None,
    }
}

#[cfg(test)]
mod tests;

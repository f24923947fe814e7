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
mod tests {
    use super::*;
    use cloud_core::http::{HeaderMap, StatusCode};
    use proptest::prelude::*;

    fn response(status: u16, body: impl Into<Vec<u8>>) -> Response {
        let body: Vec<u8> = body.into();
        let status = StatusCode::from_u16(status).unwrap();
        Response { status, headers: HeaderMap::new(), body: body.into(), request_id: None }
    }

    fn said(status: u16, code: &str, message: &str) -> Classification {
        let error = format!("<Error><Code>{code}</Code><Message>{message}</Message></Error>");
        let body = format!("<Response><Errors>{error}</Errors><RequestID>r</RequestID></Response>");
        classify(&response(status, body))
    }

    use ErrorKind::{
        Capacity, Conflict, Forbidden, Invalid, NotFound, Quota, Throttled, TokenUsedUp,
        Unauthenticated, Unavailable, Unsupported,
    };

    const NOT_THERE: &str = "Your requested instance type (p5.48xlarge) is not supported in your requested Availability Zone";

    /// Status, code, message, kind, and whether waiting helps.
    const ROWS: &[(u16, &str, &str, ErrorKind, bool)] = &[
        (500, "InsufficientInstanceCapacity", "no p5 in eu-west-1a", Capacity, false),
        (503, "InsufficientInstanceCapacity", "x", Capacity, false),
        (400, "InsufficientHostCapacity", "x", Capacity, false),
        (400, "InsufficientReservedInstanceCapacity", "x", Capacity, false),
        (400, "InsufficientFreeAddressesInSubnet", "x", Capacity, false),
        (500, "InsufficientAddressCapacity", "x", Capacity, false),
        (500, "InsufficientVolumeCapacity", "x", Capacity, false),
        (400, "ReservationCapacityExceeded", "x", Capacity, false),
        (400, "UnfulfillableCapacity", "x", Capacity, false),
        (400, "SpotMaxPriceTooLow", "x", Capacity, false),
        (400, "Unsupported", NOT_THERE, Capacity, false),
        (
            400,
            "Unsupported",
            "The requested configuration is currently not supported.",
            Capacity,
            false,
        ),
        (400, "InstanceLimitExceeded", "x", Quota, false),
        (400, "VcpuLimitExceeded", "x", Quota, false),
        (400, "MaxSpotInstanceCountExceeded", "x", Quota, false),
        (400, "VolumeLimitExceeded", "x", Quota, false),
        (400, "NetworkInterfaceLimitExceeded", "x", Quota, false),
        (400, "PrivateIpAddressLimitExceeded", "x", Quota, false),
        (400, "ResourceCountExceeded", "x", Quota, false),
        (400, "AMIQuotaExceeded", "x", Quota, false),
        (503, "RequestLimitExceeded", "Request limit exceeded.", Throttled, true),
        (400, "Throttling", "Rate exceeded", Throttled, true),
        (400, "ThrottlingException", "x", Throttled, true),
        (503, "EC2ThrottledException", "x", Throttled, true),
        (400, "TooManyRequestsException", "x", Throttled, true),
        (400, "TagLimitExceeded", "x", Invalid, false),
        (
            401,
            "AuthFailure",
            "AWS was not able to validate the provided access credentials",
            Unauthenticated,
            false,
        ),
        (403, "InvalidClientTokenId", "x", Unauthenticated, false),
        (403, "SignatureDoesNotMatch", "x", Unauthenticated, false),
        (400, "RequestExpired", "x", Unauthenticated, false),
        (403, "ExpiredToken", "x", Unauthenticated, false),
        (403, "AuthFailure", "Not authorized for images: [ami-1]", Forbidden, false),
        (403, "UnauthorizedOperation", "x", Forbidden, false),
        (403, "AccessDenied", "x", Forbidden, false),
        (401, "OptInRequired", "x", Forbidden, false),
        (400, "PendingVerification", "x", Forbidden, false),
        // The first spot machine of an account needs a role that an administrator creates.
        (403, "AuthFailure.ServiceLinkedRoleCreationNotPermitted", "x", Forbidden, false),
        (400, "OperationNotPermitted", "disableApiTermination", Forbidden, false),
        (400, "InvalidInstanceID.NotFound", "x", NotFound, false),
        (400, "InvalidInstanceID.Malformed", "x", Invalid, false),
        (400, "InvalidAMIID.NotFound", "x", Invalid, false),
        (400, "InvalidAMIID.Unavailable", "x", Invalid, false),
        (400, "InvalidAMIID.Malformed", "x", Invalid, false),
        (400, "InvalidAMIName.Duplicate", "x", Invalid, false),
        (400, "InvalidSubnetID.NotFound", "x", Invalid, false),
        (400, "InvalidGroup.NotFound", "x", Invalid, false),
        (400, "InvalidKeyPair.NotFound", "x", Invalid, false),
        (400, "InvalidLaunchTemplateName.NotFoundException", "x", Invalid, false),
        (400, "InvalidPlacementGroup.Unknown", "x", Invalid, false),
        (400, "InvalidParameterValue", "x", Invalid, false),
        (400, "InvalidParameterCombination", "x", Invalid, false),
        (400, "InvalidUserData.Malformed", "x", Invalid, false),
        (400, "MissingParameter", "x", Invalid, false),
        (400, "UnknownParameter", "x", Invalid, false),
        (400, "ValidationError", "x", Invalid, false),
        (400, "IdempotentParameterMismatch", "x", TokenUsedUp, false),
        (400, "IdempotentInstanceTerminated", "x", TokenUsedUp, false),
        (400, "IncorrectInstanceState", "x", Conflict, false),
        (400, "IncorrectState", "x", Conflict, false),
        (400, "DependencyViolation", "x", Conflict, false),
        (400, "ConcurrentTagAccess", "x", Conflict, true),
        (500, "InternalError", "x", Unavailable, false),
        (500, "InternalFailure", "x", Unavailable, false),
        (503, "Unavailable", "x", Unavailable, false),
        (503, "ServiceUnavailable", "x", Unavailable, false),
        (400, "UnsupportedOperation", "x", Unsupported, false),
        (400, "InvalidAction", "x", Unsupported, false),
        // What nobody has told us of.
        (500, "SomethingNew", "x", Unavailable, false),
        (400, "SomethingNew", "x", Invalid, false),
    ];

    #[test]
    fn every_row_of_the_table() {
        for &(status, code, message, kind, retryable) in ROWS {
            let found = said(status, code, message);
            assert_eq!(
                (found.kind, found.retryable),
                (kind, retryable),
                "{status} {code} {message}"
            );
            assert_eq!(found.code.as_deref(), Some(code));
        }
    }

    #[test]
    fn errors_of_other_services_are_read_in_their_own_forms() {
        let sts = "<ErrorResponse xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\"><Error><Type>Sender</Type>\
                   <Code>AccessDenied</Code><Message>no</Message></Error><RequestId>r</RequestId></ErrorResponse>";
        let quotas =
            r#"{"__type": "com.amazonaws.servicequotas#NoSuchResourceException", "Message": "no"}"#;
        for (body, kind, code) in [
            (sts, ErrorKind::Forbidden, "AccessDenied"),
            (quotas, ErrorKind::NotFound, "NoSuchResourceException"),
        ] {
            let found = classify(&response(400, body));
            assert_eq!((found.kind, found.code.as_deref()), (kind, Some(code)));
            assert_eq!(found.message, "no");
        }
    }

    #[test]
    fn pages_of_load_balancers_say_nothing_about_an_instance() {
        assert_eq!(classify(&response(502, "<html>502</html>")).kind, ErrorKind::Unavailable);
        assert_eq!(classify(&response(404, "<html>404</html>")).kind, ErrorKind::Protocol);
        assert_eq!(classify(&response(404, "")).kind, ErrorKind::Protocol);
    }

    #[test]
    fn an_encoded_message_is_kept_apart() {
        let text = "You are not authorized. Encoded authorization failure message: YWJj";
        let found = said(403, "UnauthorizedOperation", text);
        let parts = (found.message.as_str(), found.encoded.as_deref());
        assert_eq!(parts, ("You are not authorized. ", Some("YWJj")));
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn any_answer_has_a_meaning(status in 300u16..600, body in prop::collection::vec(any::<u8>(), 0..80)) {
            classify(&response(status, body));
        }
    }
}

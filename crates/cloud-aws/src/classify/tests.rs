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
    (500, "InsufficientCapacity", "x", Capacity, false),
    (500, "InsufficientCapacityOnHost", "x", Capacity, false),
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
    (400, "RequestThrottled", "x", Throttled, true),
    (400, "RequestThrottledException", "x", Throttled, true),
    (503, "BandwidthLimitExceeded", "x", Throttled, true),
    (400, "TagLimitExceeded", "x", Invalid, false),
    (400, "FilterLimitExceeded", "x", Invalid, false),
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
    (400, "ExpiredTokenException", "x", Unauthenticated, false),
    (400, "InvalidSignatureException", "x", Unauthenticated, false),
    (400, "IncompleteSignature", "x", Unauthenticated, false),
    (403, "MissingAuthenticationToken", "x", Unauthenticated, false),
    (400, "UnrecognizedClientException", "x", Unauthenticated, false),
    (400, "InvalidIdentityToken", "x", Unauthenticated, false),
    (403, "AuthFailure", "Not authorized for images: [ami-1]", Forbidden, false),
    (403, "UnauthorizedOperation", "x", Forbidden, false),
    (403, "AccessDenied", "x", Forbidden, false),
    (400, "AccessDeniedException", "x", Forbidden, false),
    (403, "Blocked", "x", Forbidden, false),
    (401, "OptInRequired", "x", Forbidden, false),
    (400, "PendingVerification", "x", Forbidden, false),
    // The first spot machine of an account needs a role that an administrator creates.
    (403, "AuthFailure.ServiceLinkedRoleCreationNotPermitted", "x", Forbidden, false),
    (400, "OperationNotPermitted", "disableApiTermination", Forbidden, false),
    (400, "InvalidInstanceID.NotFound", "x", NotFound, false),
    (400, "NoSuchResourceException", "x", NotFound, false),
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
    (400, "InvalidState", "x", Conflict, false),
    (400, "IncorrectSpotRequestState", "x", Conflict, false),
    (400, "VolumeInUse", "x", Conflict, false),
    (400, "DependencyViolation", "x", Conflict, false),
    (400, "ConcurrentTagAccess", "x", Conflict, true),
    (500, "InternalError", "x", Unavailable, false),
    (500, "InternalFailure", "x", Unavailable, false),
    (500, "ServerInternal", "x", Unavailable, false),
    (503, "Unavailable", "x", Unavailable, false),
    (503, "ServiceUnavailable", "x", Unavailable, false),
    (400, "Unsupported", "x", Unsupported, false),
    (400, "UnsupportedOperation", "x", Unsupported, false),
    (400, "UnsupportedOperation", NOT_THERE, Capacity, false),
    (400, "InvalidParameterCombination", NOT_THERE, Capacity, false),
    (400, "InvalidAction", "x", Unsupported, false),
    // What nobody has told us of.
    (500, "SomethingNew", "x", Unavailable, false),
    (400, "SomethingNew", "x", Invalid, false),
];

#[test]
fn every_row_of_the_table() {
    for &(status, code, message, kind, retryable) in ROWS {
        let found = said(status, code, message);
        assert_eq!((found.kind, found.retryable), (kind, retryable), "{status} {code} {message}");
        assert_eq!(found.code.as_deref(), Some(code));
    }
}

#[test]
fn every_code_has_a_row() {
    for code in CODES.iter().flat_map(|(_, codes)| *codes) {
        assert!(ROWS.iter().any(|(_, row, ..)| row == code), "{code}");
    }
}

#[test]
fn an_instance_that_ended_by_itself_says_why() {
    for (code, kind) in [
        ("Server.InsufficientInstanceCapacity", Some(Capacity)),
        ("Server.SpotInstanceTermination", Some(Capacity)),
        ("Server.SpotInstanceShutdown", Some(Capacity)),
        ("Client.VolumeLimitExceeded", Some(Quota)),
        ("Server.InternalError", Some(Unavailable)),
        ("Client.InternalError", Some(Invalid)),
        ("Client.InvalidSnapshot.NotFound", Some(Invalid)),
        ("Client.LaunchTimeout", Some(Invalid)),
        ("Client.UserInitiatedShutdown", None),
        ("Client.InstanceInitiatedShutdown", None),
    ] {
        assert_eq!(classify_end(code), kind, "{code}");
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

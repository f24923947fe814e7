//! Classifies the faults of servers that failed after their creation was accepted.

use crate::wire::ServerFault;
use cloud_core::{ErrorKind, Fault};

/// Texts of Nova and Neutron about an exceeded quota, in lower case.
const QUOTA: &[&str] = &[
    "quota exceeded",
    "quota_exceeded",
    "over quota",
    // With unified limits in Keystone.
    "is over a limit for",
    "maximum number of ports exceeded",
    "portlimitexceeded",
    "maximum number of security groups",
    "maximum number of floating ips",
    "maximum number of metadata items",
    // From Cinder, passed on by Nova.
    "exceeded for quota",
    "exceeds allowed gigabytes",
    "exceeds allowed volumes",
];

/// Texts about an ambiguous name.
const AMBIGUOUS: &[&str] = &["multiple possible networks", "use an id to be more specific"];

/// Texts about missing capacity.
const CAPACITY: &[&str] = &[
    "no valid host",
    "not enough hosts available",
    "exhausted all hosts",
    "exceeded max scheduling attempts",
    "insufficient compute resources",
    "no fixed ip addresses available",
    "no more ip addresses available",
    "no more fixed ip addresses",
];

/// Texts about a request that would fail everywhere.
const INVALID: &[&str] = &["image", "flavor", "key_name"];

pub(crate) fn is_quota(message: &str) -> bool {
    has_any(message, QUOTA)
}

pub(crate) fn is_ambiguous(message: &str) -> bool {
    has_any(message, AMBIGUOUS)
}

pub(crate) fn is_capacity(message: &str) -> bool {
    has_any(message, CAPACITY)
}

fn has_any(message: &str, words: &[&str]) -> bool {
    let message = message.to_lowercase();
    words.iter().any(|word| message.contains(word))
}

/// The fault of a server in ERROR, with the kind that its launch would have failed with.
pub(crate) fn fault(fault: &ServerFault) -> Fault {
    let whole = format!("{} {}", fault.message, fault.details);
    let kind = if is_quota(&whole) {
        ErrorKind::Quota
    } else if is_capacity(&whole) {
        ErrorKind::Capacity
    } else {
        by_code(fault)
    };
    Fault { kind, message: fault.message.trim().to_owned() }
}

/// Nova reports nearly everything as 500. Another host may succeed.
fn by_code(fault: &ServerFault) -> ErrorKind {
    match fault.code {
        403 => ErrorKind::Forbidden,
        400 | 404 if has_any(&fault.message, INVALID) => ErrorKind::Invalid,
        409 => ErrorKind::Conflict,
        _ => ErrorKind::Unavailable,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_have_kinds() {
        let table = [
            (500, "No valid host was found. ", ErrorKind::Capacity),
            (
                500,
                "No valid host was found. There are not enough hosts available.",
                ErrorKind::Capacity,
            ),
            (
                500,
                "Exceeded maximum number of retries. Exhausted all hosts available for retrying build failures for instance x.",
                ErrorKind::Capacity,
            ),
            (
                500,
                "Exceeded maximum number of retries. Exceeded max scheduling attempts 3 for instance x.",
                ErrorKind::Capacity,
            ),
            (
                500,
                "Build of instance x aborted: Requested volume or snapshot exceeds allowed gigabytes quota.",
                ErrorKind::Quota,
            ),
            (
                500,
                "Build of instance x aborted: Maximum number of volumes allowed (10) exceeded for quota 'volumes'.",
                ErrorKind::Quota,
            ),
            (
                500,
                "Project p is over a limit for [Resource class:VCPU is over limit of 20 due to current usage 20 and delta 4]",
                ErrorKind::Quota,
            ),
            (500, "Build of instance x aborted: hypervisor on fire", ErrorKind::Unavailable),
            (403, "Quota exceeded for resources: ['port'].", ErrorKind::Quota),
            (500, "Maximum number of ports exceeded", ErrorKind::Quota),
            (400, "No more IP addresses available on network n.", ErrorKind::Capacity),
            (404, "Image x could not be found.", ErrorKind::Invalid),
            (0, "", ErrorKind::Unavailable),
        ];
        for (code, message, kind) in table {
            let shown = ServerFault { code, message: message.to_owned(), details: String::new() };
            assert_eq!(
                fault(&shown),
                Fault { kind, message: message.trim().to_owned() },
                "{message}"
            );
        }
    }
}

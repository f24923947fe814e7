//! The expiry of tokens, without verification.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;
use std::time::{Duration, SystemTime};

#[derive(Deserialize)]
struct Claims {
    exp: u64,
}

/// The expiry of a JWT.
pub(crate) fn expiry(token: &str) -> Option<SystemTime> {
    let claims = token.split('.').nth(1)?;
    let claims = URL_SAFE_NO_PAD.decode(claims.trim_end_matches('=')).ok()?;
    let Claims { exp } = serde_json::from_slice(&claims).ok()?;
    SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(exp))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_end_is_read() {
        let token = "eyJhbGciOiJSUzI1NiJ9.eyJleHAiOjQxMDI0NDQ4MDB9.c2ln";
        let end = SystemTime::UNIX_EPOCH + Duration::from_hours(1_139_568);
        assert_eq!(expiry(token), Some(end));
        assert_eq!(expiry("not.a.token"), None);
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn any_text_is_read_without_a_panic(text in ".{0,60}") {
            let _ = expiry(&text);
        }
    }
}

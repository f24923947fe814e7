//! Newtypes for names and ids.

use std::error::Error as StdError;
use std::fmt;

macro_rules! text_types {
    ($($(#[$docs:meta])+ $name:ident;)+) => {$(
        $(#[$docs])+
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(String);

        impl $name {
            /// Creates it from a text, without validation.
            #[must_use]
            pub fn new(text: impl Into<String>) -> Self {
                Self(text.into())
            }

            /// The text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    )+};
}

text_types! {
    /// The cloud's id of an instance.
    InstanceId;
    /// The name shown for an instance. Not unique: two instances may have the same.
    InstanceName;
    /// The cloud's id of an image.
    ImageId;
    /// The name of an image.
    ImageName;
    /// The name of a shape, flavor or instance type. For a flexible shape, the size is part of the name
    /// ([`Shape::offers`](crate::Shape::offers)).
    ShapeName;
    /// A zone of a cloud, such as an availability zone or availability domain.
    Zone;
    /// The cloud's id of a subnet or network.
    SubnetId;
    /// A fault domain: a group of hosts in a zone that does not fail together with other groups.
    FaultDomain;
    /// The architecture of a processor, as `uname -m` names it: `x86_64`, `aarch64`.
    Architecture;
}

/// An idempotency token of a launch: a cloud that supports tokens makes one instance per token.
///
/// A token must change when the request changes, and only then. Clouds remember it for about a day. After its instance is
/// gone, a launch with it is an error of kind [`TokenUsedUp`](crate::ErrorKind::TokenUsedUp).
///
/// ```
/// use cloud_core::LaunchToken;
///
/// assert!(LaunchToken::new("cluster-7:vm-0001:3").is_ok());
/// assert!(LaunchToken::new("x".repeat(65)).is_err());
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LaunchToken(String);

impl LaunchToken {
    /// Maximum length that every cloud accepts, in bytes.
    pub const LONGEST: usize = 64;

    /// Creates a token that fits into a header: 1 to 64 visible ASCII characters.
    pub fn new(text: impl Into<String>) -> Result<Self, InvalidLaunchToken> {
        let text = text.into();
        let fits = (1..=Self::LONGEST).contains(&text.len());
        if fits && text.bytes().all(|byte| byte.is_ascii_graphic()) {
            Ok(Self(text))
        } else {
            Err(InvalidLaunchToken)
        }
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The text is not 1 to 64 visible ASCII characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidLaunchToken;

impl fmt::Display for InvalidLaunchToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a launch token is 1 to 64 visible ASCII characters")
    }
}

impl StdError for InvalidLaunchToken {}

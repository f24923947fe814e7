//! Operations of a cloud's API.

use std::fmt;

/// An operation of a cloud's API, for errors and pacing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum ApiOperation {
    /// Getting a token or checking credentials.
    Authenticate,
    /// [`Provider::list`](crate::Provider::list).
    List,
    /// [`Provider::get`](crate::Provider::get).
    Get,
    /// [`Provider::launch`](crate::Provider::launch).
    Launch,
    /// [`Provider::terminate`](crate::Provider::terminate).
    Terminate,
    /// [`Provider::rebuild`](crate::Provider::rebuild).
    Rebuild,
    /// [`Provider::reboot`](crate::Provider::reboot).
    Reboot,
    /// [`Provider::start`](crate::Provider::start).
    Start,
    /// Stopping an instance.
    Stop,
    /// [`Provider::addresses`](crate::Provider::addresses).
    Addresses,
    /// [`Provider::shapes`](crate::Provider::shapes).
    Shapes,
    /// [`Provider::images`](crate::Provider::images).
    Images,
    /// [`Provider::limits`](crate::Provider::limits).
    Limits,
    /// [`Provider::snapshot`](crate::Provider::snapshot).
    Snapshot,
    /// Reading what a machine's metadata service says.
    Metadata,
    /// Setting up the client itself: certificates, proxies.
    Configure,
}

impl fmt::Display for ApiOperation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Authenticate => "authenticate",
            Self::List => "list",
            Self::Get => "get",
            Self::Launch => "launch",
            Self::Terminate => "terminate",
            Self::Rebuild => "rebuild",
            Self::Reboot => "reboot",
            Self::Start => "start",
            Self::Stop => "stop",
            Self::Addresses => "addresses",
            Self::Shapes => "shapes",
            Self::Images => "images",
            Self::Limits => "limits",
            Self::Snapshot => "snapshot",
            Self::Metadata => "read metadata",
            Self::Configure => "configure",
        })
    }
}

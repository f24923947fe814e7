//! Requests over HTTP, with everything that clouds have in common done once.
//!
//! A [`Client`] paces ([`Pacer`](crate::pace::Pacer)), signs ([`Authorize`]), sends, reads a
//! bounded body, classifies what is not a success (one function per cloud) and repeats what may
//! be repeated. It repeats a request only if
//!
//! * it was not sent (no connection), or the cloud answered that it has refused it for now (429, or
//!   what the cloud's own table says);
//! * or it may have been carried out (no answer, an answer cut short, 5xx), and doing it twice is
//!   the same as doing it once ([`Effect`]);
//!
//! bounded in attempts and in time ([`Retry`]); the wait for a turn at the pacer has a bound of its
//! own. A 401 renews the credential and repeats once. An error of the signer is never taken for the
//! cloud's answer to the request. If a request that changes something may have been carried out
//! and no clear answer came, the error is [`Ambiguous`](crate::ErrorKind::Ambiguous).
//!
//! Nothing is logged. Errors never show a URL's query, a header or a body, except for the
//! message that the cloud answered with, and secrets of the request are cut out of that.

mod client;
mod config;
mod gzip;
mod proxy;
mod redact;
mod request;
mod response;
mod retry;
mod transport;

pub use ::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
pub use client::{Authorize, Client, Outgoing, Unsigned};
pub use config::{Config, RequestIds, Roots};
pub use proxy::Proxies;
pub use request::{Effect, Request};
pub use response::{Classification, Classify, Response, by_status};
pub use retry::Retry;
pub use url::Url;

//! HTTP requests, with everything that clouds have in common.
//!
//! A [`Client`] paces ([`Pacer`](crate::pace::Pacer)), signs ([`Authorize`]), sends, reads a bounded body, classifies
//! failures (one function per cloud) and repeats requests. It repeats a request only if
//!
//! * * it was not sent (no connection), or the cloud refused it for now (429, or by the cloud's own table);
//! * * or it may have been carried out (no response, a truncated one, 5xx), and is idempotent ([`Effect`]);
//!
//! Attempts and time are bounded ([`Retry`]), and so is waiting for the pacer. A 401 renews the credential and repeats
//! once. An error of the signer is never mistaken for the cloud's response. If a request that changes something may have
//! been carried out, the error is [`Ambiguous`](crate::ErrorKind::Ambiguous).
//!
//! Errors never show a URL's query, a header or a body, except for the cloud's message, from which secrets of the request
//! are removed.

mod client;
mod config;
mod gzip;
mod page_tokens;
mod proxy;
mod redact;
mod request;
mod response;
mod retry;
mod transport;

pub use ::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
pub use client::{Authorize, Client, Outgoing, Unsigned};
pub use config::{ClientConfig, RequestIds, Roots};
pub use page_tokens::PageTokens;
pub use proxy::Proxies;
pub use request::{Effect, Request};
pub use response::{Classification, Classify, Response, by_status};
pub use retry::Retry;
pub use url::Url;

//! Compressed bodies. A long listing is mostly user data that is the same for all instances: a hundredth of it is sent, and it is
//! never in memory as a whole.

use super::{HeaderMap, HeaderName, HeaderValue, Request};
use ::http::header::{ACCEPT_ENCODING, CONTENT_ENCODING};
use bytes::Bytes;
use flate2::read::MultiGzDecoder;
use std::io::{BufReader, Read, Take};

const GZIP: &str = "gzip";

/// No listing is longer than this.
const LONGEST: u64 = 2 << 30;

impl Request {
    /// Lets the cloud compress its response; only [`Response::json`](super::Response::json) reads such a body.
    #[must_use]
    pub fn accepting_gzip(self) -> Self {
        self.with_header(HeaderName::from(ACCEPT_ENCODING), HeaderValue::from_static(GZIP))
    }
}

/// True if the body is compressed.
pub(super) fn is_compressed(headers: &HeaderMap) -> bool {
    headers.get(CONTENT_ENCODING).is_some_and(|value| value == GZIP)
}

/// The uncompressed body, bit by bit.
pub(super) fn reader(body: &Bytes) -> BufReader<Take<MultiGzDecoder<&[u8]>>> {
    BufReader::new(MultiGzDecoder::new(body.as_ref()).take(LONGEST))
}

/// The beginning of a body that is compressed, for an error, whose body is short; what cannot be read is left out.
pub(super) fn beginning(body: &Bytes, longest: usize) -> Bytes {
    let mut text = Vec::new();
    let longest = u64::try_from(longest).unwrap_or(u64::MAX);
    let _ = MultiGzDecoder::new(body.as_ref()).take(longest).read_to_end(&mut text);
    text.into()
}

//! Compressed bodies. A long listing is mostly user data that is the same for all instances: a hundredth of it is sent, and it is
//! never in memory as a whole.

use super::{HeaderMap, HeaderValue, Request};
use ::http::header::{ACCEPT_ENCODING, CONTENT_ENCODING};
use bytes::Bytes;
use flate2::read::MultiGzDecoder;
use std::io::{BufReader, Read, Take};

const GZIP: &str = "gzip";

/// No listing is longer than this: 25,000 machines with the most user data that there can be.
const LONGEST: u64 = 512 << 20;

impl Request {
    /// Lets the cloud compress its response; only [`Response::json`](super::Response::json) reads such a body.
    #[must_use]
    pub fn accepting_gzip(self) -> Self {
        self.with_header(ACCEPT_ENCODING, HeaderValue::from_static(GZIP))
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

#[cfg(test)]
mod tests {
    use super::super::{Method, Response, StatusCode, Url};
    use super::*;
    use crate::{ApiOperation, ErrorKind};
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use std::io::Write as _;

    fn compressed(text: &str) -> Bytes {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(text.as_bytes()).unwrap();
        encoder.finish().unwrap().into()
    }

    fn response(body: Bytes) -> Response {
        let pair = (CONTENT_ENCODING, HeaderValue::from_static(GZIP));
        let headers = [pair].into_iter().collect();
        Response { status: StatusCode::OK, headers, body, request_id: None }
    }

    fn request() -> Request {
        let url = Url::parse("http://cloud/").unwrap();
        Request::new(ApiOperation::List, Method::GET, url).accepting_gzip()
    }

    #[test]
    fn a_compressed_body_is_read_and_a_broken_one_is_no_short_listing() {
        assert_eq!(request().headers().get("accept-encoding").unwrap(), "gzip");
        let body = compressed("[1, 2, 3]");
        assert_eq!(response(body.clone()).json::<Vec<u8>>(&request()).unwrap(), [1, 2, 3]);
        for broken in [body.slice(..body.len() - 12), Bytes::from_static(b"[1]"), Bytes::new()] {
            let error = response(broken).json::<Vec<u8>>(&request()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Protocol, "{error}");
        }
    }

    #[test]
    fn the_beginning_of_an_error_is_read_however_long_it_is() {
        let text = "out of capacity ".repeat(1000);
        assert_eq!(beginning(&compressed(&text), 15), "out of capacity");
        assert_eq!(beginning(&Bytes::from_static(b"plain"), 15), "");
    }
}

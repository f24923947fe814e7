//! The tokens that lead from one page of a listing to the next.

use crate::{ApiOperation, Error, ErrorKind, Result};
use std::collections::BTreeSet;

/// Maximum number of pages of a listing.
const MOST_PAGES: usize = 1000;

/// Follows the pages of a listing, and makes sure that it ends. An incomplete listing has consequences, so one without an
/// end is an error of kind [`Protocol`](ErrorKind::Protocol).
///
/// ```
/// use cloud_core::{ApiOperation, http::PageTokens};
///
/// let mut pages = PageTokens::new(ApiOperation::List);
/// assert_eq!(pages.token(), None, "the first page");
/// assert!(pages.advance(Some("p2".to_owned()))?);
/// assert_eq!(pages.token(), Some("p2"));
/// assert!(!pages.advance(None)?, "that was the last page");
/// # Ok::<(), cloud_core::Error>(())
/// ```
#[derive(Debug)]
pub struct PageTokens {
    operation: ApiOperation,
    token: Option<String>,
    seen: BTreeSet<String>,
}

impl PageTokens {
    /// Starts at the first page.
    #[must_use]
    pub fn new(operation: ApiOperation) -> Self {
        Self { operation, token: None, seen: BTreeSet::new() }
    }

    /// The token to ask for the page with; none for the first.
    #[must_use]
    pub fn token(&self) -> Option<&str> {
        self.token.as_deref()
    }

    /// Goes on to the page with this token, which the last page has named. Returns false at the end: only a missing or
    /// empty token marks it, because an empty page may have successors.
    pub fn advance(&mut self, token: Option<String>) -> Result<bool> {
        self.token = token.filter(|token| !token.is_empty());
        let Some(token) = &self.token else { return Ok(false) };
        let error = Error::new(ErrorKind::Protocol, self.operation);
        if !self.seen.insert(token.clone()) {
            return Err(error.because("the listing returns to a page that it has shown"));
        }
        if self.seen.len() >= MOST_PAGES {
            return Err(error.because(format!("more than {MOST_PAGES} pages")));
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The error of a listing with these tokens.
    fn refusal(mut tokens: impl Iterator<Item = String>) -> Error {
        let mut pages = PageTokens::new(ApiOperation::List);
        tokens.find_map(|token| pages.advance(Some(token)).err()).unwrap()
    }

    #[test]
    fn a_listing_without_an_end_is_an_error() {
        let circle = refusal(["a", "b", "a"].map(str::to_owned).into_iter());
        assert_eq!(circle.kind(), ErrorKind::Protocol);
        assert!(circle.to_string().contains("returns to a page"), "{circle}");
        let endless = refusal((0..).map(|page: u32| page.to_string()));
        assert!(endless.to_string().contains("more than 1000 pages"), "{endless}");
    }

    #[test]
    fn an_empty_token_ends_a_listing() {
        let mut pages = PageTokens::new(ApiOperation::List);
        assert!(pages.advance(Some("a".to_owned())).unwrap());
        assert!(!pages.advance(Some(String::new())).unwrap());
    }
}

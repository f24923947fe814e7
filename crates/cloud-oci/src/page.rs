//! Listings: all pages, as large as they come.

use crate::api::{Api, Path, Service};
use cloud_core::http::{HeaderName, Method};
use cloud_core::{Error, ErrorKind, Operation, Result};
use serde::de::DeserializeOwned;

/// The largest page that OCI gives.
const LARGEST: u16 = 1000;

/// More pages than any listing has; a service that goes round in circles ends here.
const MOST_PAGES: usize = 1000;

/// A listing.
#[derive(Clone, Copy)]
pub(crate) struct Listing<'a> {
    pub(crate) operation: Operation,
    pub(crate) service: Service,
    pub(crate) path: Path<'a>,
    pub(crate) query: &'a [(&'a str, &'a str)],
}

impl Listing<'_> {
    /// Everything on all pages. How long a page is says nothing: only a header tells the last.
    pub(crate) async fn all<T: DeserializeOwned>(&self, api: &Api) -> Result<Vec<T>> {
        let mut everything: Vec<T> = Vec::new();
        let mut page: Option<String> = None;
        let limit = api.page_size.clamp(1, LARGEST).to_string();
        for _ in 0..MOST_PAGES {
            let mut query = self.query.to_vec();
            query.push(("limit", limit.as_str()));
            query.extend(page.as_deref().map(|page| ("page", page)));
            let place = (self.service, self.path);
            let request =
                api.request(self.operation, Method::GET, place, &query)?.on(self.path.join("/"));
            let answer = api.send(&request).await?;
            everything.extend(answer.json::<Vec<T>>(&request)?);
            let next = answer.header(&HeaderName::from_static("opc-next-page"));
            let next = next.filter(|next| !next.is_empty()).map(str::to_owned);
            if next.is_none() {
                return Ok(everything);
            }
            if next == page {
                return Err(request.error(ErrorKind::Protocol).because("a page names itself next"));
            }
            page = next;
        }
        let why = format!("more than {MOST_PAGES} pages");
        Err(Error::new(ErrorKind::Protocol, self.operation).because(why))
    }
}

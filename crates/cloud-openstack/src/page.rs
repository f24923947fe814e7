//! Listings that come in pages.

use crate::api::{Api, with_query};
use crate::wire::{
    FlavorsBody, GlanceImage, ImagesBody, NovaFlavor, Server, ServersBody, has_next,
};
use cloud_core::http::{Method, Request, Url};
use cloud_core::{Error, ErrorKind, Operation, Result};
use serde::de::DeserializeOwned;
use std::collections::BTreeSet;

/// More pages than any cloud has: a listing that does not end is an error and not a wait.
const MOST_PAGES: usize = 10_000;
/// How often a listing begins again because the server where it stopped is gone.
const MOST_BEGINNINGS: usize = 4;

/// One page of a listing.
pub(crate) trait Page: DeserializeOwned {
    type Item;

    /// What is on it, and whether there is another.
    fn split(self) -> (Vec<Self::Item>, bool);

    fn id(item: &Self::Item) -> &str;
}

macro_rules! pages {
    ($($body:ident of $item:ident: $items:ident, $more:expr;)+) => {$(
        impl Page for $body {
            type Item = $item;

            fn split(self) -> (Vec<$item>, bool) {
                let more = $more(&self);
                (self.$items, more)
            }

            fn id(item: &$item) -> &str {
                &item.id
            }
        }
    )+};
}

pages! {
    ServersBody of Server: servers, |page: &ServersBody| has_next(&page.servers_links);
    FlavorsBody of NovaFlavor: flavors, |page: &FlavorsBody| has_next(&page.flavors_links);
    ImagesBody of GlanceImage: images, |page: &ImagesBody| page.next.is_some();
}

impl Api {
    /// All items of all pages, each once.
    ///
    /// Goes on from the last id and not by the link to the next page: behind many a proxy that
    /// names a host that nobody can reach.
    pub(crate) async fn list<P: Page>(
        &self,
        operation: Operation,
        url: &Url,
        ask: impl Fn(Url) -> Request,
    ) -> Result<Vec<P::Item>> {
        let mut beginnings = 1;
        loop {
            match self.list_once::<P>(operation, url, &ask).await {
                Err(error) if is_marker_gone(&error) && beginnings < MOST_BEGINNINGS => {
                    beginnings += 1;
                }
                result => return result,
            }
        }
    }

    async fn list_once<P: Page>(
        &self,
        operation: Operation,
        url: &Url,
        ask: &impl Fn(Url) -> Request,
    ) -> Result<Vec<P::Item>> {
        let (mut all, mut seen) = (Vec::new(), BTreeSet::new());
        let mut request = ask(url.clone());
        for _ in 0..MOST_PAGES {
            let page: P = self.read(&request).await?;
            let (items, more) = page.split();
            let before = seen.len();
            for item in items {
                if seen.insert(P::id(&item).to_owned()) {
                    all.push(item);
                }
            }
            // A page with nothing new on it would be followed by itself.
            let last = all.last().filter(|_| more && seen.len() > before);
            let Some(last) = last else {
                return Ok(all);
            };
            request = ask(with_query(url.clone(), &[("marker", P::id(last))]));
        }
        Err(Error::new(ErrorKind::Protocol, operation).because("a listing without an end"))
    }

    /// A URL of Nova's with the length of a page in it.
    pub(crate) fn looking(operation: Operation) -> impl Fn(Url) -> Request {
        move |url| Request::new(operation, Method::GET, url)
    }
}

fn is_marker_gone(error: &Error) -> bool {
    error.kind() == ErrorKind::Invalid
        && error.message().is_some_and(|message| message.to_lowercase().contains("marker"))
}

//! Paginated listings.

use crate::api::{Api, with_query};
use crate::wire::{
    FlavorsBody, GlanceImage, ImagesBody, NovaFlavor, Server, ServersBody, has_next,
};
use cloud_core::http::{Method, Request, Url};
use cloud_core::{ApiOperation, Error, ErrorKind, Result};
use serde::de::DeserializeOwned;
use std::collections::BTreeSet;

/// Maximum number of pages, so that an endless listing is an error.
const MOST_PAGES: usize = 1_000;
/// Maximum restarts of a listing whose last server is gone.
const MOST_BEGINNINGS: usize = 4;

/// One page of a listing.
pub(crate) trait Page: DeserializeOwned {
    type Item;

    /// The items, and whether there is another page.
    fn split(self) -> (Vec<Self::Item>, More);

    fn id(item: &Self::Item) -> &str;
}

/// Whether there is another page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum More {
    Yes,
    /// The cloud reports none, but may be wrong.
    Perhaps,
    No,
}

impl More {
    fn said(yes: bool) -> Self {
        if yes { Self::Yes } else { Self::No }
    }
}

/// Nova reads servers without a host separately. One that gets its host in between is counted twice and listed once, so
/// that a full page seems to be the last. No cloud has pages of less than twice this.
const LEAST_OF_A_FULL_PAGE: usize = 50;

fn after(page: &ServersBody) -> More {
    let waits = |server: &Server| server.task_state.as_deref() == Some("scheduling");
    if has_next(&page.servers_links) {
        More::Yes
    } else if page.servers.len() >= LEAST_OF_A_FULL_PAGE && page.servers.iter().any(waits) {
        More::Perhaps
    } else {
        More::No
    }
}

macro_rules! pages {
    ($($body:ident of $item:ident: $items:ident, $more:expr;)+) => {$(
        impl Page for $body {
            type Item = $item;

            fn split(self) -> (Vec<$item>, More) {
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
    ServersBody of Server: servers, after;
    FlavorsBody of NovaFlavor: flavors, |page: &FlavorsBody| More::said(has_next(&page.flavors_links));
    ImagesBody of GlanceImage: images, |page: &ImagesBody| More::said(page.next.is_some());
}

impl Api {
    /// All items of all pages, each once.
    ///
    /// It continues from the last id and not by the link to the next page, which may have an unreachable host behind a
    /// proxy.
    pub(crate) async fn list<P: Page>(
        &self,
        operation: ApiOperation,
        url: &Url,
        ask: impl Fn(Url) -> Request,
    ) -> Result<Vec<P::Item>> {
        let mut beginnings = 1;
        loop {
            match self.list_once::<P>(operation, url, &ask).await {
                Err(error) if !is_marker_gone(&error) => return Err(error),
                // The request is valid, and succeeds when fewer servers are deleted at a time.
                Err(error) if beginnings >= MOST_BEGINNINGS => {
                    return Err(error.with_kind(ErrorKind::Unavailable));
                }
                Err(_gone) => beginnings += 1,
                Ok(all) => return Ok(all),
            }
        }
    }

    async fn list_once<P: Page>(
        &self,
        operation: ApiOperation,
        url: &Url,
        ask: &impl Fn(Url) -> Request,
    ) -> Result<Vec<P::Item>> {
        let nonsense = |why| Error::new(ErrorKind::Protocol, operation).because(why);
        let mut gathered = Gathered::<P>::new();
        let mut request = ask(url.clone());
        for _ in 0..MOST_PAGES {
            let page: P = self.read(&request).await?;
            match gathered.add(page) {
                Next::End => return Ok(gathered.all),
                Next::After(marker) => {
                    request = ask(with_query(url.clone(), &[("marker", &marker)]));
                }
                // The listing is incomplete.
                Next::Again => return Err(nonsense("the listing does not advance")),
            }
        }
        Err(nonsense("a listing without an end"))
    }

    /// A request without microversion, for Glance.
    pub(crate) fn looking(operation: ApiOperation) -> impl Fn(Url) -> Request {
        move |url| Request::new(operation, Method::GET, url)
    }
}

/// The step after a page.
#[derive(Debug, PartialEq, Eq)]
enum Next {
    End,
    /// Get the page after this id.
    After(String),
    /// The page has nothing new, so the listing would never end.
    Again,
}

/// The items so far, without duplicates.
struct Gathered<P: Page> {
    all: Vec<P::Item>,
    seen: BTreeSet<String>,
}

impl<P: Page> Gathered<P> {
    fn new() -> Self {
        Self { all: Vec::new(), seen: BTreeSet::new() }
    }

    fn add(&mut self, page: P) -> Next {
        let (items, more) = page.split();
        let last = items.last().map(|item| P::id(item).to_owned());
        let before = self.seen.len();
        for item in items {
            if self.seen.insert(P::id(&item).to_owned()) {
                self.all.push(item);
            }
        }
        let last = last.filter(|_| self.seen.len() > before);
        match (more, last) {
            (More::No, _) | (More::Perhaps, None) => Next::End,
            (More::Yes | More::Perhaps, Some(last)) => Next::After(last),
            (More::Yes, None) => Next::Again,
        }
    }
}

/// True if the marker of the next page is gone.
fn is_marker_gone(error: &Error) -> bool {
    // Glance's error does not name the marker.
    let words = ["marker", "no image found with id"];
    let says = |message: &str| words.iter().any(|word| message.to_lowercase().contains(word));
    error.kind() == ErrorKind::Invalid && error.message().is_some_and(says)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn page(ids: &[&str], more: bool) -> ServersBody {
        let servers: Vec<_> = ids.iter().map(|id| json!({"id": id})).collect();
        let links = if more { json!([{"rel": "next"}]) } else { json!([]) };
        serde_json::from_value(json!({"servers": servers, "servers_links": links})).unwrap()
    }

    #[test]
    fn a_listing_that_does_not_advance_is_an_error() {
        let after = |id: &str| Next::After(id.to_owned());
        let table = [
            (vec![page(&["a"], false)], vec![Next::End]),
            (vec![page(&["a", "b"], true), page(&["c"], false)], vec![after("b"), Next::End]),
            (vec![page(&["a", "b"], true), page(&["a", "b"], true)], vec![after("b"), Next::Again]),
            (vec![page(&["a"], true), page(&[], true)], vec![after("a"), Next::Again]),
            (vec![page(&["a"], true), page(&["b", "a"], true)], vec![after("a"), after("a")]),
            (vec![page(&[], false)], vec![Next::End]),
        ];
        for (pages, expected) in table {
            let mut gathered = Gathered::new();
            let seen: Vec<Next> = pages.into_iter().map(|page| gathered.add(page)).collect();
            assert_eq!(seen, expected);
        }
    }

    #[test]
    fn a_page_that_nova_cut_short_is_not_taken_for_the_last() {
        let page = |count: usize, task: Option<&str>| -> ServersBody {
            let server = |n| json!({"id": format!("{count}-{n}"), "OS-EXT-STS:task_state": task});
            let servers: Vec<_> = (0..count).map(server).collect();
            serde_json::from_value(json!({"servers": servers})).unwrap()
        };
        let after = |id: &str| Next::After(id.to_owned());
        for (count, task, expected) in [
            (99, Some("scheduling"), after("99-98")),
            (50, Some("scheduling"), after("50-49")),
            (49, Some("scheduling"), Next::End),
            (99, Some("spawning"), Next::End),
            (99, None, Next::End),
        ] {
            assert_eq!(Gathered::new().add(page(count, task)), expected, "{count} {task:?}");
        }
        let mut gathered = Gathered::new();
        gathered.add(page(99, Some("scheduling")));
        assert_eq!(gathered.add(page(0, None)), Next::End, "it was the last");
        assert_eq!(gathered.add(page(99, Some("scheduling"))), Next::End, "nothing new");
    }

    #[test]
    fn each_item_is_there_once() {
        let mut gathered = Gathered::new();
        gathered.add(page(&["a", "b"], true));
        gathered.add(page(&["b", "c"], false));
        let ids: Vec<&str> = gathered.all.iter().map(|server| server.id.as_str()).collect();
        assert_eq!(ids, ["a", "b", "c"]);
    }

    #[test]
    fn a_deleted_marker_of_glance_is_recognized() {
        let table = [
            (ErrorKind::Invalid, "marker [x] not found", true),
            (ErrorKind::Invalid, "No image found with ID x", true),
            (ErrorKind::NotFound, "No image found with ID x", false),
            (ErrorKind::Invalid, "Invalid filter field", false),
        ];
        for (kind, message, expected) in table {
            let error = Error::new(kind, ApiOperation::List).because(message);
            assert_eq!(is_marker_gone(&error), expected, "{message}");
        }
    }
}

//! Requests to EC2, and all pages of what it lists.

use crate::auth::Signer;
use crate::query::Query;
use crate::wire;
use cloud_core::http::{Client, Request, Response, Url};
use cloud_core::{ApiOperation, Error, ErrorKind, Result};
use serde::de::DeserializeOwned;
use std::collections::BTreeSet;
use std::sync::atomic::AtomicUsize;

/// More pages than any listing has.
const MOST_PAGES: usize = 1000;

/// The largest page of most listings.
const PAGE: u32 = 1000;

/// Most values of a filter.
pub(crate) const MOST_VALUES: usize = 200;

/// The clients of EC2 and STS, and where these are.
#[derive(Debug)]
pub(crate) struct Api {
    pub(crate) client: Client<Signer>,
    pub(crate) url: Url,
    pub(crate) sts: Client<Signer>,
    pub(crate) sts_url: Url,
    /// How many refusals were decoded.
    pub(crate) decoded: AtomicUsize,
}

/// One page of a listing.
pub(crate) trait Page: DeserializeOwned {
    type Item;

    /// The largest page that EC2 gives.
    const LARGEST: u32 = PAGE;

    /// What is on it, and where the next begins.
    fn split(self) -> (Vec<Self::Item>, Option<String>);
}

impl Api {
    /// Sends it and reads the answer; `subject` is what it is about, for errors.
    pub(crate) async fn read<T: DeserializeOwned>(
        &self,
        operation: ApiOperation,
        subject: &str,
        query: Query,
    ) -> Result<T> {
        let action = query.action();
        let request = query.request(operation, self.url.clone()).on(subject);
        wire::read(&self.send(&request).await?, &request, action)
    }

    /// Sends it; that it was done is all there is to know.
    pub(crate) async fn done(
        &self,
        operation: ApiOperation,
        subject: &str,
        query: Query,
    ) -> Result<()> {
        let request = query.request(operation, self.url.clone()).on(subject);
        self.send(&request).await.map(drop)
    }

    async fn send(&self, request: &Request) -> Result<Response> {
        match self.client.send(request).await {
            Err(error) => Err(self.explained(error).await),
            sent => sent,
        }
    }

    /// Everything on all pages. How long a page is says nothing: an empty one may be followed by another.
    pub(crate) async fn all<P: Page>(
        &self,
        operation: ApiOperation,
        subject: &str,
        query: Query,
    ) -> Result<Vec<P::Item>> {
        let mut everything = Vec::new();
        let (mut next, mut seen) = (None::<String>, BTreeSet::new());
        for _ in 0..MOST_PAGES {
            let page =
                query.clone().with("MaxResults", P::LARGEST).some("NextToken", next.as_ref());
            let (mut items, token) = self.read::<P>(operation, subject, page).await?.split();
            everything.append(&mut items);
            let Some(token) = token.filter(|token| !token.is_empty()) else {
                return Ok(everything);
            };
            if !seen.insert(token.clone()) {
                break;
            }
            next = Some(token);
        }
        Err(Error::new(ErrorKind::Protocol, operation).on(subject).because("a listing without end"))
    }
}

macro_rules! pages {
    ($($body:ident of $item:ident: $items:ident $(, $largest:expr)?;)+) => {$(
        impl Page for wire::$body {
            type Item = wire::$item;

            $(const LARGEST: u32 = $largest;)?

            fn split(self) -> (Vec<wire::$item>, Option<String>) {
                (self.$items.item, self.next_token)
            }
        }
    )+};
}

pages! {
    Instances of Reservation: reservation_set;
    RootVolumeTasks of RootVolumeTask: replace_root_volume_task_set, 50;
    Images of Image: images_set;
    InstanceTypes of InstanceType: instance_type_set, 100;
    Subnets of Subnet: subnet_set;
}

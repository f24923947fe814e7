//! Requests to EC2, and listings of all pages.

use crate::auth::Signer;
use crate::query::Query;
use crate::wire;
use cloud_core::http::{Client, PageTokens, Request, Response, Url};
use cloud_core::{ApiOperation, Result};
use serde::de::DeserializeOwned;
use std::sync::atomic::AtomicUsize;

/// The largest page of most listings.
const PAGE: u32 = 1000;

/// Maximum number of values of a filter.
pub(crate) const MOST_VALUES: usize = 200;

/// The clients of EC2 and STS, with their URLs.
#[derive(Debug)]
pub(crate) struct Api {
    pub(crate) client: Client<Signer>,
    pub(crate) url: Url,
    pub(crate) sts: Client<Signer>,
    pub(crate) sts_url: Url,
    /// Number of decoded refusals.
    pub(crate) decoded: AtomicUsize,
}

/// One page of a listing.
pub(crate) trait Page: DeserializeOwned {
    type Item;

    /// Maximum size of a page.
    const LARGEST: u32 = PAGE;

    /// The items, and the token of the next page.
    fn split(self) -> (Vec<Self::Item>, Option<String>);
}

impl Api {
    /// Sends a request and reads the response. Errors name the `subject`.
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

    /// Sends a request whose response has no content of interest.
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

    /// Lists all pages.
    pub(crate) async fn all<P: Page>(
        &self,
        operation: ApiOperation,
        subject: &str,
        query: Query,
    ) -> Result<Vec<P::Item>> {
        let mut everything = Vec::new();
        let mut pages = PageTokens::new(operation);
        loop {
            let page = query.clone().with("MaxResults", P::LARGEST);
            let page = page.some("NextToken", pages.token());
            let (mut items, token) = self.read::<P>(operation, subject, page).await?.split();
            everything.append(&mut items);
            if !pages.advance(token).map_err(|error| error.on(subject))? {
                return Ok(everything);
            }
        }
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

//! Listings that the captures do not show: odd pages, and what their order means.

use crate::captures::beyond::{found, instance, with};
use crate::captures::fixture::Fixture;
use crate::captures::recorder::Response;
use cloud_core::{ErrorKind, ImageFilter, InstanceFilter, Provider as _};
use serde_json::{Value, json};

/// A page, and where the next one is.
pub(crate) fn page(items: Vec<Value>, next: Option<&str>) -> Response {
    let mut response = Response::new(200, Value::from(items).to_string());
    response.headers.extend(next.map(|page| ("opc-next-page".to_owned(), page.to_owned())));
    response
}

#[tokio::test]
async fn only_a_list_is_a_list() {
    for body in ["null", "{}", "", "[] []", "\"\""] {
        let answers = vec![Response::new(200, body), Response::new(200, body)];
        with(answers, async |fixture: &Fixture| {
            let error = fixture.oci.list(&InstanceFilter::default()).await.expect_err(body);
            assert_eq!(error.kind(), ErrorKind::Protocol, "{body}: {error}");
            let error = fixture.oci.zones().await.expect_err(body);
            assert_eq!(error.kind(), ErrorKind::Protocol, "{body}: {error}");
        })
        .await;
    }
}

/// Each page names another one.
#[tokio::test]
async fn a_listing_without_an_end_is_an_error() {
    let pages = (0..1000).map(|number: u32| page(vec![], Some(&number.to_string())));
    let listed = with(pages.collect(), async |fixture: &Fixture| {
        fixture.oci.list(&InstanceFilter::default()).await.expect_err("no end")
    });
    let error = listed.await;
    assert_eq!(error.kind(), ErrorKind::Protocol, "{error}");
}

/// A service that names a page twice would be asked for ever, or until the memory is full.
#[tokio::test]
async fn pages_that_go_round_in_circles_end() {
    for circle in [&["a", "a"][..], &["a", "b", "a"]] {
        let pages = circle.iter().map(|next| page(vec![instance("RUNNING")], Some(next))).collect();
        let listed = with(pages, async |fixture: &Fixture| {
            fixture.oci.list(&InstanceFilter::default()).await.expect_err("no end")
        });
        let error = listed.await;
        assert_eq!(error.kind(), ErrorKind::Protocol, "{error}");
        assert!(error.to_string().contains("returns to a page"), "{error}");
    }
}

#[tokio::test]
async fn an_instance_that_moves_to_the_next_page_is_listed_once() {
    let pages =
        || vec![page(vec![instance("RUNNING")], Some("a")), page(vec![instance("RUNNING")], None)];
    with(pages(), async |fixture: &Fixture| {
        let listed = fixture.oci.list(&InstanceFilter::default()).await.expect("two pages");
        assert_eq!(listed.len(), 1, "{listed:?}");
    })
    .await;
    with(pages(), async |fixture: &Fixture| {
        let listed = fixture.oci.images(&ImageFilter::default()).await.expect("two pages");
        assert_eq!(listed.len(), 1, "{listed:?}");
    })
    .await;
}

/// The first that is ready is what machines boot from.
#[tokio::test]
async fn images_are_newest_first_in_whatever_order_they_come() {
    let image = |id: &str, made: Option<&str>| json!({"id": id, "displayName": id, "lifecycleState": "AVAILABLE", "timeCreated": made});
    let shown = json!([
        image("older", Some("2026-01-01T00:00:00Z")),
        image("nobody knows when", None),
        image("newest", Some("2026-03-01T00:00:00.5Z")),
        image("newer", Some("2026-03-01T00:00:00Z")),
    ]);
    let listed = with(vec![found(&shown)], async |fixture: &Fixture| {
        fixture.oci.images(&ImageFilter::default()).await.expect("images")
    });
    let ids: Vec<String> = listed.await.iter().map(|image| image.id.to_string()).collect();
    assert_eq!(ids, ["newest", "newer", "older", "nobody knows when"]);
}

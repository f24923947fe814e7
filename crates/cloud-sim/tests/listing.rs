//! Lists of instances: their order, their pages, and that they show what is now.

use crate::support::{COMPARTMENT, DOMAIN, Fixture, escaped, launch_body};
use serde_json::json;

/// The names on all pages of a list, with two on each.
async fn names(fixture: &Fixture, query: &str) -> Vec<String> {
    let list = format!("/20160918/instances?compartmentId={COMPARTMENT}&limit=2{query}");
    let (mut names, mut page) = (Vec::new(), String::new());
    loop {
        let answer = fixture.get(&format!("{list}{page}")).await.ok();
        let rows = answer.json();
        let rows = rows.as_array().unwrap();
        assert!(rows.len() <= 2 && !rows.is_empty(), "{rows:?}");
        names.extend(rows.iter().map(|row| row["displayName"].as_str().unwrap().to_owned()));
        let Some(next) = answer.header("opc-next-page") else {
            return names;
        };
        page = format!("&page={}", escaped(&next));
    }
}

#[tokio::test]
async fn every_order_shows_all_on_its_pages() {
    let fixture = Fixture::frozen().await;
    for name in ["b", "a", "c", "a", "a"] {
        fixture.launch(name).await;
    }
    let table = [
        ("", "a a c a b"),
        ("&sortOrder=ASC", "b a c a a"),
        ("&sortBy=DISPLAYNAME", "a a a b c"),
        ("&sortBy=DISPLAYNAME&sortOrder=DESC", "c b a a a"),
        ("&displayName=a", "a a a"),
        ("&displayName=a&sortBy=DISPLAYNAME", "a a a"),
        ("&displayName=c&sortOrder=ASC", "c"),
    ];
    for (query, expected) in table {
        assert_eq!(names(&fixture, query).await.join(" "), expected, "{query}");
    }
}

#[tokio::test]
async fn a_list_shows_what_has_changed_since_the_last() {
    let fixture = Fixture::frozen().await;
    let id = fixture.launch("old").await;
    let instance = format!("/20160918/instances/{id}");
    let list = format!("/20160918/instances?compartmentId={COMPARTMENT}");
    let seen = async || fixture.get(&list).await.ok().json();
    assert_eq!(seen().await[0]["lifecycleState"], "PROVISIONING");
    fixture.advance(10);
    assert_eq!(seen().await[0]["lifecycleState"], "RUNNING", "it moved by itself");
    fixture.send("PUT", &instance, r#"{"displayName": "new"}"#).await.ok();
    assert_eq!(seen().await[0]["displayName"], "new");
    assert_eq!(seen().await, json!([fixture.get(&instance).await.ok().json()]));
    let named = async |name: &str| {
        let answer = fixture.get(&format!("{list}&displayName={name}")).await;
        answer.ok().json().as_array().unwrap().len()
    };
    assert_eq!((named("old").await, named("new").await), (0, 1));
    fixture.send("DELETE", &instance, "").await.ok();
    assert_eq!(seen().await[0]["lifecycleState"], "TERMINATING");
    fixture.advance(5);
    assert_eq!(seen().await[0]["lifecycleState"], "TERMINATED");
    fixture.advance(3600);
    assert_eq!((seen().await, named("new").await), (json!([]), 0));
}

#[tokio::test]
async fn a_page_of_another_list_is_refused() {
    let fixture = Fixture::frozen().await;
    for name in ["a", "b", "c"] {
        fixture.launch(name).await;
        let body = json!({"compartmentId": COMPARTMENT, "availabilityDomain": DOMAIN});
        fixture.send("POST", "/20160918/computeClusters", &body.to_string()).await.ok();
    }
    fixture.advance(10);
    let of = format!("compartmentId={COMPARTMENT}&limit=2");
    let lists = [
        format!("/20160918/instances?{of}"),
        format!("/20160918/instances?{of}&sortBy=DISPLAYNAME"),
        format!("/20160918/images?{of}"),
        format!("/20160918/vnicAttachments?{of}"),
        format!("/20160918/computeClusters?{of}"),
        format!("/20160918/bootVolumeAttachments?{of}&availabilityDomain=Uocm%3APHX-AD-1"),
    ];
    for list in &lists {
        let first = fixture.get(list).await.ok();
        let next = first.header("opc-next-page").unwrap_or_else(|| panic!("{list} has one page"));
        let next = escaped(&next);
        for other in &lists {
            let answer = fixture.get(&format!("{other}&page={next}")).await;
            if other == list {
                assert_ne!(answer.ok().text, first.text, "{list}");
            } else {
                answer.refused(400, "InvalidParameter");
            }
        }
    }
}

#[tokio::test]
async fn an_instance_does_not_show_its_compute_cluster() {
    let fixture = Fixture::frozen().await;
    fixture.launch("other").await;
    let mut body = launch_body("n1");
    body["computeClusterId"] = json!("ocid1.computecluster.oc1.phx.cc1");
    let launched = fixture.launch_with(None, &body).await.ok().json();
    assert_eq!(launched.get("computeClusterId"), None);
    assert_eq!(names(&fixture, "&computeClusterId=ocid1.computecluster.oc1.phx.cc1").await, ["n1"]);
    let cluster = "/20160918/computeClusters/ocid1.computecluster.oc1.phx.cc1";
    fixture.send("DELETE", cluster, "").await.refused(409, "IncorrectState");
}

//! What there is beside instances, each asked for once.

use crate::support::{COMPARTMENT, DOMAIN, Fixture, SUBNET};
use cloud_sim::{CloudSettings, Limit, Subnet};
use serde_json::{Value, json};

#[tokio::test]
async fn every_reading_operation_answers() {
    let fixture = Fixture::frozen().await;
    let tenancy = fixture.cloud.credentials().tenancy.clone();
    let of = format!("compartmentId={COMPARTMENT}");
    let table: [(String, &str, Value); 9] = [
        (format!("20160918/tenancies/{tenancy}"), "/homeRegionKey", json!("PHX")),
        (
            format!("20160918/tenancies/{tenancy}/regionSubscriptions"),
            "/0/isHomeRegion",
            json!(true),
        ),
        ("20160918/regions".to_owned(), "/0/name", json!("us-phoenix-1")),
        (format!("20160918/vcns?{of}"), "/0/id", json!("ocid1.vcn.oc1.phx.aaaavcn")),
        (
            "20160918/vcns/ocid1.vcn.oc1.phx.aaaavcn".to_owned(),
            "/lifecycleState",
            json!("AVAILABLE"),
        ),
        (format!("20160918/compartments?compartmentId={tenancy}"), "/0/id", json!(COMPARTMENT)),
        (format!("20160918/compartments/{COMPARTMENT}"), "/lifecycleState", json!("ACTIVE")),
        (format!("20190729/limitDefinitions?{of}&name=gpu4-count"), "/0/name", json!("gpu4-count")),
        (format!("20190729/services?{of}"), "/0/name", json!("compute")),
    ];
    for (target, place, expected) in table {
        let seen = fixture.get(&format!("/{target}")).await.ok().json();
        assert_eq!(seen.pointer(place), Some(&expected), "{target}: {seen}");
    }
    for target in ["tenancies/x", "tenancies/x/regionSubscriptions", "vcns/x", "compartments/x"] {
        let missing = fixture.get(&format!("/20160918/{target}")).await;
        missing.refused(404, "NotAuthorizedOrNotFound");
    }
}

#[tokio::test]
async fn the_network_is_of_the_subnet_that_is_asked_for() {
    let mut settings = CloudSettings { speed: 0.0, ..CloudSettings::default() };
    settings.compartments.push("ocid1.compartment.oc1..other".to_owned());
    for (id, cidr) in [("mid", "10.7.9.77/20"), ("one", "127.0.0.1/32")] {
        let first = settings.subnets[0].clone();
        settings.subnets.push(Subnet { id: id.to_owned(), cidr: cidr.to_owned(), ..first });
    }
    let fixture = Fixture::new(settings).await;
    for (list, expected) in [("vcns", 1), ("subnets", 3)] {
        for (of, expected) in [(COMPARTMENT, expected), ("ocid1.compartment.oc1..other", 0)] {
            let rows =
                fixture.get(&format!("/20160918/{list}?compartmentId={of}")).await.ok().json();
            assert_eq!(rows.as_array().map(Vec::len), Some(expected), "{list} of {of}");
        }
    }
    for (id, expected) in [(SUBNET, "10.1.0.1"), ("mid", "10.7.0.1"), ("one", "127.0.0.1")] {
        let subnet = fixture.get(&format!("/20160918/subnets/{id}")).await.ok().json();
        assert_eq!(subnet["virtualRouterIp"], expected, "{id}");
    }
}

#[tokio::test]
async fn an_image_is_deleted_only_if_the_etag_matches() {
    let fixture = Fixture::frozen().await;
    for target in
        ["images/ocid1.image.oc1.phx.img001", "computeClusters/ocid1.computecluster.oc1.phx.cc1"]
    {
        let target = format!("/20160918/{target}");
        let etag = fixture.get(&target).await.ok().header("etag").unwrap();
        let stale =
            fixture.try_send("DELETE", &target, &[("if-match", "stale")], "").await.unwrap();
        stale.refused(412, "NoEtagMatch");
        fixture.try_send("DELETE", &target, &[("if-match", &etag)], "").await.unwrap().ok();
        fixture.get(&target).await.refused(404, "NotAuthorizedOrNotFound");
    }
}

#[tokio::test]
async fn a_limit_of_one_domain_is_listed_for_it_alone() {
    let fixture = Fixture::frozen().await;
    let availability_domain = Some(DOMAIN.to_owned());
    let limit = Limit { name: "gpu4-count".to_owned(), availability_domain, value: 3 };
    fixture.cloud.admin().set_limits(vec![limit]).unwrap();
    let target = |of: &str| format!("/20190729/limitValues?compartmentId={of}&serviceName=compute");
    fixture.get(&target(COMPARTMENT)).await.refused(400, "InvalidParameter");
    let target = target(&fixture.cloud.settings().tenancy);
    let seen = fixture.get(&target).await.ok().json();
    let expected = json!({
        "name": "gpu4-count", "scopeType": "AD", "availabilityDomain": DOMAIN, "value": 3
    });
    assert_eq!(seen, json!([expected]));
}

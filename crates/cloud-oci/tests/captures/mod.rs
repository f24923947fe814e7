//! What we send for each operation that was captured from Oracle's SDK equals the capture.

mod beyond;
mod compare;
mod fixture;
mod listings;
mod recorder;

use cloud_core::{
    ErrorKind, FaultDomain, ImageFilter, ImageId, InstanceFilter, InstanceName, InstanceSpec,
    InstanceState, LaunchToken, Limit, Provider as _, Reboot, Secret, ShapeName, SubnetId, Tags,
    Zone,
};
use cloud_oci::{CapacityStatus, LaunchOptions, Power};
use compare::Differences;
use fixture::{ALONE, COMPARTMENT, Fixture, capture, captured_files};
use recorder::Response;

/// Listings ask for the largest page.
const PAGED: Differences = Differences { ours: &["limit"], theirs: &[] };

/// What no operation of ours sends, and why.
const NOT_OURS: [(&str, &str); 9] = [
    ("05", "fields that OCI calls deprecated"),
    ("06", "we boot from images"),
    ("17", "we do not migrate"),
    ("21", "tags are set in the launch"),
    ("22", "tags are set in the launch"),
    ("29", "compute clusters are made by others"),
    ("30", "compute clusters are made by others"),
    ("32", "we do not use pools"),
    ("33", "we do not use pools"),
];

fn zone() -> Zone {
    Zone::new("Uocm:PHX-AD-1")
}

fn small(name: &str, token: &str) -> InstanceSpec {
    let mut spec = InstanceSpec::new(
        InstanceName::new(name),
        ShapeName::new("VM.Standard.E5.Flex.1.8"),
        ImageId::new("ocid1.image.oc1.phx.img001"),
    );
    spec.zone = Some(zone());
    spec.subnet = Some(SubnetId::new("ocid1.subnet.oc1.phx.aaaasub"));
    spec.token = LaunchToken::new(token).ok();
    spec
}

fn bare_site() -> LaunchOptions {
    let mut site = LaunchOptions::new(COMPARTMENT);
    site.hostname = false;
    site
}

/// The fields of the first capture that a spec cannot say, as an operator would write them.
fn full_site() -> LaunchOptions {
    let mut template = capture("01")["exchanges"][0]["body"].clone();
    let fields = template.as_object_mut().expect("a template");
    for said in ["metadata", "freeformTags", "displayName"] {
        fields.remove(said);
    }
    let mut site = LaunchOptions::new(COMPARTMENT);
    site.template = Secret::new(fields.clone());
    site
}

fn full_spec() -> InstanceSpec {
    let mut spec = small("c1-compute-0001", "unused");
    spec.shape = ShapeName::new("VM.Standard.E5.Flex.4.64");
    spec.fault_domain = Some(FaultDomain::new("2"));
    spec.preemptible = true;
    spec.tags = Tags::from([("cluster", "c1"), ("type", "compute")]);
    spec.ssh_keys = vec!["ssh-ed25519 AAAAC3Nz test\n".to_owned()];
    spec.user_data = Some(Secret::new("#!/bin/bash\necho hi\n".to_owned()));
    spec.token = None;
    spec
}

#[tokio::test]
async fn launches() {
    let fixture = Fixture::new(full_site()).await;
    fixture.queue("01", 0);
    let launched = fixture.oci.launch(&full_spec()).await.expect("accepted");
    assert_eq!(launched.state, InstanceState::Pending);
    fixture.compare(&[("01", 0, ALONE)]);
    let mut spec = full_spec();
    spec.token = LaunchToken::new("ji0lPLcJE52F0HCHZZ2TrckW4FKVqV").ok();
    fixture.queue("02", 0);
    fixture.oci.launch(&spec).await.expect("accepted");
    let asked = fixture.compare(&[("02", 0, ALONE)]);
    assert_eq!(asked[0].headers["opc-retry-token"], "ji0lPLcJE52F0HCHZZ2TrckW4FKVqV");

    // Ours also switches the old metadata service off.
    let safer = Differences { ours: &["instanceOptions"], theirs: &[] };
    let fixture = Fixture::new(bare_site()).await;
    for capture in ["03", "04", "38"] {
        fixture.queue(capture, 0);
        let result = fixture.oci.launch(&small("c1-compute-0002", "c1-compute-0002-gen7")).await;
        let asked = fixture.compare(&[(capture, 0, safer)]);
        assert_eq!(asked[0].headers["opc-retry-token"], "c1-compute-0002-gen7");
        match (capture, result) {
            ("38", Err(error)) => {
                assert_eq!(error.kind(), ErrorKind::TokenUsedUp);
            }
            (_, result) => drop(result.expect("accepted")),
        }
    }
}

#[tokio::test]
async fn a_launch_that_fails_later_is_explained_by_its_work_request() {
    let fixture = Fixture::new(bare_site()).await;
    let mut spec = small("nocap-1", "nocap-1-a");
    spec.shape = ShapeName::new("VM.Standard.E5.Flex");
    fixture.queue("40", 0);
    let id = fixture.oci.launch(&spec).await.expect("accepted").id;
    let more = ["instanceOptions", "createVnicDetails", "sourceDetails"];
    let more = Differences { ours: Box::leak(Box::new(more)), theirs: &[] };
    fixture.compare(&[("40", 0, more)]);

    fixture.queue("44", 0);
    fixture.recorder.queue(Response::new(200, "[]"));
    fixture.queue("41", 0);
    let waiting = fixture.oci.get(&id).await.expect("there");
    assert_eq!(waiting.fault, None, "the work request is still under way");
    fixture.compare(&[("44", 0, ALONE), ("43", 0, PAGED), ("41", 0, ALONE)]);

    fixture.queue("44", 0);
    fixture.queue("43", 0);
    let lost = fixture.oci.get(&id).await.expect("there");
    assert_eq!(lost.state, InstanceState::Terminated);
    let fault = lost.fault.expect("it says why");
    assert_eq!(
        (fault.kind, fault.message.as_str()),
        (ErrorKind::Capacity, "Out of host capacity.")
    );
    fixture.compare(&[("44", 0, ALONE), ("43", 0, PAGED)]);

    fixture.queue("44", 0);
    assert!(fixture.oci.get(&id).await.expect("there").fault.is_some(), "remembered");
    fixture.compare(&[("44", 0, ALONE)]);
}

#[tokio::test]
async fn a_failed_work_request_without_a_word_is_a_fault_too() {
    let fixture = Fixture::new(bare_site()).await;
    fixture.queue("40", 0);
    let id = fixture.oci.launch(&small("nocap-1", "t")).await.expect("accepted").id;
    fixture.recorder.take();
    fixture.queue("44", 0);
    fixture.recorder.queue(Response::new(200, "[]"));
    fixture.queue("42", 0);
    let lost = fixture.oci.get(&id).await.expect("there");
    assert_eq!(lost.fault.expect("it failed").kind, ErrorKind::Unavailable);
    fixture.compare(&[("44", 0, ALONE), ("43", 0, PAGED), ("42", 0, ALONE)]);
}

#[tokio::test]
async fn listings_follow_the_pages() {
    let fixture = Fixture::new(bare_site()).await;
    fixture.queue("07", 0);
    let all = fixture.oci.list(&InstanceFilter::default()).await.expect("a list");
    assert_eq!(
        all.len(),
        capture("07")["exchanges"][0]["response"]["body"].as_array().map_or(0, Vec::len)
    );
    fixture.compare(&[("07", 0, PAGED)]);

    let name = InstanceName::new("c1-compute-0001");
    fixture.queue("08", 0);
    fixture.recorder.queue(Response::new(200, "[]"));
    fixture.oci.list(&InstanceFilter::default().named(name)).await.expect("a list");
    let looser = Differences {
        ours: &["limit"],
        theirs: &["availabilityDomain", "limit", "sortBy", "sortOrder", "lifecycleState"],
    };
    let last = Differences { ours: &["limit", "page"], ..looser };
    fixture.compare(&[("08", 0, looser), ("08", 0, last)]);

    fixture.queue("09", 0);
    fixture.queue("10", 0);
    fixture.recorder.queue(Response::new(200, "[]"));
    let all = fixture.oci.list(&InstanceFilter::default()).await.expect("a list");
    assert_eq!(all.len(), 4);
    let paged = Differences { ours: &["limit"], theirs: &["limit"] };
    let last = Differences { ours: &["limit", "page"], theirs: &["limit", "page"] };
    let asked = fixture.compare(&[("09", 0, paged), ("10", 0, paged), ("10", 0, last)]);
    assert!(asked[1].target.ends_with("limit=1000&page=Mg%3D%3D"), "{}", asked[1].target);
}

#[tokio::test]
async fn one_instance_in_every_state() {
    let fixture = Fixture::new(bare_site()).await;
    let table = [
        ("11", InstanceState::Running),
        ("12", InstanceState::Running),
        ("36", InstanceState::Terminating),
        ("37", InstanceState::Terminated),
        ("44", InstanceState::Terminated),
    ];
    for (number, state) in table {
        fixture.queue(number, 0);
        let got = fixture.oci.get(&fixture::id_of(number, 0)).await.expect("there");
        assert_eq!(got.state, state, "{number}");
        fixture.compare(&[(number, 0, ALONE)]);
    }
    fixture.queue("39", 0);
    let error = fixture.oci.get(&fixture::id_of("39", 0)).await.expect_err("not there");
    assert_eq!(error.kind(), ErrorKind::NotFound);
    fixture.compare(&[("39", 0, ALONE)]);
}

#[tokio::test]
async fn an_address_takes_two_requests() {
    let fixture = Fixture::new(bare_site()).await;
    fixture.queue("13", 0);
    fixture.queue("14", 0);
    let id = fixture::id_of("11", 0);
    let addresses = fixture.oci.addresses(std::slice::from_ref(&id)).await.expect("a list");
    assert_eq!(addresses[&id].to_string(), "10.1.0.10");
    fixture.compare(&[("13", 0, PAGED), ("14", 0, ALONE)]);
}

#[tokio::test]
async fn power_and_images() {
    let fixture = Fixture::new(bare_site()).await;
    let id = fixture::id_of("15", 0);
    fixture.queue("15", 0);
    fixture.oci.reboot(&id, Reboot::Soft).await.expect("accepted");
    fixture.compare(&[("15", 0, ALONE)]);
    fixture.queue("16", 0);
    let error = fixture.oci.reboot(&id, Reboot::Hard).await.expect_err("not now");
    assert_eq!(error.kind(), ErrorKind::Conflict);
    fixture.compare(&[("16", 0, ALONE)]);
    fixture.queue("18", 0);
    fixture.oci.power(&id, Power::Stop).await.expect("accepted");
    fixture.queue("19", 0);
    fixture.oci.start(&id).await.expect("accepted");
    fixture.compare(&[("18", 0, ALONE), ("19", 0, ALONE)]);

    let mut site = bare_site();
    let template = serde_json::json!({"sourceDetails": {"bootVolumeSizeInGBs": 60}});
    site.template = Secret::new(template.as_object().expect("an object").clone());
    let fixture = Fixture::new(site).await;
    fixture.queue("20", 0);
    let image = ImageId::new("ocid1.image.oc1.phx.new");
    fixture.oci.rebuild(&id, &image).await.expect("accepted");
    fixture.compare(&[("20", 0, ALONE)]);
}

#[tokio::test]
async fn terminations() {
    let fixture = Fixture::new(bare_site()).await;
    let id = fixture::id_of("34", 0);
    fixture.queue("34", 0);
    fixture.oci.terminate(&id).await.expect("accepted");
    let said = ["preserveBootVolume", "preserveDataVolumesCreatedAtLaunch"];
    let said = Differences { ours: Box::leak(Box::new(said)), theirs: &[] };
    fixture.compare(&[("34", 0, said)]);
    fixture.queue("35", 1);
    fixture.oci.terminate(&fixture::id_of("35", 1)).await.expect("accepted");
    fixture.compare(&[("35", 1, Differences { ours: &[], theirs: &["if-match"] })]);
}

#[tokio::test]
async fn a_terminate_that_is_not_allowed_is_no_success() {
    let fixture = Fixture::new(bare_site()).await;
    let id = fixture::id_of("12", 0);
    // Their 404 for both: gone, and not allowed.
    fixture.queue("39", 0);
    fixture.queue("12", 0);
    let error = fixture.oci.terminate(&id).await.expect_err("it is still there");
    assert_eq!(error.kind(), ErrorKind::Forbidden);
    fixture.queue("39", 0);
    fixture.queue("37", 0);
    fixture.oci.terminate(&id).await.expect("gone already");
    fixture.queue("39", 0);
    fixture.queue("39", 0);
    fixture.recorder.queue(recorder::Response::new(200, "[]"));
    fixture.oci.terminate(&id).await.expect("forgotten already");
    fixture.recorder.take();
}

#[tokio::test]
async fn catalogs() {
    let fixture = Fixture::new(bare_site()).await;
    fixture.queue("23", 0);
    let images = fixture.oci.images(&ImageFilter::default()).await.expect("a list");
    let ours = ImageFilter { tags: Tags::from([("cluster", "c1")]), name: None };
    let tagged = fixture.oci.images(&ours).await.expect("the same list, not asked for again");
    assert!(!tagged.is_empty() && tagged.len() < images.len());
    let looser =
        Differences { ours: &["limit"], theirs: &["operatingSystem", "shape", "lifecycleState"] };
    fixture.compare(&[("23", 0, looser)]);

    fixture.queue("25", 0);
    for _zone in 0..3 {
        fixture.queue("24", 0);
    }
    let shapes = fixture.oci.shapes().await.expect("a list");
    assert_eq!(shapes.len(), 2);
    assert!(shapes.iter().all(|shape| shape.zones.len() == 3));
    let zoned =
        Differences { ours: &["limit", "availabilityDomain"], theirs: &["availabilityDomain"] };
    fixture.compare(&[("25", 0, ALONE), ("24", 0, PAGED), ("24", 0, zoned), ("24", 0, zoned)]);

    fixture.queue("26", 0);
    let domains = fixture.oci.fault_domains(&zone()).await.expect("a list");
    assert_eq!(domains[0].as_str(), "FAULT-DOMAIN-1");
    fixture.compare(&[("26", 0, ALONE)]);
}

#[tokio::test]
async fn limits_and_capacity() {
    let fixture = Fixture::new(bare_site()).await;
    fixture.queue("27", 0);
    let limits = fixture.oci.limits().await.expect("a list");
    assert_eq!((limits[0].name.as_str(), limits[0].most), ("standard-e5-core-count", Some(100)));
    let wider = Differences { ours: &[], theirs: &["scopeType", "availabilityDomain"] };
    fixture.compare(&[("27", 0, wider)]);

    fixture.queue("28", 0);
    let limit = fixture.oci.resource_availability(&limits[0]).await.expect("an answer");
    let expected = Limit { used: Some(12), most: Some(100), ..limits[0].clone() };
    assert_eq!(limit, expected);
    fixture.compare(&[("28", 0, ALONE)]);

    let shape = ShapeName::new("VM.Standard.E5.Flex.4.64");
    let wanted = [(shape, Some(FaultDomain::new("FAULT-DOMAIN-1")))];
    fixture.queue("31", 0);
    let capacity = fixture.oci.capacity(&zone(), &wanted).await.expect("a report");
    assert_eq!((&capacity[0].status, capacity[0].count), (&CapacityStatus::Available, Some(7)));
    fixture.compare(&[("31", 0, ALONE)]);
}

/// Every capture is named in a test above, or stands in the list of those that are not ours.
#[test]
fn no_capture_is_forgotten() {
    let tests = include_str!("mod.rs").split("fn zone()").nth(1).expect("the tests");
    let numbers = captured_files();
    assert_eq!(numbers.len(), 44);
    for number in numbers {
        let compared = tests.contains(&format!("\"{number}\""));
        let left = NOT_OURS.iter().any(|(left, why)| *left == number && !why.is_empty());
        assert!(compared != left, "{number} has to be either compared or left, with a reason");
    }
}

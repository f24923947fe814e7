//! What we send for each operation that was captured from Oracle's SDK equals the capture.

mod beyond;
mod compare;
mod listings;
mod recorder;
mod stage;

use cloud_core::{
    ErrorKind, FaultDomain, Flex, ImageFilter, ImageId, InstanceFilter, InstanceName, InstanceSpec,
    InstanceState, LaunchToken, Limit, Provider as _, Reboot, Secret, ShapeName, SubnetId, Tags,
    Zone,
};
use cloud_oci::{CapacityStatus, LaunchDetails, Power, Site};
use compare::Differences;
use recorder::Answer;
use stage::{ALONE, COMPARTMENT, Stage, capture, captured_files};

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
        ShapeName::new("VM.Standard.E5.Flex"),
        ImageId::new("ocid1.image.oc1.phx.img001"),
    );
    spec.flex = Some(Flex { ocpus: 1, memory_gb: Some(8) });
    spec.zone = Some(zone());
    spec.subnet = Some(SubnetId::new("ocid1.subnet.oc1.phx.aaaasub"));
    spec.token = LaunchToken::new(token).ok();
    spec
}

fn bare_site() -> Site {
    let mut site = Site::new(COMPARTMENT);
    site.hostname = false;
    site
}

/// The fields of the first capture that a spec cannot say, as an operator would write them.
fn full_site() -> Site {
    let template = capture("01")["exchanges"][0]["body"].clone();
    let mut template: LaunchDetails = serde_json::from_value(template).expect("a template");
    template.metadata = None;
    template.freeform_tags = None;
    template.display_name = None;
    let mut site = Site::new(COMPARTMENT);
    site.template = template;
    site
}

fn full_spec() -> InstanceSpec {
    let mut spec = small("c1-compute-0001", "unused");
    spec.flex = Some(Flex { ocpus: 4, memory_gb: Some(64) });
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
    let stage = Stage::new(full_site()).await;
    stage.queue("01", 0);
    let launched = stage.oci.launch(&full_spec()).await.expect("accepted");
    assert_eq!(launched.state, InstanceState::Pending);
    stage.compare(&[("01", 0, ALONE)]);
    let mut spec = full_spec();
    spec.token = LaunchToken::new("ji0lPLcJE52F0HCHZZ2TrckW4FKVqV").ok();
    stage.queue("02", 0);
    stage.oci.launch(&spec).await.expect("accepted");
    let asked = stage.compare(&[("02", 0, ALONE)]);
    assert_eq!(asked[0].headers["opc-retry-token"], "ji0lPLcJE52F0HCHZZ2TrckW4FKVqV");

    // Ours also switches the old metadata service off.
    let safer = Differences { ours: &["instanceOptions"], theirs: &[] };
    let stage = Stage::new(bare_site()).await;
    for capture in ["03", "04", "38"] {
        stage.queue(capture, 0);
        let result = stage.oci.launch(&small("c1-compute-0002", "c1-compute-0002-gen7")).await;
        let asked = stage.compare(&[(capture, 0, safer)]);
        assert_eq!(asked[0].headers["opc-retry-token"], "c1-compute-0002-gen7");
        match (capture, result) {
            ("38", Err(error)) => {
                assert_eq!(error.kind(), ErrorKind::Conflict);
                assert_eq!(error.code(), Some("InvalidatedRetryToken"));
            }
            (_, result) => drop(result.expect("accepted")),
        }
    }
}

#[tokio::test]
async fn a_launch_that_fails_later_is_explained_by_its_work_request() {
    let stage = Stage::new(bare_site()).await;
    let mut spec = small("nocap-1", "nocap-1-a");
    spec.flex = None;
    stage.queue("40", 0);
    let id = stage.oci.launch(&spec).await.expect("accepted").id;
    let more = ["instanceOptions", "createVnicDetails", "sourceDetails"];
    let more = Differences { ours: Box::leak(Box::new(more)), theirs: &[] };
    stage.compare(&[("40", 0, more)]);

    stage.queue("44", 0);
    stage.recorder.queue(Answer::new(200, "[]"));
    stage.queue("41", 0);
    let waiting = stage.oci.get(&id).await.expect("there");
    assert_eq!(waiting.fault, None, "the work request is still under way");
    stage.compare(&[("44", 0, ALONE), ("43", 0, PAGED), ("41", 0, ALONE)]);

    stage.queue("44", 0);
    stage.queue("43", 0);
    let lost = stage.oci.get(&id).await.expect("there");
    assert_eq!(lost.state, InstanceState::Terminated);
    let fault = lost.fault.expect("it says why");
    assert_eq!(
        (fault.kind, fault.message.as_str()),
        (ErrorKind::Capacity, "Out of host capacity.")
    );
    stage.compare(&[("44", 0, ALONE), ("43", 0, PAGED)]);

    stage.queue("44", 0);
    assert!(stage.oci.get(&id).await.expect("there").fault.is_some(), "remembered");
    stage.compare(&[("44", 0, ALONE)]);
}

#[tokio::test]
async fn a_failed_work_request_without_a_word_is_a_fault_too() {
    let stage = Stage::new(bare_site()).await;
    stage.queue("40", 0);
    let id = stage.oci.launch(&small("nocap-1", "t")).await.expect("accepted").id;
    stage.recorder.take();
    stage.queue("44", 0);
    stage.recorder.queue(Answer::new(200, "[]"));
    stage.queue("42", 0);
    let lost = stage.oci.get(&id).await.expect("there");
    assert_eq!(lost.fault.expect("it failed").kind, ErrorKind::Unavailable);
    stage.compare(&[("44", 0, ALONE), ("43", 0, PAGED), ("42", 0, ALONE)]);
}

#[tokio::test]
async fn listings_follow_the_pages() {
    let stage = Stage::new(bare_site()).await;
    stage.queue("07", 0);
    let all = stage.oci.list(&InstanceFilter::default()).await.expect("a list");
    assert_eq!(
        all.len(),
        capture("07")["exchanges"][0]["response"]["body"].as_array().map_or(0, Vec::len)
    );
    stage.compare(&[("07", 0, PAGED)]);

    let name = InstanceName::new("c1-compute-0001");
    stage.queue("08", 0);
    stage.recorder.queue(Answer::new(200, "[]"));
    stage.oci.list(&InstanceFilter::default().named(name)).await.expect("a list");
    let looser = Differences {
        ours: &["limit"],
        theirs: &["availabilityDomain", "limit", "sortBy", "sortOrder", "lifecycleState"],
    };
    let last = Differences { ours: &["limit", "page"], ..looser };
    stage.compare(&[("08", 0, looser), ("08", 0, last)]);

    stage.queue("09", 0);
    stage.queue("10", 0);
    stage.recorder.queue(Answer::new(200, "[]"));
    let all = stage.oci.list(&InstanceFilter::default()).await.expect("a list");
    assert_eq!(all.len(), 4);
    let paged = Differences { ours: &["limit"], theirs: &["limit"] };
    let last = Differences { ours: &["limit", "page"], theirs: &["limit", "page"] };
    let asked = stage.compare(&[("09", 0, paged), ("10", 0, paged), ("10", 0, last)]);
    assert!(asked[1].target.ends_with("limit=1000&page=Mg%3D%3D"), "{}", asked[1].target);
}

#[tokio::test]
async fn one_instance_in_every_state() {
    let stage = Stage::new(bare_site()).await;
    let table = [
        ("11", InstanceState::Running),
        ("12", InstanceState::Running),
        ("36", InstanceState::Terminating),
        ("37", InstanceState::Terminated),
        ("44", InstanceState::Terminated),
    ];
    for (number, state) in table {
        stage.queue(number, 0);
        let got = stage.oci.get(&stage::id_of(number, 0)).await.expect("there");
        assert_eq!(got.state, state, "{number}");
        stage.compare(&[(number, 0, ALONE)]);
    }
    stage.queue("39", 0);
    let error = stage.oci.get(&stage::id_of("39", 0)).await.expect_err("not there");
    assert_eq!(error.kind(), ErrorKind::NotFound);
    stage.compare(&[("39", 0, ALONE)]);
}

#[tokio::test]
async fn an_address_takes_two_requests() {
    let stage = Stage::new(bare_site()).await;
    stage.queue("13", 0);
    stage.queue("14", 0);
    let id = stage::id_of("11", 0);
    let addresses = stage.oci.addresses(std::slice::from_ref(&id)).await.expect("a list");
    assert_eq!(addresses[&id].to_string(), "10.1.0.10");
    stage.compare(&[("13", 0, PAGED), ("14", 0, ALONE)]);
}

#[tokio::test]
async fn power_and_images() {
    let stage = Stage::new(bare_site()).await;
    let id = stage::id_of("15", 0);
    stage.queue("15", 0);
    stage.oci.reboot(&id, Reboot::Soft).await.expect("accepted");
    stage.compare(&[("15", 0, ALONE)]);
    stage.queue("16", 0);
    let error = stage.oci.reboot(&id, Reboot::Hard).await.expect_err("not now");
    assert_eq!(error.kind(), ErrorKind::Conflict);
    stage.compare(&[("16", 0, ALONE)]);
    stage.queue("18", 0);
    stage.oci.power(&id, Power::Stop).await.expect("accepted");
    stage.queue("19", 0);
    stage.oci.start(&id).await.expect("accepted");
    stage.compare(&[("18", 0, ALONE), ("19", 0, ALONE)]);

    let mut site = bare_site();
    site.template.source_details = Some(cloud_oci::SourceDetails {
        boot_volume_size_in_gbs: Some(60),
        ..cloud_oci::SourceDetails::default()
    });
    let stage = Stage::new(site).await;
    stage.queue("20", 0);
    let image = ImageId::new("ocid1.image.oc1.phx.new");
    stage.oci.rebuild(&id, &image).await.expect("accepted");
    stage.compare(&[("20", 0, ALONE)]);
}

#[tokio::test]
async fn terminations() {
    let stage = Stage::new(bare_site()).await;
    let id = stage::id_of("34", 0);
    stage.queue("34", 0);
    stage.oci.terminate(&id).await.expect("accepted");
    let said = ["preserveBootVolume", "preserveDataVolumesCreatedAtLaunch"];
    let said = Differences { ours: Box::leak(Box::new(said)), theirs: &[] };
    stage.compare(&[("34", 0, said)]);
    stage.queue("35", 1);
    stage.oci.terminate(&stage::id_of("35", 1)).await.expect("accepted");
    stage.compare(&[("35", 1, Differences { ours: &[], theirs: &["if-match"] })]);
}

#[tokio::test]
async fn a_terminate_that_is_not_allowed_is_no_success() {
    let stage = Stage::new(bare_site()).await;
    let id = stage::id_of("12", 0);
    // Their 404 for both: gone, and not allowed.
    stage.queue("39", 0);
    stage.queue("12", 0);
    let error = stage.oci.terminate(&id).await.expect_err("it is still there");
    assert_eq!(error.kind(), ErrorKind::Forbidden);
    stage.queue("39", 0);
    stage.queue("37", 0);
    stage.oci.terminate(&id).await.expect("gone already");
    stage.queue("39", 0);
    stage.queue("39", 0);
    stage.recorder.queue(recorder::Answer::new(200, "[]"));
    stage.oci.terminate(&id).await.expect("forgotten already");
    stage.recorder.take();
}

#[tokio::test]
async fn catalogs() {
    let stage = Stage::new(bare_site()).await;
    stage.queue("23", 0);
    let images = stage.oci.images(&ImageFilter::default()).await.expect("a list");
    let ours = ImageFilter { tags: Tags::from([("cluster", "c1")]), name: None };
    let tagged = stage.oci.images(&ours).await.expect("the same list, not asked for again");
    assert!(!tagged.is_empty() && tagged.len() < images.len());
    let looser =
        Differences { ours: &["limit"], theirs: &["operatingSystem", "shape", "lifecycleState"] };
    stage.compare(&[("23", 0, looser)]);

    stage.queue("25", 0);
    for _zone in 0..3 {
        stage.queue("24", 0);
    }
    let shapes = stage.oci.shapes().await.expect("a list");
    assert_eq!(shapes.len(), 2);
    assert!(shapes.iter().all(|shape| shape.zones.len() == 3));
    let zoned =
        Differences { ours: &["limit", "availabilityDomain"], theirs: &["availabilityDomain"] };
    stage.compare(&[("25", 0, ALONE), ("24", 0, PAGED), ("24", 0, zoned), ("24", 0, zoned)]);

    stage.queue("26", 0);
    let domains = stage.oci.fault_domains(&zone()).await.expect("a list");
    assert_eq!(domains[0].as_str(), "FAULT-DOMAIN-1");
    stage.compare(&[("26", 0, ALONE)]);
}

#[tokio::test]
async fn limits_and_capacity() {
    let stage = Stage::new(bare_site()).await;
    stage.queue("27", 0);
    let limits = stage.oci.limits().await.expect("a list");
    assert_eq!((limits[0].name.as_str(), limits[0].most), ("standard-e5-core-count", Some(100)));
    let wider = Differences { ours: &[], theirs: &["scopeType", "availabilityDomain"] };
    stage.compare(&[("27", 0, wider)]);

    stage.queue("28", 0);
    let limit = stage.oci.resource_availability(&limits[0]).await.expect("an answer");
    let expected = Limit { used: Some(12), most: Some(100), ..limits[0].clone() };
    assert_eq!(limit, expected);
    stage.compare(&[("28", 0, ALONE)]);

    let shape = ShapeName::new("VM.Standard.E5.Flex");
    let flex = Flex { ocpus: 4, memory_gb: Some(64) };
    let wanted = [(shape, Some(flex), Some(FaultDomain::new("FAULT-DOMAIN-1")))];
    stage.queue("31", 0);
    let capacity = stage.oci.capacity(&zone(), &wanted).await.expect("a report");
    assert_eq!((&capacity[0].status, capacity[0].count), (&CapacityStatus::Available, Some(7)));
    stage.compare(&[("31", 0, ALONE)]);
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

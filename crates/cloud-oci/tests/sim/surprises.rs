//! What OCI does that one would not expect.

use crate::sim::fixture::{SimFixture, http, pacer, spec};
use cloud_core::conformance::Fixture as _;
use cloud_core::{
    ErrorKind, Goal, ImageId, InstanceFilter, InstanceId, InstanceState, Provider as _, Room,
    Secret, SubnetId, Tags, Zone, wait_until,
};
use cloud_oci::{CapacityStatus, Clock, Credentials, Oci, PrivateKey};
use cloud_sim::{CloudSettings, Fault, Rule};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

#[tokio::test]
async fn a_wrong_key_is_not_authenticated_and_is_not_tried_again() {
    let fixture = SimFixture::start(CloudSettings::quick()).await;
    let mut config = fixture.config();
    let user = fixture.cloud.credentials();
    let key_id = format!("{}/{}/{}", user.tenancy, user.user, user.fingerprint);
    let key = Arc::new(PrivateKey::generate().expect("a key"));
    config.credentials = Credentials::Key { key_id: Secret::new(key_id), key };
    let provider = fixture.provider_of(config, fixture.site()).await;
    let error = provider.list(&InstanceFilter::default()).await.expect_err("not our key");
    assert_eq!(error.kind(), ErrorKind::Unauthenticated);
    assert_eq!(fixture.cloud.admin().counts().values().sum::<u64>(), 1);
}

#[tokio::test]
async fn out_of_host_capacity_is_not_asked_for_again() {
    let fixture = SimFixture::start(CloudSettings::quick()).await;
    let provider = fixture.provider().await;
    fixture
        .cloud
        .admin()
        .add_fault(Rule::always("LaunchInstance", Fault::out_of_capacity()))
        .expect("it can happen");
    let error = provider.launch(&spec("vm-1")).await.expect_err("there is none");
    assert_eq!(error.kind(), ErrorKind::Capacity);
    assert_eq!(fixture.cloud.admin().counts()["LaunchInstance"], 1);
    assert!(error.request_id().is_some(), "{error}");
}

#[tokio::test]
async fn addresses_of_many_are_those_that_they_have() {
    let fixture = SimFixture::start(CloudSettings::quick()).await;
    let mut site = fixture.site();
    site.page_size = 1000;
    let provider = fixture.provider_of(fixture.config(), site).await;
    let mut ids = Vec::new();
    for n in 0..20 {
        ids.push(provider.launch(&spec(&format!("vm-{n}"))).await.expect("accepted").id);
    }
    let waited = wait_until(&provider, &ids, Goal::Running, fixture.poll()).await;
    assert!(waited.last_error.is_none(), "{:?}", waited.last_error);
    fixture.cloud.admin().clear_requests();
    let addresses = provider.addresses(&ids).await.expect("addresses");
    let has = |id: &InstanceId| fixture.cloud.admin().address(id.as_str()).expect("an address");
    for id in &ids {
        assert_eq!(addresses[id], std::net::IpAddr::from(has(id)));
    }
    assert_eq!(fixture.cloud.admin().counts().values().sum::<u64>(), 2);
}

#[tokio::test]
async fn a_host_name_is_taken_only_once_in_a_subnet() {
    let fixture = SimFixture::start(CloudSettings::quick()).await;
    let mut site = fixture.site();
    site.hostname = true;
    let provider = fixture.provider_of(fixture.config(), site).await;
    provider.launch(&spec("vm-1")).await.expect("accepted");
    let second = provider.launch(&spec("vm-1")).await.expect("accepted").id;
    fixture.cloud.admin().advance(Duration::from_mins(5)).expect("it can be");
    let second = provider.get(&second).await.expect("shown for a while");
    assert!(second.state.is_lost(), "{second:?}");
    let fault = second.fault.expect("the name is taken");
    assert_eq!(fault.kind, ErrorKind::Conflict, "{fault:?}");
    let error = provider.launch(&spec("vm_1")).await.expect_err("no host name");
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert_eq!(fixture.live_named("vm_1"), 0);
}

#[tokio::test]
async fn bare_metal_cannot_be_rebuilt_in_place() {
    let fixture = SimFixture::start(CloudSettings::quick()).await;
    let provider = fixture.provider().await;
    let mut metal = spec("bm-1");
    metal.shape = cloud_core::ShapeName::new("BM.HPC2.36");
    let launched = provider.launch(&metal).await.expect("accepted");
    let ids = [launched.id.clone()];
    wait_until(&provider, &ids, Goal::Running, fixture.poll()).await;
    let table = [
        ("InvalidParameter", "boot volume replacement needs a VM", ErrorKind::Unsupported),
        ("RelatedResourceNotAuthorizedOrNotFound", "no such image", ErrorKind::Invalid),
    ];
    for (code, message, expected) in table {
        let refuse = Rule::once("UpdateInstance", Fault::answer(400, code, message));
        fixture.cloud.admin().add_fault(refuse).expect("it can happen");
        let error = provider.rebuild(&launched.id, &fixture.other_image()).await;
        assert_eq!(error.expect_err("metal").kind(), expected, "{code}");
    }
}

#[tokio::test]
async fn subnets_zones_limits_and_capacity_can_be_asked_for() {
    let fixture = SimFixture::start(CloudSettings::quick()).await;
    let provider = fixture.provider().await;
    let zones = provider.zones().await.expect("a list");
    assert_eq!(zones.len(), 3);
    assert_eq!(provider.fault_domains(&zones[0]).await.expect("a list").len(), 3);
    let tagged = provider.subnets(None, &Tags::from([("cluster", "c1")])).await.expect("a list");
    assert_eq!(tagged.len(), 1);
    let other = provider.subnets(None, &Tags::from([("cluster", "c2")])).await.expect("a list");
    assert!(other.is_empty());
    let limits = provider.limits().await.expect("a list");
    let cores = limits.iter().find(|limit| limit.name == "standard-e5-core-count");
    provider.launch(&spec("vm-1")).await.expect("accepted");
    let cores = provider.resource_availability(cores.expect("listed")).await.expect("an answer");
    assert_eq!(cores.used, Some(1));
    let wanted = [(cloud_core::ShapeName::new("VM.Standard2.1"), None)];
    let capacity = provider.capacity(&Zone::new("Uocm:PHX-AD-1"), &wanted).await.expect("a report");
    assert_eq!(capacity[0].status, CapacityStatus::Available);
    let room = async |shape: &str| {
        let shape = cloud_core::ShapeName::new(shape);
        provider.room(&shape, &Zone::new("Uocm:PHX-AD-1")).await.expect("a report")
    };
    assert_eq!((room("VM.Standard2.1").await, room("VM.Unknown").await), (Room::Some, Room::None));
}

#[tokio::test]
async fn a_refused_launch_names_the_image_or_subnet_that_is_gone() {
    let fixture = SimFixture::start(CloudSettings::quick()).await;
    let provider = fixture.provider().await;
    let gone = |what: &str| format!("{what} is gone, or the caller may not see it");
    let unnamed = Fault::answer(404, "NotAuthorizedOrNotFound", "Authorization failed.");
    let image = "ocid1.image.oc1.phx.deleted";
    let subnet = "ocid1.subnet.oc1.phx.deleted";
    let refused = |spec| {
        fixture.cloud.admin().add_fault(Rule::once("LaunchInstance", unnamed.clone())).unwrap();
        let provider = &provider;
        async move { provider.launch(&spec).await.expect_err("refused") }
    };
    let mut without_image = spec("vm-1");
    without_image.image = ImageId::new(image);
    let error = provider.launch(&without_image).await.expect_err("no such image");
    assert!(error.to_string().contains(&gone(&format!("image {image}"))), "{error}");
    let error = refused(without_image).await;
    assert_eq!(error.kind(), ErrorKind::Forbidden);
    assert!(error.to_string().contains(&gone(&format!("image {image}"))), "{error}");
    let mut without_subnet = spec("vm-1");
    without_subnet.subnet = Some(SubnetId::new(subnet));
    let error = refused(without_subnet).await;
    assert!(error.to_string().contains(&gone(&format!("subnet {subnet}"))), "{error}");
    let error = refused(spec("vm-1")).await;
    assert!(error.to_string().contains(") and the policies of the caller"), "{error}");
    let counts = fixture.cloud.admin().counts();
    assert_eq!(counts.get("GetImage"), Some(&2), "each is asked for once");
    assert_eq!(counts.get("GetSubnet"), Some(&2));
}

#[tokio::test]
async fn nothing_is_sent_before_it_is_asked_for() {
    let fixture = SimFixture::start(CloudSettings::quick()).await;
    let clock = Clock::new(SystemTime::now);
    let provider = Oci::connect(fixture.config(), fixture.site(), http(), pacer(), clock).await;
    assert!(provider.is_ok());
    assert_eq!(fixture.cloud.admin().counts().values().sum::<u64>(), 0);
}

#[tokio::test]
async fn a_launch_that_failed_before_it_was_removed_still_says_why() {
    let fixture = SimFixture::start(CloudSettings::quick()).await;
    let provider = fixture.provider().await;
    let message = "Out of host capacity.".to_owned();
    let fail = Fault::FailLater { code: "InternalError".to_owned(), message };
    fixture.cloud.admin().add_fault(Rule::once("LaunchInstance", fail)).expect("it can happen");
    let id = provider.launch(&spec("vm-1")).await.expect("accepted").id;
    fixture.cloud.admin().advance(std::time::Duration::from_mins(5)).expect("it can be");
    provider.terminate(&id).await.expect("it is gone already");
    let fault = provider.get(&id).await.expect("shown for a while").fault;
    assert_eq!(fault.map(|fault| fault.kind), Some(ErrorKind::Capacity));
}

/// A thousand launches that fail together kept the look at all others waiting for as many answers.
#[tokio::test]
async fn a_listing_looks_up_a_bounded_number_of_failed_launches() {
    let fixture = SimFixture::start(CloudSettings::quick()).await;
    let provider = fixture.provider().await;
    let message = "Out of host capacity.".to_owned();
    let fail = Fault::FailLater { code: "InternalError".to_owned(), message };
    fixture.cloud.admin().add_fault(Rule::always("LaunchInstance", fail)).expect("it can happen");
    for number in 0..60 {
        provider.launch(&spec(&format!("vm-{number}"))).await.expect("accepted");
    }
    fixture.cloud.admin().advance(Duration::from_mins(5)).expect("it can be");
    for (known, coming) in [(50, 10), (60, 0)] {
        let all = provider.list(&InstanceFilter::default()).await.expect("a listing");
        let is_capacity = |fault: &cloud_core::Fault| fault.kind == ErrorKind::Capacity;
        let told = all.iter().filter(|it| it.fault.as_ref().is_some_and(is_capacity)).count();
        let pending = all.iter().filter(|it| it.state == InstanceState::Pending).count();
        assert_eq!((told, pending), (known, coming), "the rest is for the next look");
    }
}

/// Others are up, and wait for Slurm to be told.
#[tokio::test]
async fn a_listing_waits_only_so_long_for_work_requests() {
    let fixture = SimFixture::start(CloudSettings::quick()).await;
    let mut site = fixture.site();
    site.longest_explanation = Duration::from_secs(1);
    let hasty = fixture.provider_of(fixture.config(), site).await;
    let well = hasty.launch(&spec("vm-1")).await.expect("accepted").id;
    let admin = fixture.cloud.admin();
    let fail = Fault::FailLater { code: "InternalError".to_owned(), message: "no".to_owned() };
    admin.add_fault(Rule::once("LaunchInstance", fail)).expect("it can happen");
    let lost = hasty.launch(&spec("vm-2")).await.expect("accepted").id;
    admin.advance(Duration::from_mins(5)).expect("it can be");
    let slow = Rule::once("ListWorkRequestErrors", Fault::Delay { millis: 600_000 });
    admin.add_fault(slow).expect("it can happen");
    let everything = InstanceFilter::default();
    let look = hasty.list(&everything);
    let all = tokio::time::timeout(Duration::from_mins(1), look).await.expect("back in time");
    let shown = |all: &[cloud_core::Instance], id| {
        let found = all.iter().find(|it| it.id == id).expect("listed");
        (found.state.clone(), found.fault.as_ref().map(|fault| fault.kind))
    };
    let all = all.expect("a listing");
    assert_eq!(shown(&all, well), (InstanceState::Running, None));
    assert_eq!(shown(&all, lost.clone()), (InstanceState::Pending, None), "asked again next time");
    let begin = std::time::Instant::now();
    let told = loop {
        let told = shown(&hasty.list(&everything).await.expect("a listing"), lost.clone());
        if told.1.is_some() || begin.elapsed() > Duration::from_mins(2) {
            break told;
        }
    };
    assert_eq!(told, (InstanceState::Terminated, Some(ErrorKind::Unavailable)));
}

#[tokio::test]
async fn a_listing_looks_up_few_launches_of_other_processes() {
    let frozen = CloudSettings { speed: 0.0, ..CloudSettings::quick() };
    let fixture = SimFixture::start(frozen).await;
    let (ours, other) = (fixture.provider().await, fixture.provider().await);
    let message = "Out of host capacity.".to_owned();
    let fail = Fault::FailLater { code: "InternalError".to_owned(), message };
    fixture.cloud.admin().add_fault(Rule::always("LaunchInstance", fail)).expect("it can happen");
    for number in 0..40 {
        other.launch(&spec(&format!("vm-{number}"))).await.expect("accepted");
    }
    let look = async || ours.list(&InstanceFilter::default()).await.expect("a listing");
    look().await;
    fixture.cloud.admin().advance(Duration::from_mins(5)).expect("it can be");
    for (known, coming) in [(16, 24), (32, 8), (40, 0)] {
        let all = look().await;
        let told = all.iter().filter(|it| it.fault.is_some()).count();
        let pending = all.iter().filter(|it| it.state == InstanceState::Pending).count();
        assert_eq!((told, pending), (known, coming), "the rest is for the next look");
    }
    assert_eq!(fixture.cloud.admin().counts().get("ListWorkRequests").copied(), Some(40));
}

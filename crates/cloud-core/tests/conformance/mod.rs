//! The cloud in memory passes the suite, and no case passes a cloud that is wrong.

mod broken;
mod fixture;
mod outsider;

use broken::{Broken, Bug};
use cloud_core::conformance::{CASES, Case, Verdict};
use cloud_core::memory::{MemoryCloud, MemoryCloudSettings};
use fixture::{MemoryFixture, bare, like_nova, like_oci};
use std::collections::BTreeSet;

async fn run(case: &Case, settings: MemoryCloudSettings, bug: Bug) -> Verdict {
    let cloud = MemoryCloud::new(settings);
    let fixture = MemoryFixture(cloud.clone());
    case.run(&Broken::new(cloud, bug), &fixture).await
}

async fn all_pass(settings: impl Fn(u64) -> MemoryCloudSettings, skipped: &[&str]) {
    for seed in 0..20 {
        for case in CASES {
            let cloud = MemoryCloud::new(settings(seed));
            let verdict = case.run(&cloud, &MemoryFixture(cloud.clone())).await;
            let left: Vec<_> = cloud.instances();
            assert!(left.iter().all(|instance| instance.state.is_leaving()), "{left:?}");
            match &verdict {
                Verdict::Passed => assert!(!skipped.contains(&case.name), "{}", case.name),
                Verdict::Skipped(why) => {
                    assert!(skipped.contains(&case.name), "{} skipped: {why}", case.name);
                }
                Verdict::Failed(why) => panic!("{} with seed {seed}: {why}", case.name),
            }
            if seed == 0 {
                println!("{}: {verdict:?}", case.name);
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_cloud_like_oci_passes() {
    all_pass(like_oci, &[]).await;
}

#[tokio::test(start_paused = true)]
async fn a_cloud_like_nova_passes() {
    all_pass(like_nova, &["idempotent_launch"]).await;
}

#[tokio::test(start_paused = true)]
async fn a_cloud_without_any_capability_passes() {
    let skipped = [
        "catalog_knows_what_can_be_launched",
        "idempotent_launch",
        "rebuild_keeps_identity_and_changes_image",
        "snapshot_makes_an_image",
        "start_after_stop",
    ];
    all_pass(bare, &skipped).await;
}

/// Which case has to see which bug.
const WRONG: &[(&str, &[Bug])] = &[
    (
        "launch_list_get_terminate",
        &[
            Bug::ListIsEmpty,
            Bug::GetShowsAnOldState,
            Bug::LaunchForgetsTags,
            Bug::TerminateDoesNothing,
        ],
    ),
    ("many_launches_have_their_own_results", &[Bug::LaunchManyMixesUp]),
    ("terminate_twice", &[Bug::TerminateOfTheGoneFails, Bug::TerminateWhileGoingFails]),
    ("not_found", &[Bug::GetInventsInstances, Bug::RebootTerminates, Bug::TerminateOfUnknownFails]),
    ("address_wait", &[Bug::AddressesNeverCome, Bug::AddressesAreAllTheSame]),
    (
        "rebuild_keeps_identity_and_changes_image",
        &[
            Bug::RebuildIgnoresImage,
            Bug::RebuildMakesAnother,
            Bug::RebuildLosesTags,
            Bug::RebuildChangesAddress,
        ],
    ),
    ("reboot_keeps_identity", &[Bug::RebootDoesNothing, Bug::RebootTerminates]),
    ("start_after_stop", &[Bug::StartDoesNothing, Bug::StoppedCalledRunning]),
    ("snapshot_makes_an_image", &[Bug::SnapshotNeverReady]),
    (
        "catalog_knows_what_can_be_launched",
        &[Bug::ShapesAreEmpty, Bug::ImagesOfAnyName, Bug::ImageNameFindsNothing],
    ),
    (
        "missing_capabilities_are_typed",
        &[
            Bug::CapabilitiesDenied,
            Bug::UnsupportedCalledInvalid,
            Bug::RebuildCalledInvalid,
            Bug::PreemptibleSilentlyIgnored,
            Bug::PreemptibleRefused,
        ],
    ),
    ("idempotent_launch", &[Bug::LaunchIgnoresToken, Bug::TokensAllTheSame]),
    ("tags_isolate_clusters", &[Bug::ListIgnoresTags]),
    ("names_match_exactly", &[Bug::NamesArePrefixes]),
    ("paging_beyond_one_page", &[Bug::ListIsTheFirstPage, Bug::ListRepeatsPages]),
    ("quota", &[Bug::QuotaCalledForbidden, Bug::RefusedLaunchLeavesAnInstance]),
    ("capacity_at_once", &[Bug::CapacityCalledUnavailable, Bug::RefusedLaunchLeavesAnInstance]),
    ("capacity_later", &[Bug::FaultForgotten, Bug::FaultOfWrongKind]),
    ("throttle", &[Bug::ThrottleCalledProtocol, Bug::ThrottledLaunchIsDone]),
    (
        "lost_answer_of_a_launch",
        &[Bug::LostAnswerCalledUnavailable, Bug::LostLaunchRepeatedBlindly],
    ),
    (
        "lost_answer_of_a_terminate",
        &[Bug::LostAnswerCalledUnavailable, Bug::TerminateAfterLostAnswerFails],
    ),
];

/// The cloud that shows the bug: a missing capability has to be missing.
fn settings_for(bug: Bug) -> MemoryCloudSettings {
    let missing =
        [Bug::UnsupportedCalledInvalid, Bug::RebuildCalledInvalid, Bug::PreemptibleSilentlyIgnored];
    if missing.contains(&bug) { bare(1) } else { like_oci(1) }
}

#[tokio::test(start_paused = true)]
async fn every_case_fails_on_a_cloud_that_is_wrong_there() {
    let covered: BTreeSet<&str> = WRONG.iter().map(|(case, _)| *case).collect();
    for case in CASES {
        assert!(covered.contains(case.name), "no bug for {}", case.name);
    }
    for (name, bugs) in WRONG {
        let Some(case) = CASES.iter().find(|case| case.name == *name) else {
            panic!("no case {name}");
        };
        for bug in *bugs {
            match run(case, settings_for(*bug), *bug).await {
                Verdict::Failed(why) => println!("{name} fails on {bug:?}: {why}"),
                other @ (Verdict::Passed | Verdict::Skipped(_)) => {
                    panic!("{name} on {bug:?}: {other:?}")
                }
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_wrapping_alone_breaks_nothing() {
    for case in CASES {
        assert_eq!(run(case, like_oci(1), Bug::None).await, Verdict::Passed, "{}", case.name);
    }
}

#[tokio::test(start_paused = true)]
async fn each_run_has_a_cluster_of_its_own() {
    for case in CASES {
        let cloud = MemoryCloud::new(like_oci(1));
        case.run(&cloud, &MemoryFixture(cloud.clone())).await;
        for instance in cloud.instances() {
            let cluster = instance.tags.get("cluster");
            assert!(cluster.is_some_and(|cluster| cluster.ends_with("-run7")), "{cluster:?}");
        }
    }
}

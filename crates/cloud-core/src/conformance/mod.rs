//! What holds for every cloud, as code.
//!
//! A cloud crate brings a [`Fixture`], which knows what can be launched there and can set
//! conditions (no capacity, a lost response), and makes one call:
//!
//! ```
//! # tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap().block_on(async {
//! use cloud_core::conformance::{self, Fixture};
//! use cloud_core::memory::{MemoryCloud, MemoryCloudSettings};
//! use cloud_core::{ImageId, InstanceName, InstanceSpec, ShapeName};
//!
//! struct Ours;
//!
//! impl Fixture for Ours {
//!     fn spec(&self, name: &str) -> InstanceSpec {
//!         let (shape, image) = (ShapeName::new("small"), ImageId::new("image-1"));
//!         InstanceSpec::new(InstanceName::new(name), shape, image)
//!     }
//!
//!     fn other_image(&self) -> ImageId {
//!         ImageId::new("image-2")
//!     }
//! }
//!
//! let cloud = MemoryCloud::new(MemoryCloudSettings::default());
//! let summary = conformance::run(&cloud, &Ours).await;
//! println!("{summary}"); // which cases passed, and why others were skipped
//! assert!(summary.failed.is_empty(), "{summary}");
//! # });
//! ```
//!
//! What a cloud does not claim ([`Description::capabilities`](crate::Description::capabilities)) and what the fixture cannot
//! set is skipped and listed.
//!
//! A case uses a `cluster` tag of its own and terminates what it finds there when it ends, so that
//! the suite can be run against a real cloud that is used by others.

mod check;
mod identity;
mod lifecycle;
mod refusal;

use check::{CaseResult, Context, Stop};
use identity::{
    idempotent_launch, names_match_exactly, paging_beyond_one_page, tags_isolate_clusters,
};
use lifecycle::{
    address_wait, catalog_knows_what_can_be_launched, launch_list_get_terminate,
    many_launches_have_their_own_results, missing_capabilities_are_typed, not_found,
    reboot_keeps_identity, rebuild_keeps_identity_and_changes_image, snapshot_makes_an_image,
    start_after_stop, terminate_twice,
};
use refusal::{
    capacity_at_once, capacity_later, lost_answer_of_a_launch, lost_answer_of_a_terminate, quota,
    throttle,
};

use crate::{ApiOperation, ImageId, InstanceId, InstanceSpec, Poll, Provider};
use async_trait::async_trait;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

/// What the suite knows of a cloud, and can do to it.
#[async_trait]
pub trait Fixture: Send + Sync {
    /// A launch that succeeds, with this name. The suite adds tags and a token.
    fn spec(&self, name: &str) -> InstanceSpec;

    /// An image other than that of [`spec`](Self::spec) that an instance can be rebuilt with, for clouds that can.
    fn other_image(&self) -> ImageId {
        ImageId::new("another-image")
    }

    /// A word that is new for each run, for clouds that remember launch tokens for a day or that
    /// more than one run may use at a time; it becomes part of the `cluster` tag.
    fn run(&self) -> String {
        String::new()
    }

    /// An id of the cloud's form that no instance has.
    fn absent(&self) -> InstanceId {
        InstanceId::new("00000000-0000-4000-8000-000000000000")
    }

    /// How often to look and how long to wait for anything.
    fn poll(&self) -> Poll {
        Poll::until(Duration::from_mins(10))
    }

    /// How many instances make more than one page, if that is few enough to try.
    fn more_than_a_page(&self) -> Option<usize> {
        None
    }

    /// How often an instance has booted so far, where the fixture can know.
    fn boots(&self, id: &InstanceId) -> Option<usize> {
        let _ = id;
        None
    }

    /// Sets a condition, such as a fault of the next request; false if that cannot be done here, and the case is skipped.
    async fn set(&self, condition: Condition) -> bool {
        condition == Condition::Normal
    }
}

/// What a case needs the cloud to be like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition {
    /// As always; ends every other scene.
    Normal,
    /// A launch is refused for want of capacity.
    NoCapacity,
    /// A launch is accepted and fails later for want of capacity.
    NoCapacityLater,
    /// A launch is refused because of a limit.
    NoQuota,
    /// Too many requests: the next is refused.
    Throttled,
    /// The next request of this operation is carried out, and its answer is lost.
    ResponseLost(ApiOperation),
}

/// How a case ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The cloud is as it should be.
    Passed,
    /// It could not be tried, for this reason.
    Skipped(String),
    /// The cloud is not as it should be, for this reason.
    Failed(String),
}

type CaseFuture<'a> = Pin<Box<dyn Future<Output = CaseResult> + Send + 'a>>;

/// One case, by name.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// The name of its function.
    pub name: &'static str,
    run: for<'a> fn(&'a Context<'a>) -> CaseFuture<'a>,
}

impl Case {
    /// Runs the case under normal conditions, and terminates what it leaves behind.
    pub async fn run(&self, provider: &dyn Provider, fixture: &dyn Fixture) -> Verdict {
        fixture.set(Condition::Normal).await;
        let result = (self.run)(&Context::new(provider, fixture, self.name)).await;
        fixture.set(Condition::Normal).await;
        if matches!(result, Err(Stop::Fail(_))) {
            // It may have stopped right after a launch that no listing shows yet.
            tokio::time::sleep(fixture.poll().longest).await;
        }
        let cleaned = check::clean(provider, fixture, self.name).await;
        match result.and(cleaned) {
            Ok(()) => Verdict::Passed,
            Err(Stop::Skip(why)) => Verdict::Skipped(why),
            Err(Stop::Fail(why)) => Verdict::Failed(why),
        }
    }
}

/// What became of all cases.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Summary {
    /// The cases that the cloud passes.
    pub passed: Vec<&'static str>,
    /// The cases that could not be tried, each with the reason: a capability that is not claimed, or a condition that
    /// cannot be set.
    pub skipped: Vec<(&'static str, String)>,
    /// The cases that the cloud does not pass, each with the reason.
    pub failed: Vec<(&'static str, String)>,
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { passed, skipped, failed } = self;
        let (all, count) = (CASES.len(), [passed.len(), skipped.len(), failed.len()]);
        let [passing, skipping, failing] = count;
        write!(f, "{passing} passed + {skipping} skipped + {failing} failed of {all} cases")?;
        for case in passed {
            write!(f, "\n  passed  {case}")?;
        }
        for (case, why) in skipped {
            write!(f, "\n  skipped {case}: {why}")?;
        }
        for (case, why) in failed {
            write!(f, "\n  failed  {case}: {why}")?;
        }
        Ok(())
    }
}

/// Runs all cases, one after the other.
pub async fn run(provider: &dyn Provider, fixture: &dyn Fixture) -> Summary {
    let mut summary = Summary::default();
    for case in CASES {
        match case.run(provider, fixture).await {
            Verdict::Passed => summary.passed.push(case.name),
            Verdict::Skipped(why) => summary.skipped.push((case.name, why)),
            Verdict::Failed(why) => summary.failed.push((case.name, why)),
        }
    }
    summary
}

macro_rules! cases {
    ($($name:ident),+ $(,)?) => {
        /// Every case.
        pub const CASES: &[Case] = &[$(Case {
            name: stringify!($name),
            run: |context| Box::pin($name(context)),
        }),+];
    };
}

cases![
    launch_list_get_terminate,
    many_launches_have_their_own_results,
    terminate_twice,
    not_found,
    address_wait,
    rebuild_keeps_identity_and_changes_image,
    reboot_keeps_identity,
    start_after_stop,
    snapshot_makes_an_image,
    catalog_knows_what_can_be_launched,
    missing_capabilities_are_typed,
    idempotent_launch,
    tags_isolate_clusters,
    names_match_exactly,
    paging_beyond_one_page,
    quota,
    capacity_at_once,
    capacity_later,
    throttle,
    lost_answer_of_a_launch,
    lost_answer_of_a_terminate,
];

//! Bugs planted on purpose: each has to be caught by the invariant that it breaks.

use crate::simulation::env::{Fault, Wrap};
use crate::simulation::slips::{Slip, Slipping};
use crate::simulation::{honest, simulate};
use async_trait::async_trait;
use cloud_core::memory::MemoryCloud;
use cloud_core::{
    ApiOperation, Description, Error, ErrorKind, ImageId, Instance, InstanceFilter, InstanceId,
    InstanceSpec, Provider, Reboot, Result, Tags,
};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

/// The seeds that are tried; the bug has to show in one of them.
const SEEDS: u64 = 2_000;

/// What a cloud does wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lie {
    /// Shows no instance, and forgets launch tokens.
    ShowsNothing,
    /// Shows instances of others as ours.
    ShowsOthers,
    /// Says that instances go, and keeps them.
    KeepsAll,
    /// Says that instances were launched, and launches none.
    LaunchesNone,
    /// Has used up every token before.
    UsedUp,
    /// Knows an instance by its id only if listings show it.
    OnlyLists,
}

#[derive(Debug)]
struct Liar(MemoryCloud, Lie);

#[async_trait]
impl Provider for Liar {
    fn describe(&self) -> Description {
        self.0.describe()
    }

    async fn list(&self, filter: &InstanceFilter) -> Result<Vec<Instance>> {
        match self.1 {
            Lie::ShowsNothing => Ok(Vec::new()),
            Lie::ShowsOthers => {
                let mut all = self.0.list(&InstanceFilter::default()).await?;
                for instance in &mut all {
                    let node = instance.name.as_str().to_owned();
                    instance.tags =
                        Tags::from([("cluster", "sim"), ("type", "compute")]).with("node", node);
                }
                Ok(all)
            }
            Lie::KeepsAll | Lie::LaunchesNone | Lie::UsedUp | Lie::OnlyLists => {
                self.0.list(filter).await
            }
        }
    }

    async fn get(&self, id: &InstanceId) -> Result<Instance> {
        let missing = || Error::new(ErrorKind::NotFound, ApiOperation::Get);
        match self.1 {
            Lie::ShowsNothing => Err(missing()),
            Lie::OnlyLists => {
                let all = self.0.list(&InstanceFilter::default()).await?;
                all.into_iter().find(|one| one.id == *id).ok_or_else(missing)
            }
            Lie::ShowsOthers | Lie::KeepsAll | Lie::LaunchesNone | Lie::UsedUp => {
                self.0.get(id).await
            }
        }
    }

    async fn launch(&self, spec: &InstanceSpec) -> Result<Instance> {
        match self.1 {
            Lie::ShowsNothing => {
                let mut spec = spec.clone();
                spec.token = None;
                self.0.launch(&spec).await
            }
            Lie::LaunchesNone => {
                tokio::time::sleep(std::time::Duration::from_millis(50)).await;
                Ok(Instance::launched(InstanceId::new("nowhere"), spec))
            }
            Lie::UsedUp => {
                tokio::time::sleep(std::time::Duration::from_millis(50)).await;
                Err(Error::new(ErrorKind::TokenUsedUp, ApiOperation::Launch))
            }
            Lie::ShowsOthers | Lie::KeepsAll | Lie::OnlyLists => self.0.launch(spec).await,
        }
    }

    async fn terminate(&self, id: &InstanceId) -> Result<()> {
        match self.1 {
            Lie::KeepsAll => Ok(()),
            Lie::ShowsNothing
            | Lie::ShowsOthers
            | Lie::LaunchesNone
            | Lie::UsedUp
            | Lie::OnlyLists => self.0.terminate(id).await,
        }
    }

    async fn rebuild(&self, id: &InstanceId, image: &ImageId) -> Result<()> {
        self.0.rebuild(id, image).await
    }

    async fn reboot(&self, id: &InstanceId, how: Reboot) -> Result<()> {
        self.0.reboot(id, how).await
    }

    async fn stop(&self, id: &InstanceId) -> Result<()> {
        self.0.stop(id).await
    }

    async fn start(&self, id: &InstanceId) -> Result<()> {
        self.0.start(id).await
    }

    async fn addresses(&self, ids: &[InstanceId]) -> Result<BTreeMap<InstanceId, IpAddr>> {
        self.0.addresses(ids).await
    }
}

/// Programs with a state that has this bug.
macro_rules! slipping {
    ($slip:expr) => {
        Wrap { state: |state, cloud| Box::new(Slipping::new(state, cloud, $slip)), ..honest() }
    };
}

/// The first seed of which the invariant says so, by the word that its errors begin with.
fn catches(wrap: &Wrap, invariant: &str) {
    let mut others = Vec::new();
    for seed in 0..SEEDS {
        match simulate(seed, wrap) {
            Err(error) if error.split(':').next() == Some(invariant) => {
                println!("caught by seed {seed}: {error}");
                return;
            }
            Err(error) => others.push(error),
            Ok(()) => {}
        }
    }
    panic!("not caught as `{invariant}`, but as {others:?}");
}

#[test]
fn a_start_that_does_not_look_is_caught() {
    let cloud = |cloud| -> Arc<dyn Provider> { Arc::new(Liar(cloud, Lie::ShowsNothing)) };
    catches(&Wrap { cloud, ..honest() }, "two live");
}

#[test]
fn a_lock_that_does_not_lock_is_caught() {
    catches(&slipping!(Slip::NeverLocked), "two live");
}

#[test]
fn a_launch_that_is_not_written_down_is_caught() {
    catches(&slipping!(Slip::NeverKept), "two live");
}

#[test]
fn a_reconcile_that_ends_at_first_sight_is_caught() {
    catches(&slipping!(Slip::AllSeen), "hasty");
}

#[test]
fn a_stop_that_does_not_ask_slurm_is_caught() {
    catches(&Wrap { fault: Some(Fault::StopsAll), ..honest() }, "disturbed");
}

#[test]
fn a_give_back_of_a_node_that_came_up_is_caught() {
    catches(&Wrap { fault: Some(Fault::Outdated), ..honest() }, "disturbed");
}

#[test]
fn tags_that_are_not_checked_are_caught() {
    catches(&Wrap { fault: Some(Fault::OwnsAll), ..honest() }, "foreign");
}

#[test]
fn a_touched_instance_of_others_is_caught() {
    let cloud = |cloud| -> Arc<dyn Provider> { Arc::new(Liar(cloud, Lie::ShowsOthers)) };
    catches(&Wrap { cloud, ..honest() }, "foreign");
}

#[test]
fn an_instance_that_nobody_ends_is_caught() {
    catches(&Wrap { fault: Some(Fault::StopsNone), ..honest() }, "leak");
}

#[test]
fn a_termination_that_has_not_happened_is_caught() {
    let cloud = |cloud| -> Arc<dyn Provider> { Arc::new(Liar(cloud, Lie::KeepsAll)) };
    catches(&Wrap { cloud, ..honest() }, "pretended");
}

#[test]
fn a_failure_that_is_reported_as_done_is_caught() {
    catches(&Wrap { fault: Some(Fault::Pretends), ..honest() }, "pretended");
}

#[test]
fn a_lock_that_the_other_controller_does_not_see_is_caught() {
    catches(&slipping!(Slip::LocksApart), "two live");
}

#[test]
fn a_cool_down_of_a_clock_that_was_ahead_is_caught() {
    catches(&slipping!(Slip::TrustsClocks), "job");
}

#[test]
fn an_instance_that_is_only_looked_for_in_listings_is_caught() {
    let cloud = |cloud| -> Arc<dyn Provider> { Arc::new(Liar(cloud, Lie::OnlyLists)) };
    catches(&Wrap { cloud, ..honest() }, "two live");
}

#[test]
fn a_warm_machine_with_an_old_image_is_caught() {
    catches(&Wrap { fault: Some(Fault::KeepsImage), ..honest() }, "outdated");
}

#[test]
fn a_stop_of_what_is_not_to_be_kept_is_caught() {
    catches(&Wrap { fault: Some(Fault::KeepsAll), ..honest() }, "kept");
}

#[test]
fn a_node_that_needs_a_human_is_caught() {
    catches(&Wrap { fault: Some(Fault::Idle), ..honest() }, "unusable");
}

#[test]
fn a_start_that_tries_one_token_after_another_is_caught() {
    let cloud = |cloud| -> Arc<dyn Provider> { Arc::new(Liar(cloud, Lie::UsedUp)) };
    catches(&Wrap { cloud, ..honest() }, "slow");
}

#[test]
fn a_job_that_never_runs_is_caught() {
    let cloud = |cloud| -> Arc<dyn Provider> { Arc::new(Liar(cloud, Lie::LaunchesNone)) };
    catches(&Wrap { cloud, ..honest() }, "job");
}

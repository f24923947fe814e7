//! What the cases have in common.

use super::{Condition, Fixture};
use crate::clock::from_now;
use crate::{
    Error, ErrorKind, Goal, Instance, InstanceFilter, InstanceId, InstanceName, InstanceSpec,
    InstanceState, LaunchToken, Provider, Result, Tags, WaitOutcome, wait_until,
};
use std::error::Error as _;
use std::fmt;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// How a case's function ends.
pub(super) type CaseResult<T = ()> = std::result::Result<T, Stop>;

/// Why a case ended early.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// It cannot be tried here.
    Skip(String),
    /// It went wrong.
    Fail(String),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        let mut text = error.to_string();
        let mut cause = error.source();
        while let Some(next) = cause {
            text = format!("{text}: {next}");
            cause = next.source();
        }
        Self::Fail(text)
    }
}

pub(super) fn ensure(holds: bool, otherwise: impl fmt::Display) -> CaseResult {
    if holds { Ok(()) } else { Err(Stop::Fail(otherwise.to_string())) }
}

pub(super) fn skip<T>(why: impl fmt::Display) -> CaseResult<T> {
    Err(Stop::Skip(why.to_string()))
}

/// The result has to be an error of this kind.
pub(super) fn ensure_kind<T: fmt::Debug>(result: Result<T>, kind: ErrorKind) -> CaseResult<Error> {
    match result {
        Err(error) if error.kind() == kind => Ok(error),
        Err(error) => Err(Stop::Fail(format!("{error}: should be of kind {kind:?}"))),
        Ok(value) => Err(Stop::Fail(format!("{value:?}: should be an error of kind {kind:?}"))),
    }
}

/// What a case works with: a cluster of its own on the fixture's cloud.
pub(super) struct Context<'a> {
    pub(super) provider: &'a dyn Provider,
    pub(super) fixture: &'a dyn Fixture,
    case: &'static str,
    cluster: String,
}

impl<'a> Context<'a> {
    pub(super) fn new(
        provider: &'a dyn Provider,
        fixture: &'a dyn Fixture,
        case: &'static str,
    ) -> Self {
        Self { provider, fixture, case, cluster: cluster_name(fixture, case) }
    }

    /// A launch of ours, with all tags and no token.
    pub(super) fn spec(&self, name: &str) -> InstanceSpec {
        self.spec_of(name, &self.cluster)
    }

    /// A launch of a cluster that is not ours.
    pub(super) fn foreign_spec(&self, name: &str) -> InstanceSpec {
        self.spec_of(name, &foreign(&self.cluster))
    }

    fn spec_of(&self, name: &str, cluster: &str) -> InstanceSpec {
        let mut spec = self.fixture.spec(name);
        spec.tags = spec.tags.with("cluster", cluster).with("type", "compute").with("node", name);
        spec.token = None;
        spec
    }

    /// Gives a launch a token, a new one for each tag.
    pub(super) fn with_token(&self, mut spec: InstanceSpec, tag: &str) -> InstanceSpec {
        let text = format!("{tag}-{}-{}", self.fixture.run(), self.case);
        spec.token =
            LaunchToken::new(text.chars().take(LaunchToken::LONGEST).collect::<String>()).ok();
        spec
    }

    pub(super) fn ours(&self) -> InstanceFilter {
        cluster(&self.cluster)
    }

    pub(super) fn patience(&self) -> Patience {
        let poll = self.fixture.poll();
        Patience { pause: poll.first, deadline: from_now(poll.deadline) }
    }

    pub(super) async fn set(&self, condition: Condition) -> CaseResult {
        let cannot = format!("{condition:?} cannot be set here");
        if self.fixture.set(condition).await { Ok(()) } else { skip(cannot) }
    }

    /// Launches and waits until it runs.
    pub(super) async fn running(&self, spec: &InstanceSpec) -> CaseResult<Instance> {
        let launched = self.provider.launch(spec).await?;
        self.until_running(&launched.id).await
    }

    pub(super) async fn until_running(&self, id: &InstanceId) -> CaseResult<Instance> {
        self.reached(id, Goal::Running).await?;
        self.until_listed(id).await
    }

    /// Launches and waits until it runs and has its address.
    pub(super) async fn addressed(&self, spec: &InstanceSpec) -> CaseResult<Instance> {
        let id = self.running(spec).await?.id;
        self.reached(&id, Goal::Addressed).await
    }

    /// Waits until listings show it running: a wait may know that from elsewhere.
    pub(super) async fn until_listed(&self, id: &InstanceId) -> CaseResult<Instance> {
        let mut patience = self.patience();
        loop {
            let listed = self.provider.list(&self.ours()).await?;
            let mut listed = listed.into_iter().filter(|it| it.state == InstanceState::Running);
            if let Some(instance) = listed.find(|instance| instance.id == *id) {
                return Ok(instance);
            }
            if !patience.lasts().await {
                return Err(Stop::Fail(format!("{id} runs and is not listed")));
            }
        }
    }

    /// How a wait ends, or the error that kept it from having an outcome.
    pub(super) async fn outcome(&self, id: &InstanceId, goal: Goal<'_>) -> CaseResult<WaitOutcome> {
        let ids = std::slice::from_ref(id);
        let mut waited = wait_until(self.provider, ids, goal, self.fixture.poll()).await;
        match (waited.outcomes.remove(id), waited.last_error) {
            (Some(WaitOutcome::Unknown(_)), Some(error)) => Err(error.into()),
            (Some(outcome), _) => Ok(outcome),
            (None, _) => Err(Stop::Fail(format!("no outcome for {id}"))),
        }
    }

    /// Waits until it has reached this.
    pub(super) async fn reached(&self, id: &InstanceId, goal: Goal<'_>) -> CaseResult<Instance> {
        match self.outcome(id, goal).await? {
            WaitOutcome::Reached(instance) => Ok(instance),
            other => Err(Stop::Fail(format!("{id} does not become {goal:?}: {other:?}"))),
        }
    }

    pub(super) async fn until_gone(&self, id: &InstanceId) -> CaseResult {
        match self.outcome(id, Goal::Gone).await? {
            WaitOutcome::Gone | WaitOutcome::Reached(_) => Ok(()),
            other => Err(Stop::Fail(format!("{id} does not go: {other:?}"))),
        }
    }

    /// The live instances of ours with this name, once listings have caught up: when they show a
    /// marker that is launched now, they show what was launched before.
    pub(super) async fn live_named(&self, name: &str) -> CaseResult<Vec<Instance>> {
        self.running(&self.spec("marker")).await?;
        let named = self.ours().named(InstanceName::new(name));
        let mut listed = self.provider.list(&named).await?;
        listed.retain(|instance| instance.state.is_live());
        Ok(listed)
    }
}

/// Paces polls until the fixture's deadline.
pub(super) struct Patience {
    pause: Duration,
    deadline: Instant,
}

impl Patience {
    /// Pauses; false at the deadline.
    pub(super) async fn lasts(&mut self) -> bool {
        sleep(self.pause).await;
        Instant::now() < self.deadline
    }
}

/// Another for each run, so that two runs at a time do not terminate each other's instances.
fn cluster_name(fixture: &dyn Fixture, case: &str) -> String {
    let run = fixture.run();
    if run.is_empty() { case.to_owned() } else { format!("{case}-{run}") }
}

fn foreign(cluster: &str) -> String {
    format!("not-{cluster}")
}

fn cluster(name: &str) -> InstanceFilter {
    InstanceFilter::tagged(Tags::from([("cluster", name)]))
}

/// Terminates what a case has left behind.
pub(super) async fn clean(
    provider: &dyn Provider,
    fixture: &dyn Fixture,
    case: &str,
) -> CaseResult {
    let name = cluster_name(fixture, case);
    for cluster in [cluster(&name), cluster(&foreign(&name))] {
        let listed = provider.list(&cluster).await?;
        let left = listed.into_iter().filter(|instance| !instance.state.is_leaving());
        let ids: Vec<InstanceId> = left.map(|instance| instance.id).collect();
        let mut result = Ok(());
        for id in &ids {
            result = result.and(provider.terminate(id).await);
        }
        result?;
        wait_until(provider, &ids, Goal::Gone, fixture.poll()).await;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ApiOperation;
    use std::io;

    #[test]
    fn a_failed_case_prints_the_causes_of_its_error() {
        let cause = io::Error::other("connection refused");
        let error = Error::new(ErrorKind::Unavailable, ApiOperation::List).caused_by(cause);
        let text = "list: unavailable: connection refused".to_owned();
        assert_eq!(Stop::from(error), Stop::Fail(text));
    }
}

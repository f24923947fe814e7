//! What is between programs and the cloud.

use crate::simulation::judge::Judge;
use crate::simulation::kill::Killable;
use async_trait::async_trait;
use cloud_core::{
    ApiOperation, Description, ErrorKind, ImageId, Instance, InstanceFilter, InstanceId,
    InstanceSpec, Provider, Reboot, Result,
};
use fastrand::Rng;
use std::collections::BTreeMap;
use std::future::Future;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// A cloud at the other end of a wire: what was sent is carried out, also if the sender is killed.
#[derive(Debug)]
pub(crate) struct Wire {
    pub(crate) cloud: Arc<dyn Provider>,
    pub(crate) judge: Arc<Judge>,
    /// Requests outlive their senders.
    pub(crate) sends_on: bool,
    /// Listings show everything, whatever was asked for, as Nova's do.
    pub(crate) shows_all: bool,
    pub(crate) weather: Mutex<Weather>,
    /// Launches that are under way, and when the last one ended.
    pub(crate) launches: Launches,
}

/// How many launches are under way, and when the last one ended.
#[derive(Clone, Debug, Default)]
pub(crate) struct Launches(Arc<Mutex<(usize, Option<Instant>)>>);

/// One launch under way.
struct UnderWay(Launches);

impl UnderWay {
    fn of(launches: &Launches) -> Self {
        launches.0.lock().unwrap().0 += 1;
        Self(launches.clone())
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        let launches = &mut *self.0.0.lock().unwrap();
        *launches = (launches.0 - 1, Some(Instant::now()));
    }
}

impl Launches {
    /// True if listings may not show all that was launched.
    pub(crate) fn are_hidden(&self, lag: Duration) -> bool {
        let (count, last) = *self.0.lock().unwrap();
        count > 0 || last.is_some_and(|last| last.elapsed() <= lag)
    }
}

/// The longest that requests and their answers are under way: longer than any program waits.
const LONGEST: u64 = 400_000;

/// The longest that a launch is under way. With a listing a minute behind it shows within the time that a search takes.
const LONGEST_LAUNCH: u64 = 20_000;

/// How bad the wire is.
#[derive(Debug)]
pub(crate) struct Weather {
    rng: Rng,
    /// How often a request or its answer is late.
    late: f64,
    /// How often a listing does not show all.
    partial: f64,
    /// Nevertheless listings show all.
    whole: bool,
}

impl Weather {
    pub(crate) fn of(rng: &mut Rng) -> Mutex<Self> {
        let mut chance = |most: f64| if rng.bool() { rng.f64() * most } else { 0.0 };
        let (late, partial) = (chance(0.05), chance(0.1));
        Mutex::new(Self { rng: Rng::with_seed(rng.u64(..)), late, partial, whole: false })
    }

    /// How late a request is, and how late its answer.
    fn delays(&mut self, operation: ApiOperation) -> (Duration, Duration) {
        let longest = if operation == ApiOperation::Launch { LONGEST_LAUNCH } else { LONGEST };
        let mut delay = |longest| {
            let late = self.late > 0.0 && self.rng.f64() < self.late;
            Duration::from_millis(if late { self.rng.u64(0..longest) } else { 0 })
        };
        (delay(longest), delay(LONGEST))
    }
}

impl Wire {
    /// From now on all is in time.
    pub(crate) fn calm(&self) {
        let weather = &mut *self.weather.lock().unwrap();
        (weather.late, weather.partial) = (0.0, 0.0);
    }

    /// Listings show all while nothing can be written down: who then sees nothing of a launch cannot know of it.
    pub(crate) fn shows_whole(&self, so: bool) {
        self.weather.lock().unwrap().whole = so;
    }

    /// Part of a listing, at times.
    fn partial(&self, mut all: Vec<Instance>) -> Vec<Instance> {
        let weather = &mut *self.weather.lock().unwrap();
        if !weather.whole && weather.partial > 0.0 && weather.rng.f64() < weather.partial {
            let most = *weather.rng.choice(&[0, 50]).unwrap();
            all.retain(|_| weather.rng.u8(0..100) < most);
            self.judge.misled();
            self.judge.tells(|| format!("is shown {} instances", all.len()));
        }
        all
    }

    /// Sends a request, which may be late, as may be its answer.
    async fn late<T: Send + 'static>(
        &self,
        operation: ApiOperation,
        request: impl Future<Output = T> + Send + 'static,
    ) -> T {
        let (before, after) = self.weather.lock().unwrap().delays(operation);
        if !(before + after).is_zero() {
            self.judge
                .tells(|| format!("{operation} is late by {before:?}, its answer by {after:?}"));
        }
        let request = async move {
            if !before.is_zero() {
                sleep(before).await;
            }
            request.await
        };
        let reads = matches!(operation, ApiOperation::List | ApiOperation::Get);
        let answer = if reads { request.await } else { self.send(request).await };
        if !after.is_zero() {
            sleep(after).await;
        }
        answer
    }

    /// Sends a request, which is the sender's doing whenever it is carried out.
    async fn send<T: Send + 'static>(
        &self,
        request: impl Future<Output = T> + Send + 'static,
    ) -> T {
        if !self.sends_on {
            return request.await;
        }
        let request = Killable::new(request, None, Arc::clone(&self.judge), self.judge.who());
        tokio::spawn(request).await.unwrap().unwrap()
    }
}

#[async_trait]
impl Provider for Wire {
    fn describe(&self) -> Description {
        self.cloud.describe()
    }

    async fn list(&self, filter: &InstanceFilter) -> Result<Vec<Instance>> {
        let all = InstanceFilter::default();
        let filter = if self.shows_all { all } else { filter.clone() };
        let cloud = Arc::clone(&self.cloud);
        let listed = self.late(ApiOperation::List, async move { cloud.list(&filter).await });
        Ok(self.partial(listed.await?))
    }

    async fn get(&self, id: &InstanceId) -> Result<Instance> {
        let (cloud, id) = (Arc::clone(&self.cloud), id.clone());
        self.late(ApiOperation::Get, async move { cloud.get(&id).await }).await
    }

    async fn launch(&self, spec: &InstanceSpec) -> Result<Instance> {
        let (cloud, spec) = (Arc::clone(&self.cloud), spec.clone());
        let name = spec.name.clone();
        let under_way = UnderWay::of(&self.launches);
        let launch = async move {
            let _under_way = under_way;
            cloud.launch(&spec).await
        };
        let launched = self.late(ApiOperation::Launch, launch).await;
        if launched.as_ref().is_err_and(|error| error.kind() == ErrorKind::TokenUsedUp) {
            self.judge.used_up(name.as_str());
        }
        launched
    }

    async fn terminate(&self, id: &InstanceId) -> Result<()> {
        self.judge.sends(ApiOperation::Terminate, id);
        let (cloud, id) = (Arc::clone(&self.cloud), id.clone());
        self.late(ApiOperation::Terminate, async move { cloud.terminate(&id).await }).await
    }

    async fn rebuild(&self, id: &InstanceId, image: &ImageId) -> Result<()> {
        self.judge.sends(ApiOperation::Rebuild, id);
        self.cloud.rebuild(id, image).await
    }

    async fn reboot(&self, id: &InstanceId, how: Reboot) -> Result<()> {
        self.judge.sends(ApiOperation::Reboot, id);
        self.cloud.reboot(id, how).await
    }

    async fn stop(&self, id: &InstanceId) -> Result<()> {
        self.judge.sends(ApiOperation::Stop, id);
        let (cloud, id) = (Arc::clone(&self.cloud), id.clone());
        self.late(ApiOperation::Stop, async move { cloud.stop(&id).await }).await
    }

    async fn start(&self, id: &InstanceId) -> Result<()> {
        let (cloud, id) = (Arc::clone(&self.cloud), id.clone());
        self.late(ApiOperation::Start, async move { cloud.start(&id).await }).await
    }

    async fn addresses(&self, ids: &[InstanceId]) -> Result<BTreeMap<InstanceId, IpAddr>> {
        self.cloud.addresses(ids).await
    }
}

//! What every connection shares.

use crate::answer::Refusal;
use crate::clock::Dates;
use crate::credentials::known_user;
use crate::error::Error;
use crate::fault::Faults;
use crate::federation::Federation;
use crate::key::PublicKey;
use crate::machine::Order;
use crate::record::{Recorded, Records};
use crate::settings::CloudSettings;
use crate::throttle::Buckets;
use crate::verify::{Cover, Signed, authorization, matches};
use crate::world::World;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};
use tokio::sync::{Notify, mpsc, watch};

/// The cloud, as its server and its admin see it.
#[derive(Debug)]
pub(crate) struct Shared {
    world: Mutex<World>,
    dates: Dates,
    pub(crate) federation: Mutex<Federation>,
    pub(crate) faults: Mutex<Faults>,
    pub(crate) buckets: Mutex<Buckets>,
    pub(crate) records: Arc<Mutex<Records>>,
    pub(crate) latency: Mutex<Duration>,
    /// Users' keys by key id.
    users: HashMap<String, (String, PublicKey)>,
    /// Whether the machines are to be ended at once.
    pub(crate) hurry: watch::Sender<bool>,
    /// Rings when the agenda changed.
    pub(crate) wake: Arc<Notify>,
}

/// A lock's content, whatever happened to those who held it before.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    pub(crate) fn new(
        settings: &CloudSettings,
        machines: Option<mpsc::UnboundedSender<Order>>,
    ) -> Result<Self, Error> {
        let mut users = HashMap::new();
        // The ready-made one always, of whom `oci/config` speaks.
        for user in settings.users.iter().chain([&known_user()]) {
            let key = PublicKey::from_pem(&user.public_key_pem);
            let key = key.ok_or_else(|| Error::Key { user: user.id.clone() })?;
            let key_id = format!("{}/{}/{}", settings.tenancy, user.id, user.fingerprint);
            users.insert(key_id, (user.id.clone(), key));
        }
        let wake = Arc::new(Notify::new());
        let world = World::open(Arc::new(settings.clone()), Arc::clone(&wake), machines)?;
        Ok(Self {
            dates: world.clock.dates().clone(),
            world: Mutex::new(world),
            federation: Mutex::new(Federation::new(settings)?),
            faults: Mutex::new(Faults::new(&settings.faults, settings.seed)),
            buckets: Mutex::new(Buckets::new(settings.throttle.clone())),
            records: Arc::new(Mutex::new(Records::new(settings.keep_requests))),
            latency: Mutex::new(Duration::from_millis(settings.latency_millis)),
            users,
            hurry: watch::Sender::new(false),
            wake,
        })
    }

    /// Does something to the world as it is now.
    pub(crate) fn with<R>(&self, act: impl FnOnce(&mut World) -> R) -> R {
        let mut world = lock(&self.world);
        world.catch_up();
        world.reindex();
        let result = act(&mut world);
        world.reindex();
        let forgotten = std::mem::take(&mut world.forgotten);
        drop(world);
        if !forgotten.is_empty() {
            let mut federation = lock(&self.federation);
            for id in &forgotten {
                federation.forget(id);
            }
        }
        result
    }

    /// What requests' dates are compared with, and what the `Date` header says.
    pub(crate) fn date(&self) -> SystemTime {
        self.dates.date(SystemTime::now())
    }

    /// Who signed a request.
    pub(crate) fn authenticate(&self, request: &Signed<'_>) -> Result<String, Refusal> {
        let now = self.date();
        let parsed =
            authorization(request, Cover::Everything, now).map_err(Refusal::unauthenticated)?;
        let session;
        let known = match parsed.key_id.strip_prefix("ST$") {
            Some(token) => {
                let federation = lock(&self.federation);
                let found = federation.session(token, now);
                session = found.map(|(key, instance)| (instance.to_owned(), key.clone()));
                session.as_ref()
            }
            None => self.users.get(parsed.key_id),
        };
        let (caller, key) = known.ok_or_else(|| {
            Refusal::unauthenticated("the key or token is not known, or has expired")
        })?;
        if matches(request, &parsed, key) {
            return Ok(caller.clone());
        }
        Err(Refusal::unauthenticated("the signature is not that of the key"))
    }
}

/// A request while it is under way, which ends also when its client leaves.
pub(crate) struct UnderWay {
    records: Arc<Mutex<Records>>,
    number: u64,
    /// The status of the answer, as soon as there is one.
    pub(crate) status: Option<u16>,
    /// The numbers of the rules that happened to it.
    pub(crate) faults: Vec<u64>,
}

impl UnderWay {
    pub(crate) fn begin(records: &Arc<Mutex<Records>>, request: Recorded) -> Self {
        let number = lock(records).begin(request);
        Self { records: Arc::clone(records), number, status: None, faults: Vec::new() }
    }

    /// Notes the body, when it has come.
    pub(crate) fn has_body(&self, body: &[u8]) {
        let body = String::from_utf8_lossy(body).into_owned();
        lock(&self.records).has_body(self.number, body);
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        let faults = std::mem::take(&mut self.faults);
        lock(&self.records).end(self.number, self.status, faults);
    }
}

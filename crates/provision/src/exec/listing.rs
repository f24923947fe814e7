//! One listing of the cloud, refreshed for all nodes that wait.

use super::shared::Shared;
use crate::addresses;
use crate::failure::Failure;
use cloud_core::{Error, ErrorKind, Instance, InstanceFilter, InstanceId, InstanceState};
use hostlist::NodeName;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::iter;
use std::net::IpAddr;
use std::rc::Rc;
use std::time::Duration;
use tokio::sync::{Notify, Semaphore};
use tokio::time::{Instant, sleep_until};

/// When a launched instance is first looked for: none runs sooner.
const FIRST_LISTING: Duration = Duration::from_millis(750);
/// The pauses between listings that only show whether launched instances run.
const SHORTEST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// The first pause between listings that others count, who conclude from what they do not show.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// The longest pause while it is not known what a launch has done.
const AMBIGUOUS_PAUSE: Duration = Duration::from_secs(2);

/// How many instances are looked up by their ids at a time.
const MOST_LOOKUPS: usize = 8;

/// Our instances by node, or why the cloud refuses to list them.
type Listed = Rc<Result<BTreeMap<NodeName, Vec<Instance>>, Failure>>;

/// The shared listing.
pub(super) struct Listing {
    /// The last successful listing, and its number.
    latest: RefCell<(u64, Listed)>,
    refreshed: Notify,
    /// What is waited for, by node, and since when.
    waiting: RefCell<BTreeMap<NodeName, (Wait, Instant)>>,
    /// Since when somebody waits.
    since: Cell<Instant>,
    /// The addresses of instances that are waited for, where listings show none.
    addresses: RefCell<BTreeMap<InstanceId, IpAddr>>,
    next: Cell<Instant>,
    changed: Notify,
    lookups: Semaphore,
    /// Why the last listing did not succeed, if it did not.
    error: RefCell<Option<Failure>>,
}

/// What a waiting node sees next.
pub(super) enum Seen {
    /// Its instances, as listed.
    Listed(Vec<Instance>),
    /// An instance that listings do not show, looked up by its id.
    LookedUp(InstanceId, LookedUp),
}

/// An instance that was looked up by its id.
pub(super) enum LookedUp {
    Instance(Box<Instance>),
    /// The cloud says that it does not exist.
    Missing,
    /// It has other tags now: it is somebody else's.
    NotOurs,
    /// The cloud did not answer.
    Unknown,
}

/// What is waited for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Wait {
    /// An instance to come up.
    Up(InstanceId),
    /// An instance to come up that was launched a moment ago.
    Launched(InstanceId),
    /// Instances to go.
    Gone,
    /// What a launch has done.
    Ambiguous,
}

impl Listing {
    pub(super) fn new() -> Self {
        Self {
            latest: RefCell::new((0, Rc::new(Ok(BTreeMap::new())))),
            refreshed: Notify::new(),
            waiting: RefCell::default(),
            since: Cell::new(Instant::now()),
            addresses: RefCell::default(),
            next: Cell::new(Instant::now()),
            changed: Notify::new(),
            lookups: Semaphore::new(MOST_LOOKUPS),
            error: RefCell::default(),
        }
    }

    /// Why the last listing did not succeed, if it did not.
    pub(super) fn error(&self) -> Option<Failure> {
        self.error.borrow().clone()
    }

    /// Waits for a listing after the one with this number.
    async fn after(&self, seen: u64) -> (u64, Listed) {
        loop {
            let refreshed = self.refreshed.notified();
            let latest = self.latest.borrow().clone();
            if latest.0 != seen {
                return latest;
            }
            refreshed.await;
        }
    }

    /// The instances whose addresses are wanted.
    fn watched(&self) -> BTreeSet<InstanceId> {
        let waiting = self.waiting.borrow();
        let id = |(wait, _): &(Wait, Instant)| match wait {
            Wait::Up(id) | Wait::Launched(id) => Some(id.clone()),
            Wait::Gone | Wait::Ambiguous => None,
        };
        waiting.values().filter_map(id).collect()
    }

    /// Waits for something from now on.
    fn wait(&self, node: &NodeName, wait: Wait) {
        let (now, mut waiting) = (Instant::now(), self.waiting.borrow_mut());
        let first = if matches!(wait, Wait::Launched(_)) { now + FIRST_LISTING } else { now };
        if waiting.is_empty() {
            self.since.set(now);
            self.next.set(self.next.get().max(first));
        } else if self.latest.borrow().0 == 0 {
            self.next.set(self.next.get().min(first));
        }
        waiting.insert(node.clone(), (wait, now));
        self.changed.notify_waiters();
    }

    /// The pause before the next listing, if the last one took so long and all wait for instances that were launched. None if
    /// some wait for something else.
    fn pause(&self, took: Duration) -> Option<Duration> {
        let (now, waiting) = (Instant::now(), self.waiting.borrow());
        if !waiting.values().all(|(wait, _)| matches!(wait, Wait::Launched(_))) {
            return None;
        }
        let oldest = waiting.values().map(|(_, since)| *since).min().unwrap_or(now);
        let (oldest, all) = (now - oldest, now - self.since.get());
        // What takes long to boot is looked at less often, and so is what takes long to list, or to launch one after the other.
        let age = oldest.as_secs_f64();
        let pause = Duration::try_from_secs_f64(age / 8.0 + age * age / 100.0);
        let pause = pause.unwrap_or(LONGEST_PAUSE).max((all / 20).min(FIRST_PAUSE)).max(took);
        Some(pause.clamp(SHORTEST_PAUSE, LONGEST_PAUSE))
    }

    /// The longest pause for those who wait now.
    fn longest_pause(&self) -> Duration {
        let is_ambiguous = |(wait, _): &(Wait, Instant)| *wait == Wait::Ambiguous;
        let ambiguous = self.waiting.borrow().values().any(is_ambiguous);
        if ambiguous { AMBIGUOUS_PAUSE } else { LONGEST_PAUSE }
    }

    /// Waits until a listing is due and somebody waits for it.
    async fn due(&self) {
        loop {
            let changed = self.changed.notified();
            if self.waiting.borrow().is_empty() {
                changed.await;
            } else if self.next.get() > Instant::now() {
                tokio::select! {
                    biased;
                    () = changed => {}
                    () = sleep_until(self.next.get()) => {}
                }
            } else {
                return;
            }
        }
    }
}

impl Shared<'_> {
    /// Lists while anybody waits for it, a little less often each time; never returns.
    pub(super) async fn refresh_listing(&self) {
        let listing = &self.listing;
        let mut slow = FIRST_PAUSE;
        loop {
            listing.due().await;
            let begun = Instant::now();
            let listed = self.list().await;
            let pause = listing.pause(begun.elapsed()).unwrap_or_else(|| {
                let pause = slow.min(listing.longest_pause());
                slow = (slow * 3 / 2).min(LONGEST_PAUSE);
                pause
            });
            listing.next.set(Instant::now() + pause);
            if let Some(listed) = listed {
                let count = listing.latest.borrow().0 + 1;
                listing.latest.replace((count, Rc::new(listed)));
                listing.refreshed.notify_waiters();
            }
        }
    }

    /// One listing for all nodes, and one request for all addresses that it does not show. None if the next one
    /// may succeed.
    async fn list(&self) -> Option<Result<BTreeMap<NodeName, Vec<Instance>>, Failure>> {
        let identity = &self.site.identity;
        let watched = self.listing.watched();
        let filter = InstanceFilter::tagged(identity.tags());
        let listing = self.tools.cloud.list(&filter);
        let (listed, ()) = tokio::join!(listing, self.find_addresses(&watched));
        let listed = match listed {
            Ok(listed) => listed,
            Err(error) => {
                self.warn(format!("cannot list the cloud's instances: {error}"));
                let failure = Failure::of(&error, None, self.names(None));
                self.listing.error.replace(Some(failure.clone()));
                return is_hopeless(&error).then_some(Err(failure));
            }
        };
        let known = &self.listing.addresses;
        self.listing.error.replace(None);
        let running = listed
            .iter()
            .filter(|instance| watched.contains(&instance.id))
            .filter(|instance| instance.state == InstanceState::Running)
            .filter(|instance| !known.borrow().contains_key(&instance.id));
        match addresses::look_up(self.tools.cloud, running).await {
            Ok(found) => known.borrow_mut().extend(found),
            Err(error) => {
                self.warn(format!("cannot get the addresses of instances: {error}"));
            }
        }
        let addresses = known.borrow();
        let mut by_node: BTreeMap<NodeName, Vec<Instance>> = BTreeMap::new();
        for mut instance in listed.into_iter().filter(|instance| identity.owns(instance)) {
            instance.address = instance.address.or_else(|| addresses.get(&instance.id).copied());
            if let Some(node) = identity.node_of(&instance) {
                by_node.entry(node).or_default().push(instance);
            }
        }
        Some(Ok(by_node))
    }

    /// Asks for the addresses of instances that are waited for, where listings show none. One that cannot be had is asked
    /// for again when its instance runs.
    async fn find_addresses(&self, watched: &BTreeSet<InstanceId>) {
        let known = &self.listing.addresses;
        let is_new = |id: &&InstanceId| !known.borrow().contains_key(*id);
        let new: Vec<InstanceId> = watched.iter().filter(is_new).cloned().collect();
        if self.cloud.addresses_apart
            && !new.is_empty()
            && let Ok(found) = self.tools.cloud.addresses(&new).await
        {
            known.borrow_mut().extend(found);
        }
    }

    async fn look_up(&self, node: &NodeName, id: &InstanceId) -> LookedUp {
        let identity = &self.site.identity;
        match self.tools.cloud.get(id).await {
            Ok(one) if identity.owns(&one) && identity.node_of(&one).as_ref() == Some(node) => {
                LookedUp::Instance(Box::new(self.with_address(one).await))
            }
            Ok(_) => LookedUp::NotOurs,
            Err(error) if error.kind() == ErrorKind::NotFound => LookedUp::Missing,
            Err(_) => LookedUp::Unknown,
        }
    }

    /// Adds the address of an instance that runs, where the cloud does not say it with the instance.
    async fn with_address(&self, mut one: Instance) -> Instance {
        let known = &self.listing.addresses;
        if one.state == InstanceState::Running && !known.borrow().contains_key(&one.id) {
            let found = addresses::look_up(self.tools.cloud, iter::once(&one)).await;
            known.borrow_mut().extend(found.unwrap_or_default());
        }
        one.address = one.address.or_else(|| known.borrow().get(&one.id).copied());
        one
    }
}

/// A node that waits for what the listings show, from now on.
pub(super) struct Waiter<'s> {
    shared: &'s Shared<'s>,
    node: NodeName,
    /// The number of the last listing that it has seen.
    seen: u64,
}

impl<'s> Waiter<'s> {
    pub(super) fn new(shared: &'s Shared<'s>, node: &NodeName, wait: Wait) -> Self {
        let listing = &shared.listing;
        listing.wait(node, wait);
        let seen = listing.latest.borrow().0;
        Self { shared, node: node.clone(), seen }
    }

    /// Requests the next listing soon.
    pub(super) fn hurry(&self) {
        let listing = &self.shared.listing;
        listing.next.set(listing.next.get().min(Instant::now() + AMBIGUOUS_PAUSE));
        listing.changed.notify_waiters();
    }

    /// Waits for the next listing, or looks up an instance that the listings do not show. Only a few may be looked up at
    /// a time; if the next listing comes first, that is returned.
    pub(super) async fn next(&mut self, hidden: Option<InstanceId>) -> Result<Seen, Failure> {
        let Some(id) = hidden else {
            return self.listed().await.map(Seen::Listed);
        };
        let _permit = tokio::select! {
            biased;
            permit = self.shared.listing.lookups.acquire() => permit,
            listed = self.listed() => return listed.map(Seen::Listed),
        };
        let found = self.shared.look_up(&self.node, &id).await;
        Ok(Seen::LookedUp(id, found))
    }

    /// Waits for the next listing, and returns the instances of the node.
    async fn listed(&mut self) -> Result<Vec<Instance>, Failure> {
        let (count, listed) = self.shared.listing.after(self.seen).await;
        self.seen = count;
        match &*listed {
            Ok(by_node) => Ok(by_node.get(&self.node).cloned().unwrap_or_default()),
            Err(failure) => Err(failure.clone()),
        }
    }
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        self.shared.listing.waiting.borrow_mut().remove(&self.node);
    }
}

/// True if the cloud rejects our credentials: the next listing fails too.
fn is_hopeless(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Unauthenticated | ErrorKind::Forbidden)
}

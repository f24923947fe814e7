//! One listing of the cloud for all nodes that wait for what it shows.

use super::shared::Shared;
use crate::addresses;
use crate::failure::Failure;
use cloud_core::{Error, ErrorKind, Instance, InstanceFilter, InstanceId, InstanceState};
use futures_util::future::{LocalBoxFuture, OptionFuture};
use hostlist::NodeName;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::rc::Rc;
use std::time::Duration;
use tokio::sync::{Notify, Semaphore};
use tokio::time::{Instant, sleep_until};

/// The pauses between listings.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// The longest while it is not known what a launch has done.
const AMBIGUOUS_PAUSE: Duration = Duration::from_secs(2);

/// Most instances that are asked for by themselves at a time.
const MOST_LOOKUPS: usize = 8;

/// Our instances by node, or why the cloud does not show them to us any more.
type Listed = Rc<Result<BTreeMap<NodeName, Vec<Instance>>, Failure>>;

/// The listing that is refreshed for all who wait.
pub(super) struct Listing {
    /// The last that succeeded, and how many have.
    latest: RefCell<(u64, Listed)>,
    refreshed: Notify,
    waiting: Cell<usize>,
    /// Those of them that wait to see what a launch has done.
    ambiguous: Cell<usize>,
    /// Instances whose addresses are wanted.
    watched: RefCell<BTreeSet<InstanceId>>,
    next: Cell<Instant>,
    changed: Notify,
    lookups: Semaphore,
}

/// What a node that waits comes to see.
pub(super) enum Seen {
    /// Its instances, as listed.
    Listed(Vec<Instance>),
    /// An instance that listings do not show, asked for by itself.
    LookedUp(InstanceId, LookedUp),
}

/// What became of an instance that listings do not show.
pub(super) enum LookedUp {
    Instance(Box<Instance>),
    /// It is not there, as far as the cloud says.
    Missing,
    /// It has another's tags by now: it is theirs.
    NotOurs,
    Unknown,
}

/// What is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wait<'w> {
    /// An instance to come up.
    Up(&'w InstanceId),
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
            waiting: Cell::new(0),
            ambiguous: Cell::new(0),
            watched: RefCell::default(),
            next: Cell::new(Instant::now()),
            changed: Notify::new(),
            lookups: Semaphore::new(MOST_LOOKUPS),
        }
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

    /// Waits until a listing is due, and wanted.
    async fn due(&self) {
        loop {
            let changed = self.changed.notified();
            if self.waiting.get() == 0 {
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
    /// Lists for as long as anybody waits for it, a little less often each time.
    pub(super) async fn refresh_listing(&self) {
        let listing = &self.listing;
        let mut pause = FIRST_PAUSE;
        loop {
            listing.due().await;
            let listed = self.list().await;
            let longest = if listing.ambiguous.get() > 0 { AMBIGUOUS_PAUSE } else { LONGEST_PAUSE };
            listing.next.set(Instant::now() + pause.min(longest));
            pause = (pause * 3 / 2).min(LONGEST_PAUSE);
            if let Some(listed) = listed {
                let count = listing.latest.borrow().0 + 1;
                listing.latest.replace((count, Rc::new(listed)));
                listing.refreshed.notify_waiters();
            }
        }
    }

    /// One listing for all, and one request for all addresses that it does not show. None if the next may succeed.
    async fn list(&self) -> Option<Result<BTreeMap<NodeName, Vec<Instance>>, Failure>> {
        let identity = &self.site.identity;
        let watched = self.listing.watched.borrow().clone();
        let listed = match self.tools.cloud.list(&InstanceFilter::tagged(identity.tags())).await {
            Ok(listed) => listed,
            Err(error) => {
                self.warn(format!("a look at the cloud did not succeed: {error}"));
                return is_hopeless(&error)
                    .then(|| Err(Failure::of(&error, None, self.names(None))));
            }
        };
        let running = listed
            .iter()
            .filter(|instance| watched.contains(&instance.id))
            .filter(|instance| instance.state == InstanceState::Running);
        let addresses = addresses::look_up(self.tools.cloud, running).await;
        let addresses: BTreeMap<InstanceId, IpAddr> = addresses.unwrap_or_else(|error| {
            self.warn(format!("the addresses of instances could not be had: {error}"));
            BTreeMap::new()
        });
        let mut by_node: BTreeMap<NodeName, Vec<Instance>> = BTreeMap::new();
        for mut instance in listed.into_iter().filter(|instance| identity.owns(instance)) {
            instance.address = instance.address.or_else(|| addresses.get(&instance.id).copied());
            if let Some(node) = identity.node_of(&instance) {
                by_node.entry(node).or_default().push(instance);
            }
        }
        Some(Ok(by_node))
    }

    async fn look_up(&self, node: &NodeName, id: &InstanceId, asked: &Cell<bool>) -> LookedUp {
        let _permit = self.listing.lookups.acquire().await;
        asked.set(true);
        let identity = &self.site.identity;
        match self.tools.cloud.get(id).await {
            Ok(one) if identity.owns(&one) && identity.node_of(&one).as_ref() == Some(node) => {
                LookedUp::Instance(Box::new(one))
            }
            Ok(_) => LookedUp::NotOurs,
            Err(error) if error.kind() == ErrorKind::NotFound => LookedUp::Missing,
            Err(_) => LookedUp::Unknown,
        }
    }
}

/// A node that waits for what the listings show, from now on.
pub(super) struct Waiter<'s> {
    shared: &'s Shared<'s>,
    node: NodeName,
    /// How many listings there were.
    seen: u64,
    looking_up: Option<LocalBoxFuture<'s, Seen>>,
    /// The cloud has been asked, and not only asked for leave to.
    asked: Rc<Cell<bool>>,
    watched: Option<InstanceId>,
    ambiguous: bool,
}

impl<'s> Waiter<'s> {
    pub(super) fn new(shared: &'s Shared<'s>, node: &NodeName, wait: Wait<'_>) -> Self {
        let listing = &shared.listing;
        let (watched, ambiguous) = match wait {
            Wait::Up(id) => (Some(id.clone()), false),
            Wait::Gone => (None, false),
            Wait::Ambiguous => (None, true),
        };
        listing.watched.borrow_mut().extend(watched.clone());
        listing.waiting.update(|count| count + 1);
        listing.ambiguous.update(|count| count + usize::from(ambiguous));
        listing.changed.notify_waiters();
        let node = node.clone();
        let seen = listing.latest.borrow().0;
        Self { shared, node, seen, looking_up: None, asked: Rc::default(), watched, ambiguous }
    }

    /// Has the next listing come soon, if it would not anyway.
    pub(super) fn hurry(&self) {
        let listing = &self.shared.listing;
        listing.next.set(listing.next.get().min(Instant::now() + AMBIGUOUS_PAUSE));
        listing.changed.notify_waiters();
    }

    /// Waits for the next listing, or for the instance that is asked for by itself.
    pub(super) async fn next(&mut self) -> Result<Seen, Failure> {
        tokio::select! {
            biased;
            Some(found) = OptionFuture::from(self.looking_up.as_mut()) => {
                self.looking_up = None;
                Ok(found)
            }
            (count, listed) = self.shared.listing.after(self.seen) => {
                self.seen = count;
                // Whoever had to wait for leave to ask sees first what the listing shows.
                self.looking_up = self.looking_up.take().filter(|_| self.asked.get());
                match &*listed {
                    Ok(by_node) => {
                        Ok(Seen::Listed(by_node.get(&self.node).cloned().unwrap_or_default()))
                    }
                    Err(failure) => Err(failure.clone()),
                }
            }
        }
    }

    /// Asks for one instance that the listings do not show, unless one is asked for already.
    pub(super) fn look_up(&mut self, id: &InstanceId) {
        if self.looking_up.is_some() {
            return;
        }
        self.asked.set(false);
        let (shared, asked) = (self.shared, Rc::clone(&self.asked));
        let (node, id) = (self.node.clone(), id.clone());
        self.looking_up = Some(Box::pin(async move {
            let found = shared.look_up(&node, &id, &asked).await;
            Seen::LookedUp(id, found)
        }));
    }
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        let listing = &self.shared.listing;
        listing.waiting.update(|count| count.saturating_sub(1));
        listing.ambiguous.update(|count| count.saturating_sub(usize::from(self.ambiguous)));
        if let Some(id) = &self.watched {
            listing.watched.borrow_mut().remove(id);
        }
    }
}

/// True if the cloud does not know us any more.
fn is_hopeless(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Unauthenticated | ErrorKind::Forbidden)
}

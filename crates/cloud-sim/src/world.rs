//! Everything that is in the cloud.

use crate::answer::Refusal;
use crate::boot_volume::BootVolume;
use crate::clock::{Clock, Moment, Speed};
use crate::error::Error;
use crate::image::ImageRecord;
use crate::instance::Record;
use crate::lifecycle::Event;
use crate::listing::Index;
use crate::machine::Order;
use crate::network::Addresses;
use crate::retry_token::TokenUse;
use crate::settings::{Capacity, CloudSettings, Limit, ShapeSize};
use crate::usage::Usage;
use crate::work_request::WorkRequest;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{Notify, mpsc};

/// The state of the cloud. One lock guards it; no operation waits or makes keys while holding it.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) settings: Arc<CloudSettings>,
    pub(crate) clock: Clock,
    pub(crate) instances: HashMap<String, Record>,
    pub(crate) images: HashMap<String, ImageRecord>,
    pub(crate) work_requests: HashMap<String, WorkRequest>,
    /// What retry tokens were used for, by caller, operation and token.
    pub(crate) tokens: HashMap<String, TokenUse>,
    pub(crate) compute_clusters: HashMap<String, Map<String, Value>>,
    pub(crate) boot_volumes: HashMap<String, BootVolume>,
    pub(crate) capacity: Vec<Capacity>,
    pub(crate) limits: Vec<Limit>,
    pub(crate) addresses: BTreeMap<String, Addresses>,
    /// The instances in the order of lists.
    pub(crate) index: Index,
    /// What the instances take of limits and of room.
    pub(crate) usage: Usage,
    agenda: BTreeMap<(Moment, u64), Event>,
    /// When the event was due that is being carried out.
    present: Option<Moment>,
    last: u64,
    /// How many requests had a token that was used before with another request.
    pub(crate) token_mismatches: u64,
    /// Instances that are no more, for those beside the world who know them.
    pub(crate) forgotten: Vec<String>,
    wake: Arc<Notify>,
    pub(crate) machines: Option<mpsc::UnboundedSender<Order>>,
}

impl World {
    /// A world as its settings say.
    pub(crate) fn open(
        settings: Arc<CloudSettings>,
        wake: Arc<Notify>,
        machines: Option<mpsc::UnboundedSender<Order>>,
    ) -> Result<Self, Error> {
        let mut addresses = BTreeMap::new();
        for subnet in &settings.subnets {
            addresses.insert(subnet.id.clone(), Addresses::new(subnet)?);
        }
        let mut world = Self {
            clock: Clock::new(Speed::new(settings.speed)?),
            instances: HashMap::new(),
            images: HashMap::new(),
            work_requests: HashMap::new(),
            tokens: HashMap::new(),
            compute_clusters: HashMap::new(),
            boot_volumes: HashMap::new(),
            capacity: settings.capacity.clone(),
            limits: settings.limits.clone(),
            addresses,
            index: Index::default(),
            usage: Usage::default(),
            agenda: BTreeMap::new(),
            present: None,
            last: 0,
            token_mismatches: 0,
            forgotten: Vec::new(),
            wake,
            machines,
            settings,
        };
        world.furnish();
        Ok(world)
    }

    /// Puts in what the settings list.
    fn furnish(&mut self) {
        let settings = Arc::clone(&self.settings);
        for image in &settings.images {
            self.add_image(image);
        }
        for id in &settings.compute_clusters {
            self.add_compute_cluster(id);
        }
        for id in &settings.boot_volumes {
            self.add_boot_volume(id, None);
        }
    }

    /// Lets an event happen so many seconds after now, or after the event that leads to it: a clock
    /// that is moved by an hour shows what an hour would have brought.
    pub(crate) fn schedule(&mut self, seconds: f64, event: Event) {
        // Timings were checked at the start: what is too long never happens.
        let span = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
        let span = i64::try_from(span.as_millis()).unwrap_or(i64::MAX);
        let moment = self.present.unwrap_or_else(|| self.now()).saturating_add(span);
        let number = self.next_number();
        // Whoever sleeps until something earlier does not have to know.
        if self.agenda.first_key_value().is_none_or(|(&(first, _), _)| moment < first) {
            self.wake.notify_one();
        }
        self.agenda.insert((moment, number), event);
    }

    /// Lets everything happen that is due.
    pub(crate) fn catch_up(&mut self) {
        let now = self.now();
        while let Some(entry) = self.agenda.first_entry() {
            let (due, _) = *entry.key();
            if due > now {
                break;
            }
            let event = entry.remove();
            self.present = Some(due);
            self.happen(event);
        }
        self.present = None;
    }

    /// How long until something is due, in real time.
    pub(crate) fn idle_for(&self) -> Option<Duration> {
        let (&(moment, _), _) = self.agenda.first_key_value()?;
        self.clock.until(moment, Instant::now())
    }

    /// What the lifecycle clock shows.
    pub(crate) fn now(&self) -> Moment {
        self.clock.now(Instant::now())
    }

    /// Looks at the agenda again, after the clock was set.
    pub(crate) fn wake(&self) {
        self.wake.notify_one();
    }

    /// Tells the machines' keeper what to do, if there is one.
    pub(crate) fn order(&self, order: Order) {
        if let Some(machines) = &self.machines {
            // The keeper is gone only when the cloud is.
            let _ = machines.send(order);
        }
    }

    /// Lets the machines' keeper end, which switches every machine off.
    pub(crate) fn dismiss_machines(&mut self) {
        self.machines = None;
    }

    /// A number that grows.
    pub(crate) fn next_number(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    /// A new id of OCI's form.
    pub(crate) fn new_id(&self, kind: &str) -> String {
        let mut id = format!("ocid1.{kind}.oc1.{}.", self.settings.region_key);
        for _ in 0..4 {
            // Thirteen letters of five bits.
            let bits = fastrand::u64(..);
            id.extend((0..13).map(|letter| alphabet(bits >> (5 * letter))));
        }
        id
    }

    pub(crate) fn shape(&self, name: &str) -> Option<&ShapeSize> {
        self.settings.shapes.iter().find(|shape| shape.name == name)
    }

    /// Refuses a compartment that is not there.
    pub(crate) fn check_compartment(&self, id: &str) -> Result<(), Refusal> {
        let known = id == self.settings.tenancy
            || self.settings.compartments.iter().any(|compartment| compartment == id);
        if known { Ok(()) } else { Err(Refusal::not_found("compartment", id)) }
    }

    /// Refuses an availability domain that is not there.
    pub(crate) fn check_domain(&self, name: &str) -> Result<(), Refusal> {
        if self.settings.availability_domains.iter().any(|domain| domain == name) {
            return Ok(());
        }
        Err(Refusal::invalid(format!("availabilityDomain {name} is not one of this region")))
    }
}

/// The letter of the lowest five bits, as the unique part of an id is made of them.
fn alphabet(bits: u64) -> char {
    const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
    let place = usize::try_from(bits & 31).unwrap_or(0);
    ALPHABET.get(place).copied().map_or('a', char::from)
}

/// A random text of hexadecimal digits in upper case, as request ids have.
pub(crate) fn hex_id() -> String {
    format!("{:032X}", fastrand::u128(..))
}

/// The etag of what has none of its own: it changes with what is shown.
pub(crate) fn etag_of(view: &Map<String, Value>) -> String {
    // What we serialise has string keys only, so this does not fail.
    let text = serde_json::to_vec(view).unwrap_or_default();
    let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, &text);
    let bytes = digest.as_ref().iter().take(16);
    bytes.map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().concat()
}

/// A new etag.
pub(crate) fn etag() -> String {
    hex_id().to_lowercase()
}

//! The network: subnets and their addresses, VNICs and their attachments.

use crate::answer::{Answer, Outcome, Refusal};
use crate::error::Error;
use crate::instance::{Failure, Record, Vnic};
use crate::launch_request::LaunchRequest;
use crate::page::numbered;
use crate::query::{Call, Query};
use crate::settings::Subnet;
use crate::state::Attachment;
use crate::world::World;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::net::Ipv4Addr;

/// The addresses of a subnet.
#[derive(Debug)]
pub(crate) struct Addresses {
    first: u32,
    last: u32,
    next: u32,
    taken: BTreeSet<u32>,
    /// The host names in use, in lower case: DNS does not tell them apart.
    labels: BTreeSet<String>,
    /// True if the range is one address that everybody has.
    shared: bool,
}

impl Addresses {
    pub(crate) fn new(subnet: &Subnet) -> Result<Self, Error> {
        let bad = || Error::Subnet { subnet: subnet.id.clone(), cidr: subnet.cidr.clone() };
        let (base, bits) = subnet.cidr.split_once('/').ok_or_else(bad)?;
        let base = u32::from(base.parse::<Ipv4Addr>().map_err(|_| bad())?);
        let bits: u32 = bits.parse().ok().filter(|bits| *bits <= 32).ok_or_else(bad)?;
        let span = u32::MAX.checked_shr(bits).unwrap_or(0);
        let base = base & !span;
        // OCI keeps the first two addresses and the last; a range too small for that is shared.
        let (first, last) = match span {
            0..=2 => (base, base),
            _ => (base + 2, base + span - 1),
        };
        let shared = span <= 2;
        Ok(Self {
            first,
            last,
            next: first,
            taken: BTreeSet::new(),
            labels: BTreeSet::new(),
            shared,
        })
    }

    /// The address of the router, which is the first after the network's own; that of a range
    /// which everybody shares is its own.
    pub(crate) fn router(&self) -> Ipv4Addr {
        let router = if self.shared { self.first } else { self.first - 1 };
        router.into()
    }

    fn holds(&self, address: u32) -> bool {
        (self.first..=self.last).contains(&address)
    }

    fn take(&mut self, wanted: Option<Ipv4Addr>) -> Result<Ipv4Addr, Refusal> {
        if self.shared {
            return Ok(self.first.into());
        }
        let address = match wanted.map(u32::from) {
            Some(address) if !self.holds(address) => {
                let message = format!("privateIp {} is not in the subnet", Ipv4Addr::from(address));
                return Err(Refusal::invalid(message));
            }
            Some(address) if self.taken.contains(&address) => {
                let address = Ipv4Addr::from(address);
                return Err(Refusal::invalid(format!("privateIp {address} is already in use")));
            }
            Some(address) => address,
            None => self.free().ok_or_else(|| {
                Refusal::new(hyper::StatusCode::BAD_REQUEST, "LimitExceeded", "The subnet is full")
            })?,
        };
        self.taken.insert(address);
        Ok(address.into())
    }

    fn has_label(&self, label: &str) -> bool {
        self.labels.contains(&label.to_ascii_lowercase())
    }

    /// The next address that nobody has.
    fn free(&mut self) -> Option<u32> {
        let ahead = (self.next..=self.last).chain(self.first..self.next);
        let free = ahead.into_iter().find(|address| !self.taken.contains(address))?;
        self.next = if free == self.last { self.first } else { free + 1 };
        Some(free)
    }
}

impl World {
    /// Why a launch fails whose host name is taken: OCI accepts it, and finds out when it makes the VNIC.
    pub(crate) fn taken_label(&self, request: &LaunchRequest) -> Option<Failure> {
        let (label, subnet) = (request.label.as_deref()?, &request.subnet);
        let taken = self.addresses.get(subnet)?.has_label(label);
        taken.then(|| Failure {
            code: "vcn-error".to_owned(),
            message: format!(
                "A problem occurred while preparing the instance's VNIC.  (Hostname {label} is already used in subnet {subnet})"
            ),
        })
    }

    /// A VNIC for a launch, with its address taken; it has a host name only if nobody else has that.
    pub(crate) fn new_vnic(
        &mut self,
        request: &LaunchRequest,
        number: u64,
    ) -> Result<Vnic, Refusal> {
        let addresses = self.addresses.get_mut(&request.subnet);
        let addresses = addresses.ok_or_else(|| Refusal::related("subnet", &request.subnet))?;
        let label = request.label.clone().filter(|label| !addresses.has_label(label));
        let address = addresses.take(request.address)?;
        addresses.labels.extend(label.as_deref().map(str::to_ascii_lowercase));
        let [.., a, b, c] = number.to_be_bytes();
        Ok(Vnic {
            id: self.new_id("vnic"),
            subnet: request.subnet.clone(),
            name: request.vnic_name.clone().unwrap_or_default(),
            label,
            address,
            mac: format!("02:00:17:{a:02x}:{b:02x}:{c:02x}"),
            groups: request.groups.clone(),
            state: Attachment::Hidden,
        })
    }

    /// Frees the address and the label of an instance that has ended.
    pub(crate) fn release(&mut self, id: &str) {
        let Some(record) = self.instances.get_mut(id) else {
            return;
        };
        // A launch that was going to fail never had a VNIC that could be seen.
        if !record.doomed {
            record.vnic.state = Attachment::Detached;
        }
        let vnic = &record.vnic;
        if let Some(addresses) = self.addresses.get_mut(&vnic.subnet) {
            addresses.taken.remove(&u32::from(vnic.address));
            if let Some(label) = &vnic.label {
                addresses.labels.remove(&label.to_ascii_lowercase());
            }
        }
        self.drop_boot_volume(id);
    }

    /// Moves a VNIC attachment on, unless it has ended.
    pub(crate) fn move_vnic(&mut self, id: &str, to: Attachment) {
        let Some(record) = self.instances.get_mut(id) else {
            return;
        };
        if record.vnic.state != Attachment::Detached {
            record.vnic.state = to;
            self.index.touch(id);
        }
    }

    /// The instance that has or had this VNIC, whatever has become of it.
    fn with_vnic(&self, id: &str) -> Option<&Record> {
        self.index.holder(id).and_then(|id| self.instances.get(id))
    }

    fn vnic_holder(&self, id: &str) -> Result<&Record, Refusal> {
        let holder = self.with_vnic(id);
        let attached = holder.filter(|record| record.vnic.state == Attachment::Attached);
        attached.ok_or_else(|| Refusal::not_found("vnic", id))
    }

    /// The instances that a list has to look at: one, if the query names it or its VNIC.
    fn candidates(&self, query: &Query) -> Box<dyn Iterator<Item = &Record> + '_> {
        match (query.get("instanceId"), query.get("vnicId")) {
            (Some(id), _) => Box::new(self.instances.get(id).into_iter()),
            (None, Some(vnic)) => Box::new(self.with_vnic(vnic).into_iter()),
            (None, None) => Box::new(self.instances.values()),
        }
    }
}

const VNIC: &str = "ocid1.vnic.";
const ATTACHMENT: &str = "ocid1.vnicattachment.";

/// The id of the attachment that belongs to a VNIC.
fn attachment_id(vnic: &Vnic) -> String {
    vnic.id.replacen(VNIC, ATTACHMENT, 1)
}

fn attachment_view(record: &Record) -> Value {
    let Record { instance, vnic, .. } = record;
    let known = vnic.state != Attachment::Attaching;
    json!({
        "id": attachment_id(vnic),
        "availabilityDomain": instance.availability_domain,
        "compartmentId": instance.compartment_id,
        "displayName": null,
        "instanceId": instance.id,
        "lifecycleState": vnic.state,
        "nicIndex": 0,
        "subnetId": vnic.subnet,
        "vlanId": null,
        "timeCreated": instance.time_created,
        "vlanTag": 1042,
        "vnicId": known.then_some(&vnic.id),
    })
}

fn vnic_view(record: &Record) -> Value {
    let Record { instance, vnic, .. } = record;
    json!({
        "id": vnic.id,
        "availabilityDomain": instance.availability_domain,
        "compartmentId": instance.compartment_id,
        "definedTags": {},
        "freeformTags": {},
        "displayName": vnic.name,
        "hostnameLabel": vnic.label,
        "isPrimary": true,
        "lifecycleState": "AVAILABLE",
        "macAddress": vnic.mac,
        "nsgIds": vnic.groups,
        "privateIp": vnic.address,
        "publicIp": null,
        "ipv6Addresses": null,
        "skipSourceDestCheck": false,
        "subnetId": vnic.subnet,
        "vlanId": null,
        "timeCreated": instance.time_created,
        "routeTableId": null,
        "securityAttributes": {},
    })
}

fn private_ip_view(record: &Record) -> Value {
    let Record { instance, vnic, .. } = record;
    json!({
        "id": vnic.id.replacen(VNIC, "ocid1.privateip.", 1),
        "availabilityDomain": null,
        "compartmentId": instance.compartment_id,
        "definedTags": {},
        "freeformTags": {},
        "displayName": vnic.name,
        "hostnameLabel": vnic.label,
        "ipAddress": vnic.address,
        "isPrimary": true,
        "isReserved": false,
        "lifetime": "EPHEMERAL",
        "subnetId": vnic.subnet,
        "timeCreated": instance.time_created,
        "vlanId": null,
        "vnicId": vnic.id,
    })
}

/// `GET /20160918/vnicAttachments`.
pub(crate) fn list_attachments(world: &mut World, call: &Call<'_>) -> Outcome {
    let query = &call.query;
    let compartment = query.require("compartmentId")?;
    world.check_compartment(compartment)?;
    let rows = world.candidates(query).filter(|record| {
        record.vnic.state != Attachment::Hidden
            && record.instance.compartment_id == compartment
            && query.allows("instanceId", record.id())
            && query.allows("vnicId", &record.vnic.id)
            && query.allows("availabilityDomain", &record.instance.availability_domain)
    });
    let rows = rows.map(|record| (record.number, record));
    numbered(rows, query, (world.settings.page_size, false), attachment_view)
}

/// `GET /20160918/vnicAttachments/{id}`.
pub(crate) fn get_attachment(world: &mut World, call: &Call<'_>) -> Outcome {
    let id = call.segment(0);
    let vnic = id.strip_prefix(ATTACHMENT).map(|rest| format!("{VNIC}{rest}"));
    let record = vnic.and_then(|vnic| world.with_vnic(&vnic));
    let record = record.filter(|record| record.vnic.state != Attachment::Hidden);
    let record = record.ok_or_else(|| Refusal::not_found("vnic attachment", id))?;
    Ok(Answer::json(&attachment_view(record)).header("etag", &record.etag))
}

/// `GET /20160918/vnics/{id}`.
pub(crate) fn get_vnic(world: &mut World, call: &Call<'_>) -> Outcome {
    let record = world.vnic_holder(call.segment(0))?;
    Ok(Answer::json(&vnic_view(record)).header("etag", &record.etag))
}

/// `GET /20160918/privateIps`.
pub(crate) fn list_private_ips(world: &mut World, call: &Call<'_>) -> Outcome {
    let query = &call.query;
    match (query.get("subnetId"), query.get("vnicId")) {
        (None, None) => return Err(Refusal::missing("subnetId or vnicId")),
        (Some(subnet), _) if !world.addresses.contains_key(subnet) => {
            return Err(Refusal::not_found("subnet", subnet));
        }
        (_, Some(vnic)) => drop(world.vnic_holder(vnic)?.id()),
        (Some(_), None) => {}
    }
    let wanted = |address: Ipv4Addr| {
        query.get("ipAddress").is_none_or(|wanted| wanted == address.to_string())
    };
    let rows = world.candidates(query).filter(|record| {
        record.vnic.state == Attachment::Attached
            && query.allows("subnetId", &record.vnic.subnet)
            && query.allows("vnicId", &record.vnic.id)
            && wanted(record.vnic.address)
    });
    let rows = rows.map(|record| (record.number, record));
    numbered(rows, query, (world.settings.page_size, false), private_ip_view)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses(cidr: &str) -> Addresses {
        Addresses::new(&Subnet {
            id: "s".to_owned(),
            name: "s".to_owned(),
            cidr: cidr.to_owned(),
            vcn: "v".to_owned(),
            freeform_tags: std::collections::BTreeMap::new(),
        })
        .unwrap()
    }

    #[test]
    fn a_range_with_one_free_address_is_full_after_one() {
        let mut small = addresses("10.1.0.0/30");
        assert_eq!(small.take(None).unwrap(), Ipv4Addr::new(10, 1, 0, 2));
        assert_eq!(small.take(None).unwrap_err().code, "LimitExceeded");
        let mut shared = addresses("127.0.0.1/32");
        for _ in 0..3 {
            assert_eq!(shared.take(None).unwrap(), Ipv4Addr::LOCALHOST);
        }
    }
}

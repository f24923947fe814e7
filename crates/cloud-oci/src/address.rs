//! Private addresses: of few instances one by one, of many in a handful of requests for all.

use crate::api::{Path, Query, Service};
use crate::page::{Listing, Of};
use crate::provider::Oci;
use crate::wire::{PrivateIp, Vnic, VnicAttachment};
use cloud_core::http::Method;
use cloud_core::{ApiOperation, Error, ErrorKind, InstanceId, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// Maximum number of instances to query one by one, with two requests each.
const FEW: usize = 2;

const OPERATION: ApiOperation = ApiOperation::Addresses;

impl Oci {
    pub(crate) async fn find_addresses(
        &self,
        ids: &[InstanceId],
    ) -> Result<BTreeMap<InstanceId, IpAddr>> {
        let wanted: BTreeSet<&str> = ids.iter().map(InstanceId::as_str).collect();
        if wanted.len() > FEW {
            return self.addresses_of_many(&wanted).await;
        }
        let mut addresses = BTreeMap::new();
        for id in wanted {
            if let Some(address) = self.address_of(id).await? {
                addresses.insert(InstanceId::new(id), address);
            }
        }
        Ok(addresses)
    }

    /// The attachments of the whole compartment, joined with the addresses of their subnets.
    async fn addresses_of_many(
        &self,
        wanted: &BTreeSet<&str>,
    ) -> Result<BTreeMap<InstanceId, IpAddr>> {
        let of = Of::Compartment(&self.site.compartment);
        let attachments: Vec<VnicAttachment> =
            listing(&["vnicAttachments"], of, &[]).all(&self.api).await?;
        let attachments = attachments
            .into_iter()
            .filter(|a| a.instance_id.as_deref().is_some_and(|id| wanted.contains(id)));
        let first = first_of_each(attachments);
        let subnets: BTreeSet<&str> =
            first.values().filter_map(|attachment| attachment.subnet_id.as_deref()).collect();
        let mut by_vnic = BTreeMap::new();
        for subnet in subnets {
            let addresses = listing(&["privateIps"], Of::Subnet(subnet), &[]);
            by_vnic.extend(primary(addresses.all::<PrivateIp>(&self.api).await?));
        }
        let address = |attachment: &VnicAttachment| by_vnic.get(attachment.vnic_id.as_ref()?);
        let found = first.iter().filter_map(|(id, attachment)| {
            Some((InstanceId::new(id.clone()), *address(attachment)?))
        });
        Ok(found.collect())
    }

    async fn address_of(&self, id: &str) -> Result<Option<IpAddr>> {
        let attachments = match self.attachments(id).await {
            Ok(attachments) => attachments,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return self.gone_or_hidden(id, error).await.map(|()| None);
            }
            Err(error) => return Err(error),
        };
        let mut attached: Vec<VnicAttachment> =
            attachments.into_iter().filter(|a| a.instance_id.as_deref() == Some(id)).collect();
        attached.retain(is_attached);
        attached.sort_by(|a, b| order(a).cmp(&order(b)));
        for attachment in attached {
            let vnic = self.vnic(id, &attachment).await?;
            if let Some(vnic) = vnic.filter(|vnic| vnic.is_primary != Some(false)) {
                return Ok(vnic.private_ip.and_then(|address| address.parse().ok()));
            }
        }
        Ok(None)
    }

    /// OCI returns the same error for an instance that is gone and for a forbidden listing.
    async fn gone_or_hidden(&self, id: &str, error: Error) -> Result<()> {
        match self.read_instance(&InstanceId::new(id)).await {
            Ok(_there) => Err(error.with_kind(ErrorKind::Forbidden)),
            Err(gone) if gone.kind() == ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// The VNIC of an attachment; none if it has none yet or was detached.
    async fn vnic(&self, id: &str, attachment: &VnicAttachment) -> Result<Option<Vnic>> {
        let Some(vnic) = &attachment.vnic_id else {
            return Ok(None);
        };
        let place = (Service::Core, &["vnics", vnic.as_str()][..]);
        let request = self.api.request(OPERATION, Method::GET, place, &[])?.on(id);
        match self.api.read(&request).await {
            Ok(vnic) => Ok(Some(vnic)),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let now = self.attachments(id).await?;
                let is_it = |it: &VnicAttachment| it.vnic_id == attachment.vnic_id;
                if now.iter().any(|it| is_it(it) && is_attached(it)) {
                    return Err(error.with_kind(ErrorKind::Forbidden));
                }
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// The attachments of an instance, which may be gone.
    async fn attachments(&self, id: &str) -> Result<Vec<VnicAttachment>> {
        let query = [("compartmentId", self.site.compartment.as_str()), ("instanceId", id)];
        listing(&["vnicAttachments"], Of::WhatMayBeGone, &query).all(&self.api).await
    }
}

fn listing<'a>(path: Path<'a>, of: Of<'a>, query: Query<'a>) -> Listing<'a> {
    Listing { operation: OPERATION, service: Service::Core, path, of, query }
}

fn is_attached(attachment: &VnicAttachment) -> bool {
    attachment.lifecycle_state.as_deref() == Some("ATTACHED")
}

/// The primary one is the first: on the first card, and created with the instance.
fn order(attachment: &VnicAttachment) -> (Option<u32>, Option<&str>) {
    (attachment.nic_index, attachment.time_created.as_deref())
}

/// The first attached network card of each instance.
fn first_of_each(
    attachments: impl Iterator<Item = VnicAttachment>,
) -> BTreeMap<String, VnicAttachment> {
    let mut first: BTreeMap<String, VnicAttachment> = BTreeMap::new();
    for attachment in attachments.filter(is_attached) {
        let Some(id) = attachment.instance_id.clone() else {
            continue;
        };
        let earlier = first.get(&id).is_some_and(|seen| order(seen) <= order(&attachment));
        if !earlier {
            first.insert(id, attachment);
        }
    }
    first
}

/// The primary address of each network card.
fn primary(addresses: Vec<PrivateIp>) -> impl Iterator<Item = (String, IpAddr)> {
    let primary = addresses.into_iter().filter(|address| address.is_primary != Some(false));
    primary.filter_map(|address| Some((address.vnic_id?, address.ip_address?.parse().ok()?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attachment(instance: &str, vnic: &str, state: &str, made: &str) -> VnicAttachment {
        VnicAttachment {
            instance_id: Some(instance.to_owned()),
            lifecycle_state: Some(state.to_owned()),
            nic_index: Some(0),
            subnet_id: Some("s".to_owned()),
            time_created: Some(made.to_owned()),
            vnic_id: Some(vnic.to_owned()),
        }
    }

    #[test]
    fn the_card_that_came_with_the_instance_is_the_first() {
        let attachments = [
            attachment("i", "second", "ATTACHED", "2026-01-02"),
            attachment("i", "first", "ATTACHED", "2026-01-01"),
            attachment("i", "gone", "DETACHED", "2025-01-01"),
            attachment("j", "coming", "ATTACHING", "2026-01-01"),
        ];
        let first = first_of_each(attachments.into_iter());
        let first: Vec<_> =
            first.iter().map(|(id, a)| (id.as_str(), a.vnic_id.as_deref().unwrap())).collect();
        assert_eq!(first, [("i", "first")]);
    }
}

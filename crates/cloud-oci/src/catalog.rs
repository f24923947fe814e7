//! Lists shapes, availability domains, fault domains and subnets.

use crate::api::Service;
use crate::page::{Listing, Of};
use crate::provider::Oci;
use crate::{convert, wire};
use cloud_core::{ApiOperation, FaultDomain, Result, Shape, SubnetId, Tags, Zone};
use std::collections::BTreeMap;

/// A subnet.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Subnet {
    /// OCI's id.
    pub id: SubnetId,
    /// The display name.
    pub name: String,
    /// Its tags.
    pub tags: Tags,
    /// Its network.
    pub vcn: Option<String>,
    /// Its availability domain, unless it is regional.
    pub zone: Option<Zone>,
}

impl Oci {
    /// The availability domains of the region.
    pub async fn zones(&self) -> Result<Vec<Zone>> {
        let domains = self.domains("availabilityDomains", None).await?;
        Ok(domains.into_iter().map(Zone::new).collect())
    }

    /// The fault domains of an availability domain.
    pub async fn fault_domains(&self, zone: &Zone) -> Result<Vec<FaultDomain>> {
        let domains = self.domains("faultDomains", Some(zone)).await?;
        Ok(domains.into_iter().map(FaultDomain::new).collect())
    }

    /// The subnets with these tags, of one network or of all.
    pub async fn subnets(&self, vcn: Option<&str>, tags: &Tags) -> Result<Vec<Subnet>> {
        let vcn = vcn.map(|vcn| ("vcnId", vcn));
        let listing = Listing {
            operation: ApiOperation::Configure,
            service: Service::Core,
            path: &["subnets"],
            of: Of::Compartment(&self.site.compartment),
            query: vcn.as_slice(),
        };
        let subnets: Vec<wire::Subnet> = listing.all(&self.api).await?;
        let there = |subnet: &wire::Subnet| {
            !matches!(subnet.lifecycle_state.as_deref(), Some("TERMINATING" | "TERMINATED"))
        };
        let subnets = subnets.into_iter().filter(there).map(|subnet| Subnet {
            id: SubnetId::new(subnet.id),
            name: subnet.display_name.unwrap_or_default(),
            tags: subnet.freeform_tags.into_iter().collect(),
            vcn: subnet.vcn_id,
            zone: subnet.availability_domain.map(Zone::new),
        });
        Ok(subnets.filter(|subnet| subnet.tags.include(tags)).collect())
    }

    /// Every shape, with the availability domains that offer it.
    pub(crate) async fn find_shapes(&self) -> Result<Vec<Shape>> {
        let mut shapes: BTreeMap<String, Shape> = BTreeMap::new();
        for zone in self.zones().await? {
            let listing = Listing {
                operation: ApiOperation::Shapes,
                service: Service::Core,
                path: &["shapes"],
                of: Of::Compartment(&self.site.compartment),
                query: &[("availabilityDomain", zone.as_str())],
            };
            for shape in listing.all::<wire::Shape>(&self.api).await? {
                let name = shape.name.clone();
                let shape = shapes.entry(name).or_insert_with(|| convert::shape(shape));
                shape.zones.push(zone.clone());
            }
        }
        Ok(shapes.into_values().collect())
    }

    /// These listings have one page and no page size.
    async fn domains(&self, kind: &str, zone: Option<&Zone>) -> Result<Vec<String>> {
        let mut query = vec![("compartmentId", self.site.compartment.as_str())];
        query.extend(zone.map(|zone| ("availabilityDomain", zone.as_str())));
        let place = (Service::Identity, &[kind][..]);
        let method = cloud_core::http::Method::GET;
        let request = self.api.request(ApiOperation::Shapes, method, place, &query)?.on(kind);
        let of = Of::Compartment(&self.site.compartment);
        let domains: Result<Vec<wire::Domain>> = self.api.read(&request).await;
        let domains = domains.map_err(|error| of.explain(error))?;
        Ok(domains.into_iter().map(|domain| domain.name).collect())
    }
}

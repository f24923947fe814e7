//! Limits, their use, and capacity.

use crate::api::{Service, with_token};
use crate::launch::fault_domain;
use crate::page::{Listing, Of};
use crate::provider::Oci;
use crate::size::sized;
use crate::wire::{self, LimitValue, ResourceAvailability};
use cloud_core::http::{Authorize as _, Method};
use cloud_core::{
    ApiOperation, Error, ErrorKind, FaultDomain, Limit, Result, Room, ShapeName, Zone,
};
use serde_json::{Map, Value, json};

const OPERATION: ApiOperation = ApiOperation::Limits;

/// The current capacity for a shape.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ShapeCapacity {
    /// The shape.
    pub shape: ShapeName,
    /// The fault domain, if requested.
    pub fault_domain: Option<FaultDomain>,
    /// The status of the capacity.
    pub status: CapacityStatus,
    /// The number of machines, if OCI reports it.
    pub count: Option<u64>,
}

/// The status of the capacity for a shape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CapacityStatus {
    /// Machines are available.
    Available,
    /// No machines are available now.
    OutOfHostCapacity,
    /// The shape is not available here.
    NotSupported,
    /// An unknown status.
    Other(String),
}

impl Oci {
    /// Lists the limits of compute in all availability domains. Their use needs a request for each, see
    /// [`resource_availability`](Self::resource_availability).
    pub(crate) async fn find_limits(&self) -> Result<Vec<Limit>> {
        let tenancy = self.tenancy().await?;
        let listing = Listing {
            operation: OPERATION,
            service: Service::Limits,
            path: &["limitValues"],
            of: Of::Tenancy(&tenancy),
            query: &[("serviceName", "compute")],
        };
        let values: Vec<LimitValue> = listing.all(&self.api).await?;
        let limit = |value: LimitValue| Limit {
            name: value.name,
            zone: value.availability_domain.map(Zone::new),
            most: value.value.and_then(|value| u64::try_from(value).ok()),
            used: None,
        };
        Ok(values.into_iter().map(limit).collect())
    }

    /// Returns the limit with its current use and maximum.
    pub async fn resource_availability(&self, limit: &Limit) -> Result<Limit> {
        let tenancy = self.tenancy().await?;
        let path = ["services", "compute", "limits", &limit.name, "resourceAvailability"];
        let mut query = vec![("compartmentId", tenancy.as_str())];
        query.extend(limit.zone.as_ref().map(|zone| ("availabilityDomain", zone.as_str())));
        let place = (Service::Limits, &path[..]);
        let request = self.api.request(OPERATION, Method::GET, place, &query)?.on(&limit.name);
        let now: ResourceAvailability = self.api.read(&request).await?;
        let number = |value: Option<i64>| value.and_then(|value| u64::try_from(value).ok());
        let (used, left) = (number(now.used), number(now.available));
        let most = used.zip(left).and_then(|(used, left)| used.checked_add(left));
        Ok(Limit { used, most: most.or(limit.most), ..limit.clone() })
    }

    /// Returns the capacity for shapes in an availability domain, without a launch.
    pub async fn capacity(
        &self,
        zone: &Zone,
        shapes: &[(ShapeName, Option<FaultDomain>)],
    ) -> Result<Vec<ShapeCapacity>> {
        let tenancy = self.tenancy().await?;
        let wanted = shapes.iter().map(|(shape, domain)| {
            let (shape, size) = sized(shape);
            let mut wanted = Map::from_iter([("instanceShape".to_owned(), json!(shape))]);
            let domain = domain.as_ref().map(|domain| json!(fault_domain(domain)));
            wanted.extend(domain.map(|domain| ("faultDomain".to_owned(), domain)));
            wanted.extend(size.map(|size| ("instanceShapeConfig".to_owned(), size.config())));
            Value::Object(wanted)
        });
        let details = json!({
            "compartmentId": tenancy,
            "availabilityDomain": zone.as_str(),
            "shapeAvailabilities": wanted.collect::<Vec<_>>(),
        });
        let place = (Service::Core, &["computeCapacityReports"][..]);
        let request = self.api.request(OPERATION, Method::POST, place, &[])?.on(zone);
        let request = with_token(request.with_json(&details)?, &self.token())?;
        let report: wire::CapacityReport = self.api.read(&request).await?;
        Ok(report.shape_availabilities.into_iter().filter_map(capacity).collect())
    }

    /// Whether an availability domain has machines of a shape.
    pub(crate) async fn find_room(&self, shape: &ShapeName, zone: &Zone) -> Result<Room> {
        let report = self.capacity(zone, &[(shape.clone(), None)]).await?;
        match report.first().map(|found| (&found.status, found.count)) {
            Some((CapacityStatus::Available, count)) => {
                Ok(count.map_or(Room::Some, Room::Machines))
            }
            Some((CapacityStatus::OutOfHostCapacity | CapacityStatus::NotSupported, _)) => {
                Ok(Room::None)
            }
            Some((CapacityStatus::Other(_), _)) | None => {
                Err(Error::new(ErrorKind::Protocol, OPERATION).on(zone).because("unknown status"))
            }
        }
    }

    /// The tenancy, to which limits apply.
    async fn tenancy(&self) -> Result<String> {
        if let Some(tenancy) = &self.tenancy {
            return Ok(tenancy.clone());
        }
        let identity = self.api.signer.credential().await?;
        let unknown = || Error::new(ErrorKind::Invalid, OPERATION).because("no tenancy is known");
        identity.value.tenancy.clone().ok_or_else(unknown)
    }
}

fn capacity(from: wire::ShapeAvailability) -> Option<ShapeCapacity> {
    let status = match from.availability_status.as_deref().unwrap_or("unknown") {
        "AVAILABLE" => CapacityStatus::Available,
        "OUT_OF_HOST_CAPACITY" => CapacityStatus::OutOfHostCapacity,
        "HARDWARE_NOT_SUPPORTED" => CapacityStatus::NotSupported,
        other => CapacityStatus::Other(other.to_owned()),
    };
    Some(ShapeCapacity {
        shape: ShapeName::new(from.instance_shape?),
        fault_domain: from.fault_domain.map(FaultDomain::new),
        status,
        count: from.available_count,
    })
}

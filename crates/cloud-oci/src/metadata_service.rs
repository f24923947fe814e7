//! What a machine of OCI learns about itself, by the metadata service of version 2.

use crate::instance_principal::{METADATA, Metadata};
use async_trait::async_trait;
use cloud_core::http::{ClientConfig, Url};
use cloud_core::{
    ApiOperation, Error, ErrorKind, Interruption, InterruptionKind, MachineMetadata, Result,
};
use serde::Deserialize;
use std::fmt;
use std::time::SystemTime;

/// The metadata service of OCI, asked by a machine about itself.
///
/// OCI documents no field for the notice of a preemption. What it documents is the state of the instance, which is
/// TERMINATING from the moment when the instance is reclaimed, and `timeMaintenanceRebootDue`.
pub struct MetadataService(Metadata);

impl MetadataService {
    /// Asks at this base, or in the usual place; directly, because there is no proxy between a machine and its metadata.
    pub fn new(http: &ClientConfig, base: Option<Url>) -> Result<Self> {
        let usual = || {
            Url::parse(METADATA).map_err(|cause| {
                Error::new(ErrorKind::Invalid, ApiOperation::Configure).caused_by(cause)
            })
        };
        Ok(Self(Metadata::new(http, base.map_or_else(usual, Ok)?)?))
    }

    async fn document<T: for<'de> Deserialize<'de>>(&self, path: &str) -> Result<T> {
        let text = self.0.read(ApiOperation::Metadata, path).await?;
        serde_json::from_str(&text).map_err(|cause| {
            let error = Error::new(ErrorKind::Protocol, ApiOperation::Metadata);
            error.on(format!("metadata {path}")).caused_by(cause)
        })
    }
}

impl fmt::Debug for MetadataService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MetadataService").finish_non_exhaustive()
    }
}

#[async_trait]
impl MachineMetadata for MetadataService {
    async fn interruption(&self) -> Result<Option<Interruption>> {
        Ok(self.document::<Itself>("instance/").await?.interruption())
    }

    async fn location(&self) -> Result<Vec<String>> {
        match self.document::<Host>("host/").await {
            Ok(host) => Ok(host.location()),
            // Not every shape has it.
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }
}

/// What the service says about the instance.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Itself {
    state: Option<String>,
    time_maintenance_reboot_due: Option<String>,
}

impl Itself {
    pub(crate) fn interruption(&self) -> Option<Interruption> {
        let state = self.state.as_deref().unwrap_or_default();
        if state.eq_ignore_ascii_case("terminating") || state.eq_ignore_ascii_case("terminated") {
            return Some(Interruption { kind: InterruptionKind::Preemption, at: None });
        }
        let due = self.time_maintenance_reboot_due.as_deref()?;
        let at = due.parse::<jiff::Timestamp>().ok().map(SystemTime::from);
        Some(Interruption { kind: InterruptionKind::Maintenance, at })
    }
}

/// What the service says about the host.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Host {
    network_block_id: Option<String>,
    rack_id: Option<String>,
    rdma_topology_data: Option<Rdma>,
}

/// Where a machine of a cluster network is.
#[derive(Deserialize)]
struct Rdma {
    #[serde(rename = "customerHPCIslandId")]
    island: Option<String>,
    #[serde(rename = "customerNetworkBlock")]
    network_block: Option<String>,
    #[serde(rename = "customerLocalBlock")]
    local_block: Option<String>,
}

impl Host {
    /// The blocks of a cluster network, where the machine is in one; else network block and rack.
    pub(crate) fn location(self) -> Vec<String> {
        let units = match self.rdma_topology_data {
            Some(Rdma { island, network_block, local_block }) => {
                [island, network_block, local_block]
            }
            None => [self.network_block_id, self.rack_id, None],
        };
        units.into_iter().flatten().filter(|unit| !unit.is_empty()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn interruption(text: &str) -> Option<Interruption> {
        serde_json::from_str::<Itself>(text).unwrap().interruption()
    }

    #[test]
    fn a_machine_that_is_reclaimed_or_due_for_a_reboot_is_told_from_others() {
        assert_eq!(interruption(r#"{"state": "Running", "timeMaintenanceRebootDue": null}"#), None);
        assert_eq!(interruption(r#"{"id": "x"}"#), None);
        let preempted = interruption(
            r#"{"state": "Terminating", "timeMaintenanceRebootDue": "2026-12-01T00:00:00Z"}"#,
        );
        assert_eq!(preempted.unwrap().kind, InterruptionKind::Preemption);
        let due = interruption(
            r#"{"state": "Running", "timeMaintenanceRebootDue": "1970-01-02T00:00:00.000Z"}"#,
        );
        let at = SystemTime::UNIX_EPOCH + Duration::from_hours(24);
        assert_eq!(due, Some(Interruption { kind: InterruptionKind::Maintenance, at: Some(at) }));
    }

    #[test]
    fn a_machine_is_in_blocks_of_its_cluster_network_or_in_a_rack() {
        let location = |text| serde_json::from_str::<Host>(text).unwrap().location();
        assert_eq!(
            location(r#"{"networkBlockId": "n1", "rackId": "r1", "buildingId": "b"}"#),
            ["n1", "r1"]
        );
        let rdma = r#"{"networkBlockId": "n1", "rackId": "r1", "rdmaTopologyData":
            {"customerHPCIslandId": "i", "customerNetworkBlock": "n", "customerLocalBlock": "l"}}"#;
        assert_eq!(location(rdma), ["i", "n", "l"]);
        assert!(location("{}").is_empty());
    }
}

//! An instance as OCI shows it, and what the cloud knows of it beside.

use crate::state::{Attachment, State};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::VecDeque;
use std::net::Ipv4Addr;

/// An instance, field for field as in OCI's answers.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
#[expect(missing_docs, reason = "OCI's own words, which its reference explains")]
pub struct Instance {
    pub id: String,
    pub availability_domain: String,
    pub compartment_id: String,
    pub display_name: String,
    pub fault_domain: String,
    pub freeform_tags: Map<String, Value>,
    pub defined_tags: Map<String, Value>,
    pub system_tags: Map<String, Value>,
    pub extended_metadata: Map<String, Value>,
    pub metadata: Map<String, Value>,
    pub region: String,
    pub shape: String,
    pub shape_config: Value,
    pub source_details: Option<Value>,
    pub image_id: Option<String>,
    pub time_created: String,
    pub launch_mode: String,
    pub launch_options: Value,
    pub instance_options: Value,
    pub availability_config: Value,
    pub agent_config: Value,
    pub preemptible_instance_config: Option<Value>,
    pub capacity_reservation_id: Option<String>,
    pub dedicated_vm_host_id: Option<String>,
    pub ipxe_script: Option<String>,
    pub platform_config: Option<Value>,
    pub time_maintenance_reboot_due: Option<String>,
    pub is_cross_numa_node: bool,
    pub lifecycle_state: State,
}

/// The one network card of an instance.
#[derive(Clone, Debug)]
pub(crate) struct Vnic {
    pub(crate) id: String,
    pub(crate) subnet: String,
    pub(crate) name: String,
    pub(crate) label: Option<String>,
    pub(crate) address: Ipv4Addr,
    pub(crate) mac: String,
    pub(crate) groups: Vec<Value>,
    pub(crate) state: Attachment,
}

/// A step of a lifecycle: the state to enter after so many seconds.
pub(crate) type Step = (State, f64);

/// Why a launch that was accepted fails.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    pub(crate) code: String,
    pub(crate) message: String,
}

/// An instance with what its owner cannot see.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    pub(crate) instance: Instance,
    pub(crate) vnic: Vnic,
    pub(crate) etag: String,
    /// The order of creation.
    pub(crate) number: u64,
    pub(crate) ocpus: f64,
    pub(crate) memory: f64,
    /// The steps still to come.
    pub(crate) plan: VecDeque<Step>,
    /// Grows with each new plan, so that the steps of an old one are recognised.
    pub(crate) version: u64,
    /// The work request that ends with the plan.
    pub(crate) work: Option<String>,
    /// If the plan is going to fail, why.
    pub(crate) failure: Option<Failure>,
    /// True if the launch was going to fail, so that it never had room or a VNIC.
    pub(crate) doomed: bool,
    /// How often its machine was switched on.
    pub(crate) boots: u64,
    pub(crate) boot_volume: String,
    /// True if its machine has been told that it is going to be taken away.
    pub(crate) preempted: bool,
    /// The compute cluster it is in: lists can ask for it, and no answer tells.
    pub(crate) compute_cluster: Option<String>,
}

impl Record {
    pub(crate) fn id(&self) -> &str {
        &self.instance.id
    }

    pub(crate) fn state(&self) -> State {
        self.instance.lifecycle_state
    }
}

//! The clouds that a cluster can be in, as far as all of them are alike.

use crate::patience::PATIENCE;
use cloud_sim::Cloud;
use std::time::Duration;

/// A cloud.
pub trait Site {
    /// The machines that are there, or on their way.
    fn present(&self) -> Vec<Machine>;

    /// How long something may take in it.
    fn patience(&self) -> Duration {
        PATIENCE
    }
}

/// A machine, as its cloud tells of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    /// What the cloud calls it.
    pub id: String,
    /// The node that it is for.
    pub name: String,
    /// Its state, in the cloud's own word.
    pub state: String,
    /// Where it is.
    pub zone: String,
    /// Its address; empty if it has none yet.
    pub address: String,
    /// The id of its image.
    pub image: String,
}

impl Site for Cloud {
    fn present(&self) -> Vec<Machine> {
        let admin = self.admin();
        let mut all = admin.instances();
        all.retain(|instance| instance.lifecycle_state.is_live());
        let machine = |instance: cloud_sim::Instance| Machine {
            address: admin.address(&instance.id).map(|at| at.to_string()).unwrap_or_default(),
            id: instance.id,
            name: instance.display_name,
            state: format!("{:?}", instance.lifecycle_state).to_uppercase(),
            zone: instance.availability_domain,
            image: instance.image_id.unwrap_or_default(),
        };
        all.into_iter().map(machine).collect()
    }
}

//! A cloud of your own behind the port, driven by the same runs: `cargo run -p provision --example own_cloud`.
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use async_trait::async_trait;
use cloud_core::{
    ApiOperation, Description, Error, ErrorKind, ImageId, Instance, InstanceFilter, InstanceId,
    InstanceSpec, InstanceState, Provider, Reboot,
};
use hostlist::Hostlist;
use provision::run::{Run, RunRequest, execute};
use provision::state::MemoryState;
use provision::{Identity, Roster, Site, Tools};
use slurmconf::Config;
use slurmctl::memory::{MemorySlurm, MemorySlurmSettings};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Mutex, MutexGuard, PoisonError};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// Four machines in a closet, which run as soon as they are switched on.
#[derive(Debug, Default)]
struct Closet(Mutex<Vec<Instance>>);

impl Closet {
    const MACHINES: usize = 4;

    fn machines(&self) -> MutexGuard<'_, Vec<Instance>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Provider for Closet {
    fn describe(&self) -> Description {
        let mut description = Description::new("closet");
        description.zone_term = "shelf";
        description
    }

    async fn list(&self, filter: &InstanceFilter) -> cloud_core::Result<Vec<Instance>> {
        Ok(filter.keep(self.machines().clone()))
    }

    async fn get(&self, id: &InstanceId) -> cloud_core::Result<Instance> {
        let found = self.machines().iter().find(|machine| machine.id == *id).cloned();
        found.ok_or_else(|| Error::new(ErrorKind::NotFound, ApiOperation::Get).on(id))
    }

    async fn launch(&self, spec: &InstanceSpec) -> cloud_core::Result<Instance> {
        self.describe().check(spec)?;
        let mut machines = self.machines();
        if machines.len() >= Self::MACHINES {
            return Err(Error::new(ErrorKind::Capacity, ApiOperation::Launch).on(&spec.name));
        }
        let number = (1..=u8::MAX).find(|number| {
            let id = format!("machine-{number}");
            machines.iter().all(|machine| machine.id.as_str() != id)
        });
        let number = number.unwrap_or_default();
        let mut machine = Instance::launched(InstanceId::new(format!("machine-{number}")), spec);
        machine.state = InstanceState::Running;
        machine.address = Some(IpAddr::V4(Ipv4Addr::new(192, 168, 7, number)));
        machines.push(machine.clone());
        Ok(machine)
    }

    async fn terminate(&self, id: &InstanceId) -> cloud_core::Result<()> {
        self.machines().retain(|machine| machine.id != *id);
        Ok(())
    }

    async fn reboot(&self, id: &InstanceId, _: Reboot) -> cloud_core::Result<()> {
        self.get(id).await.map(drop)
    }

    async fn addresses(
        &self,
        ids: &[InstanceId],
    ) -> cloud_core::Result<BTreeMap<InstanceId, IpAddr>> {
        let machines = self.machines();
        let wanted = machines.iter().filter(|machine| ids.contains(&machine.id));
        Ok(wanted.filter_map(|machine| Some((machine.id.clone(), machine.address?))).collect())
    }
}

#[tokio::main(flavor = "current_thread", start_paused = true)]
async fn main() -> Result<()> {
    let nodes: Hostlist = "n[1-5]".parse()?;
    let config = Config::parse("NodeName=n[1-5] State=CLOUD Features=shape=pc,zone=top\n")?;
    let (cloud, state) = (Closet::default(), MemoryState::new());
    let slurm = MemorySlurm::new(MemorySlurmSettings::cloud(&nodes));
    let mut site = Site::new(Identity::cluster("closet"));
    site.image = Some(ImageId::new("debian"));
    let roster = Roster::new(&config);
    let run = Run { tools: Tools::new(&cloud, &slurm, &state), site: &site, conf: &roster };

    // Five nodes, four machines: one goes back to Slurm with the reason.
    let start = RunRequest::Start { nodes: &nodes.node_names()?, jobs: &[] };
    print!("{}", execute(&run, start).await?);
    print!("{}", execute(&run, RunRequest::StopAll).await?);
    if cloud.machines().is_empty() { Ok(()) } else { Err("machines are left".into()) }
}

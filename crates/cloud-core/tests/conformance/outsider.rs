//! A cloud as an outsider would write it, with the public interface alone and no capability: it passes what it claims.

use async_trait::async_trait;
use cloud_core::conformance::{self, CASES, Condition, Fixture};
use cloud_core::{
    ApiOperation, Description, Error, ErrorKind, ImageId, Instance, InstanceFilter, InstanceId,
    InstanceName, InstanceSpec, InstanceState, Provider, Reboot, Result, ShapeName,
};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Mutex, MutexGuard, PoisonError};

#[derive(Debug, Default)]
struct Machines {
    all: Vec<Instance>,
    /// What the next launch meets.
    fault: Option<Condition>,
}

#[derive(Debug, Default)]
struct Closet(Mutex<Machines>);

impl Closet {
    fn machines(&self) -> MutexGuard<'_, Machines> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Provider for Closet {
    fn describe(&self) -> Description {
        Description::new("closet")
    }

    async fn list(&self, filter: &InstanceFilter) -> Result<Vec<Instance>> {
        Ok(filter.keep(self.machines().all.clone()))
    }

    async fn get(&self, id: &InstanceId) -> Result<Instance> {
        let found = self.machines().all.iter().find(|machine| machine.id == *id).cloned();
        found.ok_or_else(|| Error::new(ErrorKind::NotFound, ApiOperation::Get).on(id))
    }

    async fn launch(&self, spec: &InstanceSpec) -> Result<Instance> {
        self.describe().check(spec)?;
        let mut machines = self.machines();
        let refuse = |kind| Err(Error::new(kind, ApiOperation::Launch).on(&spec.name));
        let fault = machines.fault.take();
        match fault {
            Some(Condition::NoCapacity) => return refuse(ErrorKind::Capacity),
            Some(Condition::Throttled) => return refuse(ErrorKind::Throttled),
            _ => {}
        }
        let number = u32::try_from(machines.all.len()).unwrap_or(u32::MAX) + 1;
        let mut machine = Instance::launched(InstanceId::new(format!("m{number}")), spec);
        machine.state = InstanceState::Running;
        machine.address = Some(IpAddr::V4(Ipv4Addr::from_bits(0x0a00_0000 + number)));
        machines.all.push(machine.clone());
        if fault == Some(Condition::ResponseLost(ApiOperation::Launch)) {
            return refuse(ErrorKind::Ambiguous);
        }
        Ok(machine)
    }

    async fn terminate(&self, id: &InstanceId) -> Result<()> {
        let mut machines = self.machines();
        if let Some(machine) = machines.all.iter_mut().find(|machine| machine.id == *id) {
            machine.state = InstanceState::Terminated;
        }
        Ok(())
    }

    async fn reboot(&self, id: &InstanceId, how: Reboot) -> Result<()> {
        if how == Reboot::Soft {
            return Err(Error::unsupported(ApiOperation::Reboot).on(id));
        }
        self.get(id).await.map(drop)
    }

    async fn addresses(&self, ids: &[InstanceId]) -> Result<BTreeMap<InstanceId, IpAddr>> {
        let machines = self.machines();
        let wanted = machines.all.iter().filter(|machine| ids.contains(&machine.id));
        Ok(wanted.filter_map(|machine| Some((machine.id.clone(), machine.address?))).collect())
    }
}

struct Shelf<'a>(&'a Closet);

#[async_trait]
impl Fixture for Shelf<'_> {
    fn spec(&self, name: &str) -> InstanceSpec {
        InstanceSpec::new(InstanceName::new(name), ShapeName::new("pc"), ImageId::new("debian"))
    }

    async fn set(&self, condition: Condition) -> bool {
        let can = matches!(
            condition,
            Condition::Normal
                | Condition::NoCapacity
                | Condition::Throttled
                | Condition::ResponseLost(ApiOperation::Launch)
        );
        self.0.machines().fault = Some(condition).filter(|it| can && *it != Condition::Normal);
        can
    }
}

#[tokio::test(start_paused = true)]
async fn an_outsiders_cloud_passes_what_it_claims_and_skips_the_rest() {
    let closet = Closet::default();
    let summary = conformance::run(&closet, &Shelf(&closet)).await;
    println!("{summary}");
    assert!(summary.failed.is_empty(), "{summary}");
    assert_eq!(summary.passed.len() + summary.skipped.len(), CASES.len());
    assert!(summary.passed.len() >= 11, "{summary}");
    let lines = include_str!("outsider.rs").lines().count();
    assert!(lines <= 150, "{lines} lines");
}

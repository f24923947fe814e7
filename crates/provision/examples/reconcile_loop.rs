//! A reconcile loop: somebody terminates a machine behind Slurm's back, and the next rounds find and repair that.
//! `cargo run -p provision --example reconcile_loop`.
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use cloud_core::memory::{MemoryCloud, MemoryCloudSettings};
use cloud_core::{ImageId, Provider as _};
use hostlist::Hostlist;
use provision::run::{self, Run, RunRequest};
use provision::state::MemoryState;
use provision::{Identity, Roster, Site, Tools};
use slurmconf::Config;
use slurmctl::memory::{MemorySlurm, MemorySlurmSettings};
use std::time::Duration;
use tokio::time::sleep;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

const EVERY: Duration = Duration::from_mins(5);
const ROUNDS: usize = 4;

#[tokio::main(flavor = "current_thread", start_paused = true)]
async fn main() -> Result<()> {
    let nodes: Hostlist = "n[1-3]".parse()?;
    let config = Config::parse("NodeName=n[1-3] State=CLOUD Features=shape=small,zone=zone-1\n")?;
    let cloud = MemoryCloud::new(MemoryCloudSettings::default());
    let slurm = MemorySlurm::new(MemorySlurmSettings::cloud(&nodes));
    let state = MemoryState::new();
    let mut site = Site::new(Identity::cluster("cheerful-macaw"));
    site.image = Some(ImageId::new("image-1"));
    let roster = Roster::new(&config);
    let run = Run { tools: Tools::new(&cloud, &slurm, &state), site: &site, conf: &roster };

    let start = RunRequest::Start { nodes: &nodes.node_names()?, jobs: &[] };
    print!("{}", run::execute(&run, start).await?);
    let Some(victim) = cloud.instances().pop() else {
        return Err("no machine was started".into());
    };
    println!("somebody terminates the machine of {}", victim.name);
    cloud.terminate(&victim.id).await?;
    for round in 1..=ROUNDS {
        sleep(EVERY).await;
        let (plan, _) = run::preview_reconcile(&run).await;
        print!("round {round}: {plan}");
        print!("{}", run::reconcile(&run).await);
    }
    Ok(())
}

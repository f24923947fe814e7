//! Starts three nodes on a cloud and a Slurm in memory: `cargo run -p provision --example start_three_nodes`.
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use cloud_core::ImageId;
use cloud_core::memory::{MemoryCloud, MemoryCloudSettings};
use hostlist::Hostlist;
use provision::run::{Run, RunRequest, execute, preview};
use provision::state::MemoryState;
use provision::{Identity, Roster, Site, Tools};
use slurmconf::Config;
use slurmctl::memory::{MemorySlurm, MemorySlurmSettings};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

// The clock is paused: machines that take half a minute to boot take no time here.
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

    let names = nodes.node_names()?;
    let start = RunRequest::Start { nodes: &names, jobs: &[] };
    let (plan, _) = preview(&run, &start).await?;
    print!("{plan}");
    let report = execute(&run, start).await?;
    print!("{report}");
    if report.is_success() { Ok(()) } else { Err("not all nodes are up".into()) }
}

//! A cluster in EC2.

use super::Aws;
use super::moto::Moto;
use crate::admin::{Admin, COMPLAINTS, complaints};
use crate::builder::Builder;
use crate::cluster::Cluster;
use crate::namespaces::directory;
use crate::network;
use crate::programs::program;
use crate::wait::wait;
use crate::watch::Watcher;
use slurm_testbed::Guard;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

/// The image that instances have when nobody says otherwise.
const IMAGE: &str = "image-1";

/// The zones that nodes are in, the first before the others.
const ZONES: [&str; 3] = ["eu-west-1a", "eu-west-1b", "eu-west-1c"];

impl Builder {
    /// Starts it all in an EC2, and waits until slurmctld answers.
    ///
    /// Machines are slurmd that we boot when their instance runs. New instances have the image `image-1`.
    #[must_use]
    pub fn start_on_aws(self) -> Cluster<Aws> {
        let below = directory().expect("a cluster is made in a scenario").join("moto");
        fs::create_dir(&below).expect("a directory of ours");
        let before = ["AWS_CONFIG_FILE=config", "AWS_SHARED_CREDENTIALS_FILE=credentials"];
        let before = before.map(|line| {
            format!("export {line}\n").replace('=', &format!("={}/aws/", below.display()))
        });
        let lines = before.concat();
        let (home, munged) = self.prepare(&lines);
        let moto = Arc::new(Moto::start(&below));
        let (proxy, admin) = proxy(&moto, &below);
        let shown = Arc::clone(&moto);
        let watcher = Watcher::start(home.dir.clone(), move || shown.up());
        let yaml = yaml(&moto, &admin);
        let cloud = Aws { _watcher: watcher, _proxy: proxy, admin, moto };
        self.begin(cloud, munged, home, &yaml)
    }
}

fn yaml(moto: &Moto, admin: &Admin) -> String {
    let subnet = |zone| format!("{zone}: {}", moto.fact(&format!("/subnets/{zone}")));
    format!(
        "csp: aws
region: {}
endpoint: {}
subnets: {{{}}}
security_groups: [{}]
keypair: key-1
image_id: {}
",
        moto.fact("/region"),
        admin.endpoint(),
        ZONES.map(subnet).join(", "),
        moto.fact("/security_group"),
        moto.fact(&format!("/images/{IMAGE}")),
    )
}

/// Starts the proxy in front of a server.
fn proxy(moto: &Moto, below: &Path) -> (Guard, Admin) {
    let directory = below.join("proxy");
    fs::create_dir(&directory).expect("a directory of ours");
    let mut command = Command::new("sh");
    command.args(["-c", "exec \"$@\" 2>\"$0\""]).arg(directory.join(COMPLAINTS));
    command.arg(program("ec2-proxy")).args(["--to", moto.fact("/endpoint")]);
    command.args(["--listen", &format!("{}:0", network::CONTROLLER)]);
    command.arg("--state").arg(&directory);
    let child = Guard::spawn(&command);
    let address = wait(|| {
        assert!(child.ended().is_none(), "it has ended: {}", complaints(&directory));
        let endpoint = fs::read_to_string(directory.join("endpoint")).ok()?;
        Some(endpoint.trim().strip_prefix("http://")?.to_owned())
    });
    (child, Admin::new(address.expect("the proxy starts"), &directory))
}

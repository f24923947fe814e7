//! A testbed for the whole system: a real slurmctld decides, our real programs act, the machines are real slurmd.

#![expect(
    clippy::expect_used,
    clippy::missing_panics_doc,
    clippy::panic,
    reason = "helpers of tests, whose way to say what is wrong is a panic"
)]

mod accounting;
mod admin;
mod aws;
mod browser;
mod builder;
mod cluster;
mod conf;
mod folder;
mod http;
mod jobs;
mod loopback;
mod model;
mod namespaces;
mod network;
mod openstack;
mod programs;
mod queue;
mod release;
mod test_cloud;
mod wait;
mod watch;

pub use accounting::Accounting;
pub use admin::Admin;
pub use aws::Aws;
pub use browser::Browser;
pub use builder::Builder;
pub use cluster::Cluster;
pub use conf::Addresses;
pub use loopback::Loopback;
pub use model::Model;
pub use namespaces::{directory, enter, in_namespaces, in_namespaces_as_user, inside};
pub use openstack::OpenStack;
pub use queue::RebuildJobs;
pub use release::{Release, USUAL};
pub use slurm_testbed::Guard;
pub use test_cloud::{Machine, TestCloud};
pub use wait::{PATIENCE, wait, wait_for};

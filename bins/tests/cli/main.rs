//! The programs themselves, called as operators and slurmctld call them: against the loopback cloud and a real slurmctld.

#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "helpers of tests"
)]

mod bootstrap_failure;
mod broken;
mod caller;
mod check;
mod citc;
mod codes;
mod cost;
mod credentials;
mod features;
mod fit;
mod fixture;
mod install;
mod jobs;
mod launch;
mod nodewatch;
mod notify;
mod openstack;
mod operator;
mod partitions;
mod power;
mod proxies;
mod recreate;
mod regressions;
mod resize;
mod rollback;
mod rolls;
mod signals;
mod slurm;
mod snapshot;
mod stackhpc;
mod terminal;
mod timeline;
mod unknown;

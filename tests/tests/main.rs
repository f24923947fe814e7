//! Whole-system scenarios, in one program.

#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "helpers of tests stop at the first surprise"
)]

mod accounting;
mod architecture;
mod aws;
mod budget;
mod capacity;
mod demo;
mod elastic_loop;
mod explain;
mod finish_live;
mod health;
mod hostile;
mod job_group;
mod killed;
mod layering;
mod names;
mod neutral;
mod openstack_loop;
mod places;
mod power_actions;
mod reboot;
mod rebuild_jobs;
mod rebuild_roll;
mod reconcile;
mod requeue;
mod resize;
mod resume_timeout;
mod soak;
mod stop_all;
mod testbed;
mod topology;
mod warm;

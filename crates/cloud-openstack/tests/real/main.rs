//! The crate against a real Keystone, Nova, Glance and Neutron.
//!
//! One cloud serves all: it takes its time to start. Every scenario says how it went, and a failure
//! does not keep the others from being tried.
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    reason = "helpers of tests stop at the first surprise"
)]

mod cloud;
mod proxy;
mod stage;

use cloud::{Caller, Cloud, connect, settings, through};
use cloud_core::conformance::{CASES, Verdict};
use proxy::Proxy;
use stage::{PAGE, RealStage};
use std::sync::atomic::AtomicBool;
use std::time::Instant;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_real_openstack_conforms() {
    let begin = Instant::now();
    let cloud = Cloud::new();
    println!("up after {:.1} s", begin.elapsed().as_secs_f32());
    let proxy = Proxy::new(&cloud).await;
    let admin = Caller::new(&cloud, "admin").await;
    let stage =
        RealStage { cloud: &cloud, proxy: &proxy, admin: &admin, no_room: AtomicBool::new(false) };
    let mut settings = settings();
    settings.page = PAGE;
    let entry = through(&proxy, cloud.entry("app"));
    let provider = connect(&entry, settings).await.expect("a connection");
    let mut failed = Vec::new();
    for case in CASES {
        let begin = Instant::now();
        let verdict = case.run(&provider, &stage).await;
        println!("{} in {:.1} s: {verdict:?}", case.name, begin.elapsed().as_secs_f32());
        let may_skip = ["idempotent_launch", "capacity_at_once"].contains(&case.name);
        match verdict {
            Verdict::Passed => {}
            Verdict::Skipped(_) if may_skip => {}
            Verdict::Skipped(why) | Verdict::Failed(why) => {
                failed.push(format!("{}: {why}", case.name))
            }
        }
    }
    assert!(failed.is_empty(), "{failed:#?}");
}

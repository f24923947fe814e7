//! Any bytes are each file that holds the credentials of a cloud, or an error.
#![no_main]

use cloud_core::{File, Sources};
use libfuzzer_sys::fuzz_target;
use std::collections::BTreeMap;
use std::time::SystemTime;

fuzz_target!(|bytes: &[u8]| {
    let read = |_: &std::path::Path| Ok(File { bytes: bytes.to_vec(), mode: Some(0o600) });
    let sources = Sources::new(Some("/home/slurm".into()), BTreeMap::new(), read);
    let _ = cloud_aws::Config::load(&sources, &cloud_aws::Overrides::default());
    let _ = cloud_oci::Config::load(&sources, &cloud_oci::Overrides::default(), SystemTime::UNIX_EPOCH);
    let _ = cloud_openstack::Config::load(&sources, &cloud_openstack::Search::usual(&sources));
});

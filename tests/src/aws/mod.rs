//! EC2 by moto's server, behind a proxy with faults on demand. Its instances are real slurmd, which we boot when they run.

mod moto;
mod start;

use crate::admin::Admin;
use crate::test_cloud::{Machine, TestCloud};
use crate::wait::wait;
use crate::watch::Watcher;
use moto::Moto;
use serde_json::{Value, json};
use slurm_testbed::Guard;
use std::path::PathBuf;
use std::sync::Arc;

/// An EC2, which ends when this is dropped.
#[derive(Debug)]
pub struct Aws {
    // Dropped in this order: who watches asks the server.
    _watcher: Watcher,
    _proxy: Guard,
    admin: Admin,
    moto: Arc<Moto>,
}

impl Aws {
    /// The proxy that the programs talk to.
    #[must_use]
    pub fn proxy(&self) -> &Admin {
        &self.admin
    }

    /// A fact by its path, such as `/subnets/eu-west-1a`.
    #[must_use]
    pub fn fact(&self, path: &str) -> &str {
        self.moto.fact(path)
    }

    /// The id of an image.
    #[must_use]
    pub fn image(&self, name: &str) -> &str {
        self.fact(&format!("/images/{name}"))
    }

    /// A file of the programs' user, `config` or `credentials`.
    #[must_use]
    pub fn file(&self, name: &str) -> PathBuf {
        self.moto.file(name)
    }

    /// What boto3 answers as the administrator of the account: an operation such as `run_instances`.
    #[must_use]
    pub fn boto3(&self, operation: &str, with: &Value) -> Value {
        self.moto.call(operation, with).unwrap_or_else(|error| panic!("boto3: {error}"))
    }

    /// What the aws command line prints as JSON, with the credentials of the programs.
    #[must_use]
    pub fn cli(&self, arguments: &[&str]) -> Value {
        self.moto.cli(&self.admin.endpoint(), arguments)
    }

    /// Every instance there ever was, as boto3 describes it.
    #[must_use]
    pub fn instances(&self) -> Vec<Value> {
        let answer = self.boto3("describe_instances", &json!({}));
        answer.as_array().cloned().unwrap_or_default()
    }

    /// A tag of an instance, as boto3 describes it.
    #[must_use]
    pub fn tag<'a>(instance: &'a Value, key: &str) -> Option<&'a str> {
        moto::tag(instance, key)
    }

    /// How an instance has booted each time: `start`, `reboot` or `replace`.
    #[must_use]
    pub fn boots(&self, id: &str) -> Vec<String> {
        let boots = self.boto3("boots", &json!({}));
        let of_id = boots.get(id).cloned().unwrap_or_default();
        serde_json::from_value(of_id).unwrap_or_default()
    }

    /// Sets how many instances fit into a zone, or without one into each; `None` takes the bound away.
    pub fn set_room(&self, zone: Option<&str>, instances: Option<usize>) {
        let rule = instances.map(|instances| json!({"zone": zone, "instances": instances}));
        let rules: Vec<Value> = rule.into_iter().collect();
        let _ = self.boto3("room", &json!({"rules": rules}));
    }
}

impl TestCloud for Aws {
    fn present(&self) -> Vec<Machine> {
        wait(|| self.moto.machines().ok()).expect("moto answers")
    }
}

impl Drop for Aws {
    fn drop(&mut self) {
        // A request that drifts under one token would be launched a second time and not be noticed.
        if !std::thread::panicking() {
            let mismatches = self.admin.token_mismatches();
            assert_eq!(mismatches, Some(0), "a token had two requests, or nobody knows");
        }
    }
}

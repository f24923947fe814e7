//! The registry of clouds: the one place of the programs that names them.
//!
//! A new cloud is a crate, a file here with its keys of `startnode.yaml`, and a line in `CLOUDS`.

mod aws;
mod openstack;
mod oracle;

use crate::config::Settings;
use crate::diagnostic::Diagnostic;
use crate::environment::Environment;
use crate::wiring::{Connected, Purpose};
use async_trait::async_trait;
use cloud_core::Description;
use provision::Site;
use serde::de::{Deserialize, Deserializer, Error};
use slurmconf::yaml::Reader;
use slurmconf::{MemoryPolicy, Shapes};
use std::fmt;
use std::sync::Arc;

/// Every cloud; the first is that of a file without `csp`.
const CLOUDS: &[Entry] = &[oracle::ENTRY, openstack::ENTRY, aws::ENTRY];

/// A cloud that the configuration can name.
pub(crate) struct Entry {
    /// The value of `csp`.
    csp: &'static str,
    /// Reads the keys that only this cloud knows.
    read: fn(&mut Reader<'_>) -> Arc<dyn CloudConfig>,
    /// Knows them, whatever their values are.
    know: fn(&mut Reader<'_>),
}

/// The cloud that `csp` names.
#[derive(Clone, Copy)]
pub(crate) struct Csp(&'static Entry);

impl<'de> Deserialize<'de> for Csp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer).unwrap_or_default();
        let known: Vec<&str> = CLOUDS.iter().map(|cloud| cloud.csp).collect();
        let expected = || D::Error::custom(format!("one of {}", known.join(", ")));
        CLOUDS.iter().find(|cloud| cloud.csp == name).map(Self).ok_or_else(expected)
    }
}

/// Reads the keys of the cloud that is named, or of the first.
pub(crate) fn read(named: Option<Csp>, reader: &mut Reader<'_>) -> Arc<dyn CloudConfig> {
    let (first, others) = CLOUDS.split_first().unwrap_or((&oracle::ENTRY, &[]));
    let Csp(cloud) = named.unwrap_or(Csp(first));
    let config = (cloud.read)(reader);
    if named.is_none() && reader.has("csp") {
        // Of a cloud that is misspelt, any key may be.
        for other in others {
            (other.know)(reader);
        }
    }
    config
}

/// What a connection is for.
#[derive(Clone, Copy)]
pub struct Wanted<'a> {
    /// What `startnode.yaml` says besides.
    pub settings: &'a Settings,
    /// What is known from outside.
    pub environment: &'a Environment,
    /// What is to be done.
    pub purpose: Purpose,
    /// The nodes; what they want of the cloud is looked for in a check.
    pub slurm: &'a slurmconf::Config,
}

/// A cloud's own keys of `startnode.yaml`, and what follows from them.
#[async_trait(?Send)]
pub trait CloudConfig: fmt::Debug + Send + Sync {
    /// What the cloud says about itself; nothing is asked.
    fn describe(&self) -> Description;

    /// Connects to the cloud.
    async fn connect(&self, wanted: Wanted<'_>) -> Result<Connected, Diagnostic>;

    /// Sets what these keys say about places and launches.
    fn complete(&self, site: &mut Site);

    /// True if a launch takes lines for `authorized_keys`, which are read from a file.
    fn takes_ssh_keys(&self) -> bool {
        false
    }

    /// True if the cloud keeps key pairs, which nodes name by the feature `keypair`.
    fn keeps_key_pairs(&self) -> bool {
        false
    }

    /// True if machines with graphics cards have images of their own, told by their names.
    fn has_gpu_images(&self) -> bool {
        false
    }

    /// True if machines are in the DNS of their network by their names.
    fn is_in_dns(&self) -> bool {
        false
    }

    /// How many tags a machine can have besides those that these keys give it.
    fn free_tags(&self) -> usize {
        usize::MAX
    }

    /// The shapes that are known without asking the cloud, if it has such.
    fn built_in_shapes(&self) -> Option<Shapes> {
        None
    }

    /// How to write a shape of this name, if that is what is wrong with it.
    fn shape_help(&self, unknown: &str) -> Option<&'static str> {
        let _ = unknown;
        None
    }

    /// How Cluster in the Cloud computes `RealMemory` on this cloud.
    fn citc_memory(&self) -> MemoryPolicy;

    /// The variables of the cloud's own tools that nothing in the configuration goes before, and where to write down what
    /// they say, because slurmctld's programs do not get them.
    fn variables(&self, settings: &Settings) -> (Vec<&'static str>, String);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_cloud_has_a_name_of_its_own() {
        let names: BTreeSet<&str> = CLOUDS.iter().map(|cloud| cloud.csp).collect();
        assert_eq!(names.len(), CLOUDS.len());
    }
}

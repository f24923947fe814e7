//! The registry of clouds, the only place in the programs that names them.
//!
//! A new cloud is a crate, a file here with its keys of `startnode.yaml`, and a line in `CLOUDS`.

mod aws;
mod openstack;
mod oracle;

use crate::config::Settings;
use crate::diagnostic::Diagnostic;
use crate::environment::Environment;
use crate::output::chain;
use crate::wiring::{Connected, Purpose};
use async_trait::async_trait;
use cloud_core::http::{self, Url};
use cloud_core::pace::Pacer;
use cloud_core::{ConfigError, Description, MachineMetadata};
use provision::Site;
use serde::de::{Deserialize, Deserializer, Error};
use slurmconf::MemoryPolicy;
use slurmconf::yaml::Reader;
use std::fmt;
use std::sync::Arc;

/// All clouds. The first is the default for a file without `csp`.
const CLOUDS: &[Entry] = &[oracle::ENTRY, openstack::ENTRY, aws::ENTRY];

/// A cloud that the configuration can name.
pub(crate) struct Entry {
    /// The value of `csp`.
    csp: &'static str,
    /// Reads the keys that only this cloud knows.
    read: fn(&mut Reader<'_>) -> Arc<dyn CloudConfig>,
    /// Marks these keys as known without reading their values.
    know: fn(&mut Reader<'_>),
    /// What only the firmware of its machines says of itself.
    firmware: &'static [&'static str],
    /// Connects to the metadata service of a machine, if the cloud announces interruptions there.
    metadata: Option<Metadata>,
}

/// Connects a machine with its metadata service, without a request.
type Metadata =
    fn(&http::ClientConfig, Option<Url>) -> Result<Box<dyn MachineMetadata>, Diagnostic>;

/// The metadata service of the named cloud, or of the one that the machine's firmware names; none if there is no such cloud
/// or it announces nothing there.
pub fn metadata(
    name: Option<&str>,
    firmware: &str,
    base: Option<Url>,
) -> Result<Option<Box<dyn MachineMetadata>>, Diagnostic> {
    let known = || CLOUDS.iter().map(|cloud| cloud.csp).collect::<Vec<_>>().join(", ");
    let cloud = match name {
        Some(name) => CLOUDS.iter().find(|cloud| cloud.csp == name),
        None => of_firmware(firmware),
    };
    let Some(cloud) = cloud else {
        let unknown = || Diagnostic::new(format!("no such cloud; there are: {}", known()));
        return if name.is_some() { Err(unknown()) } else { Ok(None) };
    };
    // It answers at once or is not there.
    let mut config = http::ClientConfig::default();
    config.retry.attempts = 1;
    cloud.metadata.map(|connect| connect(&config, base)).transpose()
}

/// The cloud in which a machine has this firmware.
fn of_firmware(firmware: &str) -> Option<&'static Entry> {
    CLOUDS.iter().find(|cloud| cloud.firmware.iter().any(|part| firmware.contains(part)))
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

/// Reads the keys of the named cloud, or of the first if none is named.
pub(crate) fn read(named: Option<Csp>, reader: &mut Reader<'_>) -> Arc<dyn CloudConfig> {
    let (first, others) = CLOUDS.split_first().unwrap_or((&oracle::ENTRY, &[]));
    let Csp(cloud) = named.unwrap_or(Csp(first));
    let config = (cloud.read)(reader);
    if named.is_none() && reader.has("csp") {
        // With a misspelt cloud, the keys of any cloud may be meant.
        for other in others {
            (other.know)(reader);
        }
    }
    config
}

/// Input for connecting to a cloud.
#[derive(Clone, Copy)]
pub struct Wanted<'a> {
    /// The settings of all clouds.
    pub settings: &'a Settings,
    /// The environment.
    pub environment: &'a Environment,
    /// What the connection is used for.
    pub purpose: Purpose,
    /// The nodes, whose cloud resources `finish --check` looks up.
    pub slurm: &'a slurmconf::Config,
    /// The pace of all requests.
    pub pacer: &'a Pacer,
}

/// The keys of `startnode.yaml` for one cloud, and what they determine.
#[async_trait(?Send)]
pub trait CloudConfig: fmt::Debug + Send + Sync {
    /// Describes the cloud, without a request.
    fn describe(&self) -> Description;

    /// Connects to the cloud.
    async fn connect(&self, wanted: Wanted<'_>) -> Result<Connected, Diagnostic>;

    /// Identifies the endpoint, whose pace is remembered.
    fn endpoint(&self, settings: &Settings) -> String {
        endpoint(self.describe().name, [settings.endpoint.as_deref()])
    }

    /// Sets the zones and launch options of the site.
    fn complete(&self, site: &mut Site);

    /// True if a launch takes public keys for `authorized_keys`, which are read from a file.
    fn takes_ssh_keys(&self) -> bool {
        false
    }

    /// True if the cloud stores key pairs, which nodes select with the feature `keypair`.
    fn keeps_key_pairs(&self) -> bool {
        false
    }

    /// True if machines with GPUs have separate images, recognised by name.
    fn has_gpu_images(&self) -> bool {
        false
    }

    /// True if the DNS of the network resolves the names of machines.
    fn is_in_dns(&self) -> bool {
        false
    }

    /// Number of tags a machine can have in addition to those that these keys set.
    fn free_tags(&self) -> usize {
        usize::MAX
    }

    /// Help for an unknown shape whose name has a wrong form.
    fn shape_help(&self, unknown: &str) -> Option<&'static str> {
        let _ = unknown;
        None
    }

    /// How Cluster in the Cloud computes `RealMemory` on this cloud.
    fn citc_memory(&self) -> MemoryPolicy;

    /// Environment variables that the configuration does not override, and where to set their values instead: slurmctld
    /// passes its programs no variables.
    fn variables(&self, settings: &Settings) -> (Vec<&'static str>, String);
}

/// The name of an endpoint: the cloud, and the first of these places that is known.
fn endpoint<const N: usize>(cloud: &str, places: [Option<&str>; N]) -> String {
    let place = places.into_iter().flatten().next().unwrap_or_default();
    format!("{cloud} {place}").trim_end().to_owned()
}

/// Explains an error in the credentials. If none are set, it suggests a key of `startnode.yaml`, because slurmctld passes
/// its programs no variables.
fn unusable(error: ConfigError, remedy: &str, settings: &Settings) -> Diagnostic {
    if error.is_unspecified() {
        return Diagnostic::new(format!("{}, or {remedy} in {}", chain(&error), settings.file));
    }
    Diagnostic::from(error)
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

    /// Of machines: vendor, product, chassis and BIOS.
    #[test]
    fn a_machine_knows_its_cloud_by_its_firmware() {
        for (firmware, expected) in [
            ("QEMU\nStandard PC (i440FX + PIIX, 1996)\nOracleCloud.com\n1.6.6", Some("oracle")),
            ("OpenStack Foundation\nOpenStack Nova\n\n1.16.0", Some("openstack")),
            ("RDO\nOpenStack Compute\n\n1.11.0", Some("openstack")),
            ("Amazon EC2\nc7i.large\nAmazon EC2\n1.0", Some("aws")),
            ("Xen\nHVM domU\n\n4.11.amazon", Some("aws")),
            ("Dell Inc.\nPowerEdge R640\n\n2.1", None),
            ("", None),
        ] {
            assert_eq!(of_firmware(firmware).map(|cloud| cloud.csp), expected, "{firmware}");
        }
    }

    #[test]
    fn a_machine_of_an_unknown_cloud_has_nothing_to_watch_and_a_misspelt_one_is_an_error() {
        let watches = |name, firmware| metadata(name, firmware, None).map(|it| it.is_some());
        assert!(matches!(watches(None, "Amazon EC2"), Ok(true)));
        assert!(matches!(watches(Some("oracle"), "Amazon EC2"), Ok(true)));
        assert!(matches!(watches(None, "OpenStack Nova"), Ok(false)));
        assert!(matches!(watches(None, "Dell Inc."), Ok(false)));
        assert!(watches(Some("ec3"), "Amazon EC2").is_err());
    }
}

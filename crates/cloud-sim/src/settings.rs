//! What the cloud is made of and how it behaves at the start; also the form of a script.

use crate::credentials::{TENANCY, known_user};
use crate::fault::Rule;
use crate::throttle::Throttle;
use crate::timing::Timing;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Everything that can be set before a cloud starts. The default is a small region with three
/// availability domains, one subnet, six images and a handful of shapes.
///
/// A script is this, as YAML or JSON; what it leaves out is as in the default.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CloudSettings {
    /// Where to listen; port 0 takes a free one.
    pub listen: String,
    /// How many threads answer; nought for as many as there are cores. There is one world, and what changes it is done
    /// one after the other: with more than one thread, launches take longer, as they wait for each other.
    pub threads: usize,
    /// Where the state is kept; without it, it ends with the cloud.
    #[serde(skip)]
    pub state: Option<PathBuf>,
    /// The region's name, such as `us-phoenix-1`.
    pub region: String,
    /// The region's short name, such as `phx`.
    pub region_key: String,
    /// The domain that all hosts of the region's realm are in, as the metadata service tells it.
    pub realm_domain: String,
    /// The tenancy's id.
    pub tenancy: String,
    /// The compartments there are, beside the tenancy itself.
    pub compartments: Vec<String>,
    /// Who may call, beside the ready-made user.
    pub users: Vec<User>,
    /// The availability domains by name.
    pub availability_domains: Vec<String>,
    /// The subnets there are.
    pub subnets: Vec<Subnet>,
    /// The images there are.
    pub images: Vec<Image>,
    /// The shapes there are, in every availability domain.
    pub shapes: Vec<ShapeSize>,
    /// Boot volumes that an instance can be launched from.
    pub boot_volumes: Vec<String>,
    /// Compute clusters that are there from the start.
    pub compute_clusters: Vec<String>,
    /// How long things take on the cloud's clock.
    pub timing: Timing,
    /// How many times as fast as ours the cloud's clock runs; nought stops it.
    pub speed: f64,
    /// True to put instances that ask for no fault domain into all of them in turn.
    pub spread_fault_domains: bool,
    /// How many items a page has when the request does not say.
    pub page_size: usize,
    /// False to take launches that name no image and no subnet, which OCI refuses.
    pub strict_launch: bool,
    /// How many instances fit; without an entry, any number.
    pub capacity: Vec<Capacity>,
    /// Service limits; without an entry, none.
    pub limits: Vec<Limit>,
    /// How many requests per second are taken.
    pub throttle: Vec<Throttle>,
    /// What goes wrong.
    pub faults: Vec<Rule>,
    /// Decides which requests a fault with a probability happens to.
    pub seed: u64,
    /// What a request is answered whose token was used with another body.
    pub token_mismatch: Mismatch,
    /// How late every answer is, in milliseconds.
    pub latency_millis: u64,
    /// How many of the newest requests can be read back, as far as they have 128 MB together.
    pub keep_requests: usize,
    /// How long a session token is good for, in seconds.
    pub session_seconds: u64,
    /// Program and arguments to run when a machine starts.
    pub machine_up: Vec<String>,
    /// Program and arguments to run when a machine stops.
    pub machine_down: Vec<String>,
}

/// One who may call, by an API key.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct User {
    /// The user's id.
    pub id: String,
    /// The fingerprint of the key.
    pub fingerprint: String,
    /// The public key in PEM form.
    pub public_key_pem: String,
}

/// A subnet, which spans the availability domains.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Subnet {
    /// The subnet's id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Its range; `127.0.0.1/32` gives every instance that one address.
    pub cidr: String,
    /// The network that it is in.
    #[serde(default = "default_vcn")]
    pub vcn: String,
    /// Its tags.
    #[serde(default)]
    pub freeform_tags: BTreeMap<String, String>,
}

fn default_vcn() -> String {
    "ocid1.vcn.oc1.phx.aaaavcn".to_owned()
}

/// An image.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Image {
    /// The image's id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// The family of the operating system.
    #[serde(default = "default_os")]
    pub operating_system: String,
    /// Its version.
    #[serde(default = "default_version")]
    pub operating_system_version: String,
    /// Its tags.
    #[serde(default)]
    pub freeform_tags: BTreeMap<String, String>,
    /// When it was made, such as `2026-01-31T00:00:00.000Z`; when that year began if left out.
    #[serde(default)]
    pub time_created: Option<String>,
}

fn default_os() -> String {
    "Oracle Linux".to_owned()
}

fn default_version() -> String {
    "9".to_owned()
}

/// A shape.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ShapeSize {
    /// Its name.
    pub name: String,
    /// Cores, or the default of a flexible shape.
    pub ocpus: f64,
    /// Memory in gigabytes, or the default of a flexible shape.
    pub memory: f64,
    /// The most cores and memory that a flexible shape can have; `None` for fixed shapes.
    pub flexible: Option<(f64, f64)>,
    /// Accelerators.
    pub gpus: u32,
    /// Ports of the cluster network.
    pub rdma_ports: u32,
    /// The limits that it counts against: `…-core-count` by cores, `…-memory-count` by gigabytes,
    /// any other by instance.
    pub limits: Vec<String>,
}

/// The answer to a launch whose token was used with another body, which OCI does not document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mismatch {
    /// The HTTP status.
    pub status: u16,
    /// The code.
    pub code: String,
}

impl Default for Mismatch {
    fn default() -> Self {
        Self { status: 409, code: "InvalidatedRetryToken".to_owned() }
    }
}

/// Room for instances.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Capacity {
    /// Where; everywhere if left out.
    #[serde(default)]
    pub availability_domain: Option<String>,
    /// Of which shape; any if left out.
    #[serde(default)]
    pub shape: Option<String>,
    /// How many instances fit.
    pub instances: u64,
    /// True if a launch beyond it is accepted and fails later.
    #[serde(default)]
    pub fails_later: bool,
}

/// A service limit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limit {
    /// Its name, such as `standard-e5-core-count`.
    pub name: String,
    /// Where it holds; in every availability domain if left out.
    #[serde(default)]
    pub availability_domain: Option<String>,
    /// Its value.
    pub value: u64,
}

impl ShapeSize {
    /// How many gigabytes of memory a flexible shape can have for each core: from, and to.
    pub(crate) const MEMORY_PER_OCPU: (f64, f64) = (1.0, 64.0);
}

impl Default for CloudSettings {
    fn default() -> Self {
        Self {
            listen: "127.0.0.1:0".to_owned(),
            threads: 1,
            state: None,
            region: "us-phoenix-1".to_owned(),
            region_key: "phx".to_owned(),
            realm_domain: "oraclecloud.com".to_owned(),
            tenancy: TENANCY.to_owned(),
            compartments: vec!["ocid1.compartment.oc1..aaaacomp".to_owned()],
            users: vec![known_user()],
            availability_domains: (1..=3).map(|n| format!("Uocm:PHX-AD-{n}")).collect(),
            subnets: vec![default_subnet()],
            images: default_images(),
            shapes: default_shapes(),
            boot_volumes: vec!["ocid1.bootvolume.oc1.phx.bv1".to_owned()],
            compute_clusters: vec!["ocid1.computecluster.oc1.phx.cc1".to_owned()],
            timing: Timing::default(),
            speed: 1.0,
            spread_fault_domains: false,
            page_size: 100,
            strict_launch: true,
            capacity: Vec::new(),
            limits: default_limits(),
            throttle: Vec::new(),
            faults: Vec::new(),
            seed: 0,
            token_mismatch: Mismatch::default(),
            latency_millis: 0,
            keep_requests: 100_000,
            session_seconds: 1200,
            machine_up: Vec::new(),
            machine_down: Vec::new(),
        }
    }
}

impl CloudSettings {
    /// The default with a clock a hundred times as fast, for tests that wait for instances.
    #[must_use]
    pub fn quick() -> Self {
        Self { speed: 100.0, ..Self::default() }
    }
}

fn default_subnet() -> Subnet {
    Subnet {
        id: "ocid1.subnet.oc1.phx.aaaasub".to_owned(),
        name: "Subnet".to_owned(),
        cidr: "10.1.0.0/16".to_owned(),
        vcn: default_vcn(),
        freeform_tags: tag("cluster", "c1"),
    }
}

fn tag(key: &str, value: &str) -> BTreeMap<String, String> {
    BTreeMap::from([(key.to_owned(), value.to_owned())])
}

fn default_images() -> Vec<Image> {
    let image = |id: &str, name: &str| Image {
        id: format!("ocid1.image.oc1.phx.{id}"),
        name: name.to_owned(),
        operating_system: default_os(),
        operating_system_version: default_version(),
        freeform_tags: tag("cluster", "c1"),
        time_created: None,
    };
    let numbered = (0..5).map(|n| image(&format!("img{n:03}"), &format!("citc-ol9-{n}")));
    numbered.chain([image("new", "citc-ol9-new")]).collect()
}

fn default_shapes() -> Vec<ShapeSize> {
    let counted = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
    let shape = |name: &str, ocpus, memory, limits: &[&str]| ShapeSize {
        name: name.to_owned(),
        ocpus,
        memory,
        limits: counted(limits),
        ..ShapeSize::default()
    };
    vec![
        ShapeSize {
            flexible: Some((94.0, 1049.0)),
            ..shape(
                "VM.Standard.E5.Flex",
                1.0,
                12.0,
                &["standard-e5-core-count", "standard-e5-memory-count"],
            )
        },
        ShapeSize {
            flexible: Some((114.0, 1760.0)),
            ..shape(
                "VM.Standard.E4.Flex",
                1.0,
                16.0,
                &["standard-e4-core-count", "standard-e4-memory-count"],
            )
        },
        shape("VM.Standard2.1", 1.0, 15.0, &["standard2-core-count"]),
        shape("VM.Standard2.4", 4.0, 60.0, &["standard2-core-count"]),
        ShapeSize { rdma_ports: 1, ..shape("BM.HPC2.36", 36.0, 384.0, &["bm-hpc2-36-count"]) },
        ShapeSize { gpus: 8, ..shape("BM.GPU4.8", 64.0, 2048.0, &["gpu4-count"]) },
    ]
}

pub(crate) fn default_limits() -> Vec<Limit> {
    let limit =
        |name: &str, value| Limit { name: name.to_owned(), availability_domain: None, value };
    vec![
        limit("standard-e5-core-count", 100_000),
        limit("standard-e5-memory-count", 1_600_000),
        limit("standard-e4-core-count", 100_000),
        limit("standard-e4-memory-count", 1_600_000),
        limit("standard2-core-count", 100_000),
        limit("bm-hpc2-36-count", 1000),
        limit("gpu4-count", 100),
    ]
}

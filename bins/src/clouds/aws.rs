//! AWS: its keys of `startnode.yaml`, and the connection.

use super::{CloudConfig, Entry, Wanted, endpoint, unusable};
use crate::config::{Settings, between, texts};
use crate::diagnostic::Diagnostic;
use crate::wiring::{Connected, Purpose, features, http};
use async_trait::async_trait;
use cloud_aws::{
    Config, ConnectSettings, LaunchOptions, LaunchTemplate, MetadataService, Overrides,
};
use cloud_core::{
    Description, ImageFilter, ImageId, InstanceFilter, InstanceName, InstanceSpec, Provider as _,
    Shape, ShapeName, Sources, SubnetId, Tags, Zone,
};
use provision::Site;
use serde::de::{Error as _, IgnoredAny};
use serde::{Deserialize, Deserializer};
use slurmconf::MemoryPolicy;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::SystemTime;

#[cfg(test)]
mod tests;

/// The file in which Cluster in the Cloud has its key.
const CITC_CREDENTIALS: &str = "aws-credentials.csv";

/// Maximum number of tags of a machine, and of those that hold the names of machines that are launched together.
const MOST_TAGS: usize = 50;
const NAME_TAGS: usize = 20;

pub(super) const ENTRY: Entry = Entry {
    csp: "aws",
    read: |reader| {
        let aws = reader.read::<Aws>();
        reader.know::<Citc>();
        Arc::new(aws)
    },
    know: |reader| {
        reader.know::<Aws>();
        reader.know::<Citc>();
    },
    // Xen says who built it.
    firmware: &["Amazon EC2", ".amazon"],
    metadata: Some(|http, base| {
        Ok(Box::new(MetadataService::new(http, base).map_err(Diagnostic::from)?))
    }),
};

/// The keys of `startnode.yaml` for AWS.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(default)]
pub(super) struct Aws {
    /// The region, if not that of the credentials.
    region: Option<String>,
    /// The profile of `~/.aws`.
    profile: Option<String>,
    /// Path to use instead of `~/.aws/credentials`.
    credentials_file: Option<String>,
    /// The subnet of all machines.
    subnet: Option<String>,
    /// The subnet of each zone.
    subnets: BTreeMap<String, String>,
    /// The zones to try, in order; by default, all that have a subnet, by name.
    #[serde(deserialize_with = "texts")]
    zones: Vec<String>,
    /// Security groups, by id.
    #[serde(deserialize_with = "texts")]
    security_groups: Vec<String>,
    /// The name of the key pair.
    keypair: Option<String>,
    /// The role of the machines, by the name or ARN of its instance profile.
    instance_profile: Option<String>,
    /// Whether machines get a public address; by default, the subnet decides.
    public_ip: Option<bool>,
    /// True to allow version 1 of the metadata service, which is open to server-side request forgery.
    legacy_imds: Option<bool>,
    /// The launch template, by name or id.
    launch_template: Option<String>,
    /// The version of the launch template.
    launch_template_version: Option<String>,
    /// The placement group.
    placement_group: Option<String>,
    /// The capacity reservation, or the resource group of reservations.
    capacity_reservation: Option<String>,
    /// True if the reservation is a capacity block.
    capacity_block: bool,
    /// True for spot machines.
    preemptible: bool,
    /// Maximum price of a spot machine per hour.
    spot_max_price: Option<String>,
    /// Number of EFA interfaces of a machine.
    #[serde(deserialize_with = "between::<_, 0, 64>")]
    efa: Option<u32>,
    /// Size of the boot disk.
    #[serde(deserialize_with = "between::<_, 1, 65_536>")]
    boot_volume_gb: Option<u32>,
    /// Further tags of machines.
    #[serde(deserialize_with = "tags")]
    tags: BTreeMap<String, String>,
    /// Owners whose images are listed in addition to our own.
    #[serde(deserialize_with = "texts")]
    image_owners: Vec<String>,
    /// Maximum number of machines that one request launches.
    #[serde(deserialize_with = "between::<_, 1, 500>")]
    batch: Option<u32>,
    // CitC has one security group.
    compute_security_group: Option<String>,
}

/// Keys of Cluster in the Cloud, which are accepted and not used.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Citc {
    dns_zone: IgnoredAny,
    dns_zone_id: IgnoredAny,
}

/// Reads tags. The metadata service shows the tags of machines, so EC2 accepts only keys that fit into its paths.
fn tags<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<String, String>, D::Error> {
    let tags = BTreeMap::<String, String>::deserialize(deserializer)?;
    let fits = |key: &String| {
        let mut letters = key.chars();
        letters.all(|one| one.is_ascii_alphanumeric() || "+-=.,_:@".contains(one))
            && ![".", "..", "_index"].contains(&key.as_str())
    };
    if tags.keys().all(fits) {
        return Ok(tags);
    }
    Err(D::Error::custom("keys of letters, digits and + - = . , _ : @"))
}

#[async_trait(?Send)]
impl CloudConfig for Aws {
    fn describe(&self) -> Description {
        launch(self, None).describe()
    }

    async fn connect(&self, wanted: Wanted<'_>) -> Result<Connected, Diagnostic> {
        connect(self, wanted).await
    }

    fn endpoint(&self, settings: &Settings) -> String {
        let Self { region, profile, .. } = self;
        endpoint("aws", [settings.endpoint.as_deref(), region.as_deref(), profile.as_deref()])
    }

    fn complete(&self, site: &mut Site) {
        let all = || self.subnets.keys().cloned().collect();
        let zones: Vec<String> = if self.zones.is_empty() { all() } else { self.zones.clone() };
        site.zones = zones.into_iter().map(Zone::new).collect();
        site.preemptible = self.preemptible;
        site.beside = format!("{:?}", launch(self, None));
    }

    fn keeps_key_pairs(&self) -> bool {
        true
    }

    fn free_tags(&self) -> usize {
        MOST_TAGS.saturating_sub(NAME_TAGS).saturating_sub(self.tags.len())
    }

    fn citc_memory(&self) -> MemoryPolicy {
        MemoryPolicy::CitcAws
    }

    fn variables(&self, settings: &Settings) -> (Vec<&'static str>, String) {
        let unless = |is_set: bool, name| (!is_set).then_some(name);
        let profile = self.profile.is_some();
        let all = [
            unless(profile, "AWS_ACCESS_KEY_ID"),
            unless(profile, "AWS_PROFILE"),
            unless(profile, "AWS_WEB_IDENTITY_TOKEN_FILE"),
            unless(self.credentials_file.is_some(), "AWS_SHARED_CREDENTIALS_FILE"),
            Some("AWS_CONFIG_FILE"),
            unless(self.region.is_some(), "AWS_REGION"),
            unless(self.region.is_some(), "AWS_DEFAULT_REGION"),
            unless(settings.endpoint.is_some(), "AWS_ENDPOINT_URL"),
        ];
        let file = &settings.file;
        let place =
            format!("~/.aws/credentials, or as profile, credentials_file or region into {file}");
        (all.into_iter().flatten().collect(), place)
    }
}

/// Launch options from the configuration.
///
/// Cluster in the Cloud names the key pair and the role after the cluster, and does not write them into the file. With its
/// security group, these names are the default, and machines get a public address and their own tag `Name`, from which
/// they take their host name.
fn launch(aws: &Aws, cluster: Option<&str>) -> LaunchOptions {
    let is_citc = aws.compute_security_group.is_some();
    let named = |kind: &str| Some(format!("{kind}-{}", cluster?)).filter(|_| is_citc);
    let mut options = LaunchOptions::default();
    options.subnet = aws.subnet.clone().map(SubnetId::new);
    let subnets = aws.subnets.iter();
    options.subnets = subnets.map(|(zone, id)| (Zone::new(zone), SubnetId::new(id))).collect();
    options.security_groups.clone_from(&aws.security_groups);
    options.security_groups.extend(aws.compute_security_group.clone());
    options.key_name = aws.keypair.clone().or_else(|| named("ec2-user"));
    options.instance_profile = aws.instance_profile.clone().or_else(|| named("describe_tags"));
    options.public_ip = aws.public_ip.or(is_citc.then_some(true));
    // Its bootstrap.sh asks for the machine's id without a token.
    options.legacy_imds = aws.legacy_imds.unwrap_or(is_citc);
    let version = aws.launch_template_version.clone();
    options.launch_template = aws.launch_template.clone().map(|id| LaunchTemplate { id, version });
    options.placement_group.clone_from(&aws.placement_group);
    options.capacity_reservation.clone_from(&aws.capacity_reservation);
    options.capacity_block = aws.capacity_block;
    options.spot_max_price.clone_from(&aws.spot_max_price);
    options.efa = aws.efa.unwrap_or_default();
    options.boot_volume_gb = aws.boot_volume_gb;
    options.tags.clone_from(&aws.tags);
    options.image_owners.clone_from(&aws.image_owners);
    let batch = aws.batch.and_then(|batch| usize::try_from(batch).ok());
    options.batch = batch.unwrap_or(if is_citc { 1 } else { options.batch });
    options
}

async fn connect(aws: &Aws, wanted: Wanted<'_>) -> Result<Connected, Diagnostic> {
    let Wanted { settings, environment, purpose, slurm, pacer } = wanted;
    let sources = Sources::of_system(environment.home.clone(), environment.variables.clone());
    let overrides = Overrides {
        profile: aws.profile.clone(),
        credentials_file: aws.credentials_file.as_deref().map(|file| environment.expand(file)),
        last_resort: sources.at_home(CITC_CREDENTIALS),
        region: aws.region.clone(),
        endpoint: settings.endpoint.clone(),
    };
    let config = Config::load(&sources, &overrides);
    let config = config.map_err(|error| unusable(error, "region", settings))?;
    let mut connect = ConnectSettings::new(SystemTime::now);
    connect.http = http(settings, environment, purpose);
    connect.launch = launch(aws, settings.cluster_id.as_deref());
    let is_id = connect.launch.describe().is_id;
    connect.launch.images = settings.image_id.iter().filter(|id| is_id(id)).cloned().collect();
    let cloud = cloud_aws::Aws::connect(&config, connect, pacer)?;
    let mut named = Vec::new();
    if purpose == Purpose::Check {
        named = check(aws, settings, slurm, &cloud).await?;
    }
    let warnings = config.warnings;
    Ok(Connected { cloud: Box::new(cloud), subnet: None, named, warnings, unreachable: None })
}

/// Checks what launches need, with one sentence each. Returns an error if AWS does not answer, because every other request
/// would wait as long.
async fn check(
    aws: &Aws,
    settings: &Settings,
    slurm: &slurmconf::Config,
    cloud: &cloud_aws::Aws,
) -> Result<Vec<Result<String, Diagnostic>>, Diagnostic> {
    let diagnosed = |result: Result<String, cloud_core::Error>| result.map_err(Diagnostic::from);
    let caller = diagnosed(cloud.caller().await.map(|arn| format!("credentials of {arn}")));
    if let Err(diagnostic) = &caller
        && diagnostic.is_transient()
    {
        return Err(diagnostic.clone());
    }
    let mut all = vec![caller];
    let of_nodes: Vec<String> = features(slurm, "network").collect();
    all.extend(cloud.subnets(&of_nodes).await.into_iter().map(diagnosed));
    let Some(image) = image(settings, cloud).await else {
        // A missing image fails a check of its own.
        return Ok(all);
    };
    match cloud.shapes().await {
        Ok(mut shapes) => {
            let names: BTreeSet<String> = features(slurm, "shape").collect();
            shapes.retain(|shape| names.contains(shape.name.as_str()));
            all.push(diagnosed(cloud.boots(&image, &shapes).await));
            for Shape { name, .. } in &shapes {
                let dry = cloud.dry_run(&spec(aws, settings, name, image.clone())).await;
                all.push(diagnosed(dry.map(|()| format!("permission to launch {name}"))));
            }
        }
        Err(error) => all.push(Err(Diagnostic::from(error))),
    }
    all.push(diagnosed(may_change(settings, cloud).await));
    Ok(all)
}

/// Checks the permission to change machines. If the policy depends on their tags, only an existing machine shows it.
async fn may_change(settings: &Settings, cloud: &cloud_aws::Aws) -> cloud_core::Result<String> {
    let own = settings.cluster_id.as_deref().map(|id| Tags::from([("cluster", id)]));
    let machines = match own {
        Some(own) => cloud.list(&InstanceFilter::tagged(own)).await?,
        None => Vec::new(),
    };
    let example = machines.iter().find(|machine| !machine.state.is_leaving());
    let is_known = cloud.may_change(example.map(|machine| &machine.id)).await?;
    let when = if is_known { "" } else { ": check it again when there is one" };
    Ok(format!("permission to change machines{when}"))
}

/// The image of new machines, if the configuration has its id or it has the cluster's tag.
async fn image(settings: &Settings, cloud: &cloud_aws::Aws) -> Option<ImageId> {
    let is_id = cloud.describe().is_id;
    if let Some(id) = settings.image_id.as_ref().filter(|id| is_id(id)) {
        return Some(ImageId::new(id));
    }
    let cluster = settings.cluster_id.as_deref()?;
    let filter = ImageFilter { tags: Tags::from([("cluster", cluster)]), name: None };
    let images = cloud.images(&filter).await.ok()?;
    images.into_iter().find(|image| image.available).map(|image| image.id)
}

/// An example of a launch, for a dry run.
fn spec(aws: &Aws, settings: &Settings, shape: &ShapeName, image: ImageId) -> InstanceSpec {
    let mut spec = InstanceSpec::new(InstanceName::new("dry-run"), shape.clone(), image);
    let cluster = settings.cluster_id.as_deref().unwrap_or_default();
    spec.tags = Tags::from([("cluster", cluster), ("type", "compute"), ("node", "dry-run")]);
    let first = aws.zones.first().or_else(|| aws.subnets.keys().next());
    spec.zone = first.map(Zone::new);
    spec.preemptible = aws.preemptible;
    spec
}

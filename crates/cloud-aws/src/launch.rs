//! Launches instances, one or many per request.

use crate::names;
use crate::provider::Aws;
use crate::query::Query;
use crate::{LaunchOptions, convert, sign, wire};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cloud_core::{
    ApiOperation, Error, ErrorKind, Instance, InstanceSpec, LaunchToken, Result, SubnetId,
};
use futures_util::future::join_all;
use std::collections::BTreeMap;

/// The resources of a launch that get its tags.
const TAGGED: [&str; 2] = ["instance", "volume"];

/// The launches of one request.
struct Batch {
    /// The indices of the specs.
    indices: Vec<usize>,
    tags: Vec<(String, String)>,
}

/// Splits launches that differ only in name, tags and token into requests. Launches whose tags differ in more than the
/// name need separate requests, and so do names that do not fit.
fn batches(specs: &[InstanceSpec], options: &LaunchOptions) -> Vec<Batch> {
    let most = options.batch.max(1);
    let mut alike: BTreeMap<Vec<(&str, &str)>, Vec<usize>> = BTreeMap::new();
    for (index, spec) in specs.iter().enumerate() {
        alike.entry(names::common(spec)).or_default().push(index);
    }
    let mut batches = Vec::new();
    for mut left in alike.into_values() {
        while !left.is_empty() {
            let group: Vec<&InstanceSpec> =
                left.iter().take(most).filter_map(|index| specs.get(*index)).collect();
            let (placed, tags) = names::of(&group, options.tags.len());
            let rest = left.split_off(placed.clamp(1, left.len()));
            batches.push(Batch { indices: left, tags });
            left = rest;
        }
    }
    batches
}

impl Aws {
    /// Launches instances that differ only in name, tags and token.
    pub(crate) async fn launch_all(&self, specs: &[InstanceSpec]) -> Vec<Result<Instance>> {
        let batches = batches(specs, &self.launch);
        let requests = batches.into_iter().map(|Batch { indices, tags }| async move {
            let group: Vec<&InstanceSpec> =
                indices.iter().filter_map(|at| specs.get(*at)).collect();
            let launched = self.run_instances(&group, &tags).await;
            indices.into_iter().zip(launched).collect::<Vec<_>>()
        });
        let mut results: Vec<(usize, Result<Instance>)> =
            join_all(requests).await.into_iter().flatten().collect();
        results.sort_by_key(|(index, _)| *index);
        results.into_iter().map(|(_, result)| result).collect()
    }

    /// Launches these instances in one request. Returns a result for each.
    async fn run_instances(
        &self,
        specs: &[&InstanceSpec],
        tags: &[(String, String)],
    ) -> Vec<Result<Instance>> {
        let launched = match specs.first() {
            Some(first) => self.request(specs, first, tags).await,
            None => return Vec::new(),
        };
        match launched {
            Ok(instances) => self.match_names(specs, instances),
            Err(error) => specs.iter().map(|spec| Err(error.clone().on(&spec.name))).collect(),
        }
    }

    async fn request(
        &self,
        specs: &[&InstanceSpec],
        first: &InstanceSpec,
        tags: &[(String, String)],
    ) -> Result<Vec<wire::Instance>> {
        self.launch.describe().check(first)?;
        if !first.ssh_keys.is_empty() {
            let error = Error::unsupported(ApiOperation::Launch).on(&first.name);
            return Err(error.because("EC2 takes no keys: name a key pair"));
        }
        let root = self.root_device(first).await?;
        let query = self.query(first, root.as_deref())?;
        let query = query.with("MinCount", 1).with("MaxCount", specs.len());
        let query = query.with("ClientToken", self.token(specs));
        let query = self.tagged(query, tags);
        let subject = match specs.len() {
            1 => first.name.to_string(),
            more => format!("{} and {} more", first.name, more.saturating_sub(1)),
        };
        let launched: wire::Launched = self.api.read(ApiOperation::Launch, &subject, query).await?;
        Ok(launched.instances_set.item)
    }

    /// Adds these tags and those of the options.
    pub(crate) fn tagged(&self, query: Query, tags: &[(String, String)]) -> Query {
        let extra = self.launch.tags.iter().map(|(key, value)| (key.clone(), value.clone()));
        let own = |key: &String| tags.iter().any(|(own, _)| own == key);
        let mut all: Vec<(String, String)> = extra.filter(|(key, _)| !own(key)).collect();
        all.extend(tags.iter().cloned());
        let kinds = (1..).zip(TAGGED);
        kinds.fold(query, |query, (number, kind)| query.tagged(number, kind, &all))
    }

    /// Assigns each instance to the launch at its index. EC2 launches as many as it has capacity for; others are missing.
    fn match_names(
        &self,
        specs: &[&InstanceSpec],
        launched: Vec<wire::Instance>,
    ) -> Vec<Result<Instance>> {
        let index = |one: &wire::Instance| one.ami_launch_index.as_ref()?.parse::<usize>().ok();
        let count = launched.len();
        let mut launched: BTreeMap<usize, wire::Instance> =
            launched.into_iter().map(|it| (index(&it).unwrap_or_default(), it)).collect();
        let each = specs.iter().enumerate().map(|(index, spec)| {
            let error = |kind| Error::new(kind, ApiOperation::Launch).on(&spec.name);
            let Some(instance) = launched.remove(&index) else {
                let why = format!("EC2 had room for {count} of {} instances", specs.len());
                return Err(error(ErrorKind::Capacity).because(why));
            };
            let (instance, _) = convert::instance(instance);
            if instance.state.is_leaving() {
                let why = format!(
                    "{} was launched with this token, and is {}",
                    instance.id, instance.state
                );
                return Err(error(ErrorKind::TokenUsedUp).because(why));
            }
            self.note_launch(&instance.id);
            let mut ours = Instance::launched(instance.id, spec);
            ours.state = instance.state;
            ours.address = instance.address;
            ours.zone = instance.zone.or(ours.zone);
            Ok(ours)
        });
        each.collect()
    }

    /// The idempotency token of a request: the token of its launch, or a hash of all tokens.
    fn token(&self, specs: &[&InstanceSpec]) -> String {
        let tokens: Option<Vec<&str>> =
            specs.iter().map(|spec| spec.token.as_ref().map(LaunchToken::as_str)).collect();
        match tokens.as_deref() {
            Some([one]) => (*one).to_owned(),
            Some(tokens) => sign::sha256(tokens.join("\n").as_bytes()),
            None => self.random_token(),
        }
    }

    /// The parameters that the launches of a request share.
    pub(crate) fn query(&self, spec: &InstanceSpec, root: Option<&str>) -> Result<Query> {
        let options = &self.launch;
        let tokens = if options.legacy_imds { "optional" } else { "required" };
        let mut query = Query::change("RunInstances")
            .with("ImageId", &spec.image)
            .with("InstanceType", &spec.shape)
            .with("MetadataOptions.HttpEndpoint", "enabled")
            .with("MetadataOptions.HttpTokens", tokens)
            .with("MetadataOptions.InstanceMetadataTags", "enabled")
            .some("KeyName", spec.keypair.as_ref().or(options.key_name.as_ref()))
            .some("Placement.GroupName", options.placement_group.as_ref());
        if let Some(template) = &options.launch_template {
            let kind = if template.id.starts_with("lt-") { "Id" } else { "Name" };
            query = query.with(format!("LaunchTemplate.LaunchTemplate{kind}"), &template.id);
            query = query.some("LaunchTemplate.Version", template.version.as_ref());
        }
        if let Some(profile) = &options.instance_profile {
            let kind = if profile.starts_with("arn:") { "Arn" } else { "Name" };
            query = query.with(format!("IamInstanceProfile.{kind}"), profile);
        }
        if let (Some(root), Some(size)) = (root, options.boot_volume_gb) {
            query = query.with("BlockDeviceMapping.1.DeviceName", root);
            query = query.with("BlockDeviceMapping.1.Ebs.VolumeSize", size);
            query = query.with("BlockDeviceMapping.1.Ebs.DeleteOnTermination", true);
        }
        if let Some(data) = &spec.user_data {
            let encoded = data.clone().map(|text| STANDARD.encode(text));
            query = query.with_secret("UserData", encoded);
        }
        query = self.network(query, spec)?;
        Ok(self.market(query, spec.preemptible))
    }

    /// Adds subnet, security groups and network interfaces.
    fn network(&self, query: Query, spec: &InstanceSpec) -> Result<Query> {
        let options = &self.launch;
        let subnet = self.subnet(spec)?;
        // With a subnet the zone is known; EC2 compares the two.
        let zone = spec.zone.as_ref();
        let query = query.some("Placement.AvailabilityZone", zone);
        if options.efa == 0 && options.public_ip.is_none() {
            let query = query.some("SubnetId", subnet);
            return Ok(query.list("SecurityGroupId", &options.security_groups));
        }
        Ok((0..options.efa.max(1)).fold(query, |query, card| {
            let prefix = format!("NetworkInterface.{}", card.saturating_add(1));
            let key = |name: &str| format!("{prefix}.{name}");
            let query = query
                .with(key("DeviceIndex"), card.min(1))
                .with(key("DeleteOnTermination"), true)
                .some(&key("SubnetId"), subnet)
                .list(&key("SecurityGroupId"), &options.security_groups);
            let query = if options.efa > 0 {
                query.with(key("InterfaceType"), "efa").with(key("NetworkCardIndex"), card)
            } else {
                query
            };
            // EC2 gives no public address to instances with several interfaces.
            let public = options.public_ip.filter(|_| options.efa <= 1);
            query.some(&key("AssociatePublicIpAddress"), public)
        }))
    }

    /// The subnet of a launch: its own, that of its zone, or that of all.
    fn subnet<'a>(&'a self, spec: &'a InstanceSpec) -> Result<Option<&'a SubnetId>> {
        let options = &self.launch;
        if spec.subnet.is_some() {
            return Ok(spec.subnet.as_ref());
        }
        let usual = || options.subnet.as_ref().or_else(|| options.subnets.values().next());
        let Some(zone) = &spec.zone else {
            return Ok(usual());
        };
        match options.subnets.get(zone) {
            None if !options.subnets.is_empty() => {
                let why = format!("no subnet is set for zone {zone}");
                Err(Error::new(ErrorKind::Invalid, ApiOperation::Launch)
                    .on(&spec.name)
                    .because(why))
            }
            found => Ok(found.or(options.subnet.as_ref())),
        }
    }

    /// Adds the purchasing option: on demand, spot or reserved.
    fn market(&self, query: Query, preemptible: bool) -> Query {
        let options = &self.launch;
        let query = match (preemptible, options.capacity_block) {
            (true, _) => query
                .with("InstanceMarketOptions.MarketType", "spot")
                .with("InstanceMarketOptions.SpotOptions.SpotInstanceType", "one-time")
                .with("InstanceMarketOptions.SpotOptions.InstanceInterruptionBehavior", "terminate")
                .some(
                    "InstanceMarketOptions.SpotOptions.MaxPrice",
                    options.spot_max_price.as_ref(),
                ),
            (false, true) => query.with("InstanceMarketOptions.MarketType", "capacity-block"),
            (false, false) => query,
        };
        // No reservation is for spot instances.
        match options.capacity_reservation.as_ref().filter(|_| !preemptible) {
            None => query,
            Some(reservation) => {
                let kind = if reservation.starts_with("arn:") {
                    "CapacityReservationResourceGroupArn"
                } else {
                    "CapacityReservationId"
                };
                let target = "CapacityReservationSpecification.CapacityReservationTarget";
                query.with(format!("{target}.{kind}"), reservation)
            }
        }
    }
}

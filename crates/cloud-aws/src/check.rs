//! Checks what launches need, without a launch.

use crate::catalog::architecture;
use crate::convert::BOOT_IMAGE;
use crate::provider::Aws;
use crate::query::Query;
use crate::wire;
use cloud_core::{
    ApiOperation, Error, ErrorKind, ImageId, InstanceId, InstanceSpec, Result, Shape, SubnetId,
};
use serde::Deserialize;
use std::collections::BTreeSet;

/// EC2's code for a dry run that would succeed.
const WOULD_SUCCEED: &str = "DryRunOperation";

/// The id of an instance that does not exist, for a dry run.
const NO_INSTANCE: &str = "i-00000000000000000";

/// Actions on existing instances, each with the parameter for the id.
const ACTIONS: [(&str, &str); 7] = [
    ("TerminateInstances", "InstanceId.1"),
    ("RebootInstances", "InstanceId.1"),
    ("StopInstances", "InstanceId.1"),
    ("StartInstances", "InstanceId.1"),
    ("CreateReplaceRootVolumeTask", "InstanceId"),
    ("CreateTags", "ResourceId.1"),
    ("CreateImage", "InstanceId"),
];

#[derive(Deserialize)]
struct Caller {
    #[serde(rename = "GetCallerIdentityResult")]
    result: Arn,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Arn {
    arn: String,
}

impl Aws {
    /// The ARN of the caller.
    pub async fn caller(&self) -> Result<String> {
        let request = Query::sts("GetCallerIdentity");
        let request =
            request.request(ApiOperation::Authenticate, self.api.sts_url.clone()).on("credentials");
        let response = self.api.sts.send(&request).await?;
        let caller: Caller = wire::read(&response, &request, "GetCallerIdentity")?;
        Ok(caller.result.arn)
    }

    /// Asks EC2 whether it would launch this, without launching it.
    pub async fn dry_run(&self, spec: &InstanceSpec) -> Result<()> {
        let root = self.root_device(spec).await?;
        let query = self.query(spec, root.as_deref())?.with("MinCount", 1).with("MaxCount", 1);
        let query = self.tagged(query, &crate::names::of_one(spec));
        self.would(ApiOperation::Launch, &spec.shape.to_string(), query).await
    }

    /// Asks EC2 whether the caller may change instances, with one of them as an example. Nothing is changed.
    ///
    /// Returns false if that is unknown: without an example, a policy that depends on tags refuses everything.
    pub async fn may_change(&self, example: Option<&InstanceId>) -> Result<bool> {
        let id = example.map_or(NO_INSTANCE, InstanceId::as_str);
        for (action, parameter) in ACTIONS {
            let query = Query::look(action).with(parameter, id);
            let query = match action {
                "CreateImage" => query.with("Name", "dry-run"),
                "CreateTags" => query.with("Tag.1.Key", BOOT_IMAGE).with("Tag.1.Value", ""),
                _ => query,
            };
            match self.would(ApiOperation::Configure, action, query).await {
                Err(error) if error.kind().is_about_the_caller() => {
                    let is_unknown = example.is_none() && error.kind() == ErrorKind::Forbidden;
                    return if is_unknown { Ok(false) } else { Err(error) };
                }
                // An error of the state or the id is reported only to a caller with the permission.
                _ => {}
            }
        }
        Ok(true)
    }

    /// Sends a request as a dry run.
    async fn would(&self, operation: ApiOperation, subject: &str, query: Query) -> Result<()> {
        let query = query.with("DryRun", true);
        match self.api.done(operation, subject, query).await {
            Err(error) if error.code() == Some(WOULD_SUCCEED) => Ok(()),
            result => result,
        }
    }

    /// Describes each subnet of launches with its free addresses, or returns what is wrong with it.
    pub async fn subnets(&self, also: &[String]) -> Vec<Result<String>> {
        let own = self.launch.subnets.values().chain(&self.launch.subnet).map(SubnetId::as_str);
        let wanted: BTreeSet<&str> = own.chain(also.iter().map(String::as_str)).collect();
        if wanted.is_empty() {
            return Vec::new();
        }
        let ids: Vec<&str> = wanted.into_iter().collect();
        let found = match self.find_subnets(&ids).await {
            Ok(found) => found,
            Err(error) => return vec![Err(error)],
        };
        let zones = &self.launch.subnets;
        let told = ids.into_iter().map(|id| {
            let error = |why: String| {
                Error::new(ErrorKind::Invalid, ApiOperation::Configure).on(id).because(why)
            };
            let Some(subnet) = found.iter().find(|subnet| subnet.subnet_id == id) else {
                return Err(error(format!("there is no such subnet in {}", self.region)));
            };
            let real = &subnet.availability_zone;
            let said = zones.iter().find(|(_, subnet)| subnet.as_str() == id).map(|(zone, _)| zone);
            match (said, subnet.available_ip_address_count) {
                (Some(zone), _) if zone.as_str() != real => {
                    Err(error(format!("it is in {real}, not in {zone}")))
                }
                (_, Some(0)) => Err(error(format!("it is in {real} and has no free address"))),
                (_, Some(free)) => Ok(format!("subnet {id} in {real} with {free} free addresses")),
                (_, None) => Ok(format!("subnet {id} in {real}")),
            }
        });
        told.collect()
    }

    /// Checks that these shapes can boot an image. The error names those that cannot.
    pub async fn boots(&self, image: &ImageId, shapes: &[Shape]) -> Result<String> {
        let error = |why: String| {
            Error::new(ErrorKind::Invalid, ApiOperation::Configure).on(image).because(why)
        };
        let found = self.images_by_id(&[image.as_str().to_owned()]).await?;
        let found = found.into_iter().next();
        let found =
            found.ok_or_else(|| error(format!("there is no such image in {}", self.region)))?;
        let named = found.architecture.unwrap_or_default();
        let own = architecture(&named);
        let others =
            shapes.iter().filter(|shape| shape.architecture.is_some() && shape.architecture != own);
        let others: Vec<&str> = others.map(|shape| shape.name.as_str()).collect();
        if others.is_empty() {
            return Ok(format!("image {image} ({named})"));
        }
        Err(error(format!("it is for {named}, and these are not: {}", others.join(", "))))
    }
}

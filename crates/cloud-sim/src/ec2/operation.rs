//! What a request asks for.

use crate::check::Api;
use crate::query::Query;
use crate::server::Whole;
use std::collections::BTreeMap;

/// The operations that rules can be about: a misspelt one would make a test pass for nothing.
const OPERATIONS: [&str; 29] = [
    "AssumeRole",
    "AssumeRoleWithWebIdentity",
    "CreateImage",
    "CreateReplaceRootVolumeTask",
    "CreateTags",
    "DecodeAuthorizationMessage",
    "DeleteTags",
    "DescribeAvailabilityZones",
    "DescribeCapacityReservations",
    "DescribeImages",
    "DescribeInstanceStatus",
    "DescribeInstanceTypeOfferings",
    "DescribeInstanceTypes",
    "DescribeInstances",
    "DescribeLaunchTemplateVersions",
    "DescribeReplaceRootVolumeTasks",
    "DescribeSecurityGroups",
    "DescribeSubnets",
    "DescribeTags",
    "GetCallerIdentity",
    "GetConsoleOutput",
    "GetServiceQuota",
    "ListServiceQuotas",
    "ModifyInstanceAttribute",
    "RebootInstances",
    "RunInstances",
    "StartInstances",
    "StopInstances",
    "TerminateInstances",
];

/// What rules and bounds of a proxy can be about. Nothing here has a work request that fails later.
pub(super) const EC2: Api =
    Api { is_operation: |name| OPERATIONS.contains(&name), fail_later: &[] };

/// A request with its form.
pub(super) struct Call {
    /// The name of the operation; empty if the request names none.
    pub(super) operation: String,
    /// Its parameters.
    pub(super) form: BTreeMap<String, String>,
    /// The access key that it is signed with; empty without one.
    pub(super) caller: String,
}

impl Call {
    pub(super) fn of(whole: &Whole) -> Self {
        let header = |name| whole.headers.get(name).and_then(|value| value.to_str().ok());
        let body = Query::parse(&String::from_utf8_lossy(&whole.body));
        let query = whole.query();
        let form: BTreeMap<_, _> = query.pairs().iter().chain(body.pairs()).cloned().collect();
        // Services that speak JSON name the operation in a header.
        let target = header("x-amz-target").and_then(|target| target.rsplit('.').next());
        let operation = form.get("Action").map(String::as_str).or(target).unwrap_or_default();
        let credential = header("authorization").and_then(|text| text.split_once("Credential="));
        let caller = credential.and_then(|(_, rest)| rest.split('/').next()).unwrap_or_default();
        Self { operation: operation.to_owned(), caller: caller.to_owned(), form }
    }

    /// The client token, if the operation takes one and is to be carried out.
    pub(super) fn client_token(&self) -> Option<&str> {
        let takes = ["CreateReplaceRootVolumeTask", "RunInstances"];
        let trial = self.form.get("DryRun").is_some_and(|value| value == "true");
        let token = self.form.get("ClientToken").filter(|_| !trial)?;
        takes.contains(&self.operation.as_str()).then_some(token.as_str())
    }

    /// The ids of resources that it names, as `InstanceId.1`.
    pub(super) fn ids(&self) -> impl Iterator<Item = &str> {
        let named = |key: &str| key.starts_with("InstanceId") || key.starts_with("ResourceId");
        self.form.iter().filter(move |(key, _)| named(key)).map(|(_, id)| id.as_str())
    }
}

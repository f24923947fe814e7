//! Quotas of the account in the region, and their use.

use crate::describe::{QUOTAS, limit_of};
use crate::provider::Aws;
use crate::query::Query;
use crate::wire;
use cloud_core::http::{HeaderName, HeaderValue, Method, PageTokens, Request};
use cloud_core::{ApiOperation, Limit, Result, ShapeName};
use serde::Deserialize;
use serde_json::json;
use std::collections::BTreeMap;

const OPERATION: ApiOperation = ApiOperation::Limits;
const TARGET: HeaderName = HeaderName::from_static("x-amz-target");
const LIST: HeaderValue = HeaderValue::from_static("ServiceQuotasV20190624.ListServiceQuotas");
const JSON: HeaderValue = HeaderValue::from_static("application/x-amz-json-1.1");

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Quotas {
    pub(crate) quotas: Vec<Quota>,
    next_token: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Quota {
    quota_code: String,
    pub(crate) value: f64,
}

impl Aws {
    /// The quotas of instances on demand, with their use.
    pub(crate) async fn find_limits(&self) -> Result<Vec<Limit>> {
        let values = self.quotas().await?;
        let used = self.used().await?;
        let rows = QUOTAS.iter().filter_map(|(_, code, name)| {
            let most = whole(*values.get(*code)?);
            let used = Some(used.get(*name).copied().unwrap_or_default());
            Some(Limit { name: (*name).to_owned(), zone: None, most, used })
        });
        Ok(rows.collect())
    }

    /// Quotas by their codes.
    async fn quotas(&self) -> Result<BTreeMap<String, f64>> {
        let mut values = BTreeMap::new();
        let mut pages = PageTokens::new(OPERATION);
        loop {
            let mut body = json!({"ServiceCode": "ec2", "MaxResults": 100});
            if let (Some(token), Some(body)) = (pages.token(), body.as_object_mut()) {
                body.insert("NextToken".to_owned(), token.into());
            }
            let request = Request::new(OPERATION, Method::POST, self.quotas_url.clone());
            let request = request.with_effect(cloud_core::http::Effect::None).on("quotas of EC2");
            let request = request.with_json(&body)?.with_header(TARGET, LIST);
            let request = request.with_header(HeaderName::from_static("content-type"), JSON);
            let page: Quotas = self.quotas.send(&request).await?.json(&request)?;
            values.extend(page.quotas.into_iter().map(|quota| (quota.quota_code, quota.value)));
            if !pages.advance(page.next_token)? {
                return Ok(values);
            }
        }
    }

    /// The number of hardware threads in use for each limit, by all instances of the account.
    async fn used(&self) -> Result<BTreeMap<String, u64>> {
        let query = Query::look("DescribeInstances");
        let query = query.filter(1, "instance-state-name", ["pending", "running"]);
        let reservations = self.api.all::<wire::Instances>(OPERATION, "instances", query).await?;
        let mut used = BTreeMap::new();
        for instance in reservations.into_iter().flat_map(|it| it.instances_set.item) {
            let limit = instance.instance_type.map(ShapeName::new).and_then(|it| limit_of(&it));
            // Spot instances have quotas of their own.
            let (Some(limit), None) = (limit, &instance.instance_lifecycle) else {
                continue;
            };
            let options = instance.cpu_options.as_ref();
            let threads = options.and_then(|it| it.core_count?.checked_mul(it.threads_per_core?));
            let sum: &mut u64 = used.entry(limit.name).or_default();
            *sum = sum.saturating_add(threads.unwrap_or_default());
        }
        Ok(used)
    }
}

/// Quotas are written with a decimal point and are whole numbers.
pub(crate) fn whole(value: f64) -> Option<u64> {
    format!("{value:.0}").parse().ok()
}

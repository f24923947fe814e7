//! The stage of the conformance suite on a real OpenStack.

use crate::real::cloud::{Caller, Cloud, PATIENCE};
use crate::real::proxy::{Fault, Proxy};
use async_trait::async_trait;
use cloud_core::conformance::{Condition, Fixture};
use cloud_core::{ApiOperation, ImageId, InstanceId, InstanceName, InstanceSpec, Poll, ShapeName};
use serde_json::json;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

pub(crate) const PAGE: u32 = 2;

pub(crate) struct RealFixture<'a> {
    pub(crate) cloud: &'a Cloud,
    pub(crate) proxy: &'a Proxy,
    pub(crate) admin: &'a Caller,
    pub(crate) no_room: AtomicBool,
}

impl RealFixture<'_> {
    async fn set_quota(&self, instances: i32) {
        let path = format!("/v2.1/os-quota-sets/{}", self.cloud.fact("/projects/demo"));
        let body = json!({"quota_set": {"instances": instances, "force": true}});
        self.admin.call("PUT", "nova", &path, &body).await;
    }
}

pub(crate) fn poll() -> Poll {
    Poll { first: Duration::from_millis(300), longest: Duration::from_secs(1), deadline: PATIENCE }
}

#[async_trait]
impl Fixture for RealFixture<'_> {
    fn spec(&self, name: &str) -> InstanceSpec {
        // Four terabytes of memory, which the one host there is does not have.
        let flavor = if self.no_room.load(Ordering::SeqCst) { "m1.giant" } else { "m1.tiny" };
        let image = ImageId::new(self.cloud.fact("/images/image-1"));
        InstanceSpec::new(InstanceName::new(name), ShapeName::new(flavor), image)
    }

    fn other_image(&self) -> ImageId {
        ImageId::new(self.cloud.fact("/images/image-2"))
    }

    fn poll(&self) -> Poll {
        poll()
    }

    fn more_than_a_page(&self) -> Option<usize> {
        Some(5)
    }

    fn boots(&self, id: &InstanceId) -> Option<usize> {
        Some(self.cloud.boots(id.as_str()))
    }

    async fn set(&self, condition: Condition) -> bool {
        match condition {
            Condition::Normal => {
                self.proxy.clear_faults();
                self.no_room.store(false, Ordering::SeqCst);
                self.set_quota(100).await;
            }
            Condition::NoCapacityLater => self.no_room.store(true, Ordering::SeqCst),
            Condition::NoQuota => self.set_quota(0).await,
            Condition::Throttled => self.proxy.inject("POST /v2.1/servers", Fault::Throttle),
            Condition::ResponseLost(ApiOperation::Launch) => {
                self.proxy.inject("POST /v2.1/servers", Fault::LoseResponse);
            }
            Condition::ResponseLost(ApiOperation::Terminate) => {
                self.proxy.inject("DELETE /v2.1/servers/", Fault::LoseResponse);
            }
            // Nova accepts every launch and finds out later.
            Condition::NoCapacity | Condition::ResponseLost(_) => return false,
        }
        true
    }
}

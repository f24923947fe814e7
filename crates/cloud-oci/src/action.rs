//! Actions on existing instances: power, a new image, termination.

use crate::api::{Service, with_token};
use crate::launch::overlay;
use crate::provider::Oci;
use crate::wire;
use crate::work_request::Goal;
use cloud_core::http::{Method, Request};
use cloud_core::{
    ApiOperation, Error, ErrorKind, ImageId, InstanceFilter, InstanceId, Provider as _, Result,
};
use serde_json::json;

const SIZE: &str = "bootVolumeSizeInGBs";

/// A power action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Power {
    /// Start.
    Start,
    /// Power off.
    Stop,
    /// Shut down through the operating system.
    SoftStop,
    /// Power cycle.
    Reset,
    /// Reboot through the operating system.
    SoftReset,
}

impl Power {
    fn word(self) -> &'static str {
        match self {
            Self::Start => "START",
            Self::Stop => "STOP",
            Self::SoftStop => "SOFTSTOP",
            Self::Reset => "RESET",
            Self::SoftReset => "SOFTRESET",
        }
    }
}

impl Oci {
    /// Starts a power action.
    pub async fn power(&self, id: &InstanceId, power: Power) -> Result<()> {
        let operation = match power {
            Power::Start => ApiOperation::Start,
            Power::Stop | Power::SoftStop => ApiOperation::Stop,
            Power::Reset | Power::SoftReset => ApiOperation::Reboot,
        };
        let query = [("action", power.word())];
        let request = self.instance_request(operation, Method::POST, id, &query)?;
        let request = with_token(request, &self.token())?;
        self.api.send(&request).await.map(|_answer| ())
    }

    /// Replaces the boot volume. If OCI cannot do that, as for bare metal, the error is
    /// [`Unsupported`](ErrorKind::Unsupported), and the caller has to terminate and launch again. An error of the image,
    /// which a new launch would have, too, stays [`Invalid`](ErrorKind::Invalid).
    pub(crate) async fn replace_boot_volume(&self, id: &InstanceId, image: &ImageId) -> Result<()> {
        let shared = self.site.shared_fields();
        let size = shared.pointer(&format!("/sourceDetails/{SIZE}"));
        let mut source = json!({
            "sourceType": "image",
            "isPreserveBootVolumeEnabled": false,
            "imageId": image.as_str(),
        });
        overlay(&mut source, json!({SIZE: size}));
        let details =
            json!({"sourceDetails": source, "updateOperationConstraint": "ALLOW_DOWNTIME"});
        let request = self.instance_request(ApiOperation::Rebuild, Method::PUT, id, &[])?;
        let request = with_token(request.with_json(&details)?, &self.token())?;
        self.work_requests.begins_anew(id);
        match self.api.send(&request).await {
            Err(error) if error.kind() == ErrorKind::Invalid && self.cannot(id, &error).await => {
                Err(error.with_kind(ErrorKind::Unsupported))
            }
            Err(error) => Err(error),
            Ok(response) => {
                self.work_requests.began(id, Goal::Rebuild(image.clone()), &response);
                Ok(())
            }
        }
    }

    /// True if the request was refused because of the kind of instance.
    async fn cannot(&self, id: &InstanceId, error: &Error) -> bool {
        if let Some(cannot) = refused_for_good(error) {
            return cannot;
        }
        let instance = self.read_instance(id).await;
        instance.is_ok_and(|it| it.shape.is_some_and(|shape| shape.starts_with("BM.")))
    }

    pub(crate) async fn send_terminate(&self, id: &InstanceId) -> Result<()> {
        let query =
            [("preserveBootVolume", "false"), ("preserveDataVolumesCreatedAtLaunch", "false")];
        let request = self.instance_request(ApiOperation::Terminate, Method::DELETE, id, &query)?;
        let error = match self.api.send(&request).await {
            Ok(_answer) => {
                // Not before, because an instance that is already gone has failed for a reason that can be found.
                self.work_requests.removed(id);
                return Ok(());
            }
            Err(error) => error,
        };
        // Gone, or forbidden. Only another request can tell, and an existing instance still costs money.
        let not_found = error.kind() == ErrorKind::NotFound;
        let unclear = not_found || error.kind() == ErrorKind::Conflict;
        if unclear && self.is_gone_or_going(id).await? {
            return Ok(());
        }
        Err(if not_found { error.with_kind(ErrorKind::Forbidden) } else { error })
    }

    /// True if an instance is terminated or terminating.
    async fn is_gone_or_going(&self, id: &InstanceId) -> Result<bool> {
        let request = self.instance_request(ApiOperation::Terminate, Method::GET, id, &[])?;
        match self.api.read::<wire::Instance>(&request).await {
            Ok(instance) => Ok(crate::convert::instance(instance).state.is_leaving()),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                // A user with only the permission to list gets the same error for a running instance.
                let mut listed = self.list(&InstanceFilter::default()).await?.into_iter();
                Ok(listed.all(|it| it.id != *id || it.state.is_leaving()))
            }
            Err(error) => Err(error),
        }
    }

    pub(crate) async fn read_instance(&self, id: &InstanceId) -> Result<wire::Instance> {
        let request = self.instance_request(ApiOperation::Get, Method::GET, id, &[])?;
        self.api.read(&request).await
    }

    fn instance_request(
        &self,
        operation: ApiOperation,
        method: Method,
        id: &InstanceId,
        query: &[(&str, &str)],
    ) -> Result<Request> {
        let place = (Service::Core, &["instances", id.as_str()][..]);
        Ok(self.api.request(operation, method, place, query)?.on(id))
    }
}

/// Returns whether a rebuild was refused because of the kind of instance; `None` if only its shape can tell.
///
/// The caller then replaces the instance. So this is not true for a missing image or one of another distribution, which is
/// probably the wrong image.
fn refused_for_good(error: &Error) -> Option<bool> {
    let message = error.message().unwrap_or_default().to_lowercase();
    let says = |words: [&str; 2]| words.iter().any(|word| message.contains(word));
    let missing = error.code() == Some("RelatedResourceNotAuthorizedOrNotFound");
    if missing || says(["distribution", "operating system"]) {
        return Some(false);
    }
    says(["not supported", "unsupported"]).then_some(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistyped_image_is_not_taken_for_a_machine_that_cannot_be_rebuilt() {
        let table = [
            ("RelatedResourceNotAuthorizedOrNotFound", "image img not found", Some(false)),
            ("RelatedResourceNotAuthorizedOrNotFound", "image is not supported", Some(false)),
            ("InvalidParameter", "Boot volume replacement is not supported.", Some(true)),
            ("InvalidParameter", "Not Supported for this shape", Some(true)),
            ("InvalidParameter", "UNSUPPORTED", Some(true)),
            ("InvalidParameter", "The image must have the same Distribution", Some(false)),
            ("InvalidParameter", "Another distribution is not supported", Some(false)),
            ("InvalidParameter", "Only Linux operating systems are supported", Some(false)),
            ("InvalidParameter", "boot volume replacement needs a VM", None),
        ];
        for (code, message, expected) in table {
            let error = Error::new(ErrorKind::Invalid, ApiOperation::Rebuild);
            let error = error.because(message).with_code(code);
            assert_eq!(refused_for_good(&error), expected, "{code} {message}");
        }
    }
}

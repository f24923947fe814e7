//! What is done to an instance that is there: power, a new image, its end.

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

/// What can be done to the power of an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Power {
    /// Switch on.
    Start,
    /// Switch off.
    Stop,
    /// Ask the operating system to shut down.
    SoftStop,
    /// Off and on again.
    Reset,
    /// Ask the operating system to reboot.
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
    /// Begins to do something to the power of an instance.
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

    /// Replaces the boot volume. Where OCI cannot do that, which is so for bare metal, the error is
    /// [`Unsupported`](ErrorKind::Unsupported), and the way is to terminate and launch again. What is
    /// wrong with the image is not mended by that, and stays [`Invalid`](ErrorKind::Invalid).
    pub(crate) async fn replace_boot_volume(&self, id: &InstanceId, image: &ImageId) -> Result<()> {
        let template = self.site.template.expose().get("sourceDetails");
        let mut source = json!({
            "sourceType": "image",
            "isPreserveBootVolumeEnabled": false,
            "imageId": image.as_str(),
        });
        overlay(&mut source, json!({SIZE: template.and_then(|source| source.get(SIZE))}));
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

    /// True if the request was refused because of what the instance is.
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
                // Not before: one that is gone already has failed, and can say why.
                self.work_requests.removed(id);
                return Ok(());
            }
            Err(error) => error,
        };
        // Gone, or not ours to remove: only a look can tell, and what is there still costs.
        let not_found = error.kind() == ErrorKind::NotFound;
        let unclear = not_found || error.kind() == ErrorKind::Conflict;
        if unclear && self.is_gone_or_going(id).await? {
            return Ok(());
        }
        Err(if not_found { error.with_kind(ErrorKind::Forbidden) } else { error })
    }

    /// True if an instance is gone or going.
    async fn is_gone_or_going(&self, id: &InstanceId) -> Result<bool> {
        let request = self.instance_request(ApiOperation::Terminate, Method::GET, id, &[])?;
        match self.api.read::<wire::Instance>(&request).await {
            Ok(instance) => Ok(crate::convert::instance(instance).state.is_leaving()),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                // Who may only list instances hears the same of one that runs.
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

/// Whether a rebuild was refused because of what the instance is; none if only its shape can tell.
///
/// Who hears that removes the machine, and gets another if there is one: so not for an image that is
/// not there, and not for one of another distribution, which is as likely to be the wrong image.
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

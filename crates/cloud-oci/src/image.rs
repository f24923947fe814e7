//! Images: listed once, asked for often.

use crate::api::{Service, with_token};
use crate::page::Listing;
use crate::provider::Oci;
use crate::{convert, wire};
use cloud_core::http::Method;
use cloud_core::{Image, ImageFilter, ImageId, ImageName, InstanceId, Operation, Result};
use std::cmp::Reverse;
use std::collections::BTreeSet;
use tokio::sync::Mutex;

/// The images of the compartment, newest first, once they have been listed.
#[derive(Debug, Default)]
pub(crate) struct Images(Mutex<Cached>);

#[derive(Debug, Default)]
struct Cached {
    all: Option<Vec<Image>>,
    /// Made by us and not seen to be ready; until then the listing is not kept.
    coming: BTreeSet<ImageId>,
}

impl Oci {
    /// One listing serves all who ask at the same time and later.
    pub(crate) async fn find_images(&self, filter: &ImageFilter) -> Result<Vec<Image>> {
        let mut cached = self.images.0.lock().await;
        let wanted = |all: &[Image]| all.iter().filter(|i| filter.matches(i)).cloned().collect();
        if let Some(all) = &cached.all {
            return Ok(wanted(all));
        }
        let all = self.list_images().await?;
        for image in all.iter().filter(|image| image.available) {
            cached.coming.remove(&image.id);
        }
        let found = wanted(&all);
        if cached.coming.is_empty() {
            cached.all = Some(all);
        }
        Ok(found)
    }

    async fn list_images(&self) -> Result<Vec<Image>> {
        let listing = Listing {
            operation: Operation::Images,
            service: Service::Core,
            path: &["images"],
            query: &[
                ("compartmentId", &self.site.compartment),
                ("sortBy", "TIMECREATED"),
                ("sortOrder", "DESC"),
            ],
        };
        let images: Vec<wire::Image> = listing.all(&self.api).await?;
        let gone = |image: &wire::Image| image.lifecycle_state.as_deref() == Some("DELETED");
        let images = images.into_iter().filter(|image| !gone(image));
        let mut images: Vec<Image> = images.map(convert::image).collect();
        // They are asked for in this order, and sorted all the same: the newest is what is booted.
        images.sort_by_key(|image| Reverse(image.created));
        Ok(images)
    }

    pub(crate) async fn make_image(&self, id: &InstanceId, name: &ImageName) -> Result<ImageId> {
        let details = wire::CreateImageDetails {
            compartment_id: &self.site.compartment,
            display_name: name.as_str(),
            instance_id: id.as_str(),
        };
        let place = (Service::Core, &["images"][..]);
        let request = self.api.request(Operation::Snapshot, Method::POST, place, &[])?;
        let request = with_token(request.on(id).with_json(&details)?, &self.token())?;
        let image: wire::Image = self.api.read(&request).await?;
        let id = ImageId::new(image.id);
        let mut cached = self.images.0.lock().await;
        cached.all = None;
        cached.coming.insert(id.clone());
        Ok(id)
    }
}

//! Images, with a cached listing.

use crate::api::{Service, with_token};
use crate::page::{Listing, Of, once};
use crate::provider::Oci;
use crate::{convert, wire};
use cloud_core::http::Method;
use cloud_core::{ApiOperation, Image, ImageFilter, ImageId, ImageName, InstanceId, Result};
use serde_json::json;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use tokio::sync::Mutex;

/// Number of consecutive listings without a new image before it counts as deleted.
const MISSED: u32 = 3;

/// The images of the compartment, newest first, once they have been listed.
#[derive(Debug, Default)]
pub(crate) struct Images(Mutex<Cached>);

#[derive(Debug, Default)]
struct Cached {
    all: Option<Vec<Image>>,
    /// New images that are not available yet, with the number of consecutive listings without each. While there are any,
    /// the listing is not cached.
    coming: BTreeMap<ImageId, u32>,
}

impl Cached {
    /// Caches a listing, unless images are missing.
    fn update(&mut self, listed: Vec<Image>) {
        self.coming.retain(|id, missed| {
            let shown = listed.iter().find(|image| image.id == *id);
            *missed = if shown.is_some() { 0 } else { *missed + 1 };
            shown.map_or(*missed < MISSED, |image| !image.available)
        });
        if self.coming.is_empty() {
            self.all = Some(listed);
        }
    }
}

impl Oci {
    /// One listing serves all concurrent and later requests.
    pub(crate) async fn find_images(&self, filter: &ImageFilter) -> Result<Vec<Image>> {
        let mut cached = self.images.0.lock().await;
        let wanted = |all: &[Image]| all.iter().filter(|i| filter.matches(i)).cloned().collect();
        if let Some(all) = &cached.all {
            return Ok(wanted(all));
        }
        let all = self.list_images().await?;
        let found = wanted(&all);
        cached.update(all);
        Ok(found)
    }

    async fn list_images(&self) -> Result<Vec<Image>> {
        let listing = Listing {
            operation: ApiOperation::Images,
            service: Service::Core,
            path: &["images"],
            of: Of::Compartment(&self.site.compartment),
            query: &[("sortBy", "TIMECREATED"), ("sortOrder", "DESC")],
        };
        let images: Vec<wire::Image> = listing.all(&self.api).await?;
        let images = once(images, |image| image.id.clone());
        let gone = |image: &wire::Image| image.lifecycle_state.as_deref() == Some("DELETED");
        let images = images.into_iter().filter(|image| !gone(image));
        let mut images: Vec<Image> = images.map(convert::image).collect();
        // The request sets this order, but the newest image is booted, so sort again.
        images.sort_by_key(|image| Reverse(image.created));
        Ok(images)
    }

    pub(crate) async fn make_image(&self, id: &InstanceId, name: &ImageName) -> Result<ImageId> {
        let details = json!({
            "compartmentId": self.site.compartment,
            "displayName": name.as_str(),
            "instanceId": id.as_str(),
        });
        let place = (Service::Core, &["images"][..]);
        let request = self.api.request(ApiOperation::Snapshot, Method::POST, place, &[])?;
        let request = with_token(request.on(id).with_json(&details)?, &self.token())?;
        let image: wire::Image = self.api.read(&request).await?;
        let id = ImageId::new(image.id);
        let mut cached = self.images.0.lock().await;
        cached.all = None;
        cached.coming.insert(id.clone(), 0);
        Ok(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_that_never_comes_does_not_keep_the_list_from_being_kept() {
        let image = |available| {
            let mut image = Image::new(ImageId::new("new"), ImageName::new("golden"));
            image.available = available;
            vec![image]
        };
        let mut cached = Cached::default();
        cached.coming.insert(ImageId::new("new"), 0);
        let listings = [vec![], vec![], image(false), vec![], vec![]];
        for listing in listings {
            cached.update(listing);
            assert!(cached.all.is_none());
        }
        let mut ready = Cached { coming: cached.coming.clone(), ..Cached::default() };
        ready.update(image(true));
        assert!(ready.all.is_some(), "seen to be ready");
        cached.update(vec![]);
        assert!(cached.all.is_some(), "deleted before it was");
    }
}

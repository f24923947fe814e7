//! Images: those that are ours, those that are named.

use crate::convert::image_tags;
use crate::provider::Aws;
use crate::query::Query;
use crate::wire;
use cloud_core::{
    ApiOperation, Image, ImageFilter, ImageId, ImageName, InstanceId, InstanceSpec, Result,
};
use std::sync::PoisonError;

const OPERATION: ApiOperation = ApiOperation::Images;

impl Aws {
    /// The images that the filter wants, newest first.
    pub(crate) async fn find_images(&self, filter: &ImageFilter) -> Result<Vec<Image>> {
        let owners = self.launch.image_owners.iter().map(String::as_str);
        let mut query =
            Query::look("DescribeImages").list("Owner", ["self"].into_iter().chain(owners));
        let names = filter.name.iter().map(|name| ("name".to_owned(), name.as_str()));
        let tags = filter.tags.iter().map(|(key, value)| (format!("tag:{key}"), value));
        for (number, (name, value)) in (1..).zip(names.chain(tags)) {
            query = query.filter(number, &name, [value]);
        }
        let mut found = self.api.all::<wire::Images>(OPERATION, "images", query).await?;
        if !self.launch.images.is_empty() {
            found.extend(self.images_by_id(&self.launch.images).await?);
        }
        let mut images: Vec<Image> = found.into_iter().map(image).collect();
        // EC2 takes a * in a name for anything.
        images.retain(|image| filter.matches(image));
        images.sort_by(|one, other| (other.created, &other.id).cmp(&(one.created, &one.id)));
        images.dedup_by(|one, other| one.id == other.id);
        Ok(images)
    }

    /// Images whoever owns them; none of those that are not there.
    pub(crate) async fn images_by_id(&self, ids: &[String]) -> Result<Vec<wire::Image>> {
        let query = Query::look("DescribeImages").filter(1, "image-id", ids);
        let found: wire::Images = self.api.read(OPERATION, &ids.join(", "), query).await?;
        Ok(found.images_set.item)
    }

    /// The device that a launch changes to have a boot disk of another size; images differ in its name.
    pub(crate) async fn root_device(&self, spec: &InstanceSpec) -> Result<Option<String>> {
        if self.launch.boot_volume_gb.is_none() {
            return Ok(None);
        }
        let known = || self.root_devices.lock().unwrap_or_else(PoisonError::into_inner);
        let found = known().get(&spec.image).cloned();
        if found.is_some() {
            return Ok(found);
        }
        let images = self.images_by_id(&[spec.image.as_str().to_owned()]).await?;
        let device = images.into_iter().find_map(|image| image.root_device_name);
        known().extend(device.clone().map(|device| (spec.image.clone(), device)));
        Ok(device)
    }

    pub(crate) async fn create_image(&self, id: &InstanceId, name: &ImageName) -> Result<ImageId> {
        let query = Query::change_once("CreateImage").with("InstanceId", id).with("Name", name);
        let made: wire::CreatedImage =
            self.api.read(ApiOperation::Snapshot, id.as_str(), query).await?;
        Ok(ImageId::new(made.image_id))
    }
}

pub(crate) fn image(from: wire::Image) -> Image {
    let mut image = Image::new(ImageId::new(from.image_id), ImageName::new(from.name));
    image.available = from.image_state == "available";
    image.created = from.creation_date.as_deref().and_then(wire::moment);
    image.tags = image_tags(from.tag_set);
    image
}

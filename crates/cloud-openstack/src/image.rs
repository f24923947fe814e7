//! Images in Glance.

use crate::api::{Api, join, with_query};
use crate::tags;
use crate::wire::{GlanceImage, ImagesBody, moment};
use cloud_core::{ApiOperation, Image, ImageFilter, ImageId, ImageName, Result};
use serde_json::Value;

/// Glance's own fields with a text value. All others are properties.
const OWN: &[&str] = &[
    "checksum",
    "container_format",
    "created_at",
    "direct_url",
    "disk_format",
    "file",
    "locations",
    "min_disk",
    "min_ram",
    "os_hash_algo",
    "os_hash_value",
    "os_hidden",
    "owner",
    "protected",
    "schema",
    "self",
    "size",
    "stores",
    "updated_at",
    "virtual_size",
    "visibility",
];

/// Page size of listings; Glance's default is 25.
const PAGE: &str = "1000";

/// Lists the images that pass the filter, newest first.
///
/// A tag is either a Glance tag (`role=node` or `compute`) or a property (`cluster: blue`). Glance filters by name and tags
/// without values, and the rest is filtered here.
pub(crate) async fn list(api: &Api, filter: &ImageFilter) -> Result<Vec<Image>> {
    let name = filter.name.as_ref().map(|name| ("name", exactly(name.as_str())));
    let bare = filter.tags.iter().filter(|(_, value)| value.is_empty());
    let bare = bare.map(|(key, _)| ("tag", key.to_owned()));
    let query: Vec<(&str, String)> = name.into_iter().chain(bare).collect();
    let query: Vec<(&str, &str)> =
        query.iter().map(|(key, value)| (*key, value.as_str())).collect();
    let found = found(api, ApiOperation::Images, &query).await?;
    let mut images: Vec<Image> = found.into_iter().map(image).collect();
    images.retain(|image| filter.matches(image));
    images.sort_by(|a, b| b.created.cmp(&a.created).then_with(|| a.id.cmp(&b.id)));
    Ok(images)
}

/// All pages of Glance's response to a query.
pub(crate) async fn found(
    api: &Api,
    operation: ApiOperation,
    query: &[(&str, &str)],
) -> Result<Vec<GlanceImage>> {
    let url = join(&api.endpoints.image, &["v2", "images"]);
    let url = with_query(with_query(url, query), &[("limit", PAGE)]);
    api.list::<ImagesBody>(operation, &url, Api::looking(operation)).await
}

/// Quotes a name, so that Glance does not parse it as an operator (`in:a,b`) or a list.
pub(crate) fn exactly(name: &str) -> String {
    if name.starts_with("in:") || name.contains([',', '"']) {
        let escaped = name.replace('\\', "\\\\").replace('"', "\\\"");
        format!("in:\"{escaped}\"")
    } else {
        name.to_owned()
    }
}

pub(crate) fn image(found: GlanceImage) -> Image {
    let properties = found.rest.iter().filter_map(|(key, value)| match value {
        Value::String(text) if !OWN.contains(&key.as_str()) => Some((key.as_str(), text.as_str())),
        _ => None,
    });
    let tags = tags::from_parts(properties, &found.tags);
    let name = ImageName::new(found.name.unwrap_or_default());
    let mut image = Image::new(ImageId::new(found.id), name);
    image.tags = tags;
    image.created = found.created_at.as_deref().and_then(moment);
    image.available = found.status == "active";
    image
}

#[cfg(test)]
mod tests {
    use super::*;
    use cloud_core::Tags;
    use serde_json::json;

    #[test]
    fn tags_and_properties_are_tags_of_ours() {
        let body = json!({"id": "i", "name": "n", "status": "queued", "visibility": "public",
            "size": 7, "owner": "p", "tags": ["compute", "role=node"], "cluster": "blue",
            "created_at": "2026-11-16T00:19:33Z"});
        let image = image(serde_json::from_value(body).unwrap());
        let expected = Tags::from([("compute", ""), ("role", "node"), ("cluster", "blue")]);
        assert_eq!(image.tags, expected);
        assert!(!image.available && image.created.is_some());
    }

    #[test]
    fn names_are_never_operators() {
        assert_eq!(exactly("rocky 9"), "rocky 9");
        assert_eq!(exactly("in:a"), "in:\"in:a\"");
        assert_eq!(exactly("a,b"), "in:\"a,b\"");
    }
}

//! Rebuilds: replaces the root volume of an instance.
//!
//! EC2 does it in a task, during which it reports the instance as running. The tag [`BOOT_IMAGE`] holds the image that an
//! instance boots. Listings query the last task of the instances with this tag.

use crate::api::{Api, MOST_VALUES};
use crate::convert::BOOT_IMAGE;
use crate::query::Query;
use crate::wire::{RootVolumeTask, RootVolumeTasks};
use cloud_core::{
    ApiOperation, ErrorKind, Fault, ImageId, Instance, InstanceId, InstanceState, Result,
};
use std::collections::BTreeMap;

impl Api {
    /// Starts replacing the root volume.
    pub(crate) async fn replace_root_volume(
        &self,
        id: &InstanceId,
        image: &ImageId,
        token: &str,
    ) -> Result<()> {
        let query = Query::change("CreateReplaceRootVolumeTask")
            .with("InstanceId", id)
            .with("ImageId", image)
            .with("DeleteReplacedRootVolume", true)
            .with("ClientToken", token);
        self.done(ApiOperation::Rebuild, id.as_str(), query).await?;
        // The tag comes second: if it named an image that is not there, that would never be repaired.
        let note = Query::change("CreateTags").list("ResourceId", [id]);
        let note = note.with("Tag.1.Key", BOOT_IMAGE).with("Tag.1.Value", image);
        let noted = self.done(ApiOperation::Rebuild, id.as_str(), note).await;
        noted.map_err(|error| error.with_kind(ErrorKind::Ambiguous))
    }

    /// Applies the state of the last replacement to instances: until it is done, they are pending.
    pub(crate) async fn show_replacements(
        &self,
        operation: ApiOperation,
        instances: Vec<(Instance, bool)>,
    ) -> Result<Vec<Instance>> {
        let replaced =
            instances.iter().filter(|(one, was)| *was && one.state == InstanceState::Running);
        let ids: Vec<&InstanceId> = replaced.map(|(instance, _)| &instance.id).collect();
        let mut last: BTreeMap<String, RootVolumeTask> = BTreeMap::new();
        for ids in ids.chunks(MOST_VALUES) {
            let query = Query::look("DescribeReplaceRootVolumeTasks");
            let query = query.filter(1, "instance-id", ids);
            for task in self.all::<RootVolumeTasks>(operation, "root volumes", query).await? {
                let newer =
                    last.get(&task.instance_id).is_none_or(|it| it.start_time <= task.start_time);
                if newer {
                    last.insert(task.instance_id.clone(), task);
                }
            }
        }
        let shown = instances.into_iter().map(|(mut instance, _)| {
            if let Some(task) = last.remove(instance.id.as_str()) {
                show(&mut instance, task);
            }
            instance
        });
        Ok(shown.collect())
    }
}

fn show(instance: &mut Instance, task: RootVolumeTask) {
    match task.task_state.as_str() {
        "pending" | "in-progress" | "failing" => instance.state = InstanceState::Pending,
        "failed" | "failed-detached" => {
            let message = format!("the root volume could not be replaced: {}", task.task_state);
            instance.fault = Some(Fault { kind: ErrorKind::Unavailable, message });
            instance.image = None;
        }
        _ => instance.image = task.image_id.map(ImageId::new).or(instance.image.take()),
    }
}

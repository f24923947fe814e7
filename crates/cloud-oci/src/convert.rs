//! Converts OCI's types to the common ones.

use crate::wire;
use cloud_core::{
    Architecture, Image, ImageId, ImageName, Instance, InstanceId, InstanceName, InstanceState,
    Shape, ShapeName, Zone,
};
use jiff::Timestamp;
use std::time::SystemTime;

pub(crate) fn instance(from: wire::Instance) -> Instance {
    let name = InstanceName::new(from.display_name.unwrap_or_default());
    let state = state(from.lifecycle_state.as_deref().unwrap_or("unknown"));
    let mut instance = Instance::new(InstanceId::new(from.id), name, state);
    instance.tags = from.freeform_tags.into_iter().collect();
    instance.shape = from.shape.map(ShapeName::new);
    instance.zone = from.availability_domain.map(Zone::new);
    instance.preemptible = from.preemptible_instance_config.is_some();
    instance.location = from.fault_domain.into_iter().collect();
    let image = from.source_details.and_then(|source| source.image_id).or(from.image_id);
    instance.image = image.map(ImageId::new);
    instance.created = from.time_created.as_deref().and_then(time);
    instance
}

/// Converts the state of an instance.
fn state(word: &str) -> InstanceState {
    match word {
        "PROVISIONING" | "STARTING" | "MOVING" | "CREATING_IMAGE" => InstanceState::Pending,
        "RUNNING" => InstanceState::Running,
        "STOPPING" => InstanceState::Stopping,
        "STOPPED" => InstanceState::Stopped,
        "TERMINATING" => InstanceState::Terminating,
        "TERMINATED" => InstanceState::Terminated,
        other => InstanceState::Other(other.to_owned()),
    }
}

pub(crate) fn image(from: wire::Image) -> Image {
    let name = ImageName::new(from.display_name.unwrap_or_default());
    let mut image = Image::new(ImageId::new(from.id), name);
    image.tags = from.freeform_tags.into_iter().collect();
    image.created = from.time_created.as_deref().and_then(time);
    image.available = from.lifecycle_state.as_deref() == Some("AVAILABLE");
    image
}

pub(crate) fn shape(from: wire::Shape) -> Shape {
    let flexible = from.is_flexible.unwrap_or(false);
    let least_ocpus = from.ocpu_options.and_then(|options| options.min).filter(|_| flexible);
    let least_memory = from.memory_options.and_then(|options| options.min_in_gbs);
    let ocpus = least_ocpus.or(from.ocpus).unwrap_or_default();
    let memory = least_memory.filter(|_| flexible).or(from.memory_in_gbs).unwrap_or_default();
    // An Ampere A1 core is one thread; every other OCPU has two.
    let threads = if from.name.contains(".A1.") { 1.0 } else { 2.0 };
    let vcpus = u32::try_from(whole(ocpus * threads)).unwrap_or(u32::MAX);
    let is_arm = is_arm(&from.name);
    let mut shape = Shape::new(ShapeName::new(from.name), vcpus, whole(memory * 1024.0));
    shape.architecture = Some(Architecture::new(if is_arm { "aarch64" } else { "x86_64" }));
    shape.threads_per_core = Some(if is_arm { 1 } else { 2 });
    shape.gpus = from.gpus.unwrap_or_default();
    shape.local_disks = from.local_disks.unwrap_or_default();
    shape.local_disk_gib = whole(from.local_disks_total_size_in_gbs.unwrap_or_default());
    shape.flexible = flexible;
    shape
}

/// True for shapes with Arm processors: Ampere's `A1` and its successors, or NVIDIA's Grace.
fn is_arm(shape: &str) -> bool {
    let is_ampere = |part: &str| {
        part.strip_prefix('A').is_some_and(|number| number.len() == 1 && number != "0")
    };
    let standard = shape.split_once(".Standard.").map(|(_, rest)| rest);
    let family = standard.and_then(|rest| rest.split('.').next());
    family.is_some_and(is_ampere) || shape.contains(".GB200.")
}

/// The nearest whole number; none if it is out of range.
fn whole(number: f64) -> u64 {
    format!("{number:.0}").parse().unwrap_or_default()
}

/// Parses a time in OCI's formats.
fn time(text: &str) -> Option<SystemTime> {
    text.parse::<Timestamp>().ok().map(SystemTime::from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use std::time::Duration;

    #[test]
    fn states_in_oci_words() {
        let table = [
            ("PROVISIONING", InstanceState::Pending),
            ("STARTING", InstanceState::Pending),
            ("MOVING", InstanceState::Pending),
            ("CREATING_IMAGE", InstanceState::Pending),
            ("RUNNING", InstanceState::Running),
            ("STOPPING", InstanceState::Stopping),
            ("STOPPED", InstanceState::Stopped),
            ("TERMINATING", InstanceState::Terminating),
            ("TERMINATED", InstanceState::Terminated),
            ("HIBERNATING", InstanceState::Other("HIBERNATING".to_owned())),
        ];
        for (word, expected) in table {
            assert_eq!(state(word), expected);
        }
    }

    #[test]
    fn an_instance_with_the_least_and_with_nulls() {
        let json = r#"{"id": "i1", "freeformTags": null, "sourceDetails": {"sourceType": "x"},
            "imageId": null, "unheard": {"of": 1}, "timeCreated": "yesterday"}"#;
        let least = instance(serde_json::from_str(json).unwrap());
        assert_eq!(least.id.as_str(), "i1");
        assert_eq!(least.state, InstanceState::Other("unknown".to_owned()));
        assert_eq!((least.image, least.created), (None, None));
    }

    /// All formats that Oracle's SDK reads, with the same result.
    #[test]
    fn times_in_all_forms_that_are_seen() {
        let text = include_str!("../tests/data/response-leniency.json");
        let seen: BTreeMap<String, serde_json::Value> = serde_json::from_str(text).unwrap();
        let times: Vec<_> = seen
            .iter()
            .filter_map(|(key, read)| Some((key.strip_prefix("time ")?, read)))
            .collect();
        assert_eq!(times.len(), 3);
        for (text, read) in times {
            let read: Timestamp = read.as_str().unwrap().parse().unwrap();
            assert_eq!(time(text), Some(SystemTime::from(read)), "{text}");
        }
        let at = SystemTime::UNIX_EPOCH + Duration::from_secs(1_767_323_045);
        assert_eq!(time("2026-01-02T03:04:05.000Z"), Some(at));
        assert_eq!(time("2026-01-02T03:04:05.678901Z"), Some(at + Duration::from_micros(678_901)));
    }

    #[test]
    fn shapes_of_the_capture() {
        let text = include_str!("../tests/data/24-ListShapes.json");
        let capture: serde_json::Value = serde_json::from_str(text).unwrap();
        let body = capture["exchanges"][0]["response"]["body"].clone();
        let shapes: Vec<wire::Shape> = serde_json::from_value(body).unwrap();
        let shapes: Vec<Shape> = shapes.into_iter().map(shape).collect();
        let got: Vec<_> =
            shapes.iter().map(|s| (s.name.as_str(), s.vcpus, s.memory_mib, s.flexible)).collect();
        assert_eq!(
            got,
            [("VM.Standard.E5.Flex", 2, 1024, true), ("BM.HPC2.36", 72, 384 * 1024, false)]
        );
    }
}

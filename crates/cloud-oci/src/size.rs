//! The size of a flexible shape, as a suffix of its name as in Cluster in the Cloud.

use crate::launch::overlay;
use cloud_core::ShapeName;
use serde_json::{Value, json};

/// The size of an instance with a flexible shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Size {
    /// Physical cores.
    ocpus: u32,
    /// Memory in GB; by default, OCI chooses by the number of cores.
    memory_gb: Option<u32>,
}

impl Size {
    /// The size in the body of a launch.
    pub(crate) fn config(self) -> Value {
        let mut config = json!({"ocpus": f64::from(self.ocpus)});
        overlay(&mut config, json!({"memoryInGBs": self.memory_gb.map(f64::from)}));
        config
    }
}

/// Splits a name into OCI's shape and the size: `VM.Standard.E4.Flex.16.256` is `VM.Standard.E4.Flex` with 16 OCPUs and 256
/// GB.
pub(crate) fn sized(shape: &ShapeName) -> (&str, Option<Size>) {
    let whole = shape.as_str();
    let Some((name, size)) = split(whole) else {
        return (whole, None);
    };
    (name, Some(size))
}

fn split(whole: &str) -> Option<(&str, Size)> {
    let (rest, last) = whole.rsplit_once('.')?;
    let last: u32 = last.parse().ok()?;
    if rest.ends_with(".Flex") {
        return Some((rest, Size { ocpus: last, memory_gb: None }));
    }
    let (name, ocpus) = rest.rsplit_once('.')?;
    let size = Size { ocpus: ocpus.parse().ok()?, memory_gb: Some(last) };
    name.ends_with(".Flex").then_some((name, size))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_is_split_off_a_flexible_shape_alone() {
        let size = |ocpus, memory_gb| Some(Size { ocpus, memory_gb });
        let rows = [
            ("VM.Standard.E4.Flex.16.256", "VM.Standard.E4.Flex", size(16, Some(256))),
            ("VM.Standard.E4.Flex.16", "VM.Standard.E4.Flex", size(16, None)),
            ("VM.Standard.E4.Flex", "VM.Standard.E4.Flex", None),
            ("VM.Standard.E4.Flex.x.16", "VM.Standard.E4.Flex.x.16", None),
            ("VM.Standard2.16", "VM.Standard2.16", None),
            ("BM.HPC2.36", "BM.HPC2.36", None),
        ];
        for (whole, name, size) in rows {
            assert_eq!(sized(&ShapeName::new(whole)), (name, size), "{whole}");
        }
    }
}

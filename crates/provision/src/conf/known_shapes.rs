//! Converts the shapes of a cloud into those of slurm.conf.

use cloud_core::{BuiltInShapes, Description, ShapeName};
use slurmconf::{Memory, NodeShape, Shapes, SizedShapes};

/// Converts the shapes that a cloud lists. A flexible shape has no size to write into slurm.conf; a launch names one with its
/// size, which is known if the provider computes it ([`built_in_shapes`]).
#[must_use]
pub fn known_shapes(listed: &[cloud_core::Shape], cloud: &Description) -> Shapes {
    let mut shapes = Shapes::new();
    for shape in listed.iter().filter(|shape| !shape.flexible) {
        shapes.insert(shape.name.as_str(), node_shape(shape, cloud));
    }
    let Some(built_in) = cloud.built_in_shapes else { return shapes };
    shapes.with_sized(FromNames { built_in, cloud: cloud.clone() })
}

/// Converts the shapes that the provider knows without a request, if it knows any.
#[must_use]
pub fn built_in_shapes(cloud: &Description) -> Option<Shapes> {
    cloud.built_in_shapes.map(|built_in| known_shapes(&(built_in.fixed)(), cloud))
}

/// Shapes that the provider computes from their names.
#[derive(Debug)]
struct FromNames {
    built_in: BuiltInShapes,
    cloud: Description,
}

impl SizedShapes for FromNames {
    fn get(&self, name: &str) -> Option<NodeShape> {
        (self.built_in.sized)(&ShapeName::new(name)).map(|shape| node_shape(&shape, &self.cloud))
    }

    fn nearest(&self, name: &str) -> Option<String> {
        (self.built_in.nearest)(&ShapeName::new(name)).map(|name| name.to_string())
    }
}

/// Converts a shape of the cloud. If the cloud does not report threads per core, its processors count as cores.
///
/// Local disks are left out: `TmpDisk` is the size of the file system of `TmpFS`, which is the boot volume unless the image
/// formats and mounts local disks, and slurmctld refuses a node that registers with less.
#[must_use]
pub fn node_shape(shape: &cloud_core::Shape, cloud: &Description) -> NodeShape {
    let divides = |parts: &u32| *parts > 0 && shape.vcpus.is_multiple_of(*parts);
    let threads_per_core = shape.threads_per_core.filter(divides).unwrap_or(1);
    let cores = (shape.vcpus / threads_per_core).max(1);
    let sockets = shape.sockets.filter(|sockets| *sockets > 0 && cores.is_multiple_of(*sockets));
    let sockets = sockets.unwrap_or(1);
    let architecture = shape.architecture.as_ref().or(cloud.architectures.first());
    let model = shape.gpu_model.as_ref().map(|model| format!("{model}:")).unwrap_or_default();
    NodeShape {
        sockets,
        cores_per_socket: cores / sockets,
        threads_per_core,
        memory: Memory::Nominal(shape.memory_mib),
        gres: if shape.gpus > 0 { format!("gpu:{model}{}", shape.gpus) } else { String::new() },
        arch: architecture.map(|name| name.as_str().to_owned()).unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cloud_core::{Architecture, Shape};

    fn named(name: &str) -> Shape {
        Shape::new(ShapeName::new(name), 8, 16_384)
    }

    #[test]
    fn a_shape_has_what_the_cloud_says_of_it() {
        let mut cloud = Description::new("a cloud");
        let mut big = Shape::new(ShapeName::new("big"), 64, 131_072);
        (big.threads_per_core, big.sockets) = (Some(2), Some(2));
        big.architecture = Some(Architecture::new("aarch64"));
        (big.gpus, big.gpu_model) = (4, Some("a100".to_owned()));
        let mut open = named("open");
        open.flexible = true;
        let listed = [named("plain"), big, open];
        let row = |name: &str, cloud: &Description| {
            let shape = known_shapes(&listed, cloud).get(name)?;
            let cores = [shape.sockets, shape.cores_per_socket, shape.threads_per_core];
            Some((cores, shape.arch, shape.gres))
        };
        let text = str::to_owned;
        assert_eq!(row("plain", &cloud), Some(([1, 8, 1], text(""), text(""))));
        assert_eq!(row("big", &cloud), Some(([2, 16, 2], text("aarch64"), text("gpu:a100:4"))));
        assert_eq!(row("open", &cloud), None);
        cloud.architectures = vec![Architecture::new("x86_64")];
        assert_eq!(row("plain", &cloud), Some(([1, 8, 1], text("x86_64"), text(""))));
    }

    #[test]
    fn a_shape_with_its_size_in_its_name_is_computed_by_the_provider() {
        let mut cloud = Description::new("a cloud");
        assert!(built_in_shapes(&cloud).is_none());
        cloud.built_in_shapes = Some(BuiltInShapes {
            fixed: || vec![named("plain")],
            sized: |name| name.as_str().starts_with("open.").then(|| named(name.as_str())),
            nearest: |name| (name.as_str() == "open").then(|| ShapeName::new("open.8")),
        });
        let shapes = built_in_shapes(&cloud).unwrap();
        assert_eq!(shapes.get("plain"), shapes.get("open.8"));
        assert!(shapes.get("open").is_none());
        assert_eq!(shapes.nearest("open").as_deref(), Some("open.8"));
        assert_eq!(shapes.nearest("plian").as_deref(), Some("plain"));
    }
}

//! Converts the shapes of a cloud into those of slurm.conf.

use cloud_core::Description;
use slurmconf::{Memory, NodeShape, Shapes};

/// Converts the shapes that a cloud lists, without flexible ones.
#[must_use]
pub fn known_shapes(listed: &[cloud_core::Shape], cloud: &Description) -> Shapes {
    let mut shapes = Shapes::new();
    for shape in listed.iter().filter(|shape| !shape.flexible) {
        shapes.insert(shape.name.as_str(), machine(shape, cloud));
    }
    shapes
}

/// Converts a shape. If the cloud does not report threads per core, its processors count as cores.
fn machine(shape: &cloud_core::Shape, cloud: &Description) -> NodeShape {
    let divides = |threads: &u32| *threads > 0 && shape.vcpus.is_multiple_of(*threads);
    let threads_per_core = shape.threads_per_core.filter(divides).unwrap_or(1);
    let architecture = shape.architecture.as_ref().or(cloud.architectures.first());
    let model = shape.gpu_model.as_ref().map(|model| format!("{model}:")).unwrap_or_default();
    NodeShape {
        sockets: 1,
        cores_per_socket: (shape.vcpus / threads_per_core).max(1),
        threads_per_core,
        memory: Memory::Nominal(shape.memory_mib),
        gres: if shape.gpus > 0 { format!("gpu:{model}{}", shape.gpus) } else { String::new() },
        arch: architecture.map(|name| name.as_str().to_owned()).unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cloud_core::{Architecture, ShapeName};

    #[test]
    fn a_shape_has_the_threads_the_architecture_and_the_gpus_that_the_cloud_says() {
        let cloud = Description::new("a cloud");
        let plain = cloud_core::Shape::new(ShapeName::new("plain"), 8, 16_384);
        let mut big = cloud_core::Shape::new(ShapeName::new("big"), 64, 131_072);
        big.threads_per_core = Some(2);
        big.architecture = Some(Architecture::new("aarch64"));
        (big.gpus, big.gpu_model) = (4, Some("a100".to_owned()));
        let mut open = plain.clone();
        (open.name, open.flexible) = (ShapeName::new("open"), true);
        let shapes = known_shapes(&[plain, big, open], &cloud);
        let row = |name: &str| {
            let shape = shapes.get(name)?;
            Some((shape.cores_per_socket, shape.threads_per_core, shape.arch, shape.gres))
        };
        let text = str::to_owned;
        assert_eq!(row("plain"), Some((8, 1, text("x86_64"), text(""))));
        assert_eq!(row("big"), Some((32, 2, text("aarch64"), text("gpu:a100:4"))));
        assert_eq!(row("open"), None);
    }
}

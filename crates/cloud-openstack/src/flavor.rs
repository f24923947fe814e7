//! Flavors, and what they are as shapes.

use crate::api::{Api, join};
use crate::wire::{FlavorsBody, NovaFlavor};
use cloud_core::http::Method;
use cloud_core::{Operation, Result, Shape, ShapeName};

/// All flavors that we may use.
pub(crate) async fn list(api: &Api, operation: Operation) -> Result<Vec<NovaFlavor>> {
    let url = join(&api.endpoints.compute, &["flavors", "detail"]);
    api.list::<FlavorsBody>(operation, &url, |url| api.compute_at(operation, Method::GET, url))
        .await
}

pub(crate) fn shape(flavor: NovaFlavor) -> Shape {
    let mut shape = Shape::new(ShapeName::new(flavor.name), flavor.vcpus, flavor.ram);
    let counts = flavor.extra_specs.iter().map(|(key, value)| gpus(key, value));
    shape.gpus = counts.fold(0, u32::saturating_add);
    shape
}

/// The GPUs that an extra spec asks for: `resources:VGPU=1`, `resources:CUSTOM_GPU_A100=2`, or
/// `pci_passthrough:alias=a100:4`, whose names are the operator's own.
fn gpus(key: &str, value: &str) -> u32 {
    if let Some(class) = key.strip_prefix("resources").and_then(|rest| rest.split(':').nth(1)) {
        let counts = class == "VGPU" || class == "PGPU" || class.contains("GPU");
        return if counts { value.trim().parse().unwrap_or(0) } else { 0 };
    }
    if key != "pci_passthrough:alias" {
        return 0;
    }
    let devices = value.split(',').filter_map(|device| {
        let (name, count) = device.trim().split_once(':').unwrap_or((device.trim(), "1"));
        is_gpu(name).then(|| count.parse().unwrap_or(1))
    });
    devices.fold(0, u32::saturating_add)
}

/// True if a PCI device's name looks like a GPU's: `gpu-big`, `nvidia_a100`, `h100`, `mi300x`.
fn is_gpu(name: &str) -> bool {
    let name = name.to_lowercase();
    let maker = ["gpu", "nvidia", "tesla", "radeon", "instinct"];
    let model = |word: &str| {
        let rest = ["mi", "rtx", "a", "b", "h", "l", "p", "t", "v"]
            .iter()
            .find_map(|series| word.strip_prefix(series));
        rest.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    maker.iter().any(|word| name.contains(word))
        || name.split(|c: char| !c.is_ascii_alphanumeric()).any(model)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gpus_are_counted() {
        let table = [
            ("resources:VGPU", "2", 2),
            ("resources1:CUSTOM_GPU_A100", "1", 1),
            ("resources:CUSTOM_BAREMETAL", "1", 0),
            ("resources:VCPU", "0", 0),
            ("pci_passthrough:alias", "a100:4", 4),
            ("pci_passthrough:alias", "nvidia-h100:2,mlx5:1", 2),
            ("pci_passthrough:alias", "sriov-nic:1", 0),
            ("pci_passthrough:alias", "gpu", 1),
            ("hw:cpu_policy", "dedicated", 0),
        ];
        for (key, value, expected) in table {
            assert_eq!(gpus(key, value), expected, "{key}={value}");
        }
    }
}

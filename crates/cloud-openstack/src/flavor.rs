//! Converts flavors to shapes.

use crate::api::{Api, join};
use crate::wire::{FlavorsBody, NovaFlavor};
use cloud_core::http::Method;
use cloud_core::{ApiOperation, Architecture, Result, Shape, ShapeName};

/// Lists all accessible flavors.
pub(crate) async fn list(api: &Api, operation: ApiOperation) -> Result<Vec<NovaFlavor>> {
    let url = join(&api.endpoints.compute, &["flavors", "detail"]);
    api.list::<FlavorsBody>(operation, &url, |url| api.compute_at(operation, Method::GET, url))
        .await
}

pub(crate) fn shape(flavor: NovaFlavor) -> Shape {
    let mut shape = Shape::new(ShapeName::new(flavor.name), flavor.vcpus, flavor.ram);
    let counts = flavor.extra_specs.iter().map(|(key, value)| gpus(key, value));
    shape.gpus = counts.fold(0, u32::saturating_add);
    let spec = |key: &str| flavor.extra_specs.get(key);
    // `hw:cpu_threads` is the number of threads per core in the guest.
    shape.threads_per_core = spec("hw:cpu_threads").and_then(|threads| threads.trim().parse().ok());
    let architecture = spec("capabilities:cpu_arch").or_else(|| spec("hw:architecture"));
    shape.architecture = architecture.map(|name| Architecture::new(name.trim()));
    shape.local_disks = u32::from(flavor.ephemeral > 0);
    shape.local_disk_gib = flavor.ephemeral;
    shape
}

/// The GPUs in an extra spec: `resources:VGPU=1`, `resources:CUSTOM_GPU_A100=2`, or `pci_passthrough:alias=a100:4`, whose
/// names the operator chooses.
fn gpus(key: &str, value: &str) -> u32 {
    if let Some(class) = key.strip_prefix("resources").and_then(|rest| rest.split(':').nth(1)) {
        return if class.contains("GPU") { value.trim().parse().unwrap_or(0) } else { 0 };
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

/// Parts of the names of GPUs, and of other devices with similar models.
const MAKERS: &[&str] = &["gpu", "nvidia", "tesla", "radeon", "instinct", "rtx"];
const OTHERS: &[&str] = &["fpga", "nvme", "nic", "mlx"];
/// Models of GPUs, without a suffix such as the `s` of `l40s`.
const MODELS: &[&str] = &[
    "a10", "a16", "a30", "a40", "a100", "a800", "b100", "b200", "b300", "gb200", "gb300", "gh200",
    "h20", "h100", "h200", "h800", "k80", "l4", "l40", "mi50", "mi60", "mi100", "mi210", "mi250",
    "mi300", "mi325", "mi350", "mi355", "p40", "p100", "t4", "v100",
];

/// True if a PCI device's name looks like a GPU's: `gpu-big`, `nvidia_a100`, `h100`, `mi300x`.
fn is_gpu(name: &str) -> bool {
    let name = name.to_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| name.contains(word));
    let model =
        |word: &str| MODELS.contains(&word.trim_end_matches(|c: char| c.is_ascii_alphabetic()));
    has(MAKERS) || !has(OTHERS) && name.split(|c: char| !c.is_ascii_alphanumeric()).any(model)
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
            ("pci_passthrough:alias", "mi300x:8", 8),
            ("pci_passthrough:alias", "l40s-48gb", 1),
            // Disks, FPGAs and ports with similar numbers.
            ("pci_passthrough:alias", "nvme-p4510:2", 0),
            ("pci_passthrough:alias", "fpga-v2:1", 0),
            ("pci_passthrough:alias", "fpga-a10:1", 0),
            ("pci_passthrough:alias", "mlx5-p1:1", 0),
            ("pci_passthrough:alias", "b2:1", 0),
            ("hw:cpu_policy", "dedicated", 0),
        ];
        for (key, value, expected) in table {
            assert_eq!(gpus(key, value), expected, "{key}={value}");
        }
    }
}

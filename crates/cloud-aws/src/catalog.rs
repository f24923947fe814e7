//! Instance types and subnets.

use crate::provider::Aws;
use crate::query::Query;
use crate::wire;
use cloud_core::{ApiOperation, Architecture, Result, Shape, ShapeName};

impl Aws {
    /// Every instance type of the region.
    pub(crate) async fn find_shapes(&self) -> Result<Vec<Shape>> {
        let query = Query::look("DescribeInstanceTypes");
        let found =
            self.api.all::<wire::InstanceTypes>(ApiOperation::Shapes, "instance types", query);
        Ok(found.await?.into_iter().map(shape).collect())
    }

    /// Subnets by id.
    pub(crate) async fn find_subnets(&self, ids: &[&str]) -> Result<Vec<wire::Subnet>> {
        let query = Query::look("DescribeSubnets").filter(1, "subnet-id", ids);
        self.api.all::<wire::Subnets>(ApiOperation::Get, &ids.join(", "), query).await
    }
}

pub(crate) fn shape(from: wire::InstanceType) -> Shape {
    let vcpus = from.v_cpu_info.default_v_cpus;
    let mut shape =
        Shape::new(ShapeName::new(from.instance_type), vcpus, from.memory_info.size_in_mib);
    // Old types also run 32 bits, which EC2 lists first.
    let architectures =
        from.processor_info.map(|it| it.supported_architectures.item).unwrap_or_default();
    shape.architecture = architectures.iter().find_map(|name| architecture(name));
    shape.threads_per_core = from.v_cpu_info.default_threads_per_core;
    let gpus = from.gpu_info.map(|info| info.gpus.item).unwrap_or_default();
    shape.gpus = gpus.iter().map(|gpu| gpu.count).sum();
    shape.gpu_model = gpus.into_iter().find_map(|gpu| gpu.name).map(|name| name.to_lowercase());
    if let Some(storage) = from.instance_storage_info {
        shape.local_disks = storage.disks.item.iter().map(|disk| disk.count).sum();
        shape.local_disk_gib = storage.total_size_in_gb;
    }
    shape
}

/// An architecture as `uname -m` names it.
pub(crate) fn architecture(name: &str) -> Option<Architecture> {
    match name {
        "x86_64" => Some(Architecture::new("x86_64")),
        "arm64" => Some(Architecture::new("aarch64")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instance_type_has_its_geometry_and_its_graphics_cards() {
        let xml = "<DescribeInstanceTypesResponse><instanceTypeSet><item><instanceType>p4d.24xlarge</instanceType>\
            <vCpuInfo><defaultVCpus>96</defaultVCpus><defaultCores>48</defaultCores>\
            <defaultThreadsPerCore>2</defaultThreadsPerCore></vCpuInfo>\
            <memoryInfo><sizeInMiB>1179648</sizeInMiB></memoryInfo>\
            <processorInfo><supportedArchitectures><item>i386</item><item>x86_64</item></supportedArchitectures>\
            </processorInfo><gpuInfo><gpus><item><name>A100</name><count>8</count></item></gpus></gpuInfo>\
            <instanceStorageInfo><totalSizeInGB>8000</totalSizeInGB><disks><item><count>8</count></item></disks>\
            </instanceStorageInfo></item></instanceTypeSet></DescribeInstanceTypesResponse>";
        let body: wire::InstanceTypes =
            wire::parse(xml.as_bytes(), "DescribeInstanceTypes").unwrap();
        let found = shape(body.instance_type_set.item.into_iter().next().unwrap());
        let mut expected = Shape::new(ShapeName::new("p4d.24xlarge"), 96, 1_179_648);
        expected.architecture = Some(Architecture::new("x86_64"));
        expected.threads_per_core = Some(2);
        (expected.gpus, expected.gpu_model) = (8, Some("a100".to_owned()));
        (expected.local_disks, expected.local_disk_gib) = (8, 8000);
        assert_eq!(found, expected);
    }
}

//! OCI's shapes, from Oracle's page "Compute Shapes".

use cloud_core::{Architecture, BuiltInShapes, Shape, ShapeName};
use std::ops::RangeInclusive;

/// The shapes. A flexible one has its size in its name, as in Cluster in the Cloud: `VM.Standard.E4.Flex.<OCPUs>.<GB>`.
pub(crate) const SHAPES: BuiltInShapes = BuiltInShapes { fixed, sized, nearest };

/// Name, sockets, cores per socket, GB, model and number of GPUs. Two threads a core, except on Arm.
type Row = (&'static str, u32, u32, u64, Option<Gpus>);

type Gpus = (&'static str, u32);

const X86: &[Row] = &[
    ("VM.Standard1.1", 1, 1, 7, None),
    ("VM.Standard1.2", 1, 2, 14, None),
    ("VM.Standard1.4", 1, 4, 28, None),
    ("VM.Standard1.8", 1, 8, 56, None),
    ("VM.Standard1.16", 1, 16, 112, None),
    ("VM.Standard.B1.1", 1, 1, 12, None),
    ("VM.Standard.B1.2", 1, 2, 24, None),
    ("VM.Standard.B1.4", 1, 4, 48, None),
    ("VM.Standard.B1.8", 1, 8, 96, None),
    ("VM.Standard.B1.16", 1, 16, 192, None),
    ("VM.Standard2.1", 1, 1, 15, None),
    ("VM.Standard2.2", 1, 2, 30, None),
    ("VM.Standard2.4", 1, 4, 60, None),
    ("VM.Standard2.8", 1, 8, 120, None),
    ("VM.Standard2.16", 1, 16, 240, None),
    ("VM.Standard2.24", 1, 24, 320, None),
    ("VM.Standard.E2.1.Micro", 1, 1, 1, None),
    ("VM.Standard.E2.1", 1, 1, 8, None),
    ("VM.Standard.E2.2", 1, 2, 16, None),
    ("VM.Standard.E2.4", 1, 4, 32, None),
    ("VM.Standard.E2.8", 1, 8, 64, None),
    ("VM.DenseIO1.4", 1, 4, 60, None),
    ("VM.DenseIO1.8", 1, 8, 120, None),
    ("VM.DenseIO1.16", 1, 16, 240, None),
    ("VM.DenseIO2.8", 1, 8, 120, None),
    ("VM.DenseIO2.16", 1, 16, 240, None),
    ("VM.DenseIO2.24", 1, 24, 320, None),
    ("VM.GPU2.1", 1, 12, 72, Some(("p100", 1))),
    ("VM.GPU3.1", 1, 6, 90, Some(("v100", 1))),
    ("VM.GPU3.2", 1, 12, 180, Some(("v100", 2))),
    ("VM.GPU3.4", 1, 24, 360, Some(("v100", 4))),
    ("VM.GPU.A10.1", 1, 15, 240, Some(("a10", 1))),
    ("VM.GPU.A10.2", 1, 30, 480, Some(("a10", 2))),
    ("BM.Standard1.36", 2, 18, 256, None),
    ("BM.Standard.B1.44", 2, 22, 512, None),
    ("BM.Standard2.52", 2, 26, 768, None),
    ("BM.Standard.E2.64", 2, 32, 512, None),
    ("BM.Standard3.64", 2, 32, 1024, None),
    ("BM.Standard.E3.128", 2, 64, 2048, None),
    ("BM.Standard.E4.128", 2, 64, 2048, None),
    ("BM.Standard.E5.192", 2, 96, 2304, None),
    ("BM.Standard.E6.256", 2, 128, 3072, None),
    ("BM.DenseIO1.36", 2, 18, 512, None),
    ("BM.DenseIO2.52", 2, 26, 768, None),
    ("BM.DenseIO.E4.128", 2, 64, 2048, None),
    ("BM.DenseIO.E5.128", 2, 64, 1536, None),
    ("BM.HPC2.36", 2, 18, 384, None),
    ("BM.HPC.E5.144", 2, 72, 768, None),
    ("BM.Optimized3.36", 2, 18, 512, None),
    ("BM.GPU2.2", 2, 14, 192, Some(("p100", 2))),
    ("BM.GPU3.8", 2, 26, 768, Some(("v100", 8))),
    ("BM.GPU4.8", 2, 32, 2048, Some(("a100", 8))),
    ("BM.GPU.A100-v2.8", 2, 64, 2048, Some(("a100", 8))),
    ("BM.GPU.A10.4", 2, 32, 1024, Some(("a10", 4))),
    ("BM.GPU.L40S.4", 2, 56, 1024, Some(("l40s", 4))),
    ("BM.GPU.H100.8", 2, 56, 2048, Some(("h100", 8))),
    ("BM.GPU.H200.8", 2, 56, 3072, Some(("h200", 8))),
    ("BM.GPU.B200.8", 2, 64, 4096, Some(("b200", 8))),
    ("BM.GPU.MI300X.8", 2, 56, 2048, Some(("mi300x", 8))),
];

const ARM: &[Row] = &[
    ("BM.Standard.A1.160", 2, 80, 1024, None),
    ("BM.GPU.GB200.4", 2, 72, 960, Some(("gb200", 4))),
];

/// Name, cores an OCPU, threads a core, architecture, the most OCPUs, the most GB.
type Family = (&'static str, u32, u32, &'static str, u32, u64);

const FLEXIBLE: &[Family] = &[
    ("VM.Standard3.Flex", 1, 2, "x86_64", 32, 512),
    ("VM.Standard.E3.Flex", 1, 2, "x86_64", 114, 1776),
    ("VM.Standard.E4.Flex", 1, 2, "x86_64", 114, 1776),
    ("VM.Standard.E5.Flex", 1, 2, "x86_64", 126, 1776),
    ("VM.Standard.E6.Flex", 1, 2, "x86_64", 126, 1776),
    ("VM.Optimized3.Flex", 1, 2, "x86_64", 18, 256),
    ("VM.DenseIO.E4.Flex", 1, 2, "x86_64", 32, 512),
    ("VM.DenseIO.E5.Flex", 1, 2, "x86_64", 48, 576),
    ("VM.Standard.A1.Flex", 1, 1, "aarch64", 80, 512),
    // From here on Oracle counts two Arm cores as one OCPU.
    ("VM.Standard.A2.Flex", 2, 1, "aarch64", 78, 946),
    ("VM.Standard.A4.Flex", 2, 1, "aarch64", 45, 700),
];

/// The shapes of fixed size.
fn fixed() -> Vec<Shape> {
    let x86 = X86.iter().map(|row| (row, 2, "x86_64"));
    let arm = ARM.iter().map(|row| (row, 1, "aarch64"));
    let shape = |(row, threads, arch): (&Row, u32, &str)| {
        let &(name, sockets, cores, gigabytes, gpus) = row;
        let mut shape = machine(name, (sockets, cores, threads), gigabytes, arch);
        if let Some((model, count)) = gpus {
            (shape.gpus, shape.gpu_model) = (count, Some(model.to_owned()));
        }
        shape
    };
    x86.chain(arm).map(shape).collect()
}

/// A shape of this many sockets, cores in each and threads of each core.
fn machine(name: &str, processors: (u32, u32, u32), gigabytes: u64, arch: &str) -> Shape {
    let (sockets, cores, threads) = processors;
    let mut shape = Shape::new(ShapeName::new(name), sockets * cores * threads, gigabytes * 1024);
    shape.architecture = Some(Architecture::new(arch));
    shape.threads_per_core = Some(threads);
    shape.sockets = Some(sockets);
    shape
}

/// The most GB per OCPU; the least is one. OCI refuses a launch outside these bounds.
const GIGABYTES_AN_OCPU: u64 = 64;

/// The GB that OCI allows for a number of OCPUs, in a family with at most `most`.
fn memory(ocpus: u32, most: u64) -> RangeInclusive<u64> {
    let ocpus = u64::from(ocpus);
    ocpus..=most.min(ocpus * GIGABYTES_AN_OCPU)
}

/// The shape behind `VM.….Flex.<OCPUs>.<GB>`.
fn sized(name: &ShapeName) -> Option<Shape> {
    let (family, ocpus, gigabytes) = split_flexible(name.as_str())?;
    let (_, cores, threads, arch, most_ocpus, most_gigabytes) =
        FLEXIBLE.iter().find(|row| row.0 == family)?;
    let fits =
        (1..=*most_ocpus).contains(&ocpus) && memory(ocpus, *most_gigabytes).contains(&gigabytes);
    fits.then(|| machine(name.as_str(), (1, ocpus * cores, *threads), gigabytes, arch))
}

/// The flexible shape of the most similar family, with the size in this name or the valid one next to it. None if more than half
/// of the family's name would have to change.
fn nearest(name: &ShapeName) -> Option<ShapeName> {
    let name = name.as_str();
    let (wanted, ocpus, gigabytes) = match split_flexible(name) {
        Some(parts) => parts,
        None if name.to_ascii_lowercase().ends_with(".flex") => (name, 1, 16),
        None => return None,
    };
    let lower = wanted.to_ascii_lowercase();
    let distance = |family: &Family| strsim::osa_distance(&lower, &family.0.to_ascii_lowercase());
    let family = FLEXIBLE.iter().min_by_key(|family| distance(family))?;
    if distance(family) * 2 > lower.chars().count() {
        return None;
    }
    let (family, _, _, _, most_ocpus, most_gigabytes) = family;
    let ocpus = ocpus.clamp(1, *most_ocpus);
    let memory = memory(ocpus, *most_gigabytes);
    let gigabytes = gigabytes.max(*memory.start()).min(*memory.end());
    Some(ShapeName::new(format!("{family}.{ocpus}.{gigabytes}")))
}

fn split_flexible(name: &str) -> Option<(&str, u32, u64)> {
    let (rest, gigabytes) = name.rsplit_once('.')?;
    let (family, ocpus) = rest.rsplit_once('.')?;
    let flexible = family.to_ascii_lowercase().ends_with(".flex");
    // Rust would accept a sign and leading zeros, and OCI has no shape of that name.
    let plain = |number: &str| !number.starts_with(['0', '+']) || number == "0";
    let flexible = flexible && plain(ocpus) && plain(gigabytes);
    Some((family, ocpus.parse().ok()?, gigabytes.parse().ok()?)).filter(|_| flexible)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// The shapes of Cluster in the Cloud's `shapes.yaml`.
    const CITC: &str = "VM.Standard1.1 VM.Standard1.2 VM.Standard1.4 VM.Standard1.8 VM.Standard1.16 VM.DenseIO1.4 \
        VM.DenseIO1.8 VM.DenseIO1.16 VM.Standard2.1 VM.Standard2.2 VM.Standard2.4 VM.Standard2.8 VM.Standard2.16 \
        VM.Standard2.24 VM.Standard.E2.1 VM.Standard.E2.2 VM.DenseIO2.8 VM.DenseIO2.16 VM.DenseIO2.24 \
        VM.Standard.E4.Flex.1.16 VM.Standard.E4.Flex.2.32 VM.Standard.E4.Flex.4.64 VM.Standard.E4.Flex.8.128 \
        VM.Standard.E4.Flex.16.256 VM.Standard.E4.Flex.32.512 VM.Standard.E4.Flex.64.1024 VM.GPU2.1 VM.GPU3.2 VM.GPU3.4 \
        BM.Standard1.36 BM.DenseIO1.36 BM.Standard2.52 BM.DenseIO2.52 BM.GPU2.2 BM.GPU3.8 BM.GPU4.8 BM.Standard.E2.64 \
        BM.HPC2.36";

    fn find(name: &str) -> Option<Shape> {
        let name = ShapeName::new(name);
        fixed().into_iter().find(|shape| shape.name == name).or_else(|| sized(&name))
    }

    #[test]
    fn every_shape_of_citcs_is_built_in() {
        for name in CITC.split_whitespace() {
            assert!(find(name).is_some(), "{name}");
        }
    }

    #[test]
    fn no_name_is_there_twice_and_names_tell_the_cores() {
        let shapes = fixed();
        let names: BTreeSet<_> = shapes.iter().map(|shape| &shape.name).collect();
        assert_eq!(names.len(), shapes.len());
        for shape in &shapes {
            let name = shape.name.as_str();
            let last: Option<u32> = name.rsplit('.').next().and_then(|last| last.parse().ok());
            let cores = shape.vcpus / shape.threads_per_core.unwrap();
            // A GPU shape's last number counts its GPUs, every other one's its OCPUs.
            match last {
                Some(last) if name.contains("GPU") => assert_eq!(shape.gpus, last, "{name}"),
                Some(last) => assert_eq!(cores, last, "{name}"),
                None => assert_eq!(name, "VM.Standard.E2.1.Micro"),
            }
        }
    }

    #[test]
    fn flexible_shapes_are_computed() {
        let core = |name: &str| {
            find(name).map(|shape| (shape.vcpus, shape.threads_per_core, shape.memory_mib))
        };
        assert_eq!(core("VM.Standard.E4.Flex.16.256"), Some((32, Some(2), 262_144)));
        assert_eq!(core("VM.Standard.A1.Flex.4.24"), Some((4, Some(1), 24_576)));
        assert_eq!(core("VM.Standard.A2.Flex.4.24"), Some((8, Some(1), 24_576)));
        for bad in [
            "VM.Standard.E4.Flex",
            "VM.Standard.E4.Flex.0.16",
            "VM.Standard.E4.Flex.1.99999",
            "VM.Standard.E4.Flex.x.16",
            "VM.Standard.E4.Flex.016.16",
            "VM.Standard.E4.Flex.16.+16",
            "VM.Standard.E9.Flex.1.16",
            "VM.Standard2.3",
        ] {
            assert_eq!(core(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_flexible_shape_outside_ocis_limits_is_unknown() {
        let cases = [
            ("VM.Standard.E4.Flex.16.15", false),
            ("VM.Standard.E4.Flex.16.16", true),
            ("VM.Standard.E4.Flex.1.64", true),
            ("VM.Standard.E4.Flex.1.65", false),
            ("VM.Standard.E4.Flex.27.1728", true),
            ("VM.Standard.E4.Flex.28.1776", true),
            ("VM.Standard.E4.Flex.28.1777", false),
            ("VM.Standard.A1.Flex.80.79", false),
            ("VM.Standard.A2.Flex.78.78", true),
        ];
        for (name, launched) in cases {
            assert_eq!(find(name).is_some(), launched, "{name}");
        }
        for (family, _, _, _, ocpus, gigabytes) in FLEXIBLE {
            assert!(find(&format!("{family}.{ocpus}.{gigabytes}")).is_some(), "{family}");
        }
    }

    #[test]
    fn the_nearest_shape_can_be_launched() {
        for name in ["VM.Standrd.E4.Flex.500.9999", "VM.Standard.E4.Flex", "vm.standard3.flex.0.0"]
        {
            let near = nearest(&ShapeName::new(name)).unwrap();
            assert!(sized(&near).is_some(), "{name}: {near}");
        }
        assert_eq!(nearest(&ShapeName::new("VM.Standard2.3")), None);
        assert_eq!(nearest(&ShapeName::new("g.flex.1.1")), None);
    }
}

//! OCI's shapes, from Oracle's page "Compute Shapes".

use super::{Memory, NodeShape};
use crate::near::nearest;
use std::ops::RangeInclusive;

/// Name, sockets, cores per socket, GB, generic resources. Two threads a core, except on Arm.
type Row = (&'static str, u32, u32, u64, &'static str);

const X86: &[Row] = &[
    ("VM.Standard1.1", 1, 1, 7, ""),
    ("VM.Standard1.2", 1, 2, 14, ""),
    ("VM.Standard1.4", 1, 4, 28, ""),
    ("VM.Standard1.8", 1, 8, 56, ""),
    ("VM.Standard1.16", 1, 16, 112, ""),
    ("VM.Standard.B1.1", 1, 1, 12, ""),
    ("VM.Standard.B1.2", 1, 2, 24, ""),
    ("VM.Standard.B1.4", 1, 4, 48, ""),
    ("VM.Standard.B1.8", 1, 8, 96, ""),
    ("VM.Standard.B1.16", 1, 16, 192, ""),
    ("VM.Standard2.1", 1, 1, 15, ""),
    ("VM.Standard2.2", 1, 2, 30, ""),
    ("VM.Standard2.4", 1, 4, 60, ""),
    ("VM.Standard2.8", 1, 8, 120, ""),
    ("VM.Standard2.16", 1, 16, 240, ""),
    ("VM.Standard2.24", 1, 24, 320, ""),
    ("VM.Standard.E2.1.Micro", 1, 1, 1, ""),
    ("VM.Standard.E2.1", 1, 1, 8, ""),
    ("VM.Standard.E2.2", 1, 2, 16, ""),
    ("VM.Standard.E2.4", 1, 4, 32, ""),
    ("VM.Standard.E2.8", 1, 8, 64, ""),
    ("VM.DenseIO1.4", 1, 4, 60, ""),
    ("VM.DenseIO1.8", 1, 8, 120, ""),
    ("VM.DenseIO1.16", 1, 16, 240, ""),
    ("VM.DenseIO2.8", 1, 8, 120, ""),
    ("VM.DenseIO2.16", 1, 16, 240, ""),
    ("VM.DenseIO2.24", 1, 24, 320, ""),
    ("VM.GPU2.1", 1, 12, 72, "gpu:p100:1"),
    ("VM.GPU3.1", 1, 6, 90, "gpu:v100:1"),
    ("VM.GPU3.2", 1, 12, 180, "gpu:v100:2"),
    ("VM.GPU3.4", 1, 24, 360, "gpu:v100:4"),
    ("VM.GPU.A10.1", 1, 15, 240, "gpu:a10:1"),
    ("VM.GPU.A10.2", 1, 30, 480, "gpu:a10:2"),
    ("BM.Standard1.36", 2, 18, 256, ""),
    ("BM.Standard.B1.44", 2, 22, 512, ""),
    ("BM.Standard2.52", 2, 26, 768, ""),
    ("BM.Standard.E2.64", 2, 32, 512, ""),
    ("BM.Standard3.64", 2, 32, 1024, ""),
    ("BM.Standard.E3.128", 2, 64, 2048, ""),
    ("BM.Standard.E4.128", 2, 64, 2048, ""),
    ("BM.Standard.E5.192", 2, 96, 2304, ""),
    ("BM.Standard.E6.256", 2, 128, 3072, ""),
    ("BM.DenseIO1.36", 2, 18, 512, ""),
    ("BM.DenseIO2.52", 2, 26, 768, ""),
    ("BM.DenseIO.E4.128", 2, 64, 2048, ""),
    ("BM.DenseIO.E5.128", 2, 64, 1536, ""),
    ("BM.HPC2.36", 2, 18, 384, ""),
    ("BM.HPC.E5.144", 2, 72, 768, ""),
    ("BM.Optimized3.36", 2, 18, 512, ""),
    ("BM.GPU2.2", 2, 14, 192, "gpu:p100:2"),
    ("BM.GPU3.8", 2, 26, 768, "gpu:v100:8"),
    ("BM.GPU4.8", 2, 32, 2048, "gpu:a100:8"),
    ("BM.GPU.A100-v2.8", 2, 64, 2048, "gpu:a100:8"),
    ("BM.GPU.A10.4", 2, 32, 1024, "gpu:a10:4"),
    ("BM.GPU.L40S.4", 2, 56, 1024, "gpu:l40s:4"),
    ("BM.GPU.H100.8", 2, 56, 2048, "gpu:h100:8"),
    ("BM.GPU.H200.8", 2, 56, 3072, "gpu:h200:8"),
    ("BM.GPU.B200.8", 2, 64, 4096, "gpu:b200:8"),
    ("BM.GPU.MI300X.8", 2, 56, 2048, "gpu:mi300x:8"),
];

const ARM: &[Row] =
    &[("BM.Standard.A1.160", 2, 80, 1024, ""), ("BM.GPU.GB200.4", 2, 72, 960, "gpu:gb200:4")];

/// Name, cores an OCPU, threads a core, architecture, the most OCPUs, the most GB.
const FLEXIBLE: &[(&str, u32, u32, &str, u32, u64)] = &[
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

pub(super) fn table() -> impl Iterator<Item = (&'static str, NodeShape)> {
    let x86 = X86.iter().map(|row| (row, 2, "x86_64"));
    let arm = ARM.iter().map(|row| (row, 1, "aarch64"));
    x86.chain(arm).map(|(&(name, sockets, cores_per_socket, gigabytes, gres), threads, arch)| {
        let shape = NodeShape {
            sockets,
            cores_per_socket,
            threads_per_core: threads,
            memory: Memory::Nominal(gigabytes * 1024),
            gres: gres.to_owned(),
            arch: arch.to_owned(),
        };
        (name, shape)
    })
}

/// The most GB per OCPU; the least is one. OCI refuses a launch outside these bounds.
const GIGABYTES_AN_OCPU: u64 = 64;

/// The GB that OCI allows for a number of OCPUs, in a family with at most `most`.
fn memory(ocpus: u32, most: u64) -> RangeInclusive<u64> {
    let ocpus = u64::from(ocpus);
    ocpus..=most.min(ocpus * GIGABYTES_AN_OCPU)
}

/// The shape behind `VM.….Flex.<OCPUs>.<GB>`.
pub(super) fn flexible(name: &str) -> Option<NodeShape> {
    let (family, ocpus, gigabytes) = split_flexible(name)?;
    let (_, cores, threads, arch, most_ocpus, most_gigabytes) =
        FLEXIBLE.iter().find(|row| row.0 == family)?;
    if !(1..=*most_ocpus).contains(&ocpus) || !memory(ocpus, *most_gigabytes).contains(&gigabytes) {
        return None;
    }
    Some(NodeShape {
        sockets: 1,
        cores_per_socket: ocpus * cores,
        threads_per_core: *threads,
        memory: Memory::Nominal(gigabytes * 1024),
        gres: String::new(),
        arch: (*arch).to_owned(),
    })
}

/// The valid flexible shape most similar to `name`.
pub(super) fn nearest_flexible(name: &str) -> Option<String> {
    let families = FLEXIBLE.iter().map(|row| row.0);
    match split_flexible(name) {
        Some((family, ocpus, gigabytes)) => {
            let family = nearest(family, families)?;
            let row = FLEXIBLE.iter().find(|row| row.0 == family)?;
            let ocpus = ocpus.clamp(1, row.4);
            let memory = memory(ocpus, row.5);
            let gigabytes = gigabytes.max(*memory.start()).min(*memory.end());
            Some(format!("{family}.{ocpus}.{gigabytes}"))
        }
        None if name.to_ascii_lowercase().ends_with(".flex") => {
            nearest(name, families).map(|family| format!("{family}.1.16"))
        }
        None => None,
    }
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
    use crate::shapes::Shapes;
    use std::collections::BTreeSet;

    #[test]
    fn no_name_is_there_twice_and_names_tell_the_cores() {
        let names: Vec<_> = table().map(|(name, _)| name).collect();
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
        for (name, shape) in table() {
            let last: Option<u32> = name.rsplit('.').next().and_then(|last| last.parse().ok());
            let cores = shape.sockets * shape.cores_per_socket;
            // A GPU shape's last number counts its GPUs, every other one's its OCPUs.
            match last {
                Some(last) if name.contains("GPU") => {
                    assert!(shape.gres.ends_with(&format!(":{last}")), "{name}");
                }
                Some(last) => assert_eq!(cores, last, "{name}"),
                None => assert_eq!(name, "VM.Standard.E2.1.Micro"),
            }
        }
    }

    #[test]
    fn flexible_shapes_are_computed() {
        let core = |name: &str| {
            flexible(name)
                .map(|shape| (shape.cores_per_socket, shape.threads_per_core, shape.memory))
        };
        assert_eq!(core("VM.Standard.E4.Flex.16.256"), Some((16, 2, Memory::Nominal(262_144))));
        assert_eq!(core("VM.Standard.A1.Flex.4.24"), Some((4, 1, Memory::Nominal(24_576))));
        assert_eq!(core("VM.Standard.A2.Flex.4.24"), Some((8, 1, Memory::Nominal(24_576))));
        for bad in [
            "VM.Standard.E4.Flex",
            "VM.Standard.E4.Flex.0.16",
            "VM.Standard.E4.Flex.1.99999",
            "VM.Standard.E4.Flex.x.16",
            "VM.Standard.E4.Flex.016.16",
            "VM.Standard.E4.Flex.16.+16",
            "VM.Standard.E9.Flex.1.16",
            "VM.Standard2.1",
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
            assert_eq!(flexible(name).is_some(), launched, "{name}");
        }
        for (family, _, _, _, ocpus, gigabytes) in FLEXIBLE {
            assert!(flexible(&format!("{family}.{ocpus}.{gigabytes}")).is_some(), "{family}");
        }
    }

    #[test]
    fn a_mistyped_shape_has_a_nearest_one() {
        let shapes = Shapes::oci();
        let cases = [
            ("VM.Standard2.3", Some("VM.Standard2.1")),
            ("vm.standard2.16", Some("VM.Standard2.16")),
            ("VM.Standrd.E4.Flex.2.32", Some("VM.Standard.E4.Flex.2.32")),
            ("VM.Standard.E4.Flex", Some("VM.Standard.E4.Flex.1.16")),
            ("VM.Standard.E4.Flex.500.32", Some("VM.Standard.E4.Flex.114.114")),
            ("VM.Standard.E4.Flex.1.512", Some("VM.Standard.E4.Flex.1.64")),
            ("VM.Standard.E4.Flex.0.0", Some("VM.Standard.E4.Flex.1.1")),
            ("VM.Standard.E4.Flex.64.9999", Some("VM.Standard.E4.Flex.64.1776")),
            ("BM.DenseO2.52", Some("BM.DenseIO2.52")),
            ("m1.tiny", None),
        ];
        for (name, near) in cases {
            assert_eq!(shapes.nearest(name).as_deref(), near, "{name}");
        }
    }
}

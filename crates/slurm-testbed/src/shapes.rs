//! Shapes for tests that generate nodes.

use slurmconf::{Memory, NodeShape, Shapes};

/// Name, sockets, cores in each, GB, generic resources. A core has two threads.
const ROWS: [(&str, u32, u32, u64, &str); 23] = [
    ("VM.Standard2.1", 1, 1, 15, ""),
    ("VM.Standard2.2", 1, 2, 30, ""),
    ("VM.Standard2.4", 1, 4, 60, ""),
    ("VM.Standard2.8", 1, 8, 120, ""),
    ("VM.Standard2.16", 1, 16, 240, ""),
    ("VM.Standard2.24", 1, 24, 320, ""),
    ("VM.Standard.E4.Flex.1.16", 1, 1, 16, ""),
    ("VM.Standard.E4.Flex.2.32", 1, 2, 32, ""),
    ("VM.Standard.E4.Flex.4.64", 1, 4, 64, ""),
    ("VM.Standard.E4.Flex.16.255", 1, 16, 255, ""),
    ("VM.Standard.E4.Flex.16.256", 1, 16, 256, ""),
    ("VM.Standard.E4.Flex.32.512", 1, 32, 512, ""),
    ("VM.Standard3.Flex.16.256", 1, 16, 256, ""),
    ("VM.Standard.E5.Flex.16.256", 1, 16, 256, ""),
    ("VM.GPU2.1", 1, 12, 72, "gpu:p100:1"),
    ("VM.GPU3.1", 1, 6, 90, "gpu:v100:1"),
    ("VM.GPU3.2", 1, 12, 180, "gpu:v100:2"),
    ("VM.GPU3.4", 1, 24, 360, "gpu:v100:4"),
    ("BM.HPC2.36", 2, 18, 384, ""),
    ("BM.Standard.E4.128", 2, 64, 2048, ""),
    ("BM.GPU.A10.4", 2, 32, 1024, "gpu:a10:4"),
    ("BM.GPU3.8", 2, 26, 768, "gpu:v100:8"),
    ("BM.GPU4.8", 2, 32, 2048, "gpu:a100:8"),
];

/// Some of the shapes that the provider of OCI has built in; a test of the programs compares them.
#[must_use]
pub fn shapes() -> Shapes {
    let mut shapes = Shapes::new();
    for (name, sockets, cores, gigabytes, gres) in ROWS {
        let mut shape = NodeShape::new(cores, Memory::Nominal(gigabytes * 1024));
        (shape.sockets, shape.threads_per_core) = (sockets, 2);
        (shape.gres, shape.arch) = (gres.to_owned(), "x86_64".to_owned());
        shapes.insert(name, shape);
    }
    let mut arm = NodeShape::new(4, Memory::Nominal(24 * 1024));
    "aarch64".clone_into(&mut arm.arch);
    shapes.insert("VM.Standard.A1.Flex.4.24", arm);
    shapes
}

//! What EC2 says about itself.

use crate::LaunchOptions;
use cloud_core::{Architecture, Capability, Counted, Description, ShapeLimit, ShapeName};

impl LaunchOptions {
    /// What EC2 says about itself, for launches with these options; nothing is asked.
    ///
    /// ```
    /// let ec2 = cloud_aws::LaunchOptions::default().describe();
    /// assert!((ec2.is_id)("ami-0123456789abcdef0") && !(ec2.is_id)("rocky-9.5"));
    /// ```
    #[must_use]
    pub fn describe(&self) -> Description {
        let mut description = Description::new("AWS");
        description.capabilities = [
            Capability::LaunchToken,
            Capability::Rebuild,
            Capability::SoftReboot,
            Capability::Stop,
            Capability::Snapshot,
            Capability::Catalog,
            Capability::Limits,
            Capability::Preemptible,
        ]
        .into();
        description.is_id = is_id;
        description.zone_term = "availability zone";
        description.architectures = ["x86_64", "aarch64"].map(Architecture::new).to_vec();
        description.limit_of = limit_of;
        description.batch = self.batch.max(1);
        description
    }
}

/// An id is a word for the kind of thing and 8 or 17 hexadecimal digits.
fn is_id(text: &str) -> bool {
    let Some((kind, digits)) = text.split_once('-') else {
        return false;
    };
    ["ami", "i", "subnet", "sg", "vpc", "lt", "cr"].contains(&kind)
        && matches!(digits.len(), 8 | 17)
        && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Quotas of instances on demand: the families that count, the quota's code, and our name for it.
pub(crate) const QUOTAS: [(&[&str], &str, &str); 10] = [
    (&["a", "c", "d", "h", "i", "im", "is", "m", "r", "t", "z"], "L-1216C47A", "standard-vcpus"),
    (&["g", "gr", "vt"], "L-DB2E81BA", "g-and-vt-vcpus"),
    (&["p"], "L-417A185B", "p-vcpus"),
    (&["inf"], "L-1945791B", "inf-vcpus"),
    (&["trn"], "L-2C3B7624", "trn-vcpus"),
    (&["dl"], "L-6E869C2A", "dl-vcpus"),
    (&["f"], "L-74FC7D96", "f-vcpus"),
    (&["x"], "L-7295265B", "x-vcpus"),
    (&["hpc"], "L-F7808C92", "hpc-vcpus"),
    (&["u"], "L-43DA4232", "high-memory-vcpus"),
];

/// The limit that counts the instances of a type: EC2 counts hardware threads, over whole groups of families.
pub(crate) fn limit_of(shape: &ShapeName) -> Option<ShapeLimit> {
    let name = shape.as_str();
    let family = name.split(|c: char| !c.is_ascii_lowercase()).next()?;
    let (_, _, name) = QUOTAS.iter().find(|(families, _, _)| families.contains(&family))?;
    Some(ShapeLimit { name: (*name).to_owned(), counts: Counted::Threads })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_share_a_quota() {
        let table = [
            ("c7a.48xlarge", Some("standard-vcpus")),
            ("t3a.small", Some("standard-vcpus")),
            ("im4gn.large", Some("standard-vcpus")),
            ("g5.xlarge", Some("g-and-vt-vcpus")),
            ("p5.48xlarge", Some("p-vcpus")),
            ("hpc7g.16xlarge", Some("hpc-vcpus")),
            ("u-6tb1.56xlarge", Some("high-memory-vcpus")),
            ("mac1.metal", None),
            ("VM.Standard2.1", None),
        ];
        for (shape, expected) in table {
            let found = limit_of(&ShapeName::new(shape)).map(|limit| limit.name);
            assert_eq!(found.as_deref(), expected, "{shape}");
        }
    }

    #[test]
    fn an_id_is_told_from_a_name() {
        for id in ["ami-12345678", "i-0123456789abcdef0", "subnet-0123456789abcdef0"] {
            assert!(is_id(id), "{id}");
        }
        for name in ["ami-golden", "rocky-9.5", "i-", "", "citc-slurm-compute-blue-v12345678"] {
            assert!(!is_id(name), "{name}");
        }
    }
}

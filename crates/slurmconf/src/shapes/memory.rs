//! Estimating `RealMemory`.

use super::{Memory, NodeShape, citc};

/// How `RealMemory` is computed from the memory that a cloud advertises.
///
/// Slurm drains a node with less memory than `RealMemory`, so an estimate must not exceed what the operating system sees.
/// [`Memory::Real`] is taken as it is, whatever the policy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum MemoryPolicy {
    /// The least that slurmd sees: 5 % less for page tables, firmware and hypervisor, less the crash kernel of
    /// Enterprise Linux (192 MiB from 1 GiB, 256 MiB from 4 GiB, 512 MiB from 64 GiB), less 64 MiB for the kernel.
    #[default]
    Seen,
    /// CitC's table for OCI since July 2023; a shape it lacks is [`Seen`](MemoryPolicy::Seen).
    CitcOracle,
    /// CitC's table for OCI before July 2023: 2000 MiB more, which drained nodes.
    CitcOracleBefore2023,
    /// CitC's formula for AWS: less 0.9·size^0.7 + 500 MiB.
    CitcAws,
    /// CitC's formula for Google, which by mistake is the discount itself.
    CitcGoogle,
    /// CitC's formula for OpenStack: 80 %.
    CitcOpenstack,
    /// StackHPC's appliance: 95 %.
    StackHpc,
    /// Any other percentage; above 100 counts as 100.
    Percent(u8),
}

impl MemoryPolicy {
    /// `RealMemory` in MiB for a machine of this shape, at least 1.
    #[must_use]
    pub fn real_memory(self, name: &str, shape: &NodeShape) -> u64 {
        let size = match shape.memory {
            Memory::Real(memory) => return memory.max(1),
            Memory::Nominal(size) => size,
        };
        let memory = match self {
            Self::Seen => seen(size),
            Self::CitcOracle => citc::oracle(name).unwrap_or_else(|| seen(size)),
            Self::CitcOracleBefore2023 => {
                citc::oracle_before_2023(name).unwrap_or_else(|| seen(size))
            }
            Self::CitcAws => size.saturating_sub(aws_discount(size)),
            Self::CitcGoogle => aws_discount(size),
            Self::CitcOpenstack => percent(size, 80),
            Self::StackHpc => percent(size, 95),
            Self::Percent(part) => percent(size, part.min(100)),
        };
        memory.max(1)
    }
}

fn seen(size: u64) -> u64 {
    let crash_kernel = match size {
        0..1024 => 0,
        1024..4096 => 192,
        4096..65_536 => 256,
        65_536.. => 512,
    };
    size.saturating_sub(size / 20 + crash_kernel + 64)
}

fn percent(size: u64, part: u8) -> u64 {
    size.saturating_mul(u64::from(part)) / 100
}

#[expect(
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "CitC's formula is in floating point; sizes in MiB are exact in f64, and the result is positive"
)]
fn aws_discount(size: u64) -> u64 {
    ((size as f64).powf(0.7) * 0.9 + 500.0) as u64
}

//! What the nodes of slurm.conf are made from, as options.

use clap::{Args, ValueEnum};
use slurmconf::Style;
use std::path::PathBuf;

/// What the nodes of slurm.conf are made from, and how they are written.
#[derive(Args, Debug)]
pub(in crate::programs) struct Sources {
    /// Limits file.
    #[arg(long, value_name = "FILE", default_value = "limits.yaml")]
    pub(in crate::programs) limits: PathBuf,

    /// Shapes besides those that are built in [default: /etc/citc/shapes.yaml, if it is there].
    #[arg(long, value_name = "FILE")]
    pub(super) shapes: Option<PathBuf>,

    /// Style of the node lines.
    #[arg(long, value_name = "STYLE", default_value = "folded")]
    pub(super) style: StyleName,

    /// The partition that gets Default=YES, of those that limits.yaml names [default: the one that has it].
    #[arg(long, value_name = "NAME")]
    pub(super) default_partition: Option<String>,
}

/// Style of the node lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum StyleName {
    /// Ranges, which slurmctld reads far faster.
    Folded,
    /// A line for each node, as Cluster in the Cloud writes it.
    Citc,
    /// Ranges with a node set for each group, as StackHPC writes them.
    NodeGroups,
}

impl From<StyleName> for Style {
    fn from(name: StyleName) -> Self {
        match name {
            StyleName::Folded => Self::Folded,
            StyleName::Citc => Self::Citc,
            StyleName::NodeGroups => Self::NodeGroups,
        }
    }
}

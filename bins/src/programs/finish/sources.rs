//! Options for the sources and the style of the node section.

use clap::{Args, ValueEnum};
use slurmconf::Style;
use std::path::PathBuf;

/// The sources and the style of the node section.
#[derive(Args, Debug)]
pub(in crate::programs) struct Sources {
    /// Limits file.
    #[arg(long, value_name = "FILE", default_value = "limits.yaml")]
    pub(in crate::programs) limits: PathBuf,

    /// Shapes in addition to the built-in ones [default: /etc/citc/shapes.yaml, if it exists].
    #[arg(long, value_name = "FILE")]
    pub(super) shapes: Option<PathBuf>,

    /// Style of the node lines.
    #[arg(long, value_name = "STYLE", default_value = "folded")]
    pub(super) style: StyleName,

    /// Partition of limits.yaml that gets Default=YES [default: the one that has it].
    #[arg(long, value_name = "NAME")]
    pub(super) default_partition: Option<String>,
}

/// Style of the node lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum StyleName {
    /// Ranges, which slurmctld reads much faster.
    Folded,
    /// One line per node, as in Cluster in the Cloud.
    Citc,
    /// Ranges with a node set per group, as in StackHPC's appliance.
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

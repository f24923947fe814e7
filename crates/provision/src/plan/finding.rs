//! What a comparison of cloud, Slurm and slurm.conf brings to light.

use cloud_core::InstanceId;
use hostlist::NodeName;
use std::fmt;

/// Something that does not fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What it is.
    pub kind: FindingKind,
    /// The node, if it is about one.
    pub node: Option<NodeName>,
    /// The instances.
    pub instances: Vec<InstanceId>,
    /// More about it.
    pub text: String,
    /// What is done about it.
    pub handling: Handling,
}

/// What does not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum FindingKind {
    /// An instance of ours that is no node's, or of a node that Slurm has powered down.
    Orphan,
    /// A node that Slurm takes for up, and that has no instance.
    Ghost,
    /// A node with several instances.
    Duplicate,
    /// An instance that failed.
    Broken,
    /// A node that is down and powered down, out of service for no lasting reason.
    Down,
    /// A node whose rest is over, or that can be had again.
    Rested,
    /// A node that rests, or is drained until the cloud has room again.
    Resting,
    /// A node that cannot be had for now, where others of its partition can.
    Full,
    /// A node that stays on its way up for too long, or is down although its machine runs.
    Stuck,
    /// A node whose address in Slurm is not its instance's.
    WrongAddress,
    /// A node whose image is not the one it should have.
    WrongImage,
    /// A node that we drained, and that nobody of us has in hand any more.
    Drained,
    /// A node whose machine has failed its health check, or is taken away by the cloud.
    Unfit,
    /// A stopped machine that no start of its node would use: it is not kept warm, or not as a launch would make it now.
    Warm,
    /// A reservation of ours for the maintenance of a machine that is gone.
    Reserved,
    /// A node that somebody drained or set down.
    Held,
    /// A node that slurm.conf has and slurmctld has not, or the other way round: slurmctld has not applied the file.
    Unapplied,
    /// A listing that is not complete, or a Slurm that does not answer: nothing is put right.
    Blind,
}

impl FindingKind {
    /// Every kind.
    pub(crate) const ALL: [Self; 18] = [
        Self::Orphan,
        Self::Ghost,
        Self::Duplicate,
        Self::Broken,
        Self::Down,
        Self::Rested,
        Self::Resting,
        Self::Full,
        Self::Stuck,
        Self::WrongAddress,
        Self::WrongImage,
        Self::Drained,
        Self::Unfit,
        Self::Warm,
        Self::Reserved,
        Self::Held,
        Self::Unapplied,
        Self::Blind,
    ];

    /// The kind of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == name)
    }

    /// Its name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Orphan => "orphan",
            Self::Ghost => "ghost",
            Self::Duplicate => "duplicate",
            Self::Broken => "broken",
            Self::Down => "down",
            Self::Rested => "rested",
            Self::Resting => "resting",
            Self::Full => "full",
            Self::Stuck => "stuck",
            Self::WrongAddress => "wrong_address",
            Self::WrongImage => "wrong_image",
            Self::Drained => "drained",
            Self::Unfit => "unfit",
            Self::Warm => "warm",
            Self::Reserved => "reserved",
            Self::Held => "held",
            Self::Unapplied => "unapplied",
            Self::Blind => "blind",
        }
    }
}

impl fmt::Display for FindingKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// What is done about a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Handling {
    /// A step of the plan repairs it.
    Repaired,
    /// It is left until it is seen again, or is older.
    Watched,
    /// It is only reported.
    Reported,
}

impl Handling {
    /// Its name.
    #[must_use]
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Repaired => "repaired",
            Self::Watched => "watched",
            Self::Reported => "reported",
        }
    }
}

impl fmt::Display for Handling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

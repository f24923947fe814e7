//! What a comparison of cloud, Slurm and slurm.conf brings to light.

use super::json::as_texts;
use cloud_core::InstanceId;
use hostlist::NodeName;
use serde::Serialize;

/// Something that does not fit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What it is.
    pub kind: FindingKind,
    /// The node, if it is about one.
    pub node: Option<NodeName>,
    /// The instances.
    #[serde(serialize_with = "as_texts")]
    pub instances: Vec<InstanceId>,
    /// More about it.
    pub text: String,
    /// What is done about it.
    pub handling: Handling,
}

words! {
    /// What does not fit.
    #[non_exhaustive]
    pub enum FindingKind {
        /// An instance of ours that is no node's, or of a node that Slurm has powered down.
        Orphan = "orphan",
        /// A node that Slurm takes for up, and that has no instance.
        Ghost = "ghost",
        /// A node with several instances.
        Duplicate = "duplicate",
        /// An instance that failed.
        Broken = "broken",
        /// A node that is down and powered down, out of service for no lasting reason.
        Down = "down",
        /// A node whose rest is over, or that can be had again.
        Rested = "rested",
        /// A node that rests, or is drained until the cloud has room again.
        Resting = "resting",
        /// A node that cannot be had for now, where others of its partition can.
        Full = "full",
        /// A node that stays on its way up for too long, or is down although its machine runs.
        Stuck = "stuck",
        /// A node whose address in Slurm is not its instance's.
        WrongAddress = "wrong_address",
        /// A node whose image is not the one it should have.
        WrongImage = "wrong_image",
        /// A node that we drained, and that nobody of us has in hand any more.
        Drained = "drained",
        /// A node whose machine has failed its health check, or is taken away by the cloud.
        Unfit = "unfit",
        /// A stopped machine that no start of its node would use: it is not kept warm, or not as a launch would make it now.
        Warm = "warm",
        /// A reservation of ours for the maintenance of a machine that is gone.
        Reserved = "reserved",
        /// A node that somebody drained or set down.
        Held = "held",
        /// A node that slurm.conf has and slurmctld has not, or the other way round: slurmctld has not applied the file.
        Unapplied = "unapplied",
        /// A listing that is not complete, or a Slurm that does not answer: nothing is put right.
        Blind = "blind",
    }
}

words! {
    /// What is done about a finding.
    pub enum Handling {
        /// A step of the plan repairs it.
        Repaired = "repaired",
        /// It is left until it is seen again, or is older.
        Watched = "watched",
        /// It is only reported.
        Reported = "reported",
    }
}

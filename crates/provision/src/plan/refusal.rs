//! Why nothing is done to a node: because it must not be, or because it need not be.

use crate::cooldown::Cooldown;
use crate::site::Pool;
use crate::time::Utc;
use cloud_core::{ImageId, InstanceId, InstanceState};
use slurmctl::JobId;
use std::fmt;
use std::time::SystemTime;

/// Why we refuse to touch a node.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// slurm.conf does not know it.
    #[error("no such node in slurm.conf")]
    NotInSlurmConf,
    /// Its features do not say what machine it is.
    #[error("no feature shape= or flavor= in slurm.conf")]
    NoShape,
    /// Neither its features nor the configuration name an image that there is.
    #[error(
        "no usable image: neither by a feature image=, nor by image_id, nor by the tag of this cluster"
    )]
    NoImage,
    /// Its feature names a key pair that the configuration does not have.
    #[error("unknown key pair {0}")]
    UnknownKeypair(String),
    /// slurm.conf has no such partition.
    #[error("slurm.conf has no partition {0}")]
    UnknownPartition(String),
    /// The image it is to get is not in the cloud.
    #[error("unknown image {0}")]
    UnknownImage(String),
    /// More than one instance could be it.
    #[error("{} instances: {}", .0.len(), joined(.0))]
    Duplicates(Vec<InstanceId>),
    /// Its instance is in a state in which nothing should be done.
    #[error("instance {id} is {state}")]
    Busy {
        /// The instance.
        id: InstanceId,
        /// Its state.
        state: InstanceState,
    },
    /// There is no instance.
    #[error("no instance")]
    NoInstance,
    /// The files name another instance than the cloud's tags.
    #[error("the files name instance {named}, the tags {tagged}")]
    OtherInstance {
        /// The one in the file.
        named: InstanceId,
        /// The one that carries the node's tag.
        tagged: InstanceId,
    },
    /// A file names it, but it does not carry our tags, and this would end it.
    #[error("instance {0} is not ours to replace")]
    NotOurs(InstanceId),
    /// Every place that it could be launched in cools down, and what it has would be gone for nothing.
    #[error("{pool}: {cooldown}")]
    Cooling {
        /// The one that is the first to be tried again.
        pool: Pool,
        /// Why, and until when.
        cooldown: Cooldown,
    },
    /// The budget or `max_nodes` has no room for its machine.
    #[error("{0}")]
    NoRoom(String),
    /// A part of the listing is missing, so that what is not seen may be there all the same.
    #[error("the listing of instances is not complete")]
    IncompleteListing,
    /// A job is there.
    #[error("job {0} is running there")]
    Job(JobId),
    /// Slurm says that it is in use.
    #[error("in use")]
    InUse,
    /// Somebody drained it or set it down, and it is theirs.
    #[error("held: {0}")]
    Held(String),
    /// The cloud holds instances of ours that should not be there.
    #[error("instances of nodes that are not wanted: {}", .0.join(", "))]
    Strangers(Vec<String>),
    /// slurmctld did not answer, and without it this cannot be decided.
    #[error("slurmctld does not answer")]
    NoSlurm,
    /// slurmctld did not answer an operator who stops a node: a job may be there.
    #[error(
        "slurmctld does not answer, so that a job may run there; stopnode --now terminates the machine all the same"
    )]
    JobUnknown,
    /// It did not come back from its rebuild.
    #[error("did not come back: {0}")]
    NotBack(String),
    /// It came back from its rebuild, and not with the image.
    #[error("came back with image {0}")]
    OtherImage(ImageId),
    /// No node may ever be begun.
    #[error("a batch, or as many as may be out of service, of no nodes")]
    NeverBegins,
    /// What image it has cannot be known.
    #[error("its image is not known")]
    ImageUnknown,
    /// Rebuild jobs do nothing on such a node.
    #[error("an elastic node: rebuild jobs do nothing there, roll it instead")]
    Elastic,
    /// It is persistent, and so is its machine.
    #[error(
        "not elastic, so its machine stays; Slurm takes the node back by scontrol reconfigure, or when slurmd is restarted there"
    )]
    Persistent,
    /// slurm.conf cannot be changed as it would have to be.
    #[error("slurm.conf: {0}")]
    BadConf(String),
    /// A line outside the markers names it.
    #[error("named outside the markers, by {0}")]
    NamedOutside(String),
}

fn joined(ids: &[InstanceId]) -> String {
    ids.iter().map(InstanceId::as_str).collect::<Vec<_>>().join(", ")
}

/// Why nothing needs to be done to a node.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Why {
    /// There is no instance.
    NoInstance,
    /// Its instances are on their way out.
    Leaving,
    /// Its instance is stopped and kept.
    Stopped,
    /// It has the image already.
    OnTarget,
    /// It is being rebuilt or rebooted.
    UnderWay,
    /// It is powered down, and gets its image when it starts.
    PoweredDown,
    /// It came up after all.
    CameUp,
    /// Slurm has it in service again, or is bringing it up.
    WantedAgain,
    /// Its turn comes later.
    Later,
    /// Its turn comes when the nodes tried first have proven well.
    AfterCanary,
    /// Its turn comes when the pause is over.
    Pause(SystemTime),
    /// Too many failed; nothing more is begun.
    Halted(usize),
    /// It is down or does not answer, and comes when it is back.
    NotUp,
    /// Somebody drained it or set it down, and it is theirs.
    Held(String),
    /// A job for it waits or runs already.
    Queued(JobId),
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoInstance => f.write_str("no instance"),
            Self::Leaving => f.write_str("on its way out"),
            Self::Stopped => f.write_str("stopped, and kept warm"),
            Self::OnTarget => f.write_str("has the image"),
            Self::UnderWay => f.write_str("under way"),
            Self::PoweredDown => f.write_str("powered down"),
            Self::CameUp => f.write_str("came up after all"),
            Self::WantedAgain => f.write_str("wanted again"),
            Self::Later => f.write_str("in a later batch"),
            Self::AfterCanary => f.write_str("after those tried first"),
            Self::Pause(until) => write!(f, "pause until {}", Utc(*until)),
            Self::Halted(failures) => write!(f, "halted after {failures} failures"),
            Self::NotUp => f.write_str("not up"),
            Self::Held(reason) => write!(f, "held: {reason}"),
            Self::Queued(job) => write!(f, "job {job} is for it"),
        }
    }
}

//! slurm.conf as a file: the managed section, the lock, and how a change is tried and rolled back.

mod dynamic_nodes;
mod expected;
mod fit;
mod known_shapes;
mod lock;
mod marked_file;
mod planned;
mod prove;
mod rollback;
mod trial;
mod unfit_jobs;

pub use dynamic_nodes::fill_from_slurmctld;
pub(crate) use expected::{Expected, Patience};
pub use fit::{
    default_partition, duplicate_partitions, gres_types, missing_gres, unlaunchable, unstarted,
};
pub use known_shapes::{built_in_shapes, known_shapes, node_shape};
pub use lock::ConfLock;
pub use marked_file::{MarkedFile, MarkerError};
pub use planned::{bad_conf, nodes_in_use, planned_section, suspend_exclusions, written_conf};
pub use prove::{Proof, ProofFailure, Trial};
pub use rollback::{Applied, Verification, is_unapplied};
pub use unfit_jobs::unfit_jobs;

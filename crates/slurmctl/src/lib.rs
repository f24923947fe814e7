#![doc = include_str!("../README.md")]

mod accounting;
mod argv;
mod caller;
mod classify;
mod config;
mod controller;
mod error;
#[cfg(fuzzing)]
pub mod fuzzing;
mod job;
mod job_ref;
#[cfg(feature = "memory")]
pub mod memory;
mod node;
mod parse;
mod programs;
mod reason;
mod reservation;
mod resume_file;
mod run;
mod scontrol;
mod squeue;
mod state;
mod time;
mod update;

pub use accounting::{JobOwner, JobRecord};
pub use caller::{CallSigns, Caller, ProgramRole, is_called_by_daemon};
pub use config::ControllerConfig;
pub use controller::{Controller, NodeAction, NodeAddress};
pub use error::{Error, ErrorKind, Result};
pub use job::{BatchJob, Job, JobFilter, JobId, JobState};
pub use job_ref::{BadJobRef, JobRef};
pub use node::{Node, NodeReason};
pub use programs::Programs;
pub use reason::Reason;
pub use reservation::Reservation;
pub use resume_file::{JobNodes, ResumeFileError, ResumeFileWarning, ResumeRequest};
pub use scontrol::{Scontrol, ScontrolConfig};
pub use state::{BaseState, NodeState, StateFlag};

//! What a machine learns about itself: its cloud's metadata service, asked from inside.

use crate::Result;
use async_trait::async_trait;
use std::fmt;
use std::time::SystemTime;

/// The metadata service of a cloud, asked by the machine that it is about.
///
/// No credentials are needed: the service knows its machines by their addresses.
#[async_trait]
pub trait MachineMetadata: fmt::Debug + Send + Sync + 'static {
    /// What is announced for this machine, if anything; a preemption before a maintenance.
    async fn interruption(&self) -> Result<Option<Interruption>>;

    /// Where the machine is, from the widest unit to the narrowest, such as a network block and a rack; empty where
    /// the cloud does not say.
    async fn location(&self) -> Result<Vec<String>>;
}

/// Something that the cloud is going to do to a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interruption {
    /// What it is.
    pub kind: InterruptionKind,
    /// When it is due; soon, if the cloud does not say.
    pub at: Option<SystemTime>,
}

/// What a cloud is going to do to a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InterruptionKind {
    /// It takes the machine away.
    Preemption,
    /// It reboots or moves the machine, which comes back.
    Maintenance,
}

//! What can go wrong with the simulator itself; what it answers to requests is [`crate::answer`].

use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// An error with all its causes, as one line.
#[must_use]
pub fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}

/// Why a cloud does not start, or what it is told by its other side cannot be.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// The address cannot be listened on.
    #[error("cannot listen on {address}")]
    Listen {
        /// The address asked for.
        address: String,
        /// Why not.
        source: io::Error,
    },
    /// The system does not give what a cloud needs to run.
    #[error("cannot {what}")]
    System {
        /// What was tried.
        what: &'static str,
        /// Why not.
        source: io::Error,
    },
    /// A file or directory of the state cannot be read or written.
    #[error("{}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// Another cloud keeps its state there.
    #[error(
        "{}: another cloud-sim runs on this state; end it, or take another directory",
        directory.display()
    )]
    Taken {
        /// The directory of the state.
        directory: PathBuf,
    },
    /// The script is not what it has to be.
    #[error("{}: not a script", path.display())]
    Script {
        /// The file.
        path: PathBuf,
        /// Where and why.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A public key of a user is not an RSA key in PEM form.
    #[error("user {user}: the public key is not an RSA key in PEM form")]
    Key {
        /// The user's id.
        user: String,
    },
    /// A time of the settings is negative or no number.
    #[error("timing {name}: {seconds} is not a number of seconds")]
    Timing {
        /// Its name.
        name: &'static str,
        /// Its value as given.
        seconds: f64,
    },
    /// A fault rule, a bound or a limit that could never have an effect.
    #[error("{what}: {why}")]
    NoEffect {
        /// What it is.
        what: &'static str,
        /// What is wrong with it.
        why: String,
    },
    /// A speed that the clock cannot have.
    #[error("speed {speed}: has to be 0, or from 0.001 to 1000000")]
    Speed {
        /// The speed as given.
        speed: f64,
    },
    /// A span of time beyond all bounds.
    #[error("{what}: has to be within {most}")]
    Beyond {
        /// What it is.
        what: &'static str,
        /// How much it can be.
        most: &'static str,
    },
    /// There is no instance of this id.
    #[error("there is no instance {id}")]
    NoInstance {
        /// The id.
        id: String,
    },
    /// An instance that has ended cannot get into another state.
    #[error("instance {id} has ended; launch another")]
    Terminated {
        /// The instance's id.
        id: String,
    },
    /// A subnet has no usable range of addresses.
    #[error("subnet {subnet}: `{cidr}` is not an IPv4 range such as 10.1.0.0/16")]
    Subnet {
        /// The subnet's id.
        subnet: String,
        /// Its range as given.
        cidr: String,
    },
}

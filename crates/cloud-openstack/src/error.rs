//! What is wrong with a configuration, or with what it leads to: one sentence with file, cloud and remedy.

use crate::Origin;
use std::io;
use std::path::PathBuf;

/// A cloud that cannot be used as configured.
///
/// The text is one sentence that names the file, the cloud and what to do; the cause is in
/// [`source`](std::error::Error::source).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no clouds.yaml and no variable says anything either.
    #[error("no clouds.yaml{} in {}: put one there, or set OS_CLIENT_CONFIG_FILE to it, or set OS_AUTH_URL and its like", with(.cloud.as_deref()), list(.looked))]
    NoFile {
        /// The cloud that was asked for, if any.
        cloud: Option<String>,
        /// Where it was looked for.
        looked: Vec<PathBuf>,
    },
    /// The file is there and cannot be read.
    #[error("{}: cannot be read: check its path and permissions", .file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file is no YAML, or not of the form of a clouds.yaml.
    #[error("{}: {problem}: correct it", .file.display())]
    Malformed {
        /// The file.
        file: PathBuf,
        /// What is wrong, and where; never what stands there, which may be a secret.
        problem: String,
    },
    /// The file has no cloud of this name.
    #[error("{}: no cloud '{cloud}' (there is {}): set OS_CLOUD to one of these, or add it", .file.display(), names(.known))]
    UnknownCloud {
        /// The file.
        file: PathBuf,
        /// The cloud that was asked for.
        cloud: String,
        /// Those that it has.
        known: Vec<String>,
    },
    /// The file has several clouds, and nobody says which to use.
    #[error("{}: which cloud of {}: set OS_CLOUD to one of these", .file.display(), names(.known))]
    ManyClouds {
        /// The file.
        file: PathBuf,
        /// Those that it has.
        known: Vec<String>,
    },
    /// Something that has to be said is not said, or makes no sense.
    #[error("{origin}: {key} {problem}: {remedy}")]
    BadSetting {
        /// The cloud.
        origin: Origin,
        /// What it is called there.
        key: &'static str,
        /// What is wrong with it.
        problem: String,
        /// What to do.
        remedy: String,
    },
    /// Keystone does not know us, or no longer.
    #[error(
        "{origin}: {auth_url} refuses {what}: check that it is right, has not expired and has not been deleted"
    )]
    Refused {
        /// The cloud.
        origin: Origin,
        /// Where Keystone is.
        auth_url: String,
        /// What it refuses.
        what: &'static str,
        /// Its answer.
        source: cloud_core::Error,
    },
    /// Keystone understands us, and cannot make a token of it.
    #[error(
        "{origin}: {auth_url} cannot make a token of {what}: check user, project and domain, and their ids"
    )]
    Unusable {
        /// The cloud.
        origin: Origin,
        /// Where Keystone is.
        auth_url: String,
        /// What it cannot use.
        what: &'static str,
        /// Its answer.
        source: cloud_core::Error,
    },
    /// Nobody answers.
    #[error("{origin}: no answer from {url}: check that address, the network and the proxy")]
    Unreachable {
        /// The cloud.
        origin: Origin,
        /// Where nobody answers.
        url: String,
        /// How it was tried.
        source: cloud_core::Error,
    },
    /// Whoever answers cannot prove who it is.
    #[error(
        "{origin}: no trusted connection to {url}: check that it speaks https, the host name and the date of its certificate, and set cacert to the file of the authority that signed it"
    )]
    Untrusted {
        /// The cloud.
        origin: Origin,
        /// Who answers.
        url: String,
        /// What is wrong with the certificate or the handshake.
        source: cloud_core::Error,
    },
    /// Somebody answers, and not as Keystone or Nova would.
    #[error("{origin}: {url} does not answer as {service} does: {remedy}")]
    NotOpenStack {
        /// The cloud.
        origin: Origin,
        /// Who answers.
        url: String,
        /// Who should be there.
        service: &'static str,
        /// What to do.
        remedy: &'static str,
        /// What it said.
        source: cloud_core::Error,
    },
    /// The catalog has no such service for us.
    #[error("{origin}: no {service} service{place} in the catalog (there is {}): check region_name and interface, or set {service}_endpoint_override", names(.known))]
    NoService {
        /// The cloud.
        origin: Origin,
        /// The service.
        service: &'static str,
        /// Interface and region.
        place: String,
        /// Where else it is, or what else there is.
        known: Vec<String>,
    },
    /// The catalog has several regions, and nobody says which to use.
    #[error("{origin}: which region of {}: set region_name to one of these", names(.known))]
    ManyRegions {
        /// The cloud.
        origin: Origin,
        /// Those that it has.
        known: Vec<String>,
    },
    /// Nova is too old to be used safely.
    #[error(
        "{origin}: its Nova offers microversion {newest} at most, and {least} is the least that sets tags in the launch call, without which nobody can tell whose a server is: use a newer cloud"
    )]
    TooOld {
        /// The cloud.
        origin: Origin,
        /// The newest that it offers.
        newest: String,
        /// The oldest that will do.
        least: String,
    },
}

fn with(cloud: Option<&str>) -> String {
    cloud.map(|cloud| format!(" for cloud '{cloud}'")).unwrap_or_default()
}

fn list(paths: &[PathBuf]) -> String {
    let paths: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
    if paths.is_empty() { "no directory at all".to_owned() } else { paths.join(", ") }
}

fn names(names: &[String]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("'{name}'")).collect();
    if quoted.is_empty() { "none".to_owned() } else { quoted.join(", ") }
}

//! The profiles of `~/.aws/config` and `~/.aws/credentials`.

use crate::Overrides;
use cloud_core::{ConfigError, File, Sources};
use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// The values of a profile, from both files.
#[derive(Clone, Default)]
pub(crate) struct Profile {
    name: String,
    values: BTreeMap<String, String>,
}

impl Profile {
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The value of a key. An empty value counts as unset.
    pub(crate) fn get(&self, key: &str) -> Option<&str> {
        self.values.get(key).map(String::as_str).filter(|value| !value.is_empty())
    }

    pub(crate) fn error(&self, why: &str) -> ConfigError {
        ConfigError::new(format!("profile '{}': {why}", self.name))
    }
}

impl fmt::Debug for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Among the values is a key.
        f.debug_tuple("Profile").field(&self.name).finish()
    }
}

/// All profiles.
#[derive(Debug, Default)]
pub(crate) struct Profiles {
    profiles: BTreeMap<String, Profile>,
    pub(crate) warnings: Vec<String>,
}

impl Profiles {
    /// Reads both files. A file in its default place may be missing.
    pub(crate) fn read(sources: &Sources<'_>, overrides: &Overrides) -> Result<Self, ConfigError> {
        let mut profiles = Self::default();
        let config = sources.variable("AWS_CONFIG_FILE").map(|path| sources.expand(path));
        if let Some((path, file)) = load(sources, config, ".aws/config")? {
            profiles.add(&path, file, |section| match section.strip_prefix("profile ") {
                Some(name) => Some(name.trim().trim_matches('"')),
                // Other sections, such as those of single sign-on, have a word in front, too.
                None => (section == "default").then_some(section),
            })?;
        }
        let named = || sources.variable("AWS_SHARED_CREDENTIALS_FILE");
        let named =
            overrides.credentials_file.clone().or_else(|| named().map(|path| sources.expand(path)));
        let mut found = load(sources, named, ".aws/credentials")?;
        if found.is_none()
            && let Some(path) =
                overrides.last_resort.clone().filter(|path| sources.read(path).is_ok())
        {
            found = load(sources, Some(path), "")?;
        }
        if let Some((path, file)) = found {
            if file.mode.is_some_and(|mode| mode & 0o077 != 0) {
                let path = path.display();
                profiles
                    .warnings
                    .push(format!("others can read {path}, which holds a key: chmod 600 {path}"));
            }
            profiles.add(&path, file, |section| Some(section))?;
        }
        Ok(profiles)
    }

    pub(crate) fn get(&self, name: &str) -> Result<&Profile, ConfigError> {
        self.profiles.get(name).ok_or_else(|| {
            let known: Vec<&str> = self.profiles.keys().map(String::as_str).collect();
            let known =
                if known.is_empty() { "there is none".to_owned() } else { known.join(", ") };
            ConfigError::new(format!(
                "no profile '{name}' in ~/.aws/config or ~/.aws/credentials: {known}"
            ))
        })
    }

    /// Adds the values of a file. `name` returns the profile of a section.
    fn add(
        &mut self,
        path: &Path,
        file: File,
        name: fn(&str) -> Option<&str>,
    ) -> Result<(), ConfigError> {
        let text = file.into_text().map_err(|cause| unreadable(path, cause))?;
        let (mut current, mut depth): (Option<&str>, usize) = (None, usize::MAX);
        for (number, whole) in (1u32..).zip(text.lines()) {
            let line = whole.trim();
            let indent = whole.len().saturating_sub(whole.trim_start().len());
            // What is deeper than the key before it belongs to a service.
            if line.is_empty() || line.starts_with(['#', ';']) || indent > depth {
                continue;
            }
            if let Some(section) = line.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
                (current, depth) = (name(section.0.trim()), usize::MAX);
                continue;
            }
            let Some((key, value)) = line.split_once('=') else {
                let path = path.display();
                // The line may be half a key: it is not shown.
                return Err(ConfigError::new(format!(
                    "{path}:{number}: not a section, and not key = value"
                )));
            };
            depth = indent;
            if let Some(name) = current {
                let profile = self.profiles.entry(name.to_owned()).or_default();
                name.clone_into(&mut profile.name);
                let (key, value) = (key.trim().to_ascii_lowercase(), value.trim().to_owned());
                profile.values.insert(key, value);
            }
        }
        Ok(())
    }
}

/// Reads the named file, or the one in its default place.
fn load(
    sources: &Sources<'_>,
    named: Option<PathBuf>,
    usual: &str,
) -> Result<Option<(PathBuf, File)>, ConfigError> {
    let is_named = named.is_some();
    let Some(path) = named.or_else(|| sources.at_home(usual)) else {
        return Ok(None);
    };
    match sources.read(&path) {
        Ok(file) => Ok(Some((path, file))),
        Err(error) if error.kind() == ErrorKind::NotFound && !is_named => Ok(None),
        Err(error) => Err(unreadable(&path, error)),
    }
}

fn unreadable(path: &Path, cause: io::Error) -> ConfigError {
    ConfigError::new(format!("cannot read {}", path.display())).caused_by(cause)
}

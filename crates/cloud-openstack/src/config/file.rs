//! Finds and reads clouds.yaml and secure.yaml.

use super::names;
use cloud_core::{ConfigError, Sources};
use serde_json::{Map, Value};
use std::io;
use std::path::{Path, PathBuf};

/// The default cloud.
const USUAL: &str = "openstack";

pub(super) struct Found {
    pub(super) file: PathBuf,
    pub(super) clouds: Map<String, Value>,
    pub(super) warnings: Vec<String>,
}

struct Document {
    file: PathBuf,
    value: Value,
    open_to_others: bool,
}

/// Reads the first clouds.yaml, merged with the first secure.yaml.
///
/// The cloud is for the error if there is no file.
pub(super) fn find(
    sources: &Sources<'_>,
    directories: &[PathBuf],
    cloud: Option<&str>,
) -> Result<Found, ConfigError> {
    let places = |variable, stem| places(sources.variable(variable), directories, stem);
    let secure = places("OS_CLIENT_SECURE_FILE", "secure");
    let places = places("OS_CLIENT_CONFIG_FILE", "clouds");
    let (public, closed) = first(sources, &places)?;
    let Some(public) = public else {
        return Err(closed.unwrap_or_else(|| no_file(cloud, &places)));
    };
    let (secure, secure_closed) = first(sources, &secure)?;
    if let (None, Some(file)) = (&secure, sources.variable("OS_CLIENT_SECURE_FILE")) {
        let source = io::Error::from(io::ErrorKind::NotFound);
        let none = || unreadable(Path::new(file), source);
        return Err(secure_closed.unwrap_or_else(none));
    }
    let closed = closed.into_iter().chain(secure_closed);
    let mut warnings: Vec<String> = closed.map(|closed| closed.to_string()).collect();
    for document in [Some(&public), secure.as_ref()].into_iter().flatten() {
        if document.open_to_others && has_secret(&document.value) {
            let file = document.file.display();
            warnings.push(format!("{file}: others can read the secrets in it: chmod o-r {file}"));
        }
    }
    let file = public.file.clone();
    let mut clouds = clouds(public)?;
    if let Some(secure) = secure {
        for (name, more) in self::clouds(secure)? {
            merge(clouds.entry(name).or_insert(Value::Null), more);
        }
    }
    Ok(Found { file, clouds, warnings })
}

/// The name of the cloud to use, which exists.
pub(super) fn choose(found: &Found, named: Option<String>) -> Result<String, ConfigError> {
    let known: Vec<&String> = found.clouds.keys().collect();
    let file = found.file.display();
    let unknown = |cloud: &str| {
        let known = names(&known);
        ConfigError::new(format!(
            "{file}: no cloud '{cloud}' (there is {known}): set OS_CLOUD to one of these, or add it"
        ))
        .unspecified()
    };
    if let Some(cloud) = named {
        let there = found.clouds.contains_key(&cloud);
        return if there { Ok(cloud) } else { Err(unknown(&cloud)) };
    }
    if found.clouds.contains_key(USUAL) {
        return Ok(USUAL.to_owned());
    }
    match known[..] {
        [] => Err(unknown(USUAL)),
        [only] => Ok(only.clone()),
        [_, _, ..] => {
            let known = names(&known);
            let text = format!("{file}: which cloud of {known}: set OS_CLOUD to one of these");
            Err(ConfigError::new(text).unspecified())
        }
    }
}

/// The file that a variable names, or else those in the directories.
fn places(named: Option<&str>, directories: &[PathBuf], stem: &str) -> Vec<PathBuf> {
    if let Some(file) = named {
        return vec![PathBuf::from(file)];
    }
    let endings = ["yaml", "yml", "json"];
    let in_each = |directory: &PathBuf| endings.map(|end| directory.join(format!("{stem}.{end}")));
    directories.iter().flat_map(in_each).collect()
}

/// The first readable file, and the first unreadable one before it. That is skipped as in OpenStack's client, but with a
/// warning.
fn first(
    sources: &Sources<'_>,
    places: &[PathBuf],
) -> Result<(Option<Document>, Option<ConfigError>), ConfigError> {
    let mut closed = None;
    for file in places {
        match sources.read(file) {
            Ok(content) => {
                let open_to_others = content.mode.is_some_and(|mode| mode & 0o004 != 0);
                let value = parse(file, &content.bytes)?;
                let document = Document { file: file.clone(), value, open_to_others };
                return Ok((Some(document), closed));
            }
            Err(error) if is_absent(&error) => {}
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                closed.get_or_insert(unreadable(file, error));
            }
            Err(error) => return Err(unreadable(file, error)),
        }
    }
    Ok((None, closed))
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

fn parse(file: &Path, bytes: &[u8]) -> Result<Value, ConfigError> {
    let text = std::str::from_utf8(bytes).map_err(|_cause| malformed(file, "not UTF-8"))?;
    serde_saphyr::from_str(text).map_err(|error| {
        // The parser's message has an excerpt, which may be a password.
        let at = error.location();
        let at = at.map(|at| format!(", at line {} column {}", at.line(), at.column()));
        malformed(file, &format!("no YAML{}", at.unwrap_or_default()))
    })
}

fn clouds(document: Document) -> Result<Map<String, Value>, ConfigError> {
    let mut value = document.value;
    match value.get_mut("clouds").map(Value::take) {
        Some(Value::Object(clouds)) => Ok(clouds),
        Some(Value::Null) | None if value.is_null() || value.is_object() => Ok(Map::new()),
        Some(_) | None => {
            Err(malformed(&document.file, "'clouds' is no mapping of names to clouds"))
        }
    }
}

/// Merges one tree into another.
fn merge(under: &mut Value, over: Value) {
    match (under, over) {
        (Value::Object(under), Value::Object(over)) => {
            for (key, value) in over {
                merge(under.entry(key).or_insert(Value::Null), value);
            }
        }
        (under, over) => *under = over,
    }
}

fn has_secret(value: &Value) -> bool {
    let Value::Object(map) = value else {
        return false;
    };
    map.iter().any(|(key, value)| {
        let secret = key.contains("password") || key.contains("secret") || key == "token";
        secret || has_secret(value)
    })
}

fn no_file(cloud: Option<&str>, places: &[PathBuf]) -> ConfigError {
    let cloud = cloud.map(|cloud| format!(" for cloud '{cloud}'")).unwrap_or_default();
    let places: Vec<String> = places.iter().map(|place| place.display().to_string()).collect();
    let places = match &places[..] {
        [] => "no directory at all".to_owned(),
        places => places.join(", "),
    };
    ConfigError::new(format!(
        "no clouds.yaml{cloud} in {places}: put one there, or set OS_CLIENT_CONFIG_FILE to it, \
         or set OS_AUTH_URL and its like"
    ))
}

fn unreadable(file: &Path, source: io::Error) -> ConfigError {
    let file = file.display();
    ConfigError::new(format!("{file}: cannot be read: check its path and permissions"))
        .caused_by(source)
}

/// An error with the position of a syntax error, but without the text, which may be secret.
fn malformed(file: &Path, problem: &str) -> ConfigError {
    ConfigError::new(format!("{}: {problem}: correct it", file.display()))
}

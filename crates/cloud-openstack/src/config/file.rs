//! Finding and reading clouds.yaml and secure.yaml.

use super::Sources;
use crate::error::Error;
use serde_json::{Map, Value};
use std::io;
use std::path::{Path, PathBuf};

/// The cloud that is meant where none is named.
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

/// Reads the first clouds.yaml there is, with what the first secure.yaml adds to it.
///
/// The cloud is for the error if there is none.
pub(super) fn find(sources: &Sources<'_>, cloud: Option<&str>) -> Result<Found, Error> {
    let places = places(sources, "OS_CLIENT_CONFIG_FILE", "clouds");
    let (public, closed) = first(sources, &places)?;
    let Some(public) = public else {
        let none = || Error::NoFile { cloud: cloud.map(str::to_owned), looked: places };
        return Err(closed.unwrap_or_else(none));
    };
    let (secure, secure_closed) =
        first(sources, &self::places(sources, "OS_CLIENT_SECURE_FILE", "secure"))?;
    if let (None, Some(file)) = (&secure, sources.variable("OS_CLIENT_SECURE_FILE")) {
        let source = io::Error::from(io::ErrorKind::NotFound);
        let none = || Error::Unreadable { file: file.into(), source };
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

/// The cloud to use, which is one that there is.
pub(super) fn choose(found: &Found, named: Option<String>) -> Result<String, Error> {
    let known = || found.clouds.keys().cloned().collect::<Vec<_>>();
    let file = || found.file.clone();
    if let Some(cloud) = named {
        let there = found.clouds.contains_key(&cloud);
        return if there {
            Ok(cloud)
        } else {
            Err(Error::UnknownCloud { file: file(), cloud, known: known() })
        };
    }
    if found.clouds.contains_key(USUAL) {
        return Ok(USUAL.to_owned());
    }
    match &known()[..] {
        [] => Err(Error::UnknownCloud { file: file(), cloud: USUAL.to_owned(), known: vec![] }),
        [only] => Ok(only.clone()),
        [_, _, ..] => Err(Error::ManyClouds { file: file(), known: known() }),
    }
}

/// The file that a variable names, and no other; else those in the directories.
fn places(sources: &Sources<'_>, variable: &str, stem: &str) -> Vec<PathBuf> {
    if let Some(file) = sources.variable(variable) {
        return vec![PathBuf::from(file)];
    }
    let endings = ["yaml", "yml", "json"];
    let in_each = |directory: &PathBuf| endings.map(|end| directory.join(format!("{stem}.{end}")));
    sources.directories.iter().flat_map(in_each).collect()
}

/// The first that there is, and the first before it that we may not read: that one is passed over,
/// as OpenStack's client does, but not without a word.
fn first(
    sources: &Sources<'_>,
    places: &[PathBuf],
) -> Result<(Option<Document>, Option<Error>), Error> {
    let mut closed = None;
    for file in places {
        let unreadable = |source| Error::Unreadable { file: file.clone(), source };
        match (sources.read)(file) {
            Ok(content) => {
                let open_to_others = content.open_to_others;
                let value = parse(file, &content.bytes)?;
                let document = Document { file: file.clone(), value, open_to_others };
                return Ok((Some(document), closed));
            }
            Err(error) if is_absent(&error) => {}
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                closed.get_or_insert(unreadable(error));
            }
            Err(error) => return Err(unreadable(error)),
        }
    }
    Ok((None, closed))
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

fn parse(file: &Path, bytes: &[u8]) -> Result<Value, Error> {
    let malformed = |problem: String| Error::Malformed { file: file.to_owned(), problem };
    let text = std::str::from_utf8(bytes).map_err(|_cause| malformed("not UTF-8".to_owned()))?;
    serde_saphyr::from_str(text).map_err(|error| {
        // The reader's own words come with an excerpt, and that may be a password.
        malformed(match error.location() {
            Some(at) => format!("no YAML, at line {} column {}", at.line(), at.column()),
            None => "no YAML".to_owned(),
        })
    })
}

fn clouds(document: Document) -> Result<Map<String, Value>, Error> {
    let mut value = document.value;
    match value.get_mut("clouds").map(Value::take) {
        Some(Value::Object(clouds)) => Ok(clouds),
        Some(Value::Null) | None if value.is_null() || value.is_object() => Ok(Map::new()),
        Some(_) | None => {
            let problem = "'clouds' is no mapping of names to clouds".to_owned();
            Err(Error::Malformed { file: document.file, problem })
        }
    }
}

/// Lays one tree over another.
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

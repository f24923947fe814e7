//! Names made into ids, each looked up once, and refused when they mean more than one thing.

use crate::api::{Api, join, with_query};
use crate::flavor;
use crate::wire::{GlanceImage, ImagesBody, Named};
use cloud_core::http::{Method, Request};
use cloud_core::{Error, ErrorKind, Operation, Result};
use serde_json::Value;
use std::collections::BTreeMap;
use tokio::sync::Mutex;

/// What a name may be the name of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Flavor,
    Image,
    Network,
    Port,
    SecurityGroup,
    ServerGroup,
}

impl Kind {
    fn word(self) -> &'static str {
        match self {
            Self::Flavor => "flavor",
            Self::Image => "image",
            Self::Network => "network",
            Self::Port => "port",
            Self::SecurityGroup => "security group",
            Self::ServerGroup => "server group",
        }
    }
}

/// Ids by name, as far as they were looked up; what was not found is looked up again.
#[derive(Debug, Default)]
pub(crate) struct Resolver {
    // Held while a name is looked up, so that a thousand launches look once.
    known: Mutex<BTreeMap<(Kind, String), String>>,
}

impl Resolver {
    /// The id of what has this name or id.
    pub(crate) async fn id(&self, api: &Api, kind: Kind, wanted: &str) -> Result<String> {
        // A flavor may have any text for an id.
        if kind != Kind::Flavor && is_uuid(wanted) {
            return Ok(wanted.to_owned());
        }
        let mut known = self.known.lock().await;
        let key = (kind, wanted.to_owned());
        if let Some(id) = known.get(&key) {
            return Ok(id.clone());
        }
        let candidates = candidates(api, kind, wanted).await?;
        let id = pick(kind, wanted, &candidates)?;
        known.insert(key, id.clone());
        Ok(id)
    }
}

async fn candidates(api: &Api, kind: Kind, name: &str) -> Result<Vec<Named>> {
    match kind {
        Kind::Flavor => {
            let flavors = flavor::list(api, Operation::Launch).await?;
            Ok(flavors
                .into_iter()
                .map(|flavor| Named { id: flavor.id, name: flavor.name })
                .collect())
        }
        Kind::Image => {
            let url = join(&api.endpoints.image, &["v2", "images"]);
            let url = with_query(url, &[("name", name)]);
            let images =
                api.list::<ImagesBody>(Operation::Launch, &url, Api::looking(Operation::Launch));
            let named =
                |image: GlanceImage| Named { id: image.id, name: image.name.unwrap_or_default() };
            Ok(images.await?.into_iter().map(named).collect())
        }
        Kind::Network => neutron(api, "networks", name).await,
        Kind::Port => neutron(api, "ports", name).await,
        Kind::SecurityGroup => neutron(api, "security-groups", name).await,
        Kind::ServerGroup => {
            let request = api.compute(Operation::Launch, Method::GET, &["os-server-groups"]);
            api.read(&request).await.map(only_list)
        }
    }
}

async fn neutron(api: &Api, collection: &str, name: &str) -> Result<Vec<Named>> {
    let url = join(&api.endpoints.network, &["v2.0", collection]);
    let url = with_query(url, &[("name", name), ("fields", "id"), ("fields", "name")]);
    let request = Request::new(Operation::Launch, Method::GET, url);
    api.read(&request).await.map(only_list)
}

/// What stands under the one key of a body.
fn only_list(body: BTreeMap<String, Value>) -> Vec<Named> {
    let lists = body.into_values().filter_map(|value| match value {
        Value::Array(items) => Some(items),
        _ => None,
    });
    lists.flatten().filter_map(|item| serde_json::from_value(item).ok()).collect()
}

/// The one that is meant, by id or by name, if it is one.
fn pick(kind: Kind, wanted: &str, candidates: &[Named]) -> Result<String> {
    let fits = |one: &&Named| one.id == wanted || one.name == wanted;
    let fitting: Vec<&Named> = candidates.iter().filter(fits).collect();
    let word = kind.word();
    let message = match fitting[..] {
        [one] => return Ok(one.id.clone()),
        [] => format!("there is no {word} '{wanted}', or none that we may see"),
        [_, _, ..] => {
            let ids: Vec<&str> = fitting.iter().map(|one| one.id.as_str()).collect();
            format!(
                "{} {word}s are called '{wanted}': use one of the ids {}",
                ids.len(),
                ids.join(", ")
            )
        }
    };
    Err(Error::new(ErrorKind::Invalid, Operation::Launch).because(message))
}

/// True for the form that the ids of all but flavors have, with hyphens or without.
pub(crate) fn is_uuid(text: &str) -> bool {
    let hyphens = [8, 13, 18, 23];
    let hex = |at: usize, byte: u8| {
        if hyphens.contains(&at) { byte == b'-' } else { byte.is_ascii_hexdigit() }
    };
    match text.len() {
        36 => text.bytes().enumerate().all(|(at, byte)| hex(at, byte)),
        32 => text.bytes().all(|byte| byte.is_ascii_hexdigit()),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(pairs: &[(&str, &str)]) -> Vec<Named> {
        let pairs = pairs.iter();
        pairs.map(|(id, name)| Named { id: (*id).to_owned(), name: (*name).to_owned() }).collect()
    }

    #[test]
    fn a_name_that_means_two_things_is_refused() {
        let flavors = named(&[("1", "tiny"), ("2", "twin"), ("3", "twin"), ("4", "1")]);
        let picked =
            |wanted| pick(Kind::Flavor, wanted, &flavors).map_err(|error| error.to_string());
        assert_eq!(picked("tiny"), Ok("1".to_owned()));
        assert_eq!(picked("2"), Ok("2".to_owned()));
        let twin = "launch: invalid request: 2 flavors are called 'twin': use one of the ids 2, 3";
        assert_eq!(picked("twin"), Err(twin.to_owned()));
        assert!(picked("1").is_err(), "the id of one and the name of another");
        assert!(picked("tin").is_err(), "a part of a name");
    }

    #[test]
    fn uuids_are_told_from_names() {
        for id in ["5daf5e54-d33d-447f-adb5-aad5c885401b", "ab4c5646ec6e4637a9004c798d97e809"] {
            assert!(is_uuid(id));
        }
        for name in [
            "",
            "net-1",
            "5daf5e54-d33d-447f-adb5-aad5c885401g",
            "5daf5e54xd33d-447f-adb5-aad5c885401b",
        ] {
            assert!(!is_uuid(name), "{name}");
        }
    }
}

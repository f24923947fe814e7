//! Resolves names to ids, each once. Ambiguous names are errors.

use crate::api::{Api, is_gone, join, with_query};
use crate::wire::{GlanceImage, Named};
use crate::{flavor, image};
use cloud_core::http::{Method, Request};
use cloud_core::{ApiOperation, Error, ErrorKind, Result};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The kind of a named resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Flavor,
    Image,
    KeyPair,
    Network,
    Port,
    SecurityGroup,
    ServerGroup,
}

impl Kind {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Flavor => "flavor",
            Self::Image => "image",
            Self::KeyPair => "key pair",
            Self::Network => "network",
            Self::Port => "port",
            Self::SecurityGroup => "security group",
            Self::ServerGroup => "server group",
        }
    }

    /// True if it belongs to Neutron.
    pub(crate) fn is_neutrons(self) -> bool {
        match self {
            Self::Network | Self::Port | Self::SecurityGroup => true,
            Self::Flavor | Self::Image | Self::KeyPair | Self::ServerGroup => false,
        }
    }
}

/// A cache of ids by name. Failed lookups are repeated.
#[derive(Debug, Default)]
pub(crate) struct Resolver {
    names: Mutex<BTreeMap<(Kind, String), Arc<Name>>>,
}

/// A cached name. It is locked during the lookup, so that a thousand launches look it up once, without blocking other
/// names.
#[derive(Debug, Default)]
struct Name {
    /// Number of lookups that have ended, successfully or not.
    lookups: AtomicU64,
    /// The number and result of the last one.
    last: tokio::sync::Mutex<Option<(u64, Result<String>)>>,
}

impl Resolver {
    /// Resolves a name or id.
    pub(crate) async fn id(
        &self,
        api: &Api,
        operation: ApiOperation,
        kind: Kind,
        wanted: &str,
    ) -> Result<String> {
        // The id of a flavor may be any text.
        if kind != Kind::Flavor
            && let Some(id) = uuid(wanted)
        {
            return Ok(id);
        }
        let name = Arc::clone(self.lock().entry((kind, wanted.to_owned())).or_default());
        let look = || async {
            let candidates = candidates(api, operation, kind, wanted).await?;
            pick(operation, kind, wanted, &candidates)
        };
        name.get(look).await
    }

    /// Removes a name from the cache, because its resource may be gone.
    pub(crate) fn forget(&self, kind: Kind, wanted: &str) {
        self.lock().remove(&(kind, wanted.to_owned()));
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<(Kind, String), Arc<Name>>> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Name {
    async fn get<F: Future<Output = Result<String>>>(
        &self,
        look: impl FnOnce() -> F,
    ) -> Result<String> {
        let seen = self.lookups.load(Ordering::Acquire);
        let mut last = self.last.lock().await;
        match &*last {
            Some((_, Ok(id))) => return Ok(id.clone()),
            // A lookup that failed while this call waited counts for it, too.
            Some((lookup, Err(error))) if *lookup > seen => return Err(error.clone()),
            Some((_, Err(_))) | None => {}
        }
        let outcome = look().await;
        let lookup = self.lookups.fetch_add(1, Ordering::AcqRel).saturating_add(1);
        *last = Some((lookup, outcome.clone()));
        outcome
    }
}

/// The id of what has this name or id, looked up now, even if it is an id: launches leave those to Nova. Not for images,
/// which Glance does not find by an id in the place of a name.
pub(crate) async fn find(
    api: &Api,
    operation: ApiOperation,
    kind: Kind,
    wanted: &str,
) -> Result<String> {
    let id = match kind {
        Kind::Network | Kind::Port | Kind::SecurityGroup | Kind::ServerGroup => uuid(wanted),
        // A flavor may have any text for an id, and a key pair has a name alone.
        Kind::Flavor | Kind::Image | Kind::KeyPair => None,
    };
    let wanted = id.as_deref().unwrap_or(wanted);
    pick(operation, kind, wanted, &candidates(api, operation, kind, wanted).await?)
}

async fn candidates(
    api: &Api,
    operation: ApiOperation,
    kind: Kind,
    name: &str,
) -> Result<Vec<Named>> {
    match kind {
        Kind::Flavor => {
            let flavors = flavor::list(api, operation).await?;
            Ok(flavors
                .into_iter()
                .map(|flavor| Named { id: flavor.id, name: flavor.name, ..Named::default() })
                .collect())
        }
        Kind::Image => {
            let images = image::found(api, operation, &[("name", &image::exactly(name))]).await?;
            let named = |image: GlanceImage| {
                let name = image.name.unwrap_or_default();
                Named { id: image.id, name, ..Named::default() }
            };
            Ok(images.into_iter().map(named).collect())
        }
        Kind::Network => neutron(api, operation, "networks", name).await,
        Kind::Port => neutron(api, operation, "ports", name).await,
        Kind::SecurityGroup => {
            let groups = neutron(api, operation, "security-groups", name).await?;
            Ok(own_first(groups, api.project.as_deref()))
        }
        Kind::KeyPair => key_pair(api, operation, name).await,
        Kind::ServerGroup => {
            let request = api.compute(operation, Method::GET, &["os-server-groups"]);
            api.read(&request).await.map(only_list)
        }
    }
}

async fn neutron(
    api: &Api,
    operation: ApiOperation,
    collection: &str,
    name: &str,
) -> Result<Vec<Named>> {
    let key = if uuid(name).is_some() { "id" } else { "name" };
    let url = join(&api.endpoints.network, &["v2.0", collection]);
    let fields = [("fields", "id"), ("fields", "name"), ("fields", "project_id")];
    let url = with_query(with_query(url, &[(key, name)]), &fields);
    let request = Request::new(operation, Method::GET, url);
    api.read(&request).await.map(only_list)
}

/// Prefers resources of the project, like Nova for security groups: an administrator sees a `default` group in each
/// project. Networks of other projects are shared on purpose.
fn own_first(groups: Vec<Named>, project: Option<&str>) -> Vec<Named> {
    let is_own = |group: &Named| project.is_some() && group.project_id.as_deref() == project;
    if groups.iter().any(is_own) { groups.into_iter().filter(is_own).collect() } else { groups }
}

async fn key_pair(api: &Api, operation: ApiOperation, name: &str) -> Result<Vec<Named>> {
    let request = api.compute(operation, Method::GET, &["os-keypairs", name]).on(name);
    match api.read::<Value>(&request).await {
        Ok(_) => Ok(vec![Named { name: name.to_owned(), ..Named::default() }]),
        Err(error) if is_gone(&error) => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// The value of the single key of a body.
fn only_list(body: BTreeMap<String, Value>) -> Vec<Named> {
    let lists = body.into_values().filter_map(|value| match value {
        Value::Array(items) => Some(items),
        _ => None,
    });
    lists.flatten().filter_map(|item| serde_json::from_value(item).ok()).collect()
}

/// The single match, by id or by name.
fn pick(operation: ApiOperation, kind: Kind, wanted: &str, candidates: &[Named]) -> Result<String> {
    let fits = |one: &&Named| one.id == wanted || one.name == wanted;
    let fitting: Vec<&Named> = candidates.iter().filter(fits).collect();
    let word = kind.word();
    let message = match fitting[..] {
        [one] => return Ok(one.id.clone()),
        [] => format!("no {word} '{wanted}' is visible to this user"),
        [_, _, ..] => {
            let ids: Vec<&str> = fitting.iter().map(|one| one.id.as_str()).collect();
            format!(
                "{} {word}s are called '{wanted}': use one of the ids {}",
                ids.len(),
                ids.join(", ")
            )
        }
    };
    Err(Error::new(ErrorKind::Invalid, operation).because(message))
}

/// Normalizes an id to OpenStack's format: lower case, with hyphens. None for a text that is not a UUID.
pub(crate) fn uuid(text: &str) -> Option<String> {
    let hyphens = [8, 13, 18, 23];
    let digits: String = match text.len() {
        36 if hyphens.iter().all(|at| text.as_bytes().get(*at) == Some(&b'-')) => {
            text.replace('-', "")
        }
        32 => text.to_owned(),
        _ => return None,
    };
    if digits.len() != 32 || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let mut id = digits.to_lowercase();
    for at in hyphens {
        id.insert(at, '-');
    }
    Some(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(pairs: &[(&str, &str)]) -> Vec<Named> {
        let named = |&(id, name): &(&str, &str)| Named {
            id: id.to_owned(),
            name: name.to_owned(),
            project_id: None,
        };
        pairs.iter().map(named).collect()
    }

    #[test]
    fn a_name_that_means_two_things_is_refused() {
        let flavors = named(&[("1", "tiny"), ("2", "twin"), ("3", "twin"), ("4", "1")]);
        let picked = |wanted| {
            pick(ApiOperation::Launch, Kind::Flavor, wanted, &flavors)
                .map_err(|error| error.to_string())
        };
        assert_eq!(picked("tiny"), Ok("1".to_owned()));
        assert_eq!(picked("2"), Ok("2".to_owned()));
        let twin = "launch: invalid request: 2 flavors are called 'twin': use one of the ids 2, 3";
        assert_eq!(picked("twin"), Err(twin.to_owned()));
        assert!(picked("1").is_err(), "the id of one and the name of another");
        assert!(picked("tin").is_err(), "a part of a name");
    }

    #[test]
    fn a_security_group_of_the_project_goes_before_those_of_others() {
        let group = |id: &str, project: &str| Named {
            id: id.to_owned(),
            name: "default".to_owned(),
            project_id: Some(project.to_owned()),
        };
        let (mine, again) = (group("1", "p"), group("2", "p"));
        let (theirs, others) = (group("3", "q"), group("4", "r"));
        let found = |groups: &[&Named], project| {
            let groups = groups.iter().map(|&group| group.clone()).collect();
            let groups = own_first(groups, project);
            pick(ApiOperation::Launch, Kind::SecurityGroup, "default", &groups).ok()
        };
        assert_eq!(found(&[&theirs, &mine, &others], Some("p")).as_deref(), Some("1"));
        assert_eq!(found(&[&mine, &again, &theirs], Some("p")), None);
        assert_eq!(found(&[&theirs], Some("p")).as_deref(), Some("3"), "one that is shared");
        assert_eq!(found(&[&theirs, &others], Some("p")), None);
        assert_eq!(found(&[&theirs, &mine], None), None);
    }

    #[test]
    fn an_id_is_brought_into_the_form_that_nova_shows() {
        let shown = "5daf5e54-d33d-447f-adb5-aad5c885401b";
        for text in
            [shown, "5DAF5E54-D33D-447F-ADB5-AAD5C885401B", "5daf5e54d33d447fadb5aad5c885401b"]
        {
            assert_eq!(uuid(text).as_deref(), Some(shown), "{text}");
        }
        for name in [
            "",
            "net-1",
            "5daf5e54-d33d-447f-adb5-aad5c885401g",
            "5daf5e54xd33d-447f-adb5-aad5c885401b",
            "5daf5e54-d33d-447f-adb5-aad5c88540-b",
            "5daf5e54d33d447fadb5aad5c885401ä",
        ] {
            assert_eq!(uuid(name), None, "{name}");
        }
    }

    #[tokio::test]
    async fn one_failed_lookup_serves_all_who_wait_for_it() {
        let (name, lookups) = (Name::default(), AtomicU64::new(0));
        let look = |found: bool| {
            let lookups = &lookups;
            name.get(move || async move {
                lookups.fetch_add(1, Ordering::SeqCst);
                tokio::task::yield_now().await;
                let refused = || Error::new(ErrorKind::Invalid, ApiOperation::Launch);
                found.then(|| "id".to_owned()).ok_or_else(refused)
            })
        };
        let (a, b, c) = tokio::join!(look(false), look(false), look(false));
        assert!(a.is_err() && b.is_err() && c.is_err());
        assert_eq!(lookups.load(Ordering::SeqCst), 1, "one for all three");
        assert_eq!(look(true).await.unwrap(), "id", "who comes later looks again");
        assert_eq!(look(false).await.unwrap(), "id", "what was found is remembered");
        assert_eq!(lookups.load(Ordering::SeqCst), 2);
    }
}

//! Replays recorded responses of a real OpenStack.

use crate::classify::classify;
use crate::page::{More, Page as _};
use crate::server;
use crate::wire::{
    CreatedBody, GlanceImage, ImagesBody, LimitsBody, ServerBody, ServersBody, TokenBody,
    VersionBody, moment,
};
use cloud_core::http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use cloud_core::{ErrorKind, Instance, InstanceState};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::PathBuf;

/// The expected result of a recorded response.
enum Expected {
    /// An error of this kind, with this text.
    Error(ErrorKind, &'static str),
    /// A server in this state, with a fault of this kind, if any.
    Server(InstanceState, Option<ErrorKind>),
    /// A number of servers, and whether there are more.
    Servers(usize, bool),
    Token,
    Version(&'static str),
    Created,
    Image,
    Images,
    Limits,
    /// A response whose body is not read.
    Unread,
}

use Expected::{Created, Error, Image, Images, Limits, Server, Servers, Token, Unread, Version};
use InstanceState::{Failed, Pending, Running, Terminating};

const WHO: &str = "requires authentication";

#[rustfmt::skip]
const TABLE: &[(&str, Expected)] = &[
    ("01-auth-password", Token),
    ("02-auth-password-wrong-401", Error(ErrorKind::Unauthenticated, WHO)),
    ("03-create-application-credential", Unread),
    ("04-auth-application-credential", Token),
    ("05-auth-application-credential-wrong-401", Error(ErrorKind::Unauthenticated, WHO)),
    ("06-auth-application-credential-by-name", Token),
    ("07-nova-version-discovery", Version("2.104")),
    ("10-glance-get-image", Image),
    ("11-glance-list-images-by-name", Images),
    ("12-glance-get-image-404", Error(ErrorKind::NotFound, "No image found")),
    ("20-server-create-202", Created),
    ("21-server-get-building", Server(Pending, None)),
    ("22-server-get-active", Server(Running, None)),
    ("23-server-get-active-mv2.1", Server(Running, None)),
    ("24-servers-detail-tags", Servers(1, false)),
    ("25-servers-detail-tags-any-paged", Servers(1, true)),
    ("26-servers-detail-metadata-filter-nonadmin", Servers(2, false)),
    ("27-servers-detail-metadata-filter-admin", Error(ErrorKind::Invalid, "Invalid filter field")),
    ("28-servers-detail-name-regex", Servers(1, false)),
    ("29-neutron-ports-by-device", Unread),
    ("30-server-os-interface", Unread),
    ("40-rebuild-202", Server(Pending, None)),
    ("41-server-get-rebuilding", Server(Pending, None)),
    ("42-rebuild-while-rebuilding-409", Error(ErrorKind::Conflict, "rebuild_spawning")),
    ("43-reboot-while-rebuilding-409", Error(ErrorKind::Conflict, "Cannot 'reboot'")),
    ("44-server-get-after-rebuild", Server(Running, None)),
    ("45-reboot-soft-202", Unread),
    ("46-reboot-hard-202", Unread),
    ("47-rebuild-paused-409", Error(ErrorKind::Conflict, "paused")),
    ("48-rebuild-unknown-image-400", Error(ErrorKind::Invalid, "image")),
    ("49-instance-actions", Unread),
    ("50-limits", Limits),
    ("51-quota-set-detail", Unread),
    ("52-server-create-quota-instances-403", Error(ErrorKind::Quota, "Quota exceeded for instances")),
    ("53-server-create-quota-cores-403", Error(ErrorKind::Quota, "Quota exceeded for cores")),
    ("54-server-create-neutron-port-quota-403", Error(ErrorKind::Quota, "Maximum number of ports")),
    ("60-server-create-novalidhost-202", Created),
    ("61-server-get-novalidhost-fault", Server(Failed, Some(ErrorKind::Capacity))),
    ("62-reboot-error-server-409", Error(ErrorKind::Conflict, "vm_state error")),
    ("63-rebuild-error-server-never-scheduled", Error(ErrorKind::Conflict, "invalid state")),
    ("64-server-get-spawn-fault", Server(Failed, Some(ErrorKind::Unavailable))),
    ("65-servers-detail-status-error", Servers(2, false)),
    ("66-server-create-unknown-image-400", Error(ErrorKind::Invalid, "image")),
    ("67-server-create-unknown-flavor-400", Error(ErrorKind::Invalid, "Flavor nope")),
    ("68-server-create-unknown-network-400", Error(ErrorKind::Invalid, "Network")),
    ("69-server-create-schema-400", Error(ErrorKind::Invalid, "Additional properties")),
    ("70-microversion-too-new-406", Error(ErrorKind::Unsupported, "maximum is 2.104")),
    ("80-server-delete-204", Unread),
    ("81-server-get-deleting", Server(Terminating, None)),
    ("82-server-delete-again-while-deleting", Unread),
    ("83-reboot-while-deleting-409", Error(ErrorKind::Conflict, "deleting")),
    ("84-server-get-deleted-404", Error(ErrorKind::NotFound, "could not be found")),
    ("85-server-delete-deleted-404", Error(ErrorKind::NotFound, "could not be found")),
    ("86-neutron-ports-after-delete", Unread),
    ("90-nova-no-token-401", Error(ErrorKind::Unauthenticated, WHO)),
    ("91-nova-garbage-token-401", Error(ErrorKind::Unauthenticated, WHO)),
    ("92-nova-expired-token-401", Error(ErrorKind::Unauthenticated, WHO)),
    ("93-glance-expired-token-401", Error(ErrorKind::Unauthenticated, "could not verify")),
    ("94-neutron-expired-token-401", Error(ErrorKind::Unauthenticated, WHO)),
    ("95-keystone-expired-token-401", Error(ErrorKind::Unauthenticated, WHO)),
    ("96-token-revoke-204", Unread),
    ("97-nova-revoked-token-cached", Unread),
    ("98-keystone-validate-own-token", Token),
];

fn directory() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/wire")
}

fn recorded(name: &str) -> Response {
    let text = std::fs::read_to_string(directory().join(format!("{name}.http"))).unwrap();
    let (_, response) = text.split_once("<<< RESPONSE").unwrap();
    let (_, response) = response.split_once('\n').unwrap();
    let (head, rest) = response.split_once("\n\n").unwrap_or((response, ""));
    let body = rest.split("\n--- response body, pretty").next().unwrap_or_default().trim();
    let mut lines = head.lines();
    let status: u16 = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
    let pairs = lines.filter_map(|line| line.split_once(": "));
    let headers: HeaderMap = pairs
        .map(|(name, value)| {
            let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
            (name, HeaderValue::from_str(value).unwrap())
        })
        .collect();
    let status = StatusCode::from_u16(status).unwrap();
    Response { status, headers, body: body.to_owned().into(), request_id: None }
}

fn read<T: DeserializeOwned>(response: &Response, name: &str) -> T {
    serde_json::from_slice(&response.body).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn instance(response: &Response, name: &str) -> Instance {
    server::instance(read::<ServerBody>(response, name).server, &server::Primary::Any)
}

#[test]
fn every_recorded_answer_is_in_the_table() {
    let files = std::fs::read_dir(directory()).unwrap();
    let files: BTreeSet<String> =
        files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
    let table: BTreeSet<String> = TABLE.iter().map(|(name, _)| format!("{name}.http")).collect();
    assert_eq!(files, table);
    assert_eq!(files.len(), 63);
}

#[test]
fn every_recorded_answer_is_read_as_the_table_says() {
    for (name, expected) in TABLE {
        let response = recorded(name);
        let is_error = matches!(expected, Error(..));
        assert_eq!(response.status.is_success(), !is_error, "{name}");
        match expected {
            Error(kind, words) => {
                let classification = classify(&response);
                assert_eq!(classification.kind, *kind, "{name}");
                assert!(
                    classification.message.contains(words),
                    "{name}: {}",
                    classification.message
                );
            }
            Server(state, fault) => {
                let seen = instance(&response, name);
                let kind = seen.fault.map(|fault| fault.kind);
                assert_eq!((&seen.state, kind), (state, *fault), "{name}");
                assert!(seen.created.is_some(), "{name}");
            }
            Servers(count, more) => {
                let (servers, next) = read::<ServersBody>(&response, name).split();
                assert_eq!((servers.len(), next == More::Yes), (*count, *more), "{name}");
            }
            Token => {
                let facts = read::<TokenBody>(&response, name).token;
                let moments = (moment(&facts.expires_at), moment(&facts.issued_at));
                assert!(
                    matches!(moments, (Some(expires), Some(issued)) if expires > issued),
                    "{name}"
                );
                assert!(facts.project.is_some() && facts.catalog.len() == 5, "{name}");
            }
            Version(newest) => {
                assert_eq!(read::<VersionBody>(&response, name).version.version, *newest);
            }
            Created => assert_eq!(read::<CreatedBody>(&response, name).server.id.len(), 36),
            Image => assert_eq!(read::<GlanceImage>(&response, name).status, "active"),
            Images => assert_eq!(read::<ImagesBody>(&response, name).split().0.len(), 1),
            Limits => {
                let absolute = read::<LimitsBody>(&response, name).limits.absolute;
                assert_eq!(absolute.get("maxTotalInstances"), Some(&10));
            }
            Unread => {
                let json = serde_json::from_slice::<Value>(&response.body);
                assert!(response.body.is_empty() || json.is_ok(), "{name}");
            }
        }
    }
}

#[test]
fn a_server_is_read_whole() {
    let seen = instance(&recorded("22-server-get-active"), "22");
    assert_eq!(seen.name.as_str(), "n1");
    assert_eq!(seen.tags.get("slurm_cluster"), Some("a"));
    assert_eq!(seen.tags.get("cluster-a"), Some(""), "a tag without a value");
    assert_eq!(seen.shape.as_ref().map(cloud_core::ShapeName::as_str), Some("m1.tiny"));
    assert_eq!(seen.zone.as_ref().map(cloud_core::Zone::as_str), Some("nova"));
    assert!(seen.image.is_some() && seen.address.is_some());
}

#[test]
fn a_rebuild_that_shows_its_new_image_is_not_over() {
    let before = instance(&recorded("41-server-get-rebuilding"), "41");
    let after = instance(&recorded("44-server-get-after-rebuild"), "44");
    assert_eq!(before.image, after.image);
    assert_eq!((before.state, after.state), (Pending, Running));
}

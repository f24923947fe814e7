//! A cloud on loopback that answers what no real one can be made to.

mod cells;
mod fake;
mod networks;
mod versions;

use cloud_core::{
    ErrorKind, ImageFilter, ImageId, ImageName, InstanceFilter, InstanceName, InstanceSpec,
    InstanceState, Provider as _, Reboot, ShapeName, Tags,
};
use cloud_openstack::{ConnectSettings, LaunchOptions, Nic};
use fake::{Fake, IMAGE, PORT, SERVER, by_token, id, no_such_server, nothing, server};
use serde_json::{Value, json};

#[tokio::test]
async fn a_404_that_is_not_novas_does_not_make_a_server_gone() {
    let fake = Fake::new("2.95", |_| (404, "<html>no such page</html>".to_owned())).await;
    let provider = fake.provider(&[]).await;
    let error = provider.get(&id()).await.expect_err("no server");
    assert_eq!(error.kind(), ErrorKind::Protocol, "{error}");
    let error = provider.addresses(&[id()]).await.expect_err("no server");
    assert_eq!(error.kind(), ErrorKind::Protocol, "{error}");
    let image = ImageId::new(IMAGE);
    let refused = [
        ("list", provider.list(&InstanceFilter::default()).await.err()),
        ("terminate", provider.terminate(&id()).await.err()),
        ("rebuild", provider.rebuild(&id(), &image).await.err()),
        ("reboot", provider.reboot(&id(), Reboot::Hard).await.err()),
        ("start", provider.start(&id()).await.err()),
        ("snapshot", provider.snapshot(&id(), &ImageName::new("s")).await.err()),
        ("shapes", provider.shapes().await.err()),
    ];
    for (what, error) in refused {
        let kind = error.as_ref().map(cloud_core::Error::kind);
        assert_eq!(kind, Some(ErrorKind::Protocol), "{what}: {error:?}");
    }
    // Glance has no word of its own for it.
    let error = provider.images(&ImageFilter::default()).await.expect_err("no images");
    assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
    let fake = Fake::new("2.95", |asked| {
        if asked.line.contains("/servers/") { no_such_server() } else { nothing() }
    })
    .await;
    let provider = fake.provider(&[]).await;
    assert_eq!(provider.get(&id()).await.expect_err("gone").kind(), ErrorKind::NotFound);
    assert!(provider.addresses(&[id()]).await.expect("an answer").is_empty());
    provider.terminate(&id()).await.expect("it is gone");
    let error = provider.reboot(&id(), Reboot::Hard).await.expect_err("gone");
    assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
}

#[tokio::test]
async fn a_listing_whose_marker_is_ignored_is_an_error() {
    let fake = Fake::new("2.95", |asked| {
        let stuck = json!({"servers": [server()], "servers_links": [{"rel": "next"}]});
        if asked.line.contains("/servers/detail") { (200, stuck.to_string()) } else { nothing() }
    })
    .await;
    let error = fake.provider(&[]).await.list(&InstanceFilter::default()).await;
    assert_eq!(error.expect_err("half a listing").kind(), ErrorKind::Protocol);
    assert_eq!(fake.asked("GET /compute/v2.1/servers/detail").len(), 2);
}

#[tokio::test]
async fn only_a_list_is_a_list() {
    for body in ["null", "{}", "", r#"{"servers": null}"#, "[]"] {
        let fake = Fake::new("2.95", move |asked| {
            if asked.line.contains("/servers/detail") { (200, body.to_owned()) } else { nothing() }
        })
        .await;
        let error = fake.provider(&[]).await.list(&InstanceFilter::default()).await;
        assert_eq!(error.expect_err(body).kind(), ErrorKind::Protocol, "{body}");
    }
}

/// Each page has a server that no page before it had.
#[tokio::test]
async fn a_listing_without_an_end_is_an_error() {
    let fake = Fake::new("2.95", |asked| {
        let next = asked.line.split_once("marker=s").map_or("0", |(_, rest)| rest);
        let digits = next.split(|c: char| !c.is_ascii_digit()).next().unwrap_or_default();
        let id = format!("s{}", digits.parse::<u32>().unwrap_or_default() + 1);
        let page = json!({"servers": [{"id": id}], "servers_links": [{"rel": "next"}]});
        if asked.line.contains("/servers/detail") { (200, page.to_string()) } else { nothing() }
    })
    .await;
    let error = fake.provider(&[]).await.list(&InstanceFilter::default()).await;
    assert_eq!(error.expect_err("no end").kind(), ErrorKind::Protocol);
    assert_eq!(fake.asked("GET /compute/v2.1/servers/detail").len(), 1000);
}

#[tokio::test]
async fn a_server_whose_metadata_contradicts_its_tag_is_not_ours() {
    let fake = Fake::new("2.95", |asked| {
        let named = |id: &str, cluster: &str| {
            json!({"id": id, "tags": ["cluster=blue"], "metadata": {"cluster": cluster}})
        };
        let both = json!({"servers": [named("ours", "blue"), named("theirs", "red")]});
        if asked.line.contains("/servers/detail") { (200, both.to_string()) } else { nothing() }
    })
    .await;
    let filter = InstanceFilter::tagged(Tags::from([("cluster", "blue")]));
    let listed = fake.provider(&[]).await.list(&filter).await.expect("a listing");
    assert_eq!(listed.iter().map(|it| it.id.as_str()).collect::<Vec<_>>(), ["ours"]);
    let asked = fake.asked("GET /compute/v2.1/servers/detail").pop().expect("a request");
    assert!(asked.line.contains("tags=cluster%3Dblue"), "{}", asked.line);
}

#[tokio::test]
async fn a_shelved_server_is_stopped_and_comes_back_only_where_stopping_is_shelving() {
    let fake = Fake::new("2.95", |asked| match asked.line.as_str() {
        line if line.ends_with("/action") => (202, String::new()),
        line if line.ends_with(SERVER) => {
            let mut shelved = server();
            shelved["status"] = json!("SHELVED_OFFLOADED");
            (200, json!({"server": shelved}).to_string())
        }
        _ => nothing(),
    })
    .await;
    let mut settings = ConnectSettings::default();
    settings.shelve = true;
    let provider = fake.connect_with(&by_token(), settings).await.expect("a connection");
    let state = provider.get(&id()).await.expect("a server").state;
    assert_eq!(state, InstanceState::Stopped);
    provider.stop(&id()).await.expect("a stop");
    provider.start(&id()).await.expect("a start");
    let plain = fake.provider(&[]).await;
    let state = plain.get(&id()).await.expect("a server").state;
    assert_eq!(state, InstanceState::Other("SHELVED_OFFLOADED".to_owned()));
    plain.stop(&id()).await.expect("a stop");
    let actions: Vec<Value> =
        fake.asked("POST /compute").into_iter().map(|asked| asked.body).collect();
    let expected = [json!({"shelve": null}), json!({"unshelve": null}), json!({"os-stop": null})];
    assert_eq!(actions, expected);
}

#[tokio::test]
async fn a_rebuild_by_name_is_refused() {
    let fake = Fake::new("2.95", |asked| match asked.line.as_str() {
        line if line.ends_with("/action") => (202, String::new()),
        line if line.contains("/images?name=in%3A%22in%3Ax%22") => {
            (200, json!({"images": [{"id": IMAGE, "name": "in:x"}]}).to_string())
        }
        line if line.ends_with(SERVER) => (200, json!({"server": server()}).to_string()),
        _ => nothing(),
    })
    .await;
    let provider = fake.provider(&[]).await;
    for image in ["in:x", &IMAGE.replace('-', "")] {
        let error = provider.rebuild(&id(), &ImageId::new(image)).await.expect_err("no id");
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(error.to_string().starts_with(&format!("rebuild {SERVER}: ")), "{error}");
        let resolved = provider.resolve_image(&ImageId::new(image)).await.expect("an image");
        assert_eq!(resolved.as_str(), IMAGE);
        provider.rebuild(&id(), &resolved).await.expect("a rebuild");
    }
    let action = fake.asked("POST /compute").pop().expect("a request");
    assert_eq!(action.body, json!({"rebuild": {"imageRef": IMAGE}}));
    assert!(action.head.contains("openstack-api-version: compute 2.93"), "{}", action.head);
}

/// A reboot without a word about an image wrote the volume anew, and a rebuild that was lost was called done.
#[tokio::test]
async fn the_image_on_a_volume_is_known() {
    let fake = Fake::new("2.95", |asked| {
        let mut volume = server();
        volume["image"] = json!("");
        volume["metadata"] = json!({"cluster": "blue", "boot_image": PORT});
        let shown = json!({"server": volume}).to_string();
        match asked.line.as_str() {
            line if line.ends_with("/action") => (202, String::new()),
            line if line.ends_with(SERVER) => (200, shown),
            _ => nothing(),
        }
    })
    .await;
    let provider = fake.provider(&[]).await;
    let seen = provider.get(&id()).await.expect("a server");
    assert_eq!(seen.image, Some(ImageId::new(PORT)));
    provider.rebuild(&id(), &ImageId::new(IMAGE)).await.expect("a rebuild");
    let action = fake.asked("POST /compute").pop().expect("a request");
    let metadata = json!({"cluster": "blue", "boot_image": IMAGE});
    assert_eq!(action.body, json!({"rebuild": {"imageRef": IMAGE, "metadata": metadata}}));
}

#[tokio::test]
async fn an_old_nova_is_asked_in_its_own_version_and_not_for_volumes() {
    let fake = Fake::new("2.60", |asked| {
        let mut volume = server();
        volume["image"] = json!("");
        let shown = json!({"server": volume}).to_string();
        if asked.line.contains("/servers/") { (200, shown) } else { nothing() }
    })
    .await;
    let provider = fake.provider(&[]).await;
    assert_eq!(provider.warnings().len(), 1, "{:?}", provider.warnings());
    let error = provider.rebuild(&id(), &ImageId::new(IMAGE)).await.expect_err("a volume");
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    let asked = fake.asked("GET /compute/v2.1/servers/").pop().expect("a request");
    assert!(asked.head.contains("openstack-api-version: compute 2.60"), "{}", asked.head);
    assert!(fake.asked("POST /compute").is_empty());
}

#[tokio::test]
async fn an_image_replaced_under_its_name_is_looked_up_again() {
    let fake = Fake::new("2.95", |asked| match asked.line.as_str() {
        line if line.contains("/flavors/detail") => {
            (200, json!({"flavors": [{"id": "1", "name": "tiny"}]}).to_string())
        }
        line if line.contains("/images?") => {
            (200, json!({"images": [{"id": IMAGE, "name": "rocky"}]}).to_string())
        }
        "POST /compute/v2.1/servers" => {
            (400, json!({"badRequest": {"message": "Can not find requested image"}}).to_string())
        }
        _ => nothing(),
    })
    .await;
    let provider = fake.provider(&[Nic::Port(PORT.to_owned())]).await;
    let name = InstanceName::new("vm-1");
    let spec = InstanceSpec::new(name, ShapeName::new("tiny"), ImageId::new("rocky"));
    for _ in 0..2 {
        provider.launch(&spec).await.expect_err("no such image");
    }
    assert_eq!(fake.asked("GET /image/v2/images").len(), 2);
    assert_eq!(fake.asked("GET /compute/v2.1/flavors").len(), 1);
    let create = fake.asked("POST /compute/v2.1/servers").pop().expect("a request");
    assert_eq!(create.body["server"]["networks"], json!([{"port": PORT}]));
}

#[tokio::test]
async fn every_way_to_log_in_is_sent_as_keystone_takes_it() {
    let scope = json!({"project": {"name": "p", "domain": {"id": "default"}}});
    let user = json!({"name": "u", "domain": {"id": "default"}});
    let table = [
        (
            json!({"token": "t0", "project_id": "p1"}),
            json!({"identity": {"methods": ["token"], "token": {"id": "t0"}},
                "scope": {"project": {"id": "p1"}}}),
        ),
        (
            json!({"username": "u", "password": "s", "project_name": "p"}),
            json!({"identity": {"methods": ["password"], "password": {
                "user": {"name": "u", "domain": {"id": "default"}, "password": "s"}}}, "scope": scope}),
        ),
        (
            json!({"application_credential_id": "c1", "application_credential_secret": "s"}),
            json!({"identity": {"methods": ["application_credential"],
                "application_credential": {"id": "c1", "secret": "s"}}}),
        ),
        (
            json!({"application_credential_name": "c", "application_credential_secret": "s", "username": "u"}),
            json!({"identity": {"methods": ["application_credential"],
                "application_credential": {"name": "c", "user": user, "secret": "s"}}}),
        ),
    ];
    let fake = Fake::new("2.95", |_| nothing()).await;
    for (auth, expected) in table {
        fake.connect(&auth, LaunchOptions::default()).await.expect("a connection");
        let asked = fake.asked("POST /identity").pop().expect("a request");
        assert_eq!(asked.body, json!({"auth": expected}));
    }
}

#[tokio::test]
async fn credentials_that_keystone_cannot_use_are_not_called_a_wrong_address() {
    let keystone = json!({"error": {"code": 400, "title": "Bad Request", "message": "Malformed."}});
    let table = [
        (
            keystone.to_string(),
            "cannot make a token of the token: check user, project and domain, and their ids",
        ),
        ("<html>400</html>".to_owned(), "does not answer as Keystone does: check that address"),
    ];
    for (body, words) in table {
        let fake = Fake::new("2.95", move |_| (400, body.clone())).await;
        let error = fake.connect(&by_token(), LaunchOptions::default()).await;
        let error = error.expect_err("no token").to_string();
        assert!(error.ends_with(words), "{error}");
    }
}

//! What a launch asks for, and what never shows.

use cloud_core::{ImageId, Instance, InstanceId, InstanceName, InstanceState, Secret, Tags, Zone};
use hostlist::NodeName;
use provision::plan::{self, Refusal};
use provision::{Cooldowns, Fallback, Fleet, Identity, Place, Roster, Site, World};
use slurmconf::Config;
use std::time::UNIX_EPOCH;

fn node(name: &str) -> NodeName {
    NodeName::new(name).unwrap()
}

fn site() -> Site {
    let mut site = Site::new(Identity::cluster("blue"));
    site.image = Some(ImageId::new("img-1"));
    site.zone_root = Some("AD-".to_owned());
    site.ssh_keys = vec!["ssh-ed25519 SITE".to_owned()];
    site
}

#[test]
fn a_launch_carries_the_tags_that_make_it_ours() {
    let site = site();
    let def = "NodeName=n1 Features=shape=VM.S,ad=2".parse().unwrap();
    let wanted = site.wanted(&node("n1"), &def).unwrap();
    let spec = site.spec(&wanted, &wanted.places[0], 1);
    assert_eq!(spec.tags, Tags::from([("cluster", "blue"), ("type", "compute"), ("node", "n1")]));
    assert_eq!((spec.name.as_str(), spec.zone), ("n1", Some(Zone::new("AD-2"))));
    let launched =
        Instance::launched(InstanceId::new("i-1"), &site.spec(&wanted, &wanted.places[0], 1));
    assert!(site.identity.owns(&launched));
    assert_eq!(site.identity.node_of(&launched), Some(node("n1")));
}

#[test]
fn a_shape_with_graphics_cards_has_its_own_image() {
    let mut site = site();
    site.shape_images.insert("GPU".to_owned(), ImageId::new("img-gpu"));
    for (features, expected) in [
        ("shape=VM.Standard2.1", "img-1"),
        ("shape=VM.GPU3.2", "img-gpu"),
        ("flavor=BM.GPU4.8", "img-gpu"),
        ("shape=VM.GPU3.2,image=img-own", "img-own"),
    ] {
        let text = format!("NodeName=n1 State=CLOUD Features={features}");
        let wanted = site.wanted(&node("n1"), &text.parse().unwrap()).unwrap();
        assert_eq!(wanted.image.as_str(), expected, "{features}");
    }
}

#[test]
fn a_repeat_has_the_same_token_and_another_place_another() {
    let mut site = site();
    let zone = Some(Zone::new("AD-9"));
    site.fallback.push(Fallback { zone, ..Fallback::default() });
    let def = "NodeName=n1 Features=shape=VM.S,ad=2".parse().unwrap();
    let wanted = site.wanted(&node("n1"), &def).unwrap();
    let token = |place: &Place, generation| site.spec(&wanted, place, generation).token.unwrap();
    let [first, second] = &wanted.places[..] else { panic!("{wanted:?}") };
    assert_eq!(token(first, 1), token(first, 1));
    assert_ne!(token(first, 1), token(first, 2));
    assert_ne!(token(first, 1), token(second, 1));
}

#[test]
fn a_key_pair_of_the_features_stands_in_for_the_sites_keys() {
    let mut site = site();
    let def = "NodeName=n1 Features=flavor=m1,keypair=admin".parse().unwrap();
    let unknown = site.wanted(&node("n1"), &def);
    assert_eq!(unknown, Err(Refusal::UnknownKeypair("admin".to_owned())));
    site.keypairs.insert("admin".to_owned(), vec!["ssh-ed25519 ADMIN".to_owned()]);
    let wanted = site.wanted(&node("n1"), &def).unwrap();
    assert_eq!(site.spec(&wanted, &wanted.places[0], 1).ssh_keys, ["ssh-ed25519 ADMIN"]);
    assert_eq!(site.spec(&wanted, &wanted.places[0], 1).keypair.as_deref(), Some("admin"));
}

#[test]
fn a_fallback_decides_for_itself_whether_its_machines_may_be_taken_away() {
    let mut site = site();
    site.preemptible = true;
    site.fallback.push(Fallback { zone: Some(Zone::new("AD-2")), ..Fallback::default() });
    let def = "NodeName=n1 Features=shape=VM.S,ad=2".parse().unwrap();
    let wanted = site.wanted(&node("n1"), &def).unwrap();
    let preemptible: Vec<bool> = wanted.places.iter().map(|place| place.preemptible).collect();
    assert_eq!(preemptible, [true, false]);
    assert!(site.spec(&wanted, &wanted.places[0], 1).preemptible);
}

#[test]
fn only_our_tags_make_an_instance_ours() {
    let tagged = |tags: Tags| {
        let name = InstanceName::new("n1");
        let mut instance = Instance::new(InstanceId::new("i-1"), name, InstanceState::Running);
        instance.tags = tags;
        instance
    };
    let blue = Identity::cluster("blue");
    let none = Identity::by_name();
    let table = [
        (tagged(Tags::new()), false, true),
        (tagged(Tags::from([("cluster", "blue")])), false, false),
        (tagged(Tags::from([("cluster", "green"), ("type", "compute")])), false, false),
        (tagged(Tags::from([("cluster", "blue"), ("type", "mgmt")])), false, false),
        (tagged(Tags::from([("cluster", "blue"), ("type", "compute")])), true, false),
        (tagged(Tags::from([("type", "compute"), ("node", "n1")])), false, true),
    ];
    for (instance, by_tag, by_name) in table {
        assert_eq!(blue.owns(&instance), by_tag, "{:?}", instance.tags);
        assert_eq!(none.owns(&instance), by_name, "{:?}", instance.tags);
    }
}

#[test]
fn what_cloud_init_gets_shows_in_no_plan() {
    let mut site = site();
    site.user_data = Some(Secret::new("munge-key-0815".to_owned()));
    let config = Config::parse("NodeName=n1 State=CLOUD Features=shape=VM.S\n").unwrap();
    let conf = Roster::new(&config);
    let fleet = Fleet::new(&site.identity, &conf, [], true);
    let cooldowns = Cooldowns::new();
    let world = World {
        site: &site,
        conf: &conf,
        fleet: &fleet,
        slurm: None,
        jobs: Some(&[]),
        cooldowns: &cooldowns,
        spending: None,
        now: UNIX_EPOCH,
    };
    let plan = plan::start(&[node("n1")], &[], world);
    assert!(!plan.is_idle());
    let json = serde_json::to_string(&plan).unwrap();
    for text in [plan.to_string(), format!("{plan:?}"), json, format!("{world:?}")] {
        assert!(!text.contains("0815"), "{text}");
    }
}

#[test]
fn a_plan_for_machines_has_lists_where_there_may_be_several() {
    let site = site();
    let config = Config::parse("NodeName=n1 State=CLOUD Features=shape=VM.S\n").unwrap();
    let conf = Roster::new(&config);
    let tagged = |id: &str| {
        let state = InstanceState::Running;
        let mut instance = Instance::new(InstanceId::new(id), InstanceName::new("n1"), state);
        instance.tags = site.identity.tags_of(&node("n1"));
        instance
    };
    let fleet = Fleet::new(&site.identity, &conf, [tagged("i-1"), tagged("i-2")], true);
    let cooldowns = Cooldowns::new();
    let world = World {
        site: &site,
        conf: &conf,
        fleet: &fleet,
        slurm: None,
        jobs: Some(&[]),
        cooldowns: &cooldowns,
        spending: None,
        now: UNIX_EPOCH,
    };
    let json = serde_json::to_value(plan::stop(&[node("n1")], world)).unwrap();
    let step = serde_json::json!({
        "step": "terminate", "nodes": ["n1"], "instances": ["i-1", "i-2"],
    });
    assert_eq!(json["stages"][0]["steps"][0], step);
}

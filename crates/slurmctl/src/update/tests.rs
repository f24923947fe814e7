//! Commands as Slurm takes them.

use super::*;
use hostlist::NodeName;
use proptest::prelude::*;

const OLD: SlurmVersion = SlurmVersion::new(22, 5).patch(8);
const MIDDLE: SlurmVersion = SlurmVersion::new(24, 11).patch(5);
const NEW: SlurmVersion = SlurmVersion::new(26, 5).patch(5);

fn list(text: &str) -> Hostlist {
    text.parse().unwrap()
}

fn line(update: &Update<'_>) -> String {
    update.argv().unwrap().join(" ")
}

fn lines(updates: &[Update<'_>]) -> Vec<String> {
    updates.iter().map(line).collect()
}

fn address(node: &str, address: &str) -> NodeAddress {
    NodeAddress::new(node.parse().unwrap(), address.parse().unwrap())
}

#[test]
fn commands_are_as_slurm_wants_them() {
    let why = Reason::new("cloud: no \"room\"");
    let nodes = list("n[1-2],m");
    let table = [
        (
            Update::states(&nodes, NodeAction::PowerDownForce, Some(&why)),
            "update nodename=n[1-2],m state=power_down_force reason=cloud: no 'room'",
        ),
        (
            Update::states(&nodes, NodeAction::Undrain, None),
            "update nodename=n[1-2],m state=undrain",
        ),
        (
            Update::reboots(&nodes, &why),
            "reboot ASAP nextstate=RESUME reason=cloud: no 'room' n[1-2],m",
        ),
    ];
    for (updates, expected) in table {
        assert_eq!(lines(&updates), [expected]);
    }
    let none = Hostlist::new();
    assert_eq!(lines(&Update::states(&none, NodeAction::Resume, None)), Vec::<String>::new());
    assert_eq!(lines(&Update::addresses(&[], NEW).0), Vec::<String>::new());
}

#[test]
fn a_reason_is_one_argument_whatever_it_holds() {
    let why = Reason::new("a b=c state=down");
    let [update] = &Update::states(&list("n1"), NodeAction::Drain, Some(&why))[..] else {
        panic!("one command")
    };
    let command = update.argv().unwrap();
    assert_eq!(command.last().unwrap(), "reason=a b=c state=down");
    assert_eq!(command.len(), 4);
}

#[test]
fn a_node_called_all_is_not_every_node() {
    let why = Reason::new("x");
    for word in ["ALL", "all", "aLL"] {
        let items = [address(word, "10.0.0.1")];
        let updates = [
            Update::states(&list(word), NodeAction::PowerDownForce, Some(&why)),
            Update::reboots(&list(word), &why),
            Update::addresses(&items, MIDDLE).0,
        ];
        for update in updates.concat() {
            assert_eq!(update.argv().unwrap_err().kind(), ErrorKind::Invalid, "{update:?}");
        }
    }
    // In a longer list it is a name like any other.
    let more = Update::states(&list("all,n1"), NodeAction::Undrain, None);
    assert_eq!(lines(&more), ["update nodename=all,n1 state=undrain"]);
}

#[test]
fn what_comes_after_an_unknown_name_is_asked_for_again_and_nothing_else() {
    let known = list("n[1-20],m");
    let why = Reason::new("x");
    // Sorted as slurmctld does it: what it has done is not done again.
    let table = [
        ("a0,n8,n9", Some("n[8-9]")),
        ("n9,zz,n8", None),
        ("n20,n9z,n3", None),
        ("n3,m,k7,n2", Some("m,n[2-3]")),
        ("n21,n02,n10,n2", Some("n10")),
        ("unknown", None),
        ("n[1-3]", None),
    ];
    for (nodes, expected) in table {
        for update in Update::states(&list(nodes), NodeAction::PowerUp, None) {
            let rest = update.rest(&known).map(|rest| rest.nodes().to_string());
            assert_eq!(rest.as_deref(), expected, "{nodes}");
        }
    }
    let reboot = Update::reboots(&list("n1,zz,n2"), &why).remove(0);
    assert_eq!(reboot.rest(&known).unwrap().nodes().to_string(), "n[1-2]");
    let items = [("n5", "10.0.0.1"), ("zz", "10.0.0.2"), ("n4", "10.0.0.3"), ("y", "10.0.0.4")];
    let items = items.map(|(node, place)| address(node, place));
    let update = Update::addresses(&items, NEW).0.remove(0);
    assert_eq!(line(&update.rest(&known).unwrap()), "update nodename=n4 nodeaddr=10.0.0.3");
}

#[test]
fn addresses_are_told_as_the_version_takes_them() {
    let mut items = vec![address("n1", "10.0.0.9"), address("n2", "10.0.0.10")];
    let plain = "update nodename=n[1-2] nodeaddr=10.0.0.[9-10]";
    assert_eq!(lines(&Update::addresses(&items, OLD).0), [plain]);
    for (item, id) in items.iter_mut().zip(["i-a", "i-b"]) {
        item.instance_id = Some(id.into());
    }
    assert_eq!(lines(&Update::addresses(&items, OLD).0), [plain], "22.05 would refuse it all");
    let single = "update nodename=n1 instanceid=i-a\nupdate nodename=n2 instanceid=i-b\n";
    let (middle, _) = Update::addresses(&items, MIDDLE);
    assert_eq!(lines(&middle), [plain, "--quiet"]);
    assert_eq!(middle[1].input().as_deref(), Some(single));
    let paired = format!("{plain} instanceid=i-a,i-b");
    assert_eq!(lines(&Update::addresses(&items, NEW).0), [paired]);
    let wrong = SlurmVersion::new(22, 5).patch(6);
    let alone = ["update nodename=n1 nodeaddr=10.0.0.9", "update nodename=n2 nodeaddr=10.0.0.10"];
    assert_eq!(lines(&Update::addresses(&items, wrong).0), alone, "it pairs lists wrongly");
}

#[test]
fn every_id_of_a_thousand_is_told_in_one_call() {
    let item = |number: usize| {
        let mut item = address(&format!("n{number}"), "10.0.0.1");
        item.instance_id = Some(format!("i-{number}"));
        item
    };
    let items: Vec<NodeAddress> = (0..1_000).map(item).collect();
    let (updates, _) = Update::addresses(&items, MIDDLE);
    let [_addresses, ids] = &updates[..] else { panic!("two calls") };
    assert_eq!(ids.input().unwrap_or_default().lines().count(), 1_000);
    assert_eq!(Update::addresses(&items, NEW).0.len(), 1);
}

#[test]
fn nodes_with_the_same_comment_share_a_command() {
    let mut items = [1, 2, 3].map(|number| address(&format!("n{number}"), "10.0.0.1"));
    for (item, text) in items.iter_mut().zip(["m1 in a", "m1 in b", "m1 in a"]) {
        item.comment = Some(text.to_owned());
    }
    let expected = [
        "update nodename=n[1,3] nodeaddr=10.0.0.[1,1] comment=m1 in a",
        "update nodename=n2 nodeaddr=10.0.0.1 comment=m1 in b",
    ];
    assert_eq!(lines(&Update::addresses(&items, NEW).0), expected);
}

#[test]
fn nodes_with_and_without_a_name_of_their_own_are_told_apart() {
    let mut items = vec![address("n1", "fd00::1"), address("n2", "fd00::2")];
    items.push(address("n3", "fd00::3"));
    items[1].hostname = Some("h7".parse().unwrap());
    let expected = [
        "update nodename=n[1,3] nodeaddr=fd00::[1,3]",
        "update nodename=n2 nodeaddr=fd00::2 nodehostname=h7",
    ];
    assert_eq!(lines(&Update::addresses(&items, NEW).0), expected);
}

#[test]
fn an_id_that_is_a_list_or_worse_costs_the_id_and_no_address() {
    for id in ["", "a,b", "a[1-2]", "a b", "a\nb", "\"a", "é"] {
        let mut items = [address("n1", "10.0.0.1"), address("n2", "10.0.0.2")];
        items[0].instance_id = Some(id.into());
        items[1].instance_id = Some("i-2".into());
        let (updates, errors) = Update::addresses(&items, MIDDLE);
        let both = "update nodename=n[1-2] nodeaddr=10.0.0.[1-2]";
        assert_eq!(lines(&updates), [both, "--quiet"]);
        assert_eq!(updates[1].input().unwrap(), "update nodename=n2 instanceid=i-2\n");
        let [error] = &errors[..] else { panic!("{errors:?}") };
        assert_eq!(error.kind(), ErrorKind::Invalid, "{id:?}");
        let (updates, errors) = Update::addresses(&items, NEW);
        let alone = "update nodename=n1 nodeaddr=10.0.0.1";
        assert_eq!(lines(&updates), [alone, "update nodename=n2 nodeaddr=10.0.0.2 instanceid=i-2"]);
        assert_eq!(errors.len(), 1);
        let (updates, errors) = Update::addresses(&items, OLD);
        assert_eq!((lines(&updates), errors.len()), (vec![both.to_owned()], 0));
    }
}

#[test]
fn long_names_and_ids_do_not_make_an_argument_too_long() {
    let item = |number: usize| {
        let mut item = address(&format!("{}-{number:04}-x", "n".repeat(57)), "10.0.0.1");
        item.instance_id = Some(format!("{number:04}{}", "i".repeat(251)));
        item
    };
    let items: Vec<NodeAddress> = (0..1_000).map(item).collect();
    let (updates, errors) = Update::addresses(&items, NEW);
    assert!(errors.is_empty(), "{errors:?}");
    assert!(updates.len() > 1 && updates.len() <= 4, "{}", updates.len());
    let mut nodes = Vec::new();
    for update in updates {
        assert!(update.argv().unwrap().iter().all(|word| word.len() <= LONGEST_LIST));
        nodes.extend(update.nodes().to_vec());
    }
    let meant: Vec<String> = items.iter().map(|item| item.node.to_string()).collect();
    assert_eq!(nodes, meant);
}

proptest! {
    #[test]
    fn every_node_is_paired_with_its_own_address(
        items in proptest::collection::vec(("[a-z]{1,3}[0-9]{0,4}", any::<std::net::IpAddr>()), 0..60)
    ) {
        let items: Vec<NodeAddress> = items
            .into_iter()
            .map(|(name, address)| NodeAddress::new(NodeName::new(&name).unwrap(), address))
            .collect();
        let mut pairs = Vec::new();
        for update in Update::addresses(&items, NEW).0 {
            let command = update.argv().unwrap();
            let value = |name: &str| {
                let text = command.iter().find_map(|word| word.strip_prefix(name)).unwrap();
                text.parse::<Hostlist>().unwrap().to_vec()
            };
            pairs.extend(value("nodename=").into_iter().zip(value("nodeaddr=")));
        }
        let meant: Vec<(String, String)> = items
            .iter()
            .map(|item| (item.node.to_string(), item.address.to_string()))
            .collect();
        prop_assert_eq!(pairs, meant);
    }
}

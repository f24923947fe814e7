//! Commands that change several nodes at once.
//!
//! slurmctld goes through a list name by name and stops at the first that it does not know: those
//! before it are changed, those after it are not. Without addresses it sorts the list first.

use crate::{
    Error, ErrorKind, NodeAction, NodeAddress, Reason, Result,
    argv::{Argv, LONGEST_LIST, argv, pieces},
};
use hostlist::Hostlist;
use slurmconf::SlurmVersion;

/// Most nodes in one update: an address may be 39 bytes, and no two need fold.
const MOST_ADDRESSES: usize = 1_000;

/// One command.
#[derive(Clone, Debug)]
pub(crate) enum Update<'a> {
    State {
        nodes: Hostlist,
        to: NodeAction,
        reason: Option<&'a Reason>,
    },
    Reboot {
        nodes: Hostlist,
        reason: &'a Reason,
    },
    /// Nodes that are told the same things, with their ids or without.
    Addresses {
        batch: Vec<&'a NodeAddress>,
        ids: bool,
    },
    Id(&'a NodeAddress),
}

impl<'a> Update<'a> {
    /// A state for all of these.
    pub(crate) fn states(
        nodes: &Hostlist,
        to: NodeAction,
        reason: Option<&'a Reason>,
    ) -> Vec<Self> {
        pieces(nodes).into_iter().map(|nodes| Self::State { nodes, to, reason }).collect()
    }

    /// A reboot of all of these.
    pub(crate) fn reboots(nodes: &Hostlist, reason: &'a Reason) -> Vec<Self> {
        pieces(nodes).into_iter().map(|nodes| Self::Reboot { nodes, reason }).collect()
    }

    /// Addresses in as few commands as the version allows, and what is wrong with some of the ids: a
    /// bad id is not told, but the address of its node is.
    pub(crate) fn addresses(
        addresses: &'a [NodeAddress],
        version: SlurmVersion,
    ) -> (Vec<Self>, Vec<Error>) {
        // These pair names and addresses wrongly, as Slurm's own list of changes says.
        let mispairs = (SlurmVersion::new(22, 5).patch(5)..=SlurmVersion::new(22, 5).patch(7))
            .contains(&version);
        let most = if mispairs { 1 } else { MOST_ADDRESSES };
        let (known, paired) = (version.knows_instance_ids(), version.pairs_instance_ids());
        let has_id = |item: &NodeAddress| known && matches!(instance_id(item), Some(Ok(_)));
        let form = |item: &NodeAddress| (item.hostname.is_some(), paired && has_id(item));
        let mut sorted: Vec<&NodeAddress> = addresses.iter().collect();
        sorted.sort_by_key(|item| form(item));
        let mut updates = Vec::new();
        for alike in sorted.chunk_by(|one, other| form(one) == form(other)) {
            let ids = alike.first().is_some_and(|item| form(item).1);
            for batch in alike.chunks(most) {
                Self::cut(batch, ids, &mut updates);
            }
        }
        if known && !paired {
            updates.extend(addresses.iter().filter(|item| has_id(item)).map(Self::Id));
        }
        let bad = addresses.iter().filter(|_| known).filter_map(|item| instance_id(item)?.err());
        (updates, bad.collect())
    }

    /// The batch, in halves if some argument is too long: names and ids may be of 255 bytes.
    fn cut(batch: &[&'a NodeAddress], ids: bool, updates: &mut Vec<Self>) {
        let update = Self::Addresses { batch: batch.to_vec(), ids };
        let is_long = |words: &Argv| words.iter().any(|word| word.len() > LONGEST_LIST);
        if batch.len() < 2 || !update.argv().as_ref().is_ok_and(is_long) {
            updates.push(update);
            return;
        }
        let (first, second) = batch.split_at(batch.len() / 2);
        Self::cut(first, ids, updates);
        Self::cut(second, ids, updates);
    }

    /// The command line.
    pub(crate) fn argv(&self) -> Result<Argv> {
        match self {
            Self::State { nodes, to, reason } => {
                let mut words =
                    argv(["update", &format!("nodename={nodes}"), &format!("state={to}")]);
                words.extend(reason.map(|reason| format!("reason={reason}")));
                Ok(words)
            }
            Self::Reboot { nodes, reason } => {
                let (reason, nodes) = (format!("reason={reason}"), nodes.to_string());
                Ok(argv(["reboot", "ASAP", "nextstate=RESUME", &reason, &nodes]))
            }
            Self::Addresses { batch, ids } => pairs(batch, *ids),
            Self::Id(item) => {
                let id = instance_id(item).transpose()?.unwrap_or_default();
                Ok(argv([
                    "update",
                    &format!("nodename={}", item.node),
                    &format!("instanceid={id}"),
                ]))
            }
        }
    }

    /// The nodes that it names.
    pub(crate) fn nodes(&self) -> Hostlist {
        match self {
            Self::State { nodes, .. } | Self::Reboot { nodes, .. } => nodes.clone(),
            Self::Addresses { batch, .. } => batch.iter().map(|item| &item.node).collect(),
            Self::Id(item) => [&item.node].into_iter().collect(),
        }
    }

    /// What slurmctld has not done because it does not know some of the names, without those.
    ///
    /// Nothing twice: to power up a node that is powering up runs the program again, and to resume
    /// one that was resumed is refused.
    pub(crate) fn rest(self, known: &Hostlist) -> Option<Self> {
        let is_known = |name: &str| known.contains(name);
        let rest = match self {
            Self::State { nodes, to, reason } => {
                let sorted = nodes.uniq();
                let after = sorted.iter().skip_while(|name| is_known(name));
                Self::State { nodes: after.filter(|name| is_known(name)).collect(), to, reason }
            }
            // Here it looks at all names before it does anything.
            Self::Reboot { nodes, reason } => {
                Self::Reboot { nodes: nodes.iter().filter(|name| is_known(name)).collect(), reason }
            }
            Self::Addresses { batch, ids } => {
                let is_known = |item: &&NodeAddress| is_known(item.node.as_str());
                let after = batch.into_iter().skip_while(is_known);
                Self::Addresses { batch: after.filter(is_known).collect(), ids }
            }
            Self::Id(_) => return None,
        };
        (!rest.nodes().is_empty()).then_some(rest)
    }
}

/// One command for nodes that are told the same things.
fn pairs(batch: &[&NodeAddress], ids: bool) -> Result<Argv> {
    let count = batch.len();
    let mut arguments = argv(["update"]);
    let mut add = |name: &str, values: Hostlist| {
        let text = values.to_string();
        // What Slurm reads must be what was meant, value by value: it pairs them by their place.
        if values.len() != count || text.parse() != Ok(values) {
            return Err(invalid(format!("{name}={text} does not name {count} things")));
        }
        arguments.push(format!("{name}={text}"));
        Ok(())
    };
    add("nodename", batch.iter().map(|item| &item.node).collect())?;
    add("nodeaddr", batch.iter().map(|item| item.address.to_string()).collect())?;
    if batch.iter().any(|item| item.hostname.is_some()) {
        add("nodehostname", batch.iter().filter_map(|item| item.hostname.as_ref()).collect())?;
    }
    if ids {
        let ids: Result<Vec<&str>> = batch.iter().filter_map(|item| instance_id(item)).collect();
        add("instanceid", ids?.into_iter().collect())?;
    }
    Ok(arguments)
}

/// An id that is one word, and no list.
fn instance_id(item: &NodeAddress) -> Option<Result<&str>> {
    let id = item.instance_id.as_deref()?;
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:/".contains(&byte);
    if !id.is_empty() && id.len() <= 255 && id.bytes().all(plain) {
        return Some(Ok(id));
    }
    Some(Err(invalid(format!("instance id {id:?} of {} is not one plain word", item.node))))
}

fn invalid(text: String) -> Error {
    Error::new(ErrorKind::Invalid, "scontrol update").because(text)
}

#[cfg(test)]
mod tests {
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
        let single = ["update nodename=n1 instanceid=i-a", "update nodename=n2 instanceid=i-b"];
        let middle = lines(&Update::addresses(&items, MIDDLE).0);
        assert_eq!(middle, [plain, single[0], single[1]]);
        let paired = format!("{plain} instanceid=i-a,i-b");
        assert_eq!(lines(&Update::addresses(&items, NEW).0), [paired]);
        let wrong = SlurmVersion::new(22, 5).patch(6);
        let alone =
            ["update nodename=n1 nodeaddr=10.0.0.9", "update nodename=n2 nodeaddr=10.0.0.10"];
        assert_eq!(lines(&Update::addresses(&items, wrong).0), alone, "it pairs lists wrongly");
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
            assert_eq!(lines(&updates), [both, "update nodename=n2 instanceid=i-2"]);
            let [error] = &errors[..] else { panic!("{errors:?}") };
            assert_eq!(error.kind(), ErrorKind::Invalid, "{id:?}");
            let (updates, errors) = Update::addresses(&items, NEW);
            let alone = "update nodename=n1 nodeaddr=10.0.0.1";
            assert_eq!(
                lines(&updates),
                [alone, "update nodename=n2 nodeaddr=10.0.0.2 instanceid=i-2"]
            );
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
}

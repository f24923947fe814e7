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

/// Most nodes whose instance ids are told by a command each, which is how Slurm before 25.11 takes them:
/// nothing depends on them, and a thousand commands would keep nodes that failed from being given back.
const MOST_SINGLE_IDS: usize = 100;

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
            let with_id = addresses.iter().filter(|item| has_id(item));
            updates.extend(with_id.take(MOST_SINGLE_IDS).map(Self::Id));
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
        refuse_all(&self.nodes())?;
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

/// `ALL` is no node to Slurm, but every node.
pub(crate) fn refuse_all(nodes: &Hostlist) -> Result<()> {
    if nodes.len() == 1 && nodes.iter().any(|name| name.eq_ignore_ascii_case("all")) {
        return Err(invalid(format!("{nodes} would mean every node")));
    }
    Ok(())
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
mod tests;

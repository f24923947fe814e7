//! Commands that change several nodes at once.
//!
//! slurmctld stops at the first unknown name of a list: nodes before it are changed, nodes after it are not. A list
//! without addresses is sorted first.

use crate::{
    Error, ErrorKind, NodeAction, NodeAddress, Reason, Result,
    argv::{Argv, LONGEST_COMMENT, LONGEST_LIST, argv, pieces},
    reason::clean,
};
use hostlist::Hostlist;
use slurmconf::SlurmVersion;

/// The most nodes in one update with addresses, which may have 39 bytes each.
const MOST_ADDRESSES: usize = 1_000;

/// The most instance ids in one call of `scontrol` for releases before 25.11, which take one id per command: the call has to
/// end in time.
const MOST_SINGLE_IDS: usize = 1_000;

/// One command that changes nodes.
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
    /// Addresses, with or without instance ids.
    Addresses {
        batch: Vec<&'a NodeAddress>,
        ids: bool,
    },
    /// Instance ids, each in a command of its own on standard input.
    Ids(Vec<&'a NodeAddress>),
}

impl<'a> Update<'a> {
    pub(crate) fn states(
        nodes: &Hostlist,
        to: NodeAction,
        reason: Option<&'a Reason>,
    ) -> Vec<Self> {
        pieces(nodes).into_iter().map(|nodes| Self::State { nodes, to, reason }).collect()
    }

    pub(crate) fn reboots(nodes: &Hostlist, reason: &'a Reason) -> Vec<Self> {
        pieces(nodes).into_iter().map(|nodes| Self::Reboot { nodes, reason }).collect()
    }

    /// Sets addresses in as few commands as the release allows, and returns an error for each invalid id, which is left
    /// out.
    pub(crate) fn addresses(
        addresses: &'a [NodeAddress],
        version: SlurmVersion,
    ) -> (Vec<Self>, Vec<Error>) {
        // These releases pair names and addresses wrongly, as Slurm's changelog says.
        let mispairs = (SlurmVersion::new(22, 5).patch(5)..=SlurmVersion::new(22, 5).patch(7))
            .contains(&version);
        let most = if mispairs { 1 } else { MOST_ADDRESSES };
        let (known, paired) = (version.knows_instance_ids(), version.pairs_instance_ids());
        let has_id = |item: &NodeAddress| known && matches!(instance_id(item), Some(Ok(_)));
        let form = |item: &'a NodeAddress| {
            (item.hostname.is_some(), paired && has_id(item), item.comment.as_deref())
        };
        let mut sorted: Vec<&NodeAddress> = addresses.iter().collect();
        sorted.sort_by_key(|item| form(item));
        let mut updates = Vec::new();
        for alike in sorted.chunk_by(|one, other| form(one) == form(other)) {
            let ids = alike.first().is_some_and(|item| form(item).1);
            for batch in alike.chunks(most) {
                Self::split(batch, ids, &mut updates);
            }
        }
        if known && !paired {
            let with_id: Vec<&NodeAddress> = addresses.iter().filter(|item| has_id(item)).collect();
            updates.extend(with_id.chunks(MOST_SINGLE_IDS).map(|ids| Self::Ids(ids.to_vec())));
        }
        let bad = addresses.iter().filter(|_| known).filter_map(|item| instance_id(item)?.err());
        (updates, bad.collect())
    }

    /// Splits a batch while an argument is too long: names and ids may have 255 bytes.
    fn split(batch: &[&'a NodeAddress], ids: bool, updates: &mut Vec<Self>) {
        let update = Self::Addresses { batch: batch.to_vec(), ids };
        let is_long = |words: &Argv| words.iter().any(|word| word.len() > LONGEST_LIST);
        if batch.len() < 2 || !update.argv().as_ref().is_ok_and(is_long) {
            updates.push(update);
            return;
        }
        let (first, second) = batch.split_at(batch.len() / 2);
        Self::split(first, ids, updates);
        Self::split(second, ids, updates);
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
            Self::Ids(_) => Ok(argv(["--quiet"])),
        }
    }

    /// The commands that `scontrol` reads from standard input; none if the command line says it all.
    pub(crate) fn input(&self) -> Option<String> {
        let Self::Ids(items) = self else { return None };
        // An id that is no plain word is none of these.
        let id = |item: &NodeAddress| instance_id(item)?.ok().map(str::to_owned);
        let line = |item: &&NodeAddress| {
            Some(format!("update nodename={} instanceid={}\n", item.node, id(item)?))
        };
        Some(items.iter().filter_map(line).collect())
    }

    /// The nodes that the command names.
    pub(crate) fn nodes(&self) -> Hostlist {
        match self {
            Self::State { nodes, .. } | Self::Reboot { nodes, .. } => nodes.clone(),
            Self::Addresses { batch, .. } => batch.iter().map(|item| &item.node).collect(),
            Self::Ids(items) => items.iter().map(|item| &item.node).collect(),
        }
    }

    /// The part of the command that slurmctld has not done because of an unknown name, without unknown names. The part
    /// that it has done must not be repeated.
    pub(crate) fn rest(self, known: &Hostlist) -> Option<Self> {
        let is_known = |name: &str| known.contains(name);
        let rest = match self {
            Self::State { nodes, to, reason } => {
                let sorted = nodes.uniq();
                let after = sorted.iter().skip_while(|name| is_known(name));
                Self::State { nodes: after.filter(|name| is_known(name)).collect(), to, reason }
            }
            // slurmctld checks all names before it reboots any node.
            Self::Reboot { nodes, reason } => {
                Self::Reboot { nodes: nodes.iter().filter(|name| is_known(name)).collect(), reason }
            }
            Self::Addresses { batch, ids } => {
                let is_known = |item: &&NodeAddress| is_known(item.node.as_str());
                let after = batch.into_iter().skip_while(is_known);
                Self::Addresses { batch: after.filter(is_known).collect(), ids }
            }
            // Each is a command of its own, and all of them were tried.
            Self::Ids(_) => return None,
        };
        (!rest.nodes().is_empty()).then_some(rest)
    }
}

/// Refuses `ALL`, which Slurm expands to every node.
pub(crate) fn refuse_all(nodes: &Hostlist) -> Result<()> {
    if nodes.len() == 1 && nodes.iter().any(|name| name.eq_ignore_ascii_case("all")) {
        return Err(invalid(format!("{nodes} would mean every node")));
    }
    Ok(())
}

/// The command line that sets addresses.
fn pairs(batch: &[&NodeAddress], ids: bool) -> Result<Argv> {
    let count = batch.len();
    let mut arguments = argv(["update"]);
    let mut add = |name: &str, values: Hostlist| {
        let text = values.to_string();
        // Slurm pairs values by position, so that the list must read back as itself.
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
    let comment = batch.first().and_then(|item| item.comment.as_deref());
    arguments.extend(comment.map(|text| format!("comment={}", clean(text, LONGEST_COMMENT))));
    Ok(arguments)
}

/// The instance id, if it is a plain word.
fn instance_id(item: &NodeAddress) -> Option<Result<&str>> {
    let id = item.instance_id.as_deref()?;
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:/".contains(&byte);
    if !id.is_empty() && id.len() <= 255 && id.bytes().all(plain) {
        return Some(Ok(id));
    }
    Some(Err(invalid(format!("instance id {id:?} of {} is not a plain word", item.node))))
}

fn invalid(text: String) -> Error {
    Error::new(ErrorKind::Invalid, "scontrol update").because(text)
}

#[cfg(test)]
mod tests;

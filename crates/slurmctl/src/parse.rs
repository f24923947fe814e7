//! Parsing the output of scontrol.

use crate::{Node, NodeReason, NodeState, time};
use hostlist::{Hostlist, NodeName};
use std::collections::BTreeSet;

/// A line that cannot be parsed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} in {line:?}")]
pub(crate) struct BadLine {
    what: &'static str,
    line: String,
}

impl BadLine {
    pub(crate) fn new(what: &'static str, line: &str) -> Self {
        Self { what, line: line.chars().take(200).collect() }
    }
}

/// The markers of free text at the end of a node's line, in order; each is optional.
const TEXTS: [&str; 6] =
    [" Reason=", " Comment=", " Extra=", " InstanceId=", " InstanceType=", " ReservationName="];

/// Parses the output of `scontrol show node --oneliner`; lines about unknown names are ignored.
pub(crate) fn nodes(text: &str) -> Result<Vec<Node>, BadLine> {
    let lines = text.lines().filter(|line| line.starts_with("NodeName="));
    lines.map(node).collect()
}

/// True if every name has a line, even one that there is no such node: then the output is complete.
pub(crate) fn answers_for_all(text: &str, list: &Hostlist) -> bool {
    let name = |line: &'_ str| {
        let known = line.strip_prefix("NodeName=").and_then(|rest| rest.split(' ').next());
        let unknown = || line.strip_prefix("Node ")?.strip_suffix(" not found");
        known.or_else(unknown).map(str::to_owned)
    };
    let names: BTreeSet<String> = text.lines().filter_map(name).collect();
    list.iter().all(|name| names.contains(&*name))
}

fn node(line: &str) -> Result<Node, BadLine> {
    let (fields, texts) = split_texts(line);
    // Between these two groups is text that the machine chooses (Version=, OS=), which may contain any field name: take
    // the first occurrence before it and the last one after it. Root on the machine could still forge a CfgTRES=.
    let first = |name: &str| value(fields, fields.find(name)?, name);
    let last = |name: &str| value(fields, fields.rfind(name)?, name);
    let name = line.strip_prefix("NodeName=").and_then(|rest| rest.split(' ').next());
    let name =
        NodeName::new(name.unwrap_or_default()).map_err(|_| BadLine::new("no node name", line))?;
    let state = last(" State=").ok_or_else(|| BadLine::new("no state", line))?;
    let mut node = Node::new(name, NodeState::from(state));
    if let Some(address) = first(" NodeAddr=") {
        address.clone_into(&mut node.address);
    }
    if let Some(hostname) = first(" NodeHostName=") {
        hostname.clone_into(&mut node.hostname);
    }
    node.features = words(first(" ActiveFeatures="));
    node.partitions = words(last(" Partitions="));
    node.topology = last(" Topology=").map(str::to_owned);
    node.boot_time = last(" BootTime=").and_then(time::parse);
    node.slurmd_start = last(" SlurmdStartTime=").and_then(time::parse);
    node.last_busy = last(" LastBusyTime=").and_then(time::parse);
    read_texts(&mut node, texts);
    Ok(node)
}

fn value<'a>(fields: &'a str, at: usize, name: &str) -> Option<&'a str> {
    let rest = fields.get(at + name.len()..)?;
    rest.split(' ').next().filter(|value| !value.is_empty() && *value != "(null)")
}

fn words(value: Option<&str>) -> Vec<String> {
    let words = value.unwrap_or_default().split(',').filter(|word| !word.is_empty());
    words.map(str::to_owned).collect()
}

/// Splits a line into its fields and the free texts after them.
fn split_texts(line: &str) -> (&str, &str) {
    let from = line.find(" CfgTRES=").unwrap_or(0);
    let rest = line.get(from..).unwrap_or_default();
    let first = TEXTS.iter().filter_map(|marker| rest.find(marker)).min();
    first.and_then(|at| line.split_at_checked(from + at)).unwrap_or((line, ""))
}

fn read_texts(node: &mut Node, texts: &str) {
    let mut rest = texts;
    if let Some(text) = rest.strip_prefix(" Reason=") {
        let (reason, after) = split_reason(text);
        let mut reason = read_reason(reason);
        let (further, after) = split_further(after);
        for line in further.split(FURTHER).map(str::trim).filter(|line| !line.is_empty()) {
            reason.text.push(' ');
            reason.text.push_str(line);
        }
        node.reason = Some(reason);
        rest = after;
    }
    node.comment = free_text(rest, " Comment=");
    node.extra = free_text(rest, " Extra=");
    node.instance_id = free_text(rest, " InstanceId=");
    node.reservation = free_text(rest, " ReservationName=");
}

/// The free text after a marker, up to the next one that may follow it.
fn free_text(texts: &str, marker: &str) -> Option<String> {
    let (_, text) = texts.split_once(marker)?;
    let later = TEXTS.iter().skip_while(|known| **known != marker).skip(1);
    let end = later.filter_map(|marker| text.find(marker)).min().unwrap_or(text.len());
    text.get(..end).map(|text| text.trim_end().to_owned())
}

/// The separator before each further line of a reason.
const FURTHER: &str = "        ";

/// Splits after the first line of a reason, which ends with `[user@time]` and may contain any marker.
fn split_reason(text: &str) -> (&str, &str) {
    let ends = |at: usize| {
        let after = text.get(at + 1..).unwrap_or_default();
        let others = after.trim().is_empty()
            || after.starts_with(FURTHER)
            || TEXTS.iter().any(|marker| after.starts_with(marker));
        others && text.get(..=at).is_some_and(|reason| read_reason(reason).at.is_some())
    };
    let end = text.match_indices(']').map(|(at, _)| at).find(|at| ends(*at));
    end.and_then(|at| text.split_at_checked(at + 1)).unwrap_or((text, ""))
}

/// Splits after the further lines of a reason, which end at the next free text.
fn split_further(after: &str) -> (&str, &str) {
    if !after.starts_with(FURTHER) {
        return ("", after);
    }
    let next = TEXTS.iter().skip(1).filter_map(|marker| after.find(marker)).min();
    next.and_then(|at| after.split_at_checked(at)).unwrap_or((after, ""))
}

fn read_reason(text: &str) -> NodeReason {
    let signed = text.trim_end().strip_suffix(']').and_then(|text| text.rsplit_once(" ["));
    let parts = signed.and_then(|(text, signature)| {
        let (by, at) = signature.rsplit_once('@')?;
        Some((text, by, time::parse(at)?))
    });
    match parts {
        Some((text, by, at)) => {
            NodeReason { text: text.to_owned(), by: Some(by.to_owned()), at: Some(at) }
        }
        None => NodeReason::new(text.trim_end()),
    }
}

/// True if any controller is up, of the output of `scontrol ping`.
pub(crate) fn is_up(text: &str) -> bool {
    text.lines().any(|line| line.trim_end().ends_with(" is UP"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BaseState, StateFlag};
    use proptest::prelude::*;

    const POWERING_UP: [&str; 3] = [
        include_str!("../tests/data/22.05.8-node-powering-up.txt"),
        include_str!("../tests/data/24.11.5-node-powering-up.txt"),
        include_str!("../tests/data/26.05.5-node-powering-up.txt"),
    ];
    const POWERED_DOWN: [&str; 3] = [
        include_str!("../tests/data/22.05.8-node-powered-down.txt"),
        include_str!("../tests/data/24.11.5-node-powered-down.txt"),
        include_str!("../tests/data/26.05.5-node-powered-down.txt"),
    ];

    fn one(text: &str) -> Node {
        let nodes = nodes(text).unwrap();
        let [node] = &nodes[..] else { panic!("{nodes:?}") };
        node.clone()
    }

    #[test]
    fn samples_of_all_versions_are_read() {
        for text in POWERING_UP {
            let node = one(text);
            assert_eq!((node.name.as_str(), node.address.as_str()), ("n002", "n002"));
            assert_eq!(node.state.base, BaseState::Mixed);
            let flags = [StateFlag::Cloud, StateFlag::NotResponding, StateFlag::PoweringUp];
            assert_eq!(node.state.flags, flags.into());
            assert_eq!(node.features, ["gpu"]);
            assert_eq!(node.partitions, ["main", "rebuild"]);
            assert_eq!((node.boot_time, node.reason), (None, None));
        }
        for text in POWERED_DOWN {
            let node = one(text);
            assert_eq!(node.name.as_str(), "n004");
            assert_eq!(node.state.to_string(), "IDLE+CLOUD+POWERED_DOWN");
        }
        assert_eq!(nodes(&POWERING_UP.concat()).unwrap().len(), 3);
    }

    #[test]
    fn free_texts_are_separated_whatever_they_hold() {
        let line = "NodeName=n5 NodeAddr=10.0.0.5 NodeHostName=h5 Version=24.11.5 OS=Linux 6.1 #1 State=EVIL x \
            RealMemory=1 State=IDLE+CLOUD+DRAIN+NEW_THING Partitions=main BootTime=2026-11-16T12:00:00 \
            LastBusyTime=Unknown CfgTRES=cpu=2 AllocTRES= CurrentWatts=0 AveWatts=0  \
            Reason=foo State=BAR [x@y] Comment=z [root@2026-11-16T12:01:41] Comment=my comm Extra=ex tra \
            InstanceId=i-1 InstanceType=a b";
        let node = one(line);
        assert_eq!(node.state.to_string(), "IDLE+CLOUD+DRAIN+NEW_THING");
        assert!(node.state.has(&StateFlag::Other("NEW_THING".into())));
        let reason = node.reason.unwrap();
        assert_eq!(reason.text, "foo State=BAR [x@y] Comment=z");
        assert_eq!(
            (reason.by.as_deref(), reason.at),
            (Some("root"), time::parse("2026-11-16T12:01:41"))
        );
        assert_eq!(node.instance_id.as_deref(), Some("i-1"));
        assert_eq!(node.boot_time, time::parse("2026-11-16T12:00:00"));
        // Of several lines, each but the first comes after the signature.
        for further in ["see ticket 7", "see ticket 7        and 8 [bob@2026-11-17T13:00:00]"] {
            let node = one(&format!(
                "NodeName=n6 State=DOWN CfgTRES=x Reason=disk [root@2026-11-17T12:00:00]        {further} \
                 InstanceId=i-2 ReservationName=maint"
            ));
            assert_eq!(node.instance_id.as_deref(), Some("i-2"), "{further}");
            assert_eq!(node.reservation.as_deref(), Some("maint"), "{further}");
            let reason = node.reason.unwrap();
            assert_eq!(reason.text, format!("disk {}", further.replace("        ", " ")));
            let at = time::parse("2026-11-17T12:00:00");
            assert_eq!((reason.by.as_deref(), reason.at), (Some("root"), at), "{further}");
        }
        let node = one("NodeName=n1 State=DOWN CfgTRES=x Extra=e");
        assert_eq!((node.reason, node.instance_id), (None, None));
    }

    #[test]
    fn a_reservation_is_not_part_of_the_text_before_it() {
        let reserved = one(include_str!("../tests/data/24.11.5-node-reserved.txt"));
        assert_eq!(reserved.reason_text(), "rebuild image:x");
        assert!(reserved.reason.as_ref().is_some_and(|reason| reason.at.is_some()));
        assert_eq!(reserved.reservation.as_deref(), Some("mai nt"));
        for last in ["Comment", "Extra", "InstanceId", "InstanceType"] {
            let line = format!("NodeName=n1 State=IDLE CfgTRES=x {last}=a b ReservationName=maint");
            let node = one(&line);
            assert_eq!(node.reservation.as_deref(), Some("maint"), "{last}");
            let id = (last == "InstanceId").then_some("a b");
            assert_eq!(node.instance_id.as_deref(), id, "{last}");
        }
        let node = one("NodeName=n1 State=IDLE CfgTRES=x ReservationName=maint");
        assert_eq!((node.reason, node.reservation.as_deref()), (None, Some("maint")));
    }

    #[test]
    fn machines_that_are_up_or_rebooting_are_read() {
        let up = one(include_str!("../tests/data/26.05.5-node-up.txt"));
        assert_eq!((up.state.to_string().as_str(), up.hostname.as_str()), ("IDLE+CLOUD", "m1"));
        assert!(up.boot_time.is_some() && up.slurmd_start.is_some() && up.last_busy.is_some());
        for text in [
            include_str!("../tests/data/22.05.8-node-rebooting.txt"),
            include_str!("../tests/data/26.05.5-node-rebooting.txt"),
        ] {
            let node = one(text);
            assert!(node.state.is_reboot_requested() && node.state.has_drain(), "{}", node.state);
            assert_eq!(node.state.base, BaseState::Idle, "and not the next state");
            assert_eq!(node.reason_text(), "rebuild image:y");
        }
    }

    #[test]
    fn unknown_names_are_ignored_and_a_node_without_a_state_is_an_error() {
        assert_eq!(nodes("Node zz not found\n\n").unwrap(), []);
        let text = "NodeName=n1 State=IDLE\nNode zz not found\n";
        assert!(answers_for_all(text, &"n1,zz".parse().unwrap()));
        assert!(!answers_for_all(text, &"n[1-2],zz".parse().unwrap()), "n2 is missing");
        assert!(nodes("NodeName=n1 CPUs=2\n").is_err());
        assert!(nodes("NodeName=../x State=IDLE\n").is_err());
    }

    #[test]
    fn a_controller_named_up_is_not_up() {
        assert!(is_up("Slurmctld(primary) at a is DOWN\nSlurmctld(backup) at b is UP\n"));
        assert!(!is_up("Slurmctld(primary) at UP is DOWN\n"));
    }

    proptest! {
        #[test]
        fn nothing_panics(text in "(?s).*") {
            let _ = (nodes(&text), is_up(&text), answers_for_all(&text, &"n[1-2]".parse().unwrap()));
        }

        #[test]
        fn nothing_panics_on_what_looks_right(
            words in proptest::collection::vec("( NodeAddr=| State=| Reason=| Comment=| Extra=| CfgTRES=|\\]| \\[a@|ä|x| ){1}", 0..30)
        ) {
            let line = format!("NodeName=n1{}", words.concat());
            if let Ok(nodes) = nodes(&line) {
                prop_assert_eq!(nodes.len(), 1);
            }
        }

        #[test]
        fn a_reason_comes_back_as_it_was_given(text in ".{1,300}") {
            let reason = crate::Reason::new(&text);
            let line = format!("NodeName=n1 State=IDLE CfgTRES=x Reason={reason} [root@2026-11-16T12:01:41] InstanceId=e");
            let node = one(&line);
            prop_assert_eq!(node.reason_text(), reason.as_str());
            prop_assert_eq!(node.instance_id.as_deref(), Some("e"));
        }
    }
}

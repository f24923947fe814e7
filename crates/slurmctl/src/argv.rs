//! Command lines for Slurm's programs, by pure functions.

use crate::{
    BatchJob, Error, ErrorKind, JobId, Jobs, NodeAction, NodeAddress, Reason, Result, reason::clean,
};
use hostlist::Hostlist;
use slurmconf::SlurmVersion;
use std::num::NonZeroUsize;

/// Arguments of one command, without the program.
pub(crate) type Argv = Vec<String>;

/// Most bytes of a list of nodes in one argument: Linux takes 128 KiB.
const LONGEST_LIST: usize = 100_000;

/// Most nodes in one update: an address may be 39 bytes, and no two need fold.
const MOST_ADDRESSES: usize = 1_000;

/// Most bytes of a comment.
const LONGEST_COMMENT: usize = 1_000;

/// What stands between two fields of a job: nothing that an owner can put into any of them.
pub(crate) const SEPARATOR: char = '\u{1f}';

/// The fields of a job, in the order asked for. Free text, which only administrators can write, is last.
pub(crate) const JOB_FIELDS: [&str; 12] = [
    "JobID",
    "State",
    "Reason",
    "Partition",
    "NodeList",
    "ReqNodes",
    "NumNodes",
    "UserID",
    "Reboot",
    "RestartCnt",
    "Feature",
    "admin_comment",
];

fn argv<const N: usize>(words: [&str; N]) -> Argv {
    words.map(str::to_owned).to_vec()
}

/// The list in pieces that each fit into an argument.
fn pieces(list: &Hostlist) -> Vec<String> {
    let text = list.to_string();
    let half = NonZeroUsize::new(list.len().div_ceil(2)).filter(|half| half.get() < list.len());
    match half {
        Some(half) if text.len() > LONGEST_LIST => {
            list.chunks(half).flat_map(|piece| pieces(&piece)).collect()
        }
        Some(_) | None if text.is_empty() => Vec::new(),
        Some(_) | None => vec![text],
    }
}

pub(crate) fn version() -> Argv {
    argv(["--version"])
}

pub(crate) fn ping() -> Argv {
    argv(["ping"])
}

pub(crate) fn reconfigure() -> Argv {
    argv(["reconfigure"])
}

pub(crate) fn show_config() -> Argv {
    argv(["show", "config"])
}

pub(crate) fn show_nodes(which: Option<&Hostlist>) -> Vec<Argv> {
    let all = argv(["--all", "--oneliner", "show", "node"]);
    let Some(list) = which else {
        return vec![all];
    };
    let some = |piece| all.iter().cloned().chain([piece]).collect();
    pieces(list).into_iter().map(some).collect()
}

pub(crate) fn list_jobs(which: &Jobs) -> Argv {
    let fields = JOB_FIELDS.map(|field| format!("{field}:{SEPARATOR}")).join(",");
    let mut arguments = argv(["--noheader", "--all"]);
    match which {
        Jobs::Ids(_) => arguments.push("--states=all".into()),
        Jobs::All | Jobs::On(_) | Jobs::In(_) => {}
    }
    arguments.push(format!("--Format={fields}"));
    arguments
}

pub(crate) fn set_state(nodes: &Hostlist, to: NodeAction, reason: Option<&Reason>) -> Vec<Argv> {
    let command = |piece: String| {
        let mut arguments = argv(["update", &format!("nodename={piece}"), &format!("state={to}")]);
        arguments.extend(reason.map(|reason| format!("reason={reason}")));
        arguments
    };
    pieces(nodes).into_iter().map(command).collect()
}

pub(crate) fn reboot(nodes: &Hostlist, reason: &Reason) -> Vec<Argv> {
    let reason = format!("reason={reason}");
    let command = |piece: String| argv(["reboot", "ASAP", "nextstate=RESUME", &reason, &piece]);
    pieces(nodes).into_iter().map(command).collect()
}

pub(crate) fn comment(job: JobId, text: &str) -> Argv {
    let text = clean(text, LONGEST_COMMENT);
    argv(["update", &format!("jobid={job}"), &format!("admincomment={text}")])
}

/// Addresses in as few commands as the version allows.
pub(crate) fn set_addresses(addresses: &[NodeAddress], version: SlurmVersion) -> Result<Vec<Argv>> {
    // These pair names and addresses wrongly, as Slurm's own list of changes says.
    let mispairs =
        (SlurmVersion::new(22, 5).patch(5)..=SlurmVersion::new(22, 5).patch(7)).contains(&version);
    let most = if mispairs { 1 } else { MOST_ADDRESSES };
    let paired_ids = version.pairs_instance_ids();
    let form =
        |item: &NodeAddress| (item.hostname.is_some(), paired_ids && item.instance_id.is_some());
    let mut commands = Vec::new();
    for alike in addresses.chunk_by(|one, other| form(one) == form(other)) {
        for batch in alike.chunks(most) {
            commands.push(update_addresses(batch, paired_ids)?);
        }
    }
    if version.knows_instance_ids() && !paired_ids {
        for item in addresses {
            commands.extend(update_id(item)?);
        }
    }
    Ok(commands)
}

/// One command for nodes that are told the same things.
fn update_addresses(batch: &[NodeAddress], paired_ids: bool) -> Result<Argv> {
    let count = batch.len();
    let mut arguments = argv(["update"]);
    let mut add = |name: &str, values: Hostlist| {
        let text = values.to_string();
        // What Slurm reads must be what was meant, value by value: it pairs them by their place.
        if values.len() != count || text.parse() != Ok(values) {
            let text = format!("{name}={text} does not name {count} things");
            return Err(Error::new(ErrorKind::Invalid, "scontrol update").because(text));
        }
        arguments.push(format!("{name}={text}"));
        Ok(())
    };
    add("nodename", batch.iter().map(|item| &item.node).collect())?;
    add("nodeaddr", batch.iter().map(|item| item.address.to_string()).collect())?;
    if batch.iter().any(|item| item.hostname.is_some()) {
        add("nodehostname", batch.iter().filter_map(|item| item.hostname.as_ref()).collect())?;
    }
    if paired_ids && batch.iter().any(|item| item.instance_id.is_some()) {
        let ids: Result<Vec<&str>> = batch.iter().filter_map(instance_id).collect();
        add("instanceid", ids?.into_iter().collect())?;
    }
    Ok(arguments)
}

fn update_id(item: &NodeAddress) -> Result<Option<Argv>> {
    let Some(id) = instance_id(item).transpose()? else {
        return Ok(None);
    };
    Ok(Some(argv(["update", &format!("nodename={}", item.node), &format!("instanceid={id}")])))
}

/// An id that is one word, and no list.
fn instance_id(item: &NodeAddress) -> Option<Result<&str>> {
    let id = item.instance_id.as_deref()?;
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:/".contains(&byte);
    if !id.is_empty() && id.len() <= 255 && id.bytes().all(plain) {
        return Some(Ok(id));
    }
    let text = format!("instance id {id:?} of {} is not one plain word", item.node);
    Some(Err(Error::new(ErrorKind::Invalid, "scontrol update").because(text)))
}

pub(crate) fn submit(job: &BatchJob) -> Argv {
    let mut arguments = argv(["--parsable", "--nodes=1", "--output=/dev/null", "--export=NONE"]);
    let mut add = |name: &str, value: &str| arguments.push(format!("--{name}={value}"));
    add("job-name", &clean(&job.name, LONGEST_COMMENT));
    add("partition", &job.partition);
    add("nodelist", job.node.as_str());
    add("chdir", &job.directory.display().to_string());
    if let Some(limit) = job.time_limit {
        let minutes = limit.as_secs().div_ceil(60).max(1);
        add("time", &minutes.to_string());
    }
    if let Some(comment) = &job.comment {
        add("comment", &clean(comment, LONGEST_COMMENT));
    }
    add("wrap", &job.command);
    arguments.extend(job.exclusive.then(|| "--exclusive".to_owned()));
    arguments.extend(job.reboot.then(|| "--reboot".to_owned()));
    arguments
}

#[cfg(test)]
mod tests {
    use super::*;
    use hostlist::NodeName;
    use proptest::prelude::*;
    use std::time::Duration;

    const OLD: SlurmVersion = SlurmVersion::new(22, 5).patch(8);
    const MIDDLE: SlurmVersion = SlurmVersion::new(24, 11).patch(5);
    const NEW: SlurmVersion = SlurmVersion::new(26, 5).patch(5);

    fn list(text: &str) -> Hostlist {
        text.parse().unwrap()
    }

    fn lines(commands: impl IntoIterator<Item = Argv>) -> Vec<String> {
        commands.into_iter().map(|command| command.join(" ")).collect()
    }

    fn address(node: &str, address: &str) -> NodeAddress {
        NodeAddress::new(node.parse().unwrap(), address.parse().unwrap())
    }

    #[test]
    fn commands_are_as_slurm_wants_them() {
        let why = Reason::new("cloud: no \"room\"");
        let nodes = list("n[1-2],m");
        let table = [
            (show_nodes(None), "--all --oneliner show node"),
            (show_nodes(Some(&nodes)), "--all --oneliner show node n[1-2],m"),
            (
                set_state(&nodes, NodeAction::PowerDownForce, Some(&why)),
                "update nodename=n[1-2],m state=power_down_force reason=cloud: no 'room'",
            ),
            (
                set_state(&nodes, NodeAction::Undrain, None),
                "update nodename=n[1-2],m state=undrain",
            ),
            (reboot(&nodes, &why), "reboot ASAP nextstate=RESUME reason=cloud: no 'room' n[1-2],m"),
            (vec![comment(JobId::new(7), "two\nlines")], "update jobid=7 admincomment=two lines"),
            (vec![version()], "--version"),
            (vec![ping()], "ping"),
            (vec![reconfigure()], "reconfigure"),
            (vec![show_config()], "show config"),
        ];
        for (commands, expected) in table {
            assert_eq!(lines(commands), [expected]);
        }
    }

    #[test]
    fn a_reason_is_one_argument_whatever_it_holds() {
        let why = Reason::new("a b=c state=down");
        let [command] = &set_state(&list("n1"), NodeAction::Drain, Some(&why))[..] else {
            panic!("one command")
        };
        assert_eq!(command.last().unwrap(), "reason=a b=c state=down");
        assert_eq!(command.len(), 4);
    }

    #[test]
    fn no_nodes_are_no_command() {
        let none = Hostlist::new();
        assert_eq!(show_nodes(Some(&none)), Vec::<Argv>::new());
        assert_eq!(set_state(&none, NodeAction::Resume, None), Vec::<Argv>::new());
        assert_eq!(set_addresses(&[], NEW).unwrap(), Vec::<Argv>::new());
    }

    #[test]
    fn long_lists_are_cut_and_nothing_is_lost() {
        // Names that do not fold.
        let names = (0..20_000).map(|number| format!("node-{number}-x"));
        let list: Hostlist = names.collect();
        let commands = show_nodes(Some(&list));
        assert!(commands.len() > 1);
        let mut all = Hostlist::new();
        for command in &commands {
            let piece = command.last().unwrap();
            assert!(piece.len() <= LONGEST_LIST);
            all.append(&piece.parse().unwrap());
        }
        assert_eq!(all, list);
    }

    #[test]
    fn addresses_are_told_as_the_version_takes_them() {
        let mut items = vec![address("n1", "10.0.0.9"), address("n2", "10.0.0.10")];
        let plain = "update nodename=n[1-2] nodeaddr=10.0.0.[9-10]";
        assert_eq!(lines(set_addresses(&items, OLD).unwrap()), [plain]);
        for (item, id) in items.iter_mut().zip(["i-a", "i-b"]) {
            item.instance_id = Some(id.into());
        }
        assert_eq!(
            lines(set_addresses(&items, OLD).unwrap()),
            [plain],
            "22.05 would refuse it all"
        );
        let single = ["update nodename=n1 instanceid=i-a", "update nodename=n2 instanceid=i-b"];
        let middle = lines(set_addresses(&items, MIDDLE).unwrap());
        assert_eq!(middle, [plain, single[0], single[1]]);
        let paired = format!("{plain} instanceid=i-a,i-b");
        assert_eq!(lines(set_addresses(&items, NEW).unwrap()), [paired]);
        let wrong = SlurmVersion::new(22, 5).patch(6);
        let alone =
            ["update nodename=n1 nodeaddr=10.0.0.9", "update nodename=n2 nodeaddr=10.0.0.10"];
        assert_eq!(lines(set_addresses(&items, wrong).unwrap()), alone, "it pairs lists wrongly");
    }

    #[test]
    fn nodes_with_and_without_a_name_of_their_own_are_told_apart() {
        let mut items = vec![address("n1", "fd00::1"), address("n2", "fd00::2")];
        items.push(address("n3", "fd00::3"));
        items[1].hostname = Some("h7".parse().unwrap());
        let expected = [
            "update nodename=n1 nodeaddr=fd00::1",
            "update nodename=n2 nodeaddr=fd00::2 nodehostname=h7",
            "update nodename=n3 nodeaddr=fd00::3",
        ];
        assert_eq!(lines(set_addresses(&items, NEW).unwrap()), expected);
    }

    #[test]
    fn an_id_that_is_a_list_or_worse_is_refused() {
        for id in ["", "a,b", "a[1-2]", "a b", "a\nb", "\"a", "é"] {
            let mut item = address("n1", "10.0.0.1");
            item.instance_id = Some(id.into());
            for version in [MIDDLE, NEW] {
                let error = set_addresses(std::slice::from_ref(&item), version).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Invalid, "{id:?}");
            }
        }
    }

    #[test]
    fn jobs_are_listed_with_free_text_last() {
        let all = list_jobs(&Jobs::All);
        assert_eq!(all.len(), 3);
        let fields = all.last().unwrap();
        assert!(fields.starts_with("--Format=JobID:\u{1f},State:\u{1f},"), "{fields:?}");
        assert!(fields.ends_with(",admin_comment:\u{1f}"), "{fields:?}");
        assert!(list_jobs(&Jobs::Ids(Vec::new())).contains(&"--states=all".into()));
    }

    #[test]
    fn a_job_is_submitted_by_options_alone() {
        let mut job = BatchJob::reboot("-x\ny", "rebuild", "n1".parse().unwrap());
        job.time_limit = Some(Duration::from_secs(61));
        job.comment = Some("why".into());
        let expected = [
            "--parsable",
            "--nodes=1",
            "--output=/dev/null",
            "--export=NONE",
            "--job-name=-x y",
            "--partition=rebuild",
            "--nodelist=n1",
            "--chdir=/",
            "--time=2",
            "--comment=why",
            "--wrap=true",
            "--exclusive",
            "--reboot",
        ];
        assert_eq!(submit(&job), expected);
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
            for command in set_addresses(&items, NEW).unwrap() {
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

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

//! Plans for people: a line for each step.

use super::{
    Begin, Clear, FileStep, Finding, FindingKind, Handling, MachineStep, Plan, ReportStep,
    SlurmStep, Stage, Step, WrittenFile,
};
use crate::order::by_number;
use crate::site::{Place, Wanted};
use crate::time::{Span, Utc};
use cloud_core::{InstanceId, Reboot};
use hostlist::{Hostlist, NodeName};
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// A step as a word, its nodes and what else there is to say.
pub(super) struct Row<'a> {
    pub(super) verb: &'static str,
    pub(super) nodes: &'a [NodeName],
    pub(super) details: Details,
}

/// What else there is to say about a step, by key.
pub(super) type Details = Vec<(&'static str, Said)>;

/// What is said under a key.
pub(super) enum Said {
    One(String),
    Many(Vec<String>),
}

impl fmt::Display for Said {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::One(text) => f.write_str(text),
            Self::Many(texts) => f.write_str(&texts.join(", ")),
        }
    }
}

impl Step {
    pub(super) fn row(&self) -> Row<'_> {
        Row { verb: self.verb(), nodes: self.nodes(), details: self.details() }
    }

    fn verb(&self) -> &'static str {
        match self {
            Self::Machine(step) => step.verb(),
            Self::Slurm(step) => step.verb(),
            Self::File(FileStep::Write { .. }) => "write",
            Self::File(FileStep::Refresh { .. }) => "refresh",
            Self::Report(ReportStep::Refuse { .. }) => "refuse",
            Self::Report(ReportStep::GiveUp { .. }) => "give up",
            Self::Report(ReportStep::Nothing { .. }) => "nothing",
            Self::Report(ReportStep::NoteBad { .. }) => "note bad machine",
            Self::Report(ReportStep::Rest { .. }) => "rest",
        }
    }

    fn details(&self) -> Details {
        match self {
            Self::Machine(step) => step.details(),
            Self::Slurm(step) => step.details(),
            Self::File(FileStep::Write { which, summary, .. }) => {
                vec![said("file", which), said("changes", summary)]
            }
            Self::File(FileStep::Refresh { which }) => vec![said("file", which)],
            Self::Report(ReportStep::Refuse { why, .. }) => vec![said("why", why)],
            Self::Report(ReportStep::Nothing { why, .. }) => vec![said("why", why)],
            Self::Report(ReportStep::GiveUp { cause, reason, .. }) => {
                vec![said("cause", cause), said("reason", reason)]
            }
            Self::Report(ReportStep::NoteBad { pool, until, .. }) => {
                let until = until.iter().map(|until| said("avoided_until", &Utc(*until)));
                [said("pool", pool)].into_iter().chain(until).collect()
            }
            Self::Report(ReportStep::Rest { cause, until, .. }) => {
                vec![said("cause", cause), said("until", &Utc(*until))]
            }
        }
    }
}

impl MachineStep {
    fn verb(&self) -> &'static str {
        match self {
            Self::Launch { .. } => "launch",
            Self::Adopt { .. } => "adopt",
            Self::StartStopped { .. } => "start",
            Self::Stop { .. } => "stop",
            Self::Terminate { .. } | Self::TerminateNameless { .. } => "terminate",
            Self::WaitGone { .. } => "wait gone",
            Self::Rebuild { .. } => "rebuild",
            Self::Recreate { .. } => "recreate",
            Self::Reboot { .. } => "reboot",
        }
    }

    fn details(&self) -> Details {
        match self {
            Self::Launch { wanted, first, reports_address } => {
                launch_after(wanted, first, *reports_address)
            }
            Self::Adopt { id, address, .. } => {
                with_id(id, address.iter().map(|address| said("address", address)).collect())
            }
            Self::StartStopped { id, .. } | Self::Stop { id, .. } => vec![said("id", id)],
            Self::Terminate { ids, .. }
            | Self::TerminateNameless { ids }
            | Self::WaitGone { ids, .. } => vec![many("id", ids)],
            Self::Rebuild { id, image, .. } => vec![said("id", id), said("image", image)],
            Self::Recreate { id, wanted } => with_id(id, launch(wanted)),
            Self::Reboot { id, how, .. } => vec![said("id", id), reboot(*how)],
        }
    }
}

impl SlurmStep {
    fn verb(&self) -> &'static str {
        match self {
            Self::Notify { what, .. } => what.verb(),
            Self::SetAddress { .. } => "set address",
            Self::ReportAddresses { .. } => "report addresses",
            Self::WaitDrained { .. } => "wait drained",
        }
    }

    fn details(&self) -> Details {
        match self {
            Self::Notify { what, .. } => what.details(),
            Self::SetAddress { address, .. } => vec![said("address", address)],
            Self::ReportAddresses { .. } => Vec::new(),
            Self::WaitDrained { deadline, .. } => vec![at_most(*deadline)],
        }
    }
}

pub(super) fn said(key: &'static str, value: &impl ToString) -> (&'static str, Said) {
    (key, Said::One(value.to_string()))
}

fn many(
    key: &'static str,
    values: impl IntoIterator<Item = impl ToString>,
) -> (&'static str, Said) {
    (key, Said::Many(values.into_iter().map(|value| value.to_string()).collect()))
}

fn at_most(time: Duration) -> (&'static str, Said) {
    said("at_most", &Span(time))
}

fn reboot(how: Reboot) -> (&'static str, Said) {
    let how = match how {
        Reboot::Soft => "soft",
        Reboot::Hard => "hard",
    };
    said("how", &how)
}

fn launch_after(wanted: &Wanted, first: &[Clear], reports_address: bool) -> Details {
    let mut details = launch(wanted);
    if !first.is_empty() {
        details.push(many("after", first.iter().map(clear)));
    }
    if !reports_address {
        details.push(said("address", &"reported later"));
    }
    details
}

fn with_id(id: &InstanceId, mut details: Details) -> Details {
    details.insert(0, said("id", id));
    details
}

fn launch(wanted: &Wanted) -> Details {
    let mut details =
        vec![many("place", wanted.places.iter().map(place)), said("image", &wanted.image)];
    details.extend(wanted.keypair.as_ref().map(|name| said("keypair", name)));
    details
}

fn place(place: &Place) -> String {
    let subnet = place.subnet.as_ref().map(|subnet| format!(" on {subnet}")).unwrap_or_default();
    format!("{}{subnet}", place.pool())
}

fn clear(clear: &Clear) -> String {
    match clear {
        Clear::AwaitGone(id) => format!("{id} gone"),
        Clear::Terminate(id) => format!("{id} terminated"),
    }
}

fn listed(items: impl Iterator<Item = String>) -> String {
    items.collect::<Vec<_>>().join(", ")
}

fn joined(ids: &[InstanceId]) -> String {
    listed(ids.iter().map(InstanceId::to_string))
}

/// Nodes as one host list, in the order that people count in.
fn folded(nodes: &[NodeName]) -> String {
    by_number(nodes.iter().cloned()).iter().collect::<Hostlist>().to_string()
}

impl fmt::Display for WrittenFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::SlurmConf => "slurm.conf",
            Self::Hosts => "hosts",
            Self::Inventory => "inventory",
            Self::Topology => "topology.conf",
        })
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let row = self.row();
        Line { verb: row.verb, nodes: folded(row.nodes), details: row.words() }.write(f, 0, 0)
    }
}

impl Row<'_> {
    /// The details, as words of a line.
    fn words(&self) -> Vec<String> {
        let word = |(key, value): &(&str, Said)| {
            let value = value.to_string();
            if value.contains(' ') {
                format!("{key}=\"{value}\"")
            } else {
                format!("{key}={value}")
            }
        };
        self.details.iter().map(word).collect()
    }
}

/// What is printed of steps that differ in their nodes alone.
struct Line {
    verb: &'static str,
    nodes: String,
    details: Vec<String>,
}

impl Line {
    /// Verb and nodes padded to these widths, then the details; no blanks at the end.
    fn write(&self, f: &mut fmt::Formatter<'_>, verb: usize, nodes: usize) -> fmt::Result {
        let words = [format!("{:verb$}", self.verb), format!("{:nodes$}", self.nodes)];
        let words = words.iter().filter(|word| !word.is_empty()).chain(&self.details);
        let line: Vec<&str> = words.map(String::as_str).collect();
        f.write_str(line.join(" ").trim_end())
    }
}

/// One line for all steps that do the same, where the first of them is.
fn lines(steps: &[Step]) -> Vec<Line> {
    let mut alike: Vec<(&'static str, Vec<String>, Vec<NodeName>)> = Vec::new();
    let mut places: BTreeMap<(&'static str, Vec<String>), usize> = BTreeMap::new();
    for step in steps {
        let row = step.row();
        let (verb, words) = (row.verb, row.words());
        let known = places.get(&(verb, words.clone())).filter(|_| !row.nodes.is_empty());
        if let Some((_, _, nodes)) = known.and_then(|place| alike.get_mut(*place)) {
            nodes.extend_from_slice(row.nodes);
        } else {
            places.insert((verb, words.clone()), alike.len());
            alike.push((verb, words, row.nodes.to_vec()));
        }
    }
    let line = |(verb, details, nodes): (&'static str, Vec<String>, Vec<NodeName>)| Line {
        verb,
        nodes: folded(&nodes),
        details,
    };
    alike.into_iter().map(line).collect()
}

/// Writes steps below each other, in columns; those that do the same are one line.
fn table(f: &mut fmt::Formatter<'_>, steps: &[Step], indent: &str) -> fmt::Result {
    let lines = lines(steps);
    let verb = lines.iter().map(|line| line.verb.len()).max().unwrap_or_default();
    let nodes = lines.iter().map(|line| line.nodes.len()).max().unwrap_or_default();
    for line in lines {
        f.write_str(indent)?;
        line.write(f, verb, nodes)?;
        writeln!(f)?;
    }
    Ok(())
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.begin {
            Begin::WithTheRest => writeln!(f, "{}:", self.what)?,
            begin @ (Begin::IfAllWell | Begin::Always | Begin::Together) => {
                writeln!(f, "{}, {begin}:", self.what)?;
            }
        }
        table(f, &self.steps, "  ")?;
        if !self.undo.is_empty() {
            writeln!(f, "  or else:")?;
            table(f, &self.undo, "    ")?;
        }
        Ok(())
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(f, "repaired")
    }
}

impl Finding {
    /// Writes the finding; `repair` is the word for one that a step of the plan repairs.
    fn write(&self, f: &mut fmt::Formatter<'_>, repair: &str) -> fmt::Result {
        // What keeps a comparison from being made is said as it is.
        if self.kind == FindingKind::Blind {
            return f.write_str(&self.text);
        }
        write!(f, "{}", self.kind)?;
        if self.handling == Handling::Repaired {
            write!(f, " ({repair})")?;
        }
        self.node.as_ref().map_or(Ok(()), |node| write!(f, " {node}"))?;
        if !self.instances.is_empty() {
            write!(f, " {}", joined(&self.instances))?;
        }
        if !self.text.is_empty() {
            write!(f, ": {}", self.text)?;
        }
        match (self.handling, self.kind) {
            (Handling::Watched, FindingKind::Orphan | FindingKind::Broken) => {
                f.write_str("; terminated if still there on the next run")
            }
            (Handling::Watched, _) => f.write_str("; repaired if still so on the next run"),
            (Handling::Repaired | Handling::Reported, _) => Ok(()),
        }
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let has = |test: fn(&Finding) -> bool| self.findings.iter().any(test);
        match self.operation {
            operation if !self.stages.is_empty() => writeln!(f, "{operation}")?,
            operation if has(|it| it.kind == FindingKind::Blind) => {
                writeln!(f, "{operation}: not known what is to be done")?;
            }
            operation if has(|it| it.handling == Handling::Watched) => {
                writeln!(f, "{operation}: nothing to do on this run")?;
            }
            operation => writeln!(f, "{operation}: nothing to do")?,
        }
        for (stage, number) in self.stages.iter().zip(1_usize..) {
            write!(f, "{number}. {stage}")?;
        }
        for group in &self.groups {
            writeln!(f, "job {}: {}", group.job, folded(&group.nodes))?;
        }
        for finding in &self.findings {
            f.write_str("found: ")?;
            finding.write(f, "to be repaired")?;
            writeln!(f)?;
        }
        Ok(())
    }
}

//! `listnodes`: one table of what Slurm and the cloud say.

mod states;

use crate::args::{Common, nodes};
use crate::bootstrap::Bootstrap;
use crate::context::Context;
use crate::diagnostic::Diagnostic;
use crate::process::SOME_FAILED;
use crate::table;
use crate::wiring::Purpose;
use clap::{Parser, ValueEnum};
use cloud_core::Instance;
use hostlist::{Hostlist, NodeName};
use provision::World;
use provision::plan::{self, Machine, Refusal};
use provision::run::Run;
use serde_json::json;
use states::States;
use std::collections::BTreeSet;
use std::time::SystemTime;

/// List nodes, with their state in Slurm and in the cloud.
#[derive(Debug, Parser)]
#[command(name = "listnodes", version, after_help = EXAMPLES)]
pub struct Arguments {
    #[command(flatten)]
    pub(crate) common: Common,

    /// Print comma-separated values.
    #[arg(long, conflicts_with = "json")]
    csv: bool,

    /// Only nodes of these partitions.
    #[arg(long, short, value_name = "NAME,...", value_delimiter = ',')]
    partition: Vec<String>,

    /// Only nodes in one of these states, Slurm's or the cloud's, such as idle, drained or running.
    #[arg(long, short = 't', value_name = "STATE,...", value_delimiter = ',')]
    state: Vec<String>,

    /// Also list nodes without a machine.
    #[arg(long, short)]
    all: bool,

    /// Print this hosts file with a line for each machine, instead of the table.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["csv", "json", "inventory"])]
    hosts: Option<std::path::PathBuf>,

    /// Print an Ansible inventory instead of the table.
    #[arg(long, value_name = "FORMAT", conflicts_with_all = ["csv", "json"])]
    inventory: Option<Inventory>,

    /// Only these nodes, such as n[001-004],gpu7.
    #[arg(value_name = "HOSTLIST", value_parser = nodes)]
    nodes: Option<Hostlist>,
}

/// What an inventory looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Inventory {
    /// As Ansible reads it from a file.
    Ini,
    /// As Ansible reads it from a program.
    Json,
}

const EXAMPLES: &str = "\
Examples:
  listnodes                          nodes that have a machine, or a reason
  listnodes --all --partition gpu    all nodes of a partition
  listnodes --state down,drained     nodes that take no jobs
  listnodes --json 'n[001-004]'      for machines
  listnodes --inventory ini > hosts  for Ansible
  listnodes --hosts /etc/hosts       /etc/hosts with our lines in it, on standard output

Exit code: 0 success, 1 the cloud or slurmctld did not answer, or slurm.conf has no such node (what is known is shown), 2 wrong usage or configuration.";

const HEAD: [&str; 10] =
    ["NODE", "SLURM", "CLOUD", "ADDRESS", "AGE", "SHAPE", "ZONE", "IMAGE", "INSTANCE", "WHY"];

/// What is known of one node.
struct Row {
    node: String,
    slurm: String,
    cloud: String,
    address: String,
    age: String,
    shape: String,
    zone: String,
    image: String,
    instance: String,
    why: String,
}

/// Prints a table of nodes.
pub async fn run(arguments: Arguments) -> u8 {
    let bootstrap = Bootstrap::open("listnodes", &arguments.common);
    begin(&bootstrap, &arguments).await.unwrap_or_else(|why| bootstrap.fail(&why))
}

async fn begin(bootstrap: &Bootstrap, arguments: &Arguments) -> Result<u8, Diagnostic> {
    let common = &arguments.common;
    let context = Context::open(bootstrap, Purpose::Look, None).await?;
    let listed = async |run: &Run<'_>| {
        let mut cancel = run.tools.cancel.clone();
        tokio::select! {
            listed = show(&context, arguments, run) => listed,
            // Nothing is under way that would have to be ended in order.
            () = cancel.cancelled() => Ok(SOME_FAILED),
        }
    };
    context.with_run(common, listed).await
}

async fn show(context: &Context, arguments: &Arguments, run: &Run<'_>) -> Result<u8, Diagnostic> {
    let wanted = wanted(arguments, run)?;
    let mut look = run.observe().await;
    run.find_addresses(&mut look).await;
    let world = look.world(run);
    let asked: &[NodeName] = if arguments.nodes.is_some() { &wanted } else { &[] };
    let unknown = context.unknown(asked, world);
    let rows = wanted.iter().map(|node| row(node, world, unknown.contains(node)));
    let rows = rows.chain(strangers(arguments, world));
    let seen = look.fleet.is_complete();
    let mut rows: Vec<Row> = rows.collect();
    let states = States::new(&arguments.state);
    let unknown_states = states.unknown(rows.iter().map(|row| (&*row.slurm, &*row.cloud)));
    if !unknown_states.is_empty() {
        return Err(Diagnostic::new(format!(
            "neither Slurm nor the cloud has a state {}; idle, drained, powering_up, down, running and pending are some",
            unknown_states.join(", ")
        )));
    }
    rows.retain(|row| fits(row, arguments, &states, seen));
    let chosen: BTreeSet<&str> = rows.iter().map(|row| row.node.as_str()).collect();
    let mut machines = plan::machines(world);
    machines.retain(|machine| chosen.contains(machine.node.as_str()));
    if let Some(format) = arguments.inventory {
        export(context, format, &machines, world);
    } else if let Some(path) = &arguments.hosts {
        let old = std::fs::read(path)
            .map_err(|error| Diagnostic::new(format!("cannot read {}: {error}", path.display())))?;
        let new = plan::hosts(&old, &machines, None);
        let new = new.map_err(|error| Diagnostic::from_error(&error))?;
        context.output.hand_out(&new);
    } else {
        print(context, arguments, &rows);
    }
    let code = context.blind(&look);
    Ok(if unknown.is_empty() { code } else { SOME_FAILED })
}

/// The nodes asked for: those named, or those of slurm.conf.
fn wanted(arguments: &Arguments, run: &Run<'_>) -> Result<Vec<NodeName>, Diagnostic> {
    let given = arguments.nodes.as_ref().map(Hostlist::node_names).transpose();
    let given = given.map_err(|error| Diagnostic::from_error(&error))?;
    let mut names = given.unwrap_or_else(|| run.conf.nodes());
    if arguments.partition.is_empty() {
        return Ok(names);
    }
    let mut members = BTreeSet::new();
    for partition in &arguments.partition {
        let found = run.conf.partition(partition);
        members.extend(found.ok_or_else(|| super::no_partition(partition))?.iter());
    }
    names.retain(|name| members.contains(name.as_str()));
    Ok(names)
}

/// The machines of ours whose nodes slurm.conf does not have: they cost money, and nobody else shows them.
fn strangers(arguments: &Arguments, world: World<'_>) -> Vec<Row> {
    if arguments.nodes.is_some() || !arguments.partition.is_empty() {
        return Vec::new();
    }
    let is_live = |instance: &&Instance| instance.state.is_live();
    let mut nodes = world.fleet.nodes();
    nodes.retain(|node| {
        world.conf.get(node).is_none() && world.fleet.of(node).iter().any(|it| is_live(&it))
    });
    let nameless = world.fleet.nameless().iter().filter(is_live).map(|instance| {
        let why = Refusal::NotInSlurmConf.to_string();
        Row::of(instance.name.to_string(), Some(instance), why, world)
    });
    nodes.iter().map(|node| row(node, world, false)).chain(nameless).collect()
}

fn row(node: &NodeName, world: World<'_>, unknown: bool) -> Row {
    let slurm = world.node(node);
    let instances = world.fleet.of(node);
    let instance = instances.iter().find(|instance| instance.state.is_live());
    let instance = instance.or(instances.first());
    let several = instances.iter().filter(|instance| instance.state.is_live()).count() > 1;
    let fault = instance.and_then(|instance| instance.fault.as_ref());
    // One that was made by scontrol create is known to slurmctld alone.
    let unknown =
        unknown || instance.is_some() && slurm.is_none() && world.conf.get(node).is_none();
    let why = match (slurm.map(slurmctl::Node::reason_text), fault, several) {
        (_, _, true) => "several machines have this name; see reconcile".to_owned(),
        (Some(reason), _, _) if !reason.is_empty() => reason.to_owned(),
        (_, Some(fault), _) => fault.message.clone(),
        _ if unknown => Refusal::NotInSlurmConf.to_string(),
        _ => String::new(),
    };
    let slurm = slurm.map(|slurm| slurm.state.to_string().to_lowercase());
    let row = Row::of(node.to_string(), instance, why, world);
    Row { slurm: slurm.unwrap_or(row.slurm), ..row }
}

/// True if the node is to be shown; `seen` is false if it cannot be known which have a machine.
fn fits(row: &Row, arguments: &Arguments, states: &States, seen: bool) -> bool {
    let may_run = || row.slurm != "-" && !states::has(&row.slurm, &row.cloud, "powered_down");
    let interesting = row.instance != "-" || !row.why.is_empty() || !seen && may_run();
    let asked = arguments.all || arguments.nodes.is_some() || !states.is_any();
    states.fit(&row.slurm, &row.cloud) && (asked || interesting)
}

fn print(context: &Context, arguments: &Arguments, rows: &[Row]) {
    let output = &context.output;
    if arguments.common.json {
        let rows: Vec<_> = rows.iter().map(Row::json).collect();
        output.print(json!(rows));
        return;
    }
    let cells: Vec<_> = rows.iter().map(Row::cells).collect();
    let lines = if arguments.csv {
        table::csv(HEAD.map(str::to_lowercase).each_ref().map(String::as_str), &cells)
    } else {
        table::lines(HEAD, &cells)
    };
    for line in lines {
        output.print(line);
    }
}

impl Row {
    /// What the cloud says of a machine, if there is one.
    fn of(node: String, instance: Option<&Instance>, why: String, world: World<'_>) -> Self {
        let text = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
        let address = instance.and_then(|instance| instance.address);
        Self {
            slurm: text(None),
            cloud: text(instance.map(|instance| instance.state.to_string())),
            address: text(address.map(|address| address.to_string())),
            age: text(instance.and_then(|instance| instance.created).map(|at| age(at, world.now))),
            shape: text(instance.and_then(|it| it.shape.as_ref()).map(ToString::to_string)),
            zone: text(instance.and_then(|it| it.zone.as_ref()).map(ToString::to_string)),
            image: text(instance.and_then(|it| it.image.as_ref()).map(ToString::to_string)),
            instance: text(instance.map(|instance| instance.id.to_string())),
            why,
            node,
        }
    }

    fn cells(&self) -> [String; HEAD.len()] {
        let Self { node, slurm, cloud, address, age, shape, zone, image, instance, why } = self;
        [node, slurm, cloud, address, age, shape, zone, image, instance, why].map(Clone::clone)
    }

    fn json(&self) -> serde_json::Value {
        let some = |text: &str| (text != "-" && !text.is_empty()).then(|| text.to_owned());
        json!({
            "node": self.node,
            "slurm": some(&self.slurm),
            "cloud": some(&self.cloud),
            "address": some(&self.address),
            "age": some(&self.age),
            "shape": some(&self.shape),
            "zone": some(&self.zone),
            "image": some(&self.image),
            "instance": some(&self.instance),
            "why": some(&self.why),
        })
    }
}

/// How old, in the one unit that says most.
fn age(created: SystemTime, now: SystemTime) -> String {
    let seconds = now.duration_since(created).unwrap_or_default().as_secs();
    match seconds {
        0..120 => format!("{seconds}s"),
        120..7200 => format!("{}m", seconds / 60),
        7200..172_800 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86_400),
    }
}

fn export(context: &Context, format: Inventory, machines: &[Machine], world: World<'_>) {
    match format {
        Inventory::Ini => {
            context.output.print(plan::inventory_ini(machines, world.conf).trim_end());
        }
        Inventory::Json => context.output.print(plan::inventory_json(machines, world.conf)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn an_age_is_said_in_the_unit_that_says_most() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_hours(10_000);
        for (seconds, text) in
            [(0, "0s"), (119, "119s"), (120, "2m"), (7200, "2h"), (200_000, "2d")]
        {
            assert_eq!(age(now - Duration::from_secs(seconds), now), text);
        }
        assert_eq!(age(now + Duration::from_secs(5), now), "0s");
    }
}

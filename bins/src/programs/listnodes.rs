//! `listnodes`: one table of what Slurm and the cloud say.

mod columns;
mod watch;

use crate::args::{Common, nodes, time};
use crate::bootstrap::Bootstrap;
use crate::context::Context;
use crate::diagnostic::Diagnostic;
use crate::process::SOME_FAILED;
use crate::table;
use crate::wiring::Purpose;
use clap::{Parser, ValueEnum};
use columns::{Column, Layout};
use hostlist::{Hostlist, NodeName};
use provision::World;
use provision::listing::{NodeRow, StateFilter};
use provision::plan::{self, Machine};
use provision::run::{Observation, Run};
use serde_json::json;
use std::collections::BTreeSet;
use std::time::{Duration, SystemTime};
use tokio::time::Instant;
use watch::{Shape, Size, Tail, frame, over};

/// Interval at which a watch redraws the screen, so that events show as they happen.
const REDRAW: Duration = Duration::from_millis(500);

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

    /// The columns, in this order [default: those that fit the terminal].
    #[arg(long, short, value_name = "COLUMN,...", value_delimiter = ',', conflicts_with = "json")]
    output: Vec<Column>,

    /// All columns in full, however wide the terminal is.
    #[arg(long, short, conflicts_with_all = ["csv", "json"])]
    wide: bool,

    /// Draw the table again every few seconds, with a line for each event as it happens.
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, default_missing_value = "5",
        value_parser = time(Duration::from_secs(1), Duration::from_hours(1)),
        conflicts_with_all = ["csv", "json", "hosts", "inventory"])]
    watch: Option<Duration>,

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
  listnodes -o node,slurm,why        chosen columns
  listnodes --watch                  as it changes, with a line for each event
  listnodes --json 'n[001-004]'      for machines
  listnodes --inventory ini > hosts  for Ansible
  listnodes --hosts /etc/hosts       /etc/hosts with our lines in it, on standard output

Exit code: 0 success, 1 the cloud or slurmctld did not answer, or slurm.conf has no such node (what is known is shown), 2 wrong usage or configuration.";

/// Prints a table of nodes.
pub async fn run(arguments: Arguments) -> u8 {
    let bootstrap = Bootstrap::open("listnodes", &arguments.common);
    begin(&bootstrap, &arguments).await.unwrap_or_else(|why| bootstrap.fail(&why))
}

async fn begin(bootstrap: &Bootstrap, arguments: &Arguments) -> Result<u8, Diagnostic> {
    let context = Context::open(bootstrap, Purpose::Observe, None).await?;
    let listed = async |run: &Run<'_>| {
        let mut cancel = run.tools.cancel.clone();
        let shown = async {
            match arguments.watch {
                Some(pause) => watch(&context, arguments, run, pause).await,
                None => show(&context, arguments, run).await,
            }
        };
        tokio::select! {
            listed = shown => listed,
            // Nothing is under way that has to end in order.
            () = cancel.cancelled() => Ok(SOME_FAILED),
        }
    };
    context.with_run(listed).await
}

/// The requested rows, with the observation that they come from.
struct Listed {
    rows: Vec<NodeRow>,
    observed: Observation,
    /// True if slurm.conf has all nodes that were named.
    known: bool,
}

async fn list(
    context: &Context<'_>,
    arguments: &Arguments,
    run: &Run<'_>,
) -> Result<Listed, Diagnostic> {
    let wanted = wanted(arguments, run)?;
    let mut observed = run.observe().await;
    run.find_addresses(&mut observed).await;
    let world = observed.world(run);
    let asked: &[NodeName] = if arguments.nodes.is_some() { &wanted } else { &[] };
    let unknown = context.unknown(asked, world);
    let mut rows: Vec<NodeRow> =
        wanted.iter().map(|node| NodeRow::of(node, world, unknown.contains(node))).collect();
    if arguments.nodes.is_none() && arguments.partition.is_empty() {
        rows.extend(NodeRow::of_strangers(world));
    }
    let (states, seen) = (StateFilter::new(&arguments.state), observed.fleet.is_complete());
    let unknown_states = states.unknown(&rows);
    if !unknown_states.is_empty() {
        return Err(Diagnostic::new(format!(
            "neither Slurm nor the cloud has a state {}; idle, drained, powering_up, down, running and pending are some",
            unknown_states.join(", ")
        )));
    }
    let asked = arguments.all || arguments.nodes.is_some() || !states.is_any();
    rows.retain(|row| states.matches(row) && (asked || row.is_interesting(seen)));
    let known = unknown.is_empty();
    Ok(Listed { rows, observed, known })
}

async fn show(
    context: &Context<'_>,
    arguments: &Arguments,
    run: &Run<'_>,
) -> Result<u8, Diagnostic> {
    let Listed { rows, observed, known } = list(context, arguments, run).await?;
    let world = observed.world(run);
    let chosen: BTreeSet<&str> = rows.iter().map(|row| row.node.as_str()).collect();
    let mut machines = plan::machines(world);
    machines.retain(|machine| chosen.contains(machine.node.as_str()));
    if let Some(format) = arguments.inventory {
        export(context, format, &machines, world);
    } else if let Some(path) = &arguments.hosts {
        let old = std::fs::read(path)
            .map_err(|error| Diagnostic::new(format!("cannot read {}: {error}", path.display())))?;
        let new = plan::hosts(&old, &machines, None)?;
        context.output.print_file(&new);
    } else {
        print(context, arguments, &rows);
    }
    let code = context.report_unobserved(&observed);
    Ok(if known { code } else { SOME_FAILED })
}

/// The nodes asked for: those named, or those of slurm.conf.
fn wanted(arguments: &Arguments, run: &Run<'_>) -> Result<Vec<NodeName>, Diagnostic> {
    let given = arguments.nodes.as_ref().map(Hostlist::node_names).transpose()?;
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

/// Prints the rows as JSON, CSV or a table.
fn print(context: &Context<'_>, arguments: &Arguments, rows: &[NodeRow]) {
    let output = &context.output;
    if arguments.common.json {
        output.print(json!(rows));
        return;
    }
    let columns = if arguments.output.is_empty() { &columns::ALL[..] } else { &arguments.output };
    let lines = if arguments.csv {
        let head: Vec<String> = columns.iter().map(|column| column.head().to_lowercase()).collect();
        let cells = |row| columns.iter().map(|column| column.cell(row)).collect();
        table::csv(&head, &rows.iter().map(cells).collect::<Vec<_>>())
    } else {
        columns::lines(rows, arguments.layout(), *output)
    };
    for line in lines {
        output.print(line);
    }
}

impl Arguments {
    /// The layout of the table: it fits the terminal, and is wide without one.
    fn layout(&self) -> Layout<'_> {
        let size = Size::of_terminal().filter(|_| !self.wide);
        Layout { chosen: &self.output, width: size.map(|size| size.width) }
    }
}

/// Redraws the table until it is interrupted.
async fn watch(
    context: &Context<'_>,
    arguments: &Arguments,
    run: &Run<'_>,
    pause: Duration,
) -> Result<u8, Diagnostic> {
    let mut tail = Tail::new(&context.state_path, SystemTime::now());
    loop {
        let listed = list(context, arguments, run).await?;
        let until = Instant::now() + pause;
        let mut status = String::new();
        for warning in &listed.observed.warnings {
            status.extend(["; ", warning]);
        }
        loop {
            tail.read(SystemTime::now());
            let size = Size::of_terminal();
            let (output, height) = (context.output, size.map(|size| size.height));
            let shape = Shape { output, height, status: &status };
            let picture = frame(&listed.rows, &tail, arguments.layout(), shape);
            if size.is_none() {
                // Without a terminal, nothing can be overwritten: one table per round.
                for line in &picture {
                    output.print(line);
                }
                tokio::time::sleep_until(until).await;
                break;
            }
            output.print_file(over(&picture).as_bytes());
            if Instant::now() >= until {
                break;
            }
            tokio::time::sleep(REDRAW.min(until.saturating_duration_since(Instant::now()))).await;
        }
    }
}

fn export(context: &Context<'_>, format: Inventory, machines: &[Machine], world: World<'_>) {
    match format {
        Inventory::Ini => {
            context.output.print(plan::inventory_ini(machines, world.conf).trim_end());
        }
        Inventory::Json => context.output.print(plan::inventory_json(machines, world.conf)),
    }
}

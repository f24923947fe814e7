//! `rebuild`: gives nodes a new image, or reboots them.

mod roll;
mod snapshot;
mod status;
mod submit;

use crate::args::{Common, nodes as hostlist};
use crate::bootstrap::Bootstrap;
use crate::bootstrap_failure::report_not_rebuilt;
use crate::context::{Context, in_time};
use crate::diagnostic::Diagnostic;
use crate::environment::Environment;
use crate::process::SOME_FAILED;
use crate::wiring::{self, Purpose};
use clap::{Parser, Subcommand};
use hostlist::{Hostlist, NodeName};
use provision::Site;
use provision::plan::RebuildOptions;
use provision::run::{self, Run};
use provision::targets::TargetFiles;
use slurmctl::{Caller, ProgramRole};
use std::collections::BTreeMap;
use tokio::time::Instant;

/// Rebuild nodes with a new image, or reboot those that have it.
///
/// Slurm calls it as RebootProgram, with a host list on the controller or without arguments on the node itself. The image
/// comes from the first of these that names one: the node's own file (StackHPC's reboot vars), its hostvars, its reason in Slurm (rebuild
/// image:NAME), its feature image=, the configuration.
#[derive(Debug, Parser)]
#[command(name = "rebuild", version, after_help = EXAMPLES, subcommand_precedence_over_arg = true)]
pub struct Arguments {
    #[command(flatten)]
    pub(crate) common: Common,

    #[command(subcommand)]
    command: Option<Command>,

    /// The nodes, such as n[001-004],gpu7; this machine if none is given.
    #[arg(value_name = "HOSTLIST", value_parser = hostlist)]
    nodes: Option<Hostlist>,

    /// Features that Slurm wants the nodes to boot with; not used.
    #[arg(value_name = "FEATURES")]
    features: Option<String>,
}

// A doc comment here would replace that of the subcommand's options in the help.
#[derive(Debug, Subcommand)]
enum Command {
    Submit(submit::Submit),
    Status(status::Status),
    Image(snapshot::Snapshot),
}

const EXAMPLES: &str = "\
Examples:
  rebuild submit --image rocky-9.5-v2 --batch 4 --canary 1   roll out a new image to all nodes
  rebuild submit --jobs --option=--qos=high                  a rebuild job for each node of partition rebuild
  rebuild status                                             show progress
  rebuild image n001 --name golden                           make an image of a running node
  rebuild --dry-run 'n[001-004]'                             show what a call by Slurm would do

In slurm.conf:
  RebootProgram=/usr/local/bin/rebuild
  SlurmctldParameters=reboot_from_controller

Exit code: 0 success, 1 some nodes failed (each is named), 2 wrong usage or configuration
(nothing done in the cloud; nodes that Slurm waits for get a reason).";

/// Rebuilds or reboots nodes, or runs a subcommand.
pub async fn run(arguments: Arguments) -> u8 {
    let begun = Instant::now();
    let bootstrap = Bootstrap::open("rebuild", &arguments.common);
    let why = match Box::pin(begin(&bootstrap, &arguments, begun)).await {
        Ok(code) => return code,
        Err(why) => why,
    };
    let code = bootstrap.fail(&why);
    // An error in a call by hand, Ansible or cron says nothing about a rebuild that Slurm may be waiting for.
    let slurm_waits = bootstrap.environment.caller(ProgramRole::Reboot) == Caller::Slurm;
    if slurm_waits
        && arguments.command.is_none()
        && !arguments.common.dry_run
        && let Ok(names) = requested_nodes(&arguments, &bootstrap.environment)
    {
        report_not_rebuilt(&bootstrap, &names, &why).await;
    }
    code
}

async fn begin(
    bootstrap: &Bootstrap,
    arguments: &Arguments,
    begun: Instant,
) -> Result<u8, Diagnostic> {
    if let (Some(nodes), Some(_)) = (&arguments.nodes, &arguments.command) {
        return Err(Diagnostic::new(format!("{nodes} before a command; name nodes after it")));
    }
    let Some(command) = &arguments.command else {
        return Box::pin(called(bootstrap, arguments, begun)).await;
    };
    let mut context = Context::open(bootstrap, Purpose::Perhaps, None).await?;
    context.fill(None).await;
    context.find_available_images().await?;
    if let Some(hidden) = context.hidden_nodes_warning() {
        context.warn(&hidden);
    }
    match command {
        Command::Submit(submit) => roll::submit(&context, submit).await,
        Command::Status(status) => status::show(&context, status).await,
        Command::Image(snapshot) => snapshot::make(&context, snapshot).await,
    }
}

/// Runs as RebootProgram, and ends before slurmctld kills the program.
async fn called(
    bootstrap: &Bootstrap,
    arguments: &Arguments,
    begun: Instant,
) -> Result<u8, Diagnostic> {
    let names = requested_nodes(arguments, &bootstrap.environment)?;
    let list: Hostlist = names.iter().collect();
    let mut context = Context::open(bootstrap, Purpose::Perhaps, Some(&list)).await?;
    context.fill(Some(&names)).await;
    let deadline = wiring::deadline(context.settings, &context.slurm.config, &list);
    // slurmctld's timeout starts with its call.
    let left = || deadline.saturating_sub(begun.elapsed());
    // Slurm waits, and nodes whose files name the image need no list.
    in_time(Some(left()), context.find_available_images()).await?;
    if let Some(mistyped) = mistyped(&names, &context) {
        return Err(mistyped);
    }
    context.site.policies.deadline = left();
    nodes(&context, &names).await
}

/// Paths where StackHPC's appliance writes the image of each node.
fn target_files(context: &Context<'_>) -> TargetFiles {
    let paths = &context.settings.paths;
    let folder =
        |path: Option<&str>, usual| context.bootstrap.environment.expand(path.unwrap_or(usual));
    let reboot_vars = folder(paths.reboot_vars.as_deref(), "/etc/slurm/reboot_vars");
    let required = paths.reboot_vars.is_some() || reboot_vars.is_dir();
    let hostvars = folder(paths.hostvars.as_deref(), "/exports/cluster/hostvars");
    TargetFiles { reboot_vars, hostvars, required }
}

/// The nodes that a call names, or this machine.
fn requested_nodes(
    arguments: &Arguments,
    environment: &Environment,
) -> Result<Vec<NodeName>, Diagnostic> {
    match &arguments.nodes {
        Some(nodes) => nodes.node_names().map_err(Diagnostic::from),
        None => Ok(vec![this_machine(environment)?]),
    }
}

/// The error for a mistyped subcommand, which was parsed as a node.
fn mistyped(names: &[NodeName], context: &Context<'_>) -> Option<Diagnostic> {
    let [name] = names else { return None };
    let near = slurmconf::nearest(name.as_str(), ["submit", "status", "image"])?;
    let known = context.slurm.config.node(name.as_str()).is_some();
    let text = format!("slurm.conf has no node {name}; did you mean `rebuild {near}`?");
    (!known).then(|| Diagnostic::new(text))
}

/// The node that this process runs on, for a RebootProgram that slurmd calls.
fn this_machine(environment: &Environment) -> Result<NodeName, Diagnostic> {
    // Only Slurm 26.05 passes the name.
    let name = environment.get("SLURM_NODE_NAME").unwrap_or(&environment.hostname);
    NodeName::new(name).map_err(Diagnostic::from)
}

/// Rebuilds or reboots nodes as Slurm requested.
pub(super) async fn nodes(context: &Context<'_>, names: &[NodeName]) -> Result<u8, Diagnostic> {
    // Slurm calls only when the nodes may go down. For other callers, a node with a job is skipped, also if slurmctld does
    // not say whether it has one.
    let caller = context.bootstrap.environment.caller(ProgramRole::Reboot);
    let slurm_asks = caller == Caller::Slurm;
    let options = RebuildOptions { launch_absent: true, slurm_asks, ..RebuildOptions::default() };
    context
        .with_run(async |run: &Run<'_>| {
            let begun = Instant::now();
            let rules = wiring::image_rules(context.settings);
            let files = target_files(context);
            let targets = files.targets(run, rules, names, &BTreeMap::new()).await;
            let mut site: Site = run.site.clone();
            site.policies.deadline = site.policies.deadline.saturating_sub(begun.elapsed());
            let run = &Run { site: &site, ..run.clone() };
            if context.dry_run() {
                let (plan, observation) = run::preview_rebuild(run, &targets.known, options).await;
                let code = context.preview(&plan, &observation);
                for (node, why) in &targets.failed {
                    context.output.print_error(format_args!("{node}: {why}"));
                }
                return Ok(if targets.failed.is_empty() { code } else { SOME_FAILED });
            }
            let may_wait = caller == Caller::Script;
            let report = run::rebuild_targets(run, targets, options, may_wait).await;
            Ok(context.report(&report))
        })
        .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_may_stand_before_a_command() {
        let parse = |words: &str| Arguments::try_parse_from(words.split(' ')).unwrap();
        let submit = parse("rebuild --config c.yaml submit --jobs rebuild --image new");
        assert!(matches!(submit.command, Some(Command::Submit(_))), "{submit:?}");
        let nodes = parse("rebuild --config c.yaml n1,n2 feature");
        assert!(nodes.command.is_none() && nodes.nodes.is_some(), "{nodes:?}");
    }
}

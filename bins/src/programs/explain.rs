//! `explain`: why a job waits, or a node is as it is.

use crate::args::Common;
use crate::bootstrap::Bootstrap;
use crate::clouds::Wanted;
use crate::config::Settings;
use crate::context::in_time;
use crate::diagnostic::Diagnostic;
use crate::output::{Colour, Output};
use crate::process::{SOME_FAILED, SUCCESS};
use crate::wiring::{self, Connected, Purpose, Slurm};
use clap::Parser;
use cloud_core::Provider;
use cloud_core::pace::Experience;
use hostlist::NodeName;
use provision::explain::{self, Explanation, Facts, Sources};
use provision::{Identity, Roster, Site};
use serde_json::json;
use slurmctl::JobRef;
use std::time::{Duration, SystemTime};

/// Explain why a job waits, or why a node is as it is.
///
/// Prints a paragraph in plain words, the evidence and the remedy. Anybody may run it: what you may not read, such as the
/// state directory, or whom you may not ask, such as the cloud, is named as not seen.
#[derive(Debug, Parser)]
#[command(name = "explain", version, after_help = EXAMPLES)]
pub struct Arguments {
    #[command(flatten)]
    pub(crate) common: Common,

    /// A job as squeue shows it, or a node by its name [default: all jobs that wait, and all nodes out of service].
    #[arg(value_name = "JOB|NODE", value_parser = subject)]
    subject: Option<Subject>,
}

/// What is to be explained.
#[derive(Clone, Debug)]
enum Subject {
    /// A job.
    Job(JobRef),
    /// A node.
    Node(NodeName),
}

const EXAMPLES: &str = "\
Examples:
  explain 17        why job 17 waits
  explain 17_3      why task 3 of array 17 waits
  explain n001      why node n001 is as it is
  explain           all jobs that wait, and all nodes out of service
  explain --json 17 for machines

Exit code: 0 success, 1 slurmctld does not answer, or there is no such job or node, 2 wrong usage.";

/// How long connecting to the cloud may take.
const CONNECT: Duration = Duration::from_secs(5);

/// Explains a job, a node or the cluster.
pub async fn run(arguments: Arguments) -> u8 {
    let bootstrap = Bootstrap::open("explain", &arguments.common);
    begin(&bootstrap, &arguments).await.unwrap_or_else(|why| bootstrap.fail(&why))
}

fn subject(text: &str) -> Result<Subject, String> {
    if let Ok(job) = text.parse() {
        return Ok(Subject::Job(job));
    }
    let node = NodeName::new(text).map(Subject::Node);
    node.map_err(|error| format!("expected the number of a job or the name of a node: {error}"))
}

async fn begin(bootstrap: &Bootstrap, arguments: &Arguments) -> Result<u8, Diagnostic> {
    let slurm = bootstrap.slurm().await?;
    let (settings, configuration) = match &bootstrap.settings {
        Ok(settings) => (Some(settings), None),
        Err(why) => (None, Some(why.to_string())),
    };
    let site = site(bootstrap, settings, &slurm);
    let cloud = cloud(bootstrap, settings, &slurm).await;
    let roster = Roster::new(&slurm.config);
    let state_dir = bootstrap.state_path(settings);
    let sources = Sources {
        slurm: &slurm.controller,
        cloud: cloud.as_deref().map_err(ToString::to_string),
        state_dir: &state_dir,
        site: &site,
        conf: &roster,
        configuration,
        now: SystemTime::now(),
    };
    let job = match arguments.subject {
        Some(Subject::Job(job)) => Some(job),
        Some(Subject::Node(_)) | None => None,
    };
    let facts = explain::gather(&sources, job).await;
    let all = explanations(arguments.subject.as_ref(), &facts);
    print(bootstrap.output, arguments, &all);
    let is_known = |one: &Explanation| !UNKNOWN.contains(&one.cause);
    Ok(if all.iter().all(is_known) { SUCCESS } else { SOME_FAILED })
}

/// Causes that leave the question open.
const UNKNOWN: [&str; 3] = ["slurmctld", "unknown_job", "unknown_node"];

fn explanations(subject: Option<&Subject>, facts: &Facts<'_>) -> Vec<Explanation> {
    match subject {
        Some(Subject::Job(job)) => vec![explain::job(*job, facts)],
        Some(Subject::Node(node)) => vec![explain::node(node, facts)],
        None => explain::cluster(facts),
    }
}

/// What the operator decided, as far as it can be read.
fn site(bootstrap: &Bootstrap, settings: Option<&Settings>, slurm: &Slurm) -> Site {
    let read = |settings| {
        wiring::site(settings, &bootstrap.environment, &slurm.config, Purpose::Observe).ok()
    };
    let site = settings.and_then(read).map(|(site, _)| site);
    site.unwrap_or_else(|| Site::new(Identity::by_name()))
}

/// The cloud, or why it cannot be asked: the owner of a job has no credential.
async fn cloud(
    bootstrap: &Bootstrap,
    settings: Option<&Settings>,
    slurm: &Slurm,
) -> Result<Box<dyn Provider>, Diagnostic> {
    let unknown =
        || Diagnostic::new("the configuration, which says how to reach it, cannot be read");
    let settings = settings.ok_or_else(unknown)?;
    let pacer = &wiring::pacer(&settings.elastic, Experience::default());
    let (environment, slurm) = (&bootstrap.environment, &slurm.config);
    let wanted = Wanted { settings, environment, purpose: Purpose::Observe, slurm, pacer };
    let connecting = Box::pin(wiring::cloud(wanted));
    let Connected { cloud, unreachable, .. } = in_time(Some(CONNECT), connecting).await?;
    unreachable.map_or(Ok(cloud), Err)
}

fn print(output: Output, arguments: &Arguments, all: &[Explanation]) {
    if arguments.common.json {
        match (&arguments.subject, all) {
            (Some(_), [one]) => output.print(json!(one)),
            (_, all) => output.print(json!(all)),
        }
        return;
    }
    for (at, one) in all.iter().enumerate() {
        if at > 0 {
            output.print("");
        }
        output.print(output.paint(Colour::Bold, &one.sentence));
        if !one.details.is_empty() {
            output.print(one.details.join(" "));
        }
        for seen in &one.evidence {
            output.print(format_args!("  {:<10} {}", seen.source, seen.text));
        }
        output.print(format_args!("{} {}", output.paint(Colour::Green, "Remedy:"), one.remedy));
    }
}

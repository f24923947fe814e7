//! `nodewatch`: what the cloud announces to a machine, on that machine.

use crate::args::{Common, time};
use crate::bootstrap::Bootstrap;
use crate::clouds;
use crate::diagnostic::Diagnostic;
use crate::drive::until_interrupted;
use crate::environment;
use crate::log::Level;
use crate::output::chain;
use crate::process::{SOME_FAILED, SUCCESS};
use clap::Parser;
use cloud_core::MachineMetadata;
use cloud_core::http::Url;
use hostlist::NodeName;
use provision::{InterruptionPolicy, interrupt, preview_interrupt, report_location};
use slurmctl::{Controller, Scontrol};
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::time::sleep;

/// Watch this machine for notices of preemption and maintenance.
///
/// It runs on compute nodes, as a service. When the cloud takes the machine away, the node is drained, its jobs are requeued,
/// and reconcile replaces the machine. When the cloud announces a maintenance, the node is reserved for that time. It also
/// tells Slurm in which rack and block the machine is, where the cloud says so.
#[derive(Debug, Parser)]
#[command(name = "nodewatch", version, after_help = EXAMPLES)]
pub struct Arguments {
    #[command(flatten)]
    pub(crate) common: Common,

    /// The cloud, as in `csp` of startnode.yaml [default: the one that the firmware of this machine names].
    #[arg(long, value_name = "NAME")]
    csp: Option<String>,

    /// The node [default: the name of this host].
    #[arg(long, value_name = "NAME", value_parser = node)]
    node: Option<NodeName>,

    /// The metadata service, if it is not in its usual place.
    #[arg(long, value_name = "URL", value_parser = url)]
    metadata: Option<Url>,

    /// Interval between two requests to the metadata service.
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = time(Duration::from_secs(1), Duration::from_hours(1)))]
    every: Duration,

    /// A signal for jobs before they are requeued, such as USR1. A process that does not handle the signal ends by it.
    #[arg(long, value_name = "SIGNAL")]
    signal: Option<String>,

    /// The time that jobs have between this signal and their requeue.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = time(Duration::ZERO, Duration::from_mins(30)))]
    grace: Duration,

    /// How long a maintenance takes.
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = time(Duration::from_mins(1), Duration::from_hours(72)))]
    maintenance: Duration,

    /// Ask once and exit.
    #[arg(long)]
    once: bool,
}

const EXAMPLES: &str = "\
Examples:
  nodewatch                              what the systemd unit slurm-elastic-nodewatch does
  nodewatch --signal USR1 --grace 60     jobs get SIGUSR1, and are requeued a minute later
  nodewatch --once --log -               ask once

Exit code: 0 success, 1 the metadata service or slurmctld does not answer, 2 wrong usage or configuration.";

fn node(text: &str) -> Result<NodeName, String> {
    NodeName::new(text).map_err(|error| error.to_string())
}

fn url(text: &str) -> Result<Url, String> {
    Url::parse(text).map_err(|error| error.to_string())
}

/// Watches until a signal arrives.
pub async fn run(arguments: Arguments) -> u8 {
    let bootstrap = Bootstrap::open("nodewatch", &arguments.common);
    match Watch::open(&bootstrap, &arguments).await {
        Ok(Some(mut watch)) => watch.run(&arguments).await,
        Ok(None) => {
            let text =
                "this cloud is unknown, or announces nothing to its machines; nothing to watch";
            bootstrap.note(Level::Info, text);
            SUCCESS
        }
        Err(diagnostic) => bootstrap.fail(&diagnostic),
    }
}

/// A watch on one machine.
struct Watch<'b> {
    bootstrap: &'b Bootstrap,
    node: NodeName,
    metadata: Box<dyn MachineMetadata>,
    slurm: Scontrol,
    policy: InterruptionPolicy,
    /// The lines that were logged. Each is logged once.
    logged: BTreeSet<String>,
    /// True once Slurm knows where the machine is.
    located: bool,
    /// True while nothing is announced and nothing is left to do. Then slurmctld gets no request, because every machine of
    /// the cluster would send one every few seconds.
    at_rest: bool,
}

impl<'b> Watch<'b> {
    /// Connects to the metadata service and to Slurm; none if the cloud announces nothing.
    async fn open(
        bootstrap: &'b Bootstrap,
        arguments: &Arguments,
    ) -> Result<Option<Self>, Diagnostic> {
        let base = arguments.metadata.clone();
        let csp = arguments.csp.as_deref();
        let Some(metadata) = clouds::metadata(csp, &environment::firmware(), base)? else {
            return Ok(None);
        };
        let name = &bootstrap.environment.hostname;
        let node = arguments.node.clone().map_or_else(|| NodeName::new(name), Ok);
        let node = node.map_err(|error| {
            Diagnostic::new(format!("{name} is no name of a node: {error}; use --node"))
        })?;
        // Compute nodes have no startnode.yaml: it names a credential.
        let slurm = bootstrap.slurm().await?.controller;
        let signal = arguments.signal.clone().map(|signal| (signal, arguments.grace));
        let policy = InterruptionPolicy { signal, maintenance: arguments.maintenance };
        let logged = BTreeSet::new();
        let (located, at_rest) = (false, false);
        Ok(Some(Self { bootstrap, node, metadata, slurm, policy, logged, located, at_rest }))
    }

    async fn run(&mut self, arguments: &Arguments) -> u8 {
        if arguments.common.dry_run {
            return self.preview().await;
        }
        let interrupted = until_interrupted();
        tokio::pin!(interrupted);
        loop {
            let code = tokio::select! {
                biased;
                () = &mut interrupted => return SUCCESS,
                code = self.observe() => code,
            };
            if arguments.once {
                return code;
            }
            tokio::select! {
                biased;
                () = &mut interrupted => return SUCCESS,
                () = sleep(arguments.every) => {}
            }
        }
    }

    /// Asks once, and prints what it would do.
    async fn preview(&self) -> u8 {
        let lines = async {
            let announced = self.metadata.interruption().await.map_err(|error| chain(&error))?;
            let lines = preview_interrupt(&self.slurm, &self.node, announced, &self.policy).await;
            lines.map_err(|error| chain(&error))
        };
        match lines.await {
            Ok(lines) if lines.is_empty() => self.bootstrap.output.print("nothing to do"),
            Ok(lines) => lines.iter().for_each(|line| self.bootstrap.output.print(line)),
            Err(why) => {
                self.bootstrap.output.print_error(why);
                return SOME_FAILED;
            }
        }
        SUCCESS
    }

    /// Asks once, and acts on the response.
    async fn observe(&mut self) -> u8 {
        let announced = match self.metadata.interruption().await {
            Ok(announced) => announced,
            Err(error) => return self.fails(&error),
        };
        if !self.located {
            self.locate().await;
        }
        if announced.is_none() && self.at_rest {
            return SUCCESS;
        }
        self.at_rest = false;
        let slurm: &dyn Controller = &self.slurm;
        match interrupt(slurm, &self.node, announced, &self.policy).await {
            Ok(lines) => {
                self.at_rest = announced.is_none() && lines.is_empty();
                for line in lines {
                    self.note(Level::Warning, &line);
                }
                SUCCESS
            }
            Err(error) => self.fails(&error),
        }
    }

    /// Reports to Slurm where the machine is. A failure is retried the next time.
    async fn locate(&mut self) {
        let location = match self.metadata.location().await {
            Ok(location) => location,
            Err(error) => return self.note(Level::Warning, &chain(&error)),
        };
        match report_location(&self.slurm, &self.node, &location).await {
            Ok(done) => self.located = done,
            Err(error) => self.note(Level::Warning, &chain(&error)),
        }
    }

    fn fails(&mut self, error: &(dyn std::error::Error + 'static)) -> u8 {
        self.note(Level::Warning, &chain(error));
        SOME_FAILED
    }

    /// Logs a line that was not logged before.
    fn note(&mut self, level: Level, line: &str) {
        if self.logged.insert(line.to_owned()) {
            self.bootstrap.note(level, line);
        }
    }
}

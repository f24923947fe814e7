//! The real controller, through Slurm's own programs.

use crate::{
    BatchJob, Controller, ControllerConfig, Error, ErrorKind, Job, JobFilter, JobId, Node,
    NodeAction, NodeAddress, Programs, Reason, Result,
    argv::{self, Argv, argv},
    classify::classify,
    parse,
    reason::clean,
    run::{LONGEST_SHOWN, Printed, Runner, shown},
    squeue,
    update::Update,
};
use async_trait::async_trait;
use hostlist::Hostlist;
use slurmconf::SlurmVersion;
use std::{
    path::{Path, PathBuf},
    time::Duration,
};
use tokio::time::{Instant, sleep};

/// How long to wait between two looks whether slurmctld is back.
const PAUSE: Duration = Duration::from_millis(200);

/// How to reach slurmctld.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ScontrolConfig {
    /// Slurm's programs.
    pub programs: Programs,
    /// `SLURM_CONF`; without it Slurm looks where it was built to look.
    pub slurm_conf: Option<PathBuf>,
    /// How long one command may take: without slurmctld they try for minutes. A site that raises `MessageTimeout` has an
    /// slurmctld that takes longer: see [`Scontrol::with_message_timeout`].
    pub timeout: Duration,
    /// How many bytes one command may print; a node takes about one thousand.
    pub longest_output: usize,
    /// The command that restarts slurmctld, an absolute path first.
    pub restart: Vec<String>,
    /// How long a restart may take until slurmctld answers.
    pub restart_timeout: Duration,
}

impl ScontrolConfig {
    /// The usual settings.
    #[must_use]
    pub fn new(programs: Programs) -> Self {
        Self {
            programs,
            slurm_conf: None,
            timeout: Duration::from_secs(20),
            longest_output: 256 << 20,
            restart: ["/usr/bin/systemctl", "restart", "slurmctld"].map(str::to_owned).to_vec(),
            restart_timeout: Duration::from_mins(2),
        }
    }
}

/// The real controller, through `scontrol`, `squeue` and `sbatch`.
///
/// Each command gets its own environment (not ours), no standard input, a deadline after which its
/// process group is killed, and no shell. A command outlives us if we are killed: slurmctld's signal to
/// our own group does not reach it.
#[derive(Clone, Debug)]
pub struct Scontrol {
    config: ScontrolConfig,
    runner: Runner,
    version: SlurmVersion,
}

/// The longest that one command may take, whatever slurm.conf says.
const LONGEST: Duration = Duration::from_mins(2);

impl Scontrol {
    /// A controller whose version is known already.
    #[must_use]
    pub fn new(config: ScontrolConfig, version: SlurmVersion) -> Self {
        Self { runner: runner(&config), config, version }
    }

    /// Finds out the version; slurmctld is not asked.
    pub async fn connect(config: ScontrolConfig) -> Result<Self> {
        let runner = runner(&config);
        let (program, arguments) = (config.programs.scontrol.clone(), argv(["--version"]));
        let printed = runner.run(&program, &arguments).await?;
        let printed = succeeded(&program, &arguments, printed)?;
        let version = printed.parse().map_err(|source: slurmconf::Error| {
            Error::new(ErrorKind::Protocol, shown(&program, &arguments)).caused_by(source)
        })?;
        Ok(Self::new(config, version))
    }

    /// The same where slurm.conf has this `MessageTimeout`: one command may take twice that, if it is more than it may take
    /// anyway, but no longer than two minutes: whoever looks at Slurm has other things to do.
    #[must_use]
    pub fn with_message_timeout(mut self, message_timeout: Duration) -> Self {
        self.config.timeout =
            self.config.timeout.max(message_timeout.saturating_mul(2).min(LONGEST));
        self.runner = runner(&self.config);
        self
    }

    /// How long one command may take.
    #[must_use]
    pub fn timeout(&self) -> Duration {
        self.config.timeout
    }

    /// Slurm's programs, as they were found.
    #[must_use]
    pub fn programs(&self) -> &Programs {
        &self.config.programs
    }

    async fn scontrol(&self, arguments: &Argv) -> Result<String> {
        self.run(&self.config.programs.scontrol, arguments).await
    }

    async fn run(&self, program: &Path, arguments: &Argv) -> Result<String> {
        succeeded(program, arguments, self.runner.run(program, arguments).await?)
    }

    /// One command after the other. What is refused for some nodes is no reason not to ask for the
    /// others; an slurmctld that does not answer is.
    async fn change(&self, updates: Vec<Update<'_>>, mut failures: Vec<Error>) -> Result<()> {
        for update in updates {
            let Err(error) = self.tell(&update).await else { continue };
            let unknown = error.kind() == ErrorKind::NotFound;
            failures.push(error);
            if unknown {
                failures.extend(self.go_on(update).await.err());
            }
            if failures.last().is_some_and(is_hopeless) {
                break;
            }
        }
        Error::all(failures)
    }

    /// Waits for an answer that only a controller in charge gives: one in standby is up as well.
    async fn until_it_acts(&self, deadline: Instant) -> Result<()> {
        let (program, arguments) = (&self.config.programs.scontrol, argv(["show", "config"]));
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let timeout = self.runner.timeout.min(left);
            let runner = Runner { timeout, ..self.runner.clone() };
            let printed = runner.run(program, &arguments).await;
            let error = match printed.and_then(|text| succeeded(program, &arguments, text)) {
                Ok(_) => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Missing => return Err(error),
                Err(error) => error,
            };
            if Instant::now() >= deadline {
                let text =
                    format!("slurmctld does not answer after {:?}", self.config.restart_timeout);
                let late = Error::new(ErrorKind::Unavailable, "restart of slurmctld");
                return Err(late.because(text).caused_by(error));
            }
            sleep(PAUSE.min(left)).await;
        }
    }

    async fn tell(&self, update: &Update<'_>) -> Result<()> {
        self.scontrol(&update.argv()?).await.map(drop)
    }

    /// Does what slurmctld left undone because there was a name that it does not know.
    async fn go_on(&self, update: Update<'_>) -> Result<()> {
        let nodes = self.nodes(Some(&update.nodes())).await?;
        let known: Hostlist = nodes.iter().map(|node| &node.name).collect();
        match update.rest(&known) {
            Some(rest) => self.tell(&rest).await,
            None => Ok(()),
        }
    }

    /// One piece of the list of nodes; that some are unknown is no failure.
    async fn show_nodes(&self, which: Option<&Hostlist>) -> Result<Vec<Node>> {
        let (program, arguments) = (&self.config.programs.scontrol, &argv::show_nodes(which));
        let printed = self.runner.run(program, arguments).await?;
        let answered = printed.code == Some(1)
            && which.is_some_and(|list| parse::answers_for_all(&printed.stdout, list));
        let text = if answered { printed.stdout } else { succeeded(program, arguments, printed)? };
        parse::nodes(&text).map_err(|source| {
            Error::new(ErrorKind::Protocol, shown(program, arguments)).caused_by(source)
        })
    }
}

/// True if the next command would fare no better.
fn is_hopeless(error: &Error) -> bool {
    match error.kind() {
        ErrorKind::Missing | ErrorKind::Unavailable => true,
        ErrorKind::NotFound | ErrorKind::Refused | ErrorKind::Invalid | ErrorKind::Protocol => {
            false
        }
    }
}

/// What every command of Slurm's gets to know about the world.
fn runner(config: &ScontrolConfig) -> Runner {
    let mut environment = vec![
        ("PATH".into(), "/usr/bin:/bin:/usr/sbin:/sbin".into()),
        ("LC_ALL".into(), "C".into()),
        // Slurm prints times in the zone it is told.
        ("TZ".into(), "UTC".into()),
    ];
    environment.extend(config.slurm_conf.iter().map(|path| ("SLURM_CONF".into(), path.into())));
    Runner { environment, timeout: config.timeout, longest: config.longest_output }
}

/// What a command printed, if it worked.
fn succeeded(program: &Path, arguments: &[String], printed: Printed) -> Result<String> {
    if printed.code == Some(0) {
        return Ok(printed.stdout);
    }
    let (kind, line) = classify(printed.lines());
    Err(failed(program, arguments, &printed, kind).because(clean(line, LONGEST_SHOWN)))
}

/// A program that did not work; one that was killed may have done something.
fn failed(program: &Path, arguments: &[String], printed: &Printed, kind: ErrorKind) -> Error {
    let kind = if printed.code.is_none() { ErrorKind::Unavailable } else { kind };
    Error::new(kind, shown(program, arguments)).with_exit_code(printed.code)
}

#[async_trait]
impl Controller for Scontrol {
    fn version(&self) -> SlurmVersion {
        self.version
    }

    async fn nodes(&self, which: Option<&Hostlist>) -> Result<Vec<Node>> {
        let Some(list) = which else {
            return self.show_nodes(None).await;
        };
        let mut nodes = Vec::new();
        for piece in argv::pieces(list) {
            nodes.extend(self.show_nodes(Some(&piece)).await?);
        }
        Ok(nodes)
    }

    async fn jobs(&self, which: JobFilter) -> Result<Vec<Job>> {
        let (program, arguments) = (&self.config.programs.squeue, argv::list_jobs(&which));
        let text = self.run(program, &arguments).await?;
        let mut jobs = squeue::jobs(&text).map_err(|source| {
            Error::new(ErrorKind::Protocol, shown(program, &arguments)).caused_by(source)
        })?;
        jobs.retain(|job| which.wants(job));
        Ok(jobs)
    }

    async fn config(&self) -> Result<ControllerConfig> {
        let arguments = argv(["show", "config"]);
        let config = ControllerConfig::parse(&self.scontrol(&arguments).await?);
        let Some(name) = config.unreadable() else {
            return Ok(config);
        };
        let tried = shown(&self.config.programs.scontrol, &arguments);
        Err(Error::new(ErrorKind::Protocol, tried).because(format!("{name} is not told")))
    }

    async fn set_addresses(&self, addresses: &[NodeAddress]) -> Result<()> {
        let (updates, bad) = Update::addresses(addresses, self.version);
        self.change(updates, bad).await
    }

    async fn set_state(
        &self,
        nodes: &Hostlist,
        to: NodeAction,
        reason: Option<&Reason>,
    ) -> Result<()> {
        self.change(Update::states(nodes, to, reason), Vec::new()).await
    }

    async fn comment(&self, job: JobId, text: &str) -> Result<()> {
        self.scontrol(&argv::comment(job, text)).await.map(drop)
    }

    async fn reboot(&self, nodes: &Hostlist, reason: &Reason) -> Result<()> {
        self.change(Update::reboots(nodes, reason), Vec::new()).await
    }

    async fn submit(&self, job: &BatchJob) -> Result<JobId> {
        let (program, arguments) = (&self.config.programs.sbatch, argv::submit(job));
        let text = self.run(program, &arguments).await?;
        let unclear =
            || Error::new(ErrorKind::Protocol, shown(program, &arguments)).because(text.as_str());
        squeue::submitted(&text).ok_or_else(unclear)
    }

    async fn ping(&self) -> Result<bool> {
        match self.runner.run(&self.config.programs.scontrol, &argv(["ping"])).await {
            Ok(printed) => Ok(parse::is_up(&printed.stdout)),
            Err(error) if error.kind() == ErrorKind::Unavailable => Ok(false),
            Err(error) => Err(error),
        }
    }

    async fn reconfigure(&self) -> Result<()> {
        self.scontrol(&argv(["reconfigure"])).await.map(drop)
    }

    async fn restart(&self) -> Result<()> {
        let deadline = Instant::now() + self.config.restart_timeout;
        let Some((program, arguments)) = self.config.restart.split_first() else {
            return Err(
                Error::new(ErrorKind::Missing, "restart of slurmctld").because("no command is set")
            );
        };
        let (program, arguments) = (Path::new(program), arguments.to_vec());
        let mut runner = Runner { timeout: self.config.restart_timeout, ..self.runner.clone() };
        // They are for what we read; where no service manager starts it, slurmctld would run with them.
        runner.environment.retain(|(name, _)| name != "LC_ALL" && name != "TZ");
        let printed = runner.run(program, &arguments).await?;
        if printed.code != Some(0) {
            // None of Slurm's words: 'not found' is no node here.
            let line = clean(printed.lines().next().unwrap_or_default(), LONGEST_SHOWN);
            return Err(failed(program, &arguments, &printed, ErrorKind::Refused).because(line));
        }
        self.until_it_acts(deadline).await
    }
}

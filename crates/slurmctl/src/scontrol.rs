//! The real controller, over Slurm's programs.

use crate::{
    BatchJob, Controller, ControllerConfig, Error, ErrorKind, Job, JobFilter, JobId, Node,
    NodeAction, NodeAddress, Programs, Reason, Reservation, Result,
    argv::{self, Argv, argv},
    classify::classify,
    parse,
    reason::clean,
    reservation,
    run::{LONGEST_SHOWN, Printed, Runner, shown},
    squeue,
    update::Update,
};
use async_trait::async_trait;
use hostlist::{Hostlist, NodeName};
use slurmconf::SlurmVersion;
use std::{
    path::{Path, PathBuf},
    time::Duration,
};
use tokio::time::{Instant, sleep};

/// The pause between two checks whether slurmctld is back.
const PAUSE: Duration = Duration::from_millis(200);

/// How to reach slurmctld.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ScontrolConfig {
    /// Slurm's programs.
    pub programs: Programs,
    /// `SLURM_CONF`; Slurm's built-in path if `None`.
    pub slurm_conf: Option<PathBuf>,
    /// The deadline of one command, because commands retry for minutes without slurmctld. See
    /// [`Scontrol::with_message_timeout`].
    pub timeout: Duration,
    /// The most bytes that one command may print; a node takes about one thousand.
    pub longest_output: usize,
    /// The command that restarts slurmctld, with an absolute path.
    pub restart: Vec<String>,
    /// The deadline of a restart, until slurmctld answers.
    pub restart_timeout: Duration,
}

impl ScontrolConfig {
    /// The default settings.
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
/// Commands run without a shell and without standard input, in a clean environment and in their own process group,
/// which is killed at the deadline. A command survives if this process is killed.
#[derive(Clone, Debug)]
pub struct Scontrol {
    config: ScontrolConfig,
    runner: Runner,
    version: SlurmVersion,
}

/// The longest deadline of a command, whatever slurm.conf says.
const LONGEST: Duration = Duration::from_mins(2);

impl Scontrol {
    /// A controller of a known release.
    #[must_use]
    pub fn new(config: ScontrolConfig, version: SlurmVersion) -> Self {
        Self { runner: runner(&config), config, version }
    }

    /// Connects to a controller. The release comes from `scontrol --version`, without a request to slurmctld.
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

    /// Raises the deadline of commands to twice slurm.conf's `MessageTimeout`, up to two minutes.
    #[must_use]
    pub fn with_message_timeout(mut self, message_timeout: Duration) -> Self {
        self.config.timeout =
            self.config.timeout.max(message_timeout.saturating_mul(2).min(LONGEST));
        self.runner = runner(&self.config);
        self
    }

    /// The deadline of one command.
    #[must_use]
    pub fn timeout(&self) -> Duration {
        self.config.timeout
    }

    /// The paths of Slurm's programs.
    #[must_use]
    pub fn programs(&self) -> &Programs {
        &self.config.programs
    }

    async fn scontrol(&self, arguments: &Argv) -> Result<String> {
        self.run(&self.config.programs.scontrol, arguments).await
    }

    pub(crate) async fn run(&self, program: &Path, arguments: &Argv) -> Result<String> {
        succeeded(program, arguments, self.runner.run(program, arguments).await?)
    }

    /// Runs one command after the other. A refusal does not stop the others; a slurmctld that does not answer does.
    async fn change(&self, updates: Vec<Update<'_>>, mut failures: Vec<Error>) -> Result<()> {
        for update in updates {
            let Err(error) = self.send(&update).await else { continue };
            let unknown = error.kind() == ErrorKind::NotFound;
            failures.push(error);
            if unknown {
                failures.extend(self.repeat_without_unknown(update).await.err());
            }
            if failures.last().is_some_and(is_persistent) {
                break;
            }
        }
        Error::all(failures)
    }

    /// Waits until slurmctld answers a request that a standby controller does not answer.
    async fn wait_until_active(&self, deadline: Instant) -> Result<()> {
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

    async fn send(&self, update: &Update<'_>) -> Result<()> {
        let (program, arguments) = (&self.config.programs.scontrol, update.argv()?);
        let Some(input) = update.input() else {
            return self.run(program, &arguments).await.map(drop);
        };
        let printed = self.runner.run_with(program, &arguments, input).await?;
        // What is echoed says nothing about how it went.
        let printed = Printed { stdout: String::new(), ..printed };
        succeeded(program, &arguments, printed).map(drop)
    }

    /// Repeats what slurmctld did not do because of an unknown name.
    async fn repeat_without_unknown(&self, update: Update<'_>) -> Result<()> {
        let nodes = self.nodes(Some(&update.nodes())).await?;
        let known: Hostlist = nodes.iter().map(|node| &node.name).collect();
        match update.rest(&known) {
            Some(rest) => self.send(&rest).await,
            None => Ok(()),
        }
    }

    /// The known nodes of a list.
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

/// True if the next command would fail as well.
fn is_persistent(error: &Error) -> bool {
    match error.kind() {
        ErrorKind::Missing | ErrorKind::Unavailable => true,
        ErrorKind::NotFound | ErrorKind::Refused | ErrorKind::Invalid | ErrorKind::Protocol => {
            false
        }
    }
}

/// Runs commands in a clean environment.
fn runner(config: &ScontrolConfig) -> Runner {
    let mut environment = vec![
        ("PATH".into(), "/usr/bin:/bin:/usr/sbin:/sbin".into()),
        ("LC_ALL".into(), "C".into()),
        // Slurm prints times in this zone.
        ("TZ".into(), "UTC".into()),
    ];
    environment.extend(config.slurm_conf.iter().map(|path| ("SLURM_CONF".into(), path.into())));
    Runner { environment, timeout: config.timeout, longest: config.longest_output }
}

/// The output of a successful command.
fn succeeded(program: &Path, arguments: &[String], printed: Printed) -> Result<String> {
    if printed.code == Some(0) {
        return Ok(printed.stdout);
    }
    let (kind, line) = classify(printed.lines());
    Err(failed(program, arguments, &printed, kind).because(clean(line, LONGEST_SHOWN)))
}

/// The error of a failed command; one that was killed may have done its work.
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
        jobs.retain(|job| which.matches(job));
        Ok(jobs)
    }

    async fn config(&self) -> Result<ControllerConfig> {
        let arguments = argv(["show", "config"]);
        let config = ControllerConfig::parse(&self.scontrol(&arguments).await?);
        let Some(name) = config.unreadable() else {
            return Ok(config);
        };
        let tried = shown(&self.config.programs.scontrol, &arguments);
        Err(Error::new(ErrorKind::Protocol, tried).because(format!("{name} is missing")))
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

    async fn signal(&self, job: JobId, signal: &str) -> Result<()> {
        let program = self.config.programs.scontrol.with_file_name("scancel");
        let arguments = argv(["--full", &format!("--signal={signal}"), &job.to_string()]);
        self.run(&program, &arguments).await.map(drop)
    }

    async fn requeue(&self, job: JobId) -> Result<()> {
        self.scontrol(&argv(["requeue", &job.to_string()])).await.map(drop)
    }

    async fn reservations(&self) -> Result<Vec<Reservation>> {
        let text = self.scontrol(&argv(["--oneliner", "show", "reservation"])).await?;
        Ok(reservation::parse(&text))
    }

    async fn reserve(&self, reservation: &Reservation) -> Result<()> {
        let is_known = |error: &Error| error.to_string().contains("Duplicate reservation name");
        match self.scontrol(&reservation.create()).await {
            Err(error) if is_known(&error) => self.scontrol(&reservation.update()).await.map(drop),
            created => created.map(drop),
        }
    }

    async fn release_reservation(&self, node: &NodeName) -> Result<()> {
        self.scontrol(&Reservation::delete(node)).await.map(drop)
    }

    async fn set_topology(&self, nodes: &Hostlist, place: &str) -> Result<()> {
        self.change(Update::topologies(nodes, place), Vec::new()).await
    }

    async fn set_extra(&self, node: &NodeName, text: &str) -> Result<()> {
        let text = clean(text, argv::LONGEST_COMMENT);
        let arguments = argv(["update", &format!("nodename={node}"), &format!("extra={text}")]);
        self.scontrol(&arguments).await.map(drop)
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
        // Without a service manager slurmctld would inherit them.
        runner.environment.retain(|(name, _)| name != "LC_ALL" && name != "TZ");
        let printed = runner.run(program, &arguments).await?;
        if printed.code != Some(0) {
            // Not one of Slurm's messages: here, "not found" is not about a node.
            let line = clean(printed.lines().next().unwrap_or_default(), LONGEST_SHOWN);
            return Err(failed(program, &arguments, &printed, ErrorKind::Refused).because(line));
        }
        self.wait_until_active(deadline).await
    }
}

//! The settings that make a cluster elastic.

use crate::{
    document::written,
    error::{Problem, Result},
    model::{Config, SuspendTime},
    version::SlurmVersion,
};
use hostlist::Hostlist;
use std::{fmt::Write as _, time::Duration};

/// A program that slurmctld starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// An absolute path.
    pub path: String,
    /// Arguments before the node list; only 26.05 and later can give any.
    pub arguments: Vec<String>,
}

impl Program {
    /// A program that is started with the node list alone.
    #[must_use]
    pub fn new(path: impl Into<String>) -> Self {
        Self { path: path.into(), arguments: Vec::new() }
    }
}

/// The parameters that make slurmctld start and stop nodes, fit for its version.
///
/// ```
/// use slurmconf::{ElasticSettings, Program, SlurmVersion};
///
/// let programs = (Program::new("/usr/local/bin/startnode"), Program::new("/usr/local/bin/stopnode"));
/// let settings = ElasticSettings::new(SlurmVersion::new(22, 5), programs.0, programs.1);
/// let text = settings.text()?;
/// assert!(text.contains("SlurmctldParameters=idle_on_node_suspend,cloud_reg_addrs\n"));
/// assert!(text.contains("ResumeProgram=/usr/local/bin/startnode\n"));
/// # Ok::<(), slurmconf::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ElasticSettings {
    /// The slurmctld that will read them.
    pub version: SlurmVersion,
    /// Starts nodes.
    pub resume: Program,
    /// Stops nodes.
    pub suspend: Program,
    /// Removes the machine of a node that never registered. Without it, the machine keeps running.
    pub resume_fail: Option<Program>,
    /// Reboots or rebuilds nodes; called on the controller.
    pub reboot: Option<Program>,
    /// How long a node is idle before it is suspended.
    pub suspend_time: SuspendTime,
    /// Seconds until a suspended node counts as powered down.
    pub suspend_timeout: u32,
    /// Seconds that a node may take to register.
    pub resume_timeout: u32,
    /// Nodes suspended per minute; 0 is no limit.
    pub suspend_rate: u32,
    /// Nodes resumed per minute; 0 is no limit.
    pub resume_rate: u32,
    /// Nodes that are never suspended: [`Cluster::persistent_nodes`](crate::Cluster::persistent_nodes).
    pub suspend_exc_nodes: Hostlist,
    /// Further values for `SlurmctldParameters`.
    pub slurmctld_parameters: Vec<String>,
    /// Further values for `PrivateData`.
    pub private_data: Vec<String>,
    /// What slurmctld waits for before it starts a job: a program that ends when the nodes of the job are up spares the job up
    /// to 30 seconds.
    pub prolog: Option<String>,
}

impl ElasticSettings {
    /// Settings with CitC's times and no limit on rates.
    #[must_use]
    pub fn new(version: SlurmVersion, resume: Program, suspend: Program) -> Self {
        Self {
            version,
            resume,
            suspend,
            resume_fail: None,
            reboot: None,
            suspend_time: SuspendTime::Seconds(600),
            suspend_timeout: 60,
            resume_timeout: 600,
            suspend_rate: 0,
            resume_rate: 0,
            suspend_exc_nodes: Hostlist::new(),
            slurmctld_parameters: Vec::new(),
            private_data: Vec::new(),
            prolog: None,
        }
    }

    /// Takes the times, rates and other values of a slurm.conf, so that its own lines can be removed.
    #[must_use]
    pub fn with_current_values(mut self, config: &Config) -> Self {
        let power = &config.power;
        let seconds = |time: Duration| u32::try_from(time.as_secs()).unwrap_or(u32::MAX);
        if config.get("SuspendTime").is_some() && power.suspend_time != SuspendTime::Never {
            self.suspend_time = power.suspend_time;
        }
        if config.get("SuspendTimeout").is_some() {
            self.suspend_timeout = seconds(power.suspend_timeout);
        }
        if config.get("ResumeTimeout").is_some() {
            self.resume_timeout = seconds(power.resume_timeout);
        }
        if config.get("SuspendRate").is_some() {
            self.suspend_rate = power.suspend_rate;
        }
        if config.get("ResumeRate").is_some() {
            self.resume_rate = power.resume_rate;
        }
        self.slurmctld_parameters.extend(power.slurmctld_parameters.iter().cloned());
        let private = config.get("PrivateData").into_iter().flat_map(|value| value.split(','));
        self.private_data.extend(private.map(|word| word.trim().to_owned()));
        self
    }

    /// The lines for slurm.conf.
    ///
    /// A program with arguments is an error before 26.05. So is a value that slurm.conf cannot hold, such as a path with
    /// a newline in it.
    pub fn text(&self) -> Result<String> {
        let mut text = String::new();
        self.program(&mut text, "ResumeProgram", Some(&self.resume))?;
        self.program(&mut text, "SuspendProgram", Some(&self.suspend))?;
        self.program(&mut text, "ResumeFailProgram", self.resume_fail.as_ref())?;
        self.program(&mut text, "RebootProgram", self.reboot.as_ref())?;
        if let Some(prolog) = &self.prolog {
            let key = "PrologSlurmctld";
            let _ = writeln!(text, "{key}={}", written(key, prolog)?);
        }
        let _ = writeln!(
            text,
            "SuspendTime={}\nSuspendTimeout={}\nResumeTimeout={}\nSuspendRate={}\nResumeRate={}",
            self.suspend_time,
            self.suspend_timeout,
            self.resume_timeout,
            self.suspend_rate,
            self.resume_rate
        );
        if !self.suspend_exc_nodes.is_empty() {
            let key = "SuspendExcNodes";
            let nodes = self.suspend_exc_nodes.to_string();
            let _ = writeln!(text, "{key}={}", written(key, &nodes)?);
        }
        let key = "SlurmctldParameters";
        let _ = writeln!(text, "{key}={}", written(key, &self.values().join(","))?);
        if self.version.needs_cloud_parameters() {
            let key = "PrivateData";
            let values = with(vec!["cloud"], &self.private_data).join(",");
            let _ = writeln!(text, "{key}={}", written(key, &values)?);
        }
        Ok(text)
    }

    fn values(&self) -> Vec<&str> {
        let mut values = vec!["idle_on_node_suspend"];
        if self.version.needs_cloud_parameters() {
            values.push("cloud_reg_addrs");
        }
        if self.reboot.is_some() {
            values.push("reboot_from_controller");
        }
        if self.version.has_expedited_requeue() {
            values.push("enable_expedited_requeue");
        }
        let mut values = with(values, &self.slurmctld_parameters);
        // Newer releases log an error about it.
        values.retain(|word| *word != "cloud_reg_addrs" || self.version.needs_cloud_parameters());
        values
    }

    fn program(
        &self,
        text: &mut String,
        key: &'static str,
        program: Option<&Program>,
    ) -> Result<()> {
        let Some(program) = program else { return Ok(()) };
        if program.arguments.is_empty() {
            let _ = writeln!(text, "{key}={}", written(key, &program.path)?);
            return Ok(());
        }
        if !self.version.has_power_actions() {
            return Err(Problem::ProgramArguments { key, version: self.version }.into());
        }
        let values = || std::iter::once(&program.path).chain(&program.arguments);
        // Slurm splits the command at blanks and has no quoting.
        let part = |c: char| !c.is_whitespace() && c != '"';
        let is_word = |word: &&String| !word.is_empty() && word.chars().all(part);
        if let Some(value) = values().find(|word| !is_word(word)) {
            return Err(Problem::Unwritable { key: key.to_owned(), value: value.clone() }.into());
        }
        let command = values().map(String::as_str).collect::<Vec<_>>().join(" ");
        let action = format!("elastic_{}", key.trim_end_matches("Program").to_lowercase());
        let command = written(key, &command)?;
        let _ = writeln!(text, "PowerAction={action} Location=slurmctld Program={command}");
        let _ = writeln!(text, "{key}={action}");
        Ok(())
    }
}

/// `values`, then those of `others` that are not among them.
fn with<'a>(mut values: Vec<&'a str>, others: &'a [String]) -> Vec<&'a str> {
    for other in others.iter().map(String::as_str).filter(|other| !other.is_empty()) {
        if !values.iter().any(|word| word.eq_ignore_ascii_case(other)) {
            values.push(other);
        }
    }
    values
}

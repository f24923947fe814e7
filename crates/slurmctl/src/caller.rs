//! Finds out who called the program: Slurm or somebody else.

/// The caller of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caller {
    /// Slurm, which waits for the nodes.
    Slurm,
    /// Slurm's ResumeProgram for a job with --reboot (22.05, and static nodes of 24.11).
    RebootJob,
    /// A script, such as Ansible's or cron's.
    Script,
    /// A person at a terminal.
    Operator,
}

/// The parameter of slurm.conf that names a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgramRole {
    /// ResumeProgram. Slurm passes a resume file or a job; without JSON support, it writes no file.
    Resume,
    /// SuspendProgram.
    Suspend,
    /// RebootProgram. It gets no variable that identifies slurmctld.
    Reboot,
}

/// Facts about the process that tell who called it.
#[derive(Clone, Copy, Debug, Default)]
pub struct CallSigns {
    /// True if a Slurm daemon is among its ancestors.
    pub by_daemon: bool,
    /// True if standard error is a terminal.
    pub terminal: bool,
}

impl Caller {
    /// Determines who called a program with this role. `is_set` tells whether a variable has a value.
    #[must_use]
    pub fn of(role: ProgramRole, signs: CallSigns, is_set: impl Fn(&str) -> bool) -> Self {
        // slurmctld passes SLURM_CONF but not PATH to its resume and suspend programs.
        let bare = is_set("SLURM_CONF") && !is_set("PATH");
        let (file, job) = (is_set("SLURM_RESUME_FILE"), is_set("SLURM_JOB_ID"));
        match role {
            ProgramRole::Resume if file => Self::Slurm,
            ProgramRole::Resume if job => Self::RebootJob,
            ProgramRole::Resume | ProgramRole::Suspend if bare => Self::Slurm,
            ProgramRole::Resume | ProgramRole::Suspend | ProgramRole::Reboot if signs.terminal => {
                Self::Operator
            }
            ProgramRole::Reboot if signs.by_daemon => Self::Slurm,
            ProgramRole::Resume | ProgramRole::Suspend | ProgramRole::Reboot => Self::Script,
        }
    }
}

/// Daemons that call these programs only when the nodes may go down.
const DAEMONS: [&str; 3] = ["slurmctld", "slurmscriptd", "slurmd"];

/// Runs the scripts of jobs, so that a slurmd above it did not call the program.
const OF_JOBS: &str = "slurmstepd";

/// Maximum number of ancestors to check, because a site's scripts may call the program for a daemon.
const MOST_ANCESTORS: usize = 6;

/// True if a Slurm daemon started this process, directly or through a script, or if there is no /proc to find out.
#[must_use]
pub fn is_called_by_daemon() -> bool {
    descends_from_slurm(|process| std::fs::read_to_string(format!("/proc/{process}/status")).ok())
}

/// Follows the chain of parents in `/proc/<process>/status`. It starts with `self`, because /proc may belong to another PID
/// namespace.
fn descends_from_slurm(status: impl Fn(&str) -> Option<String>) -> bool {
    let parent = |text: &str| field(text, "PPid:").unwrap_or("0").to_owned();
    let Some(mut process) = status("self").map(|text| parent(&text)) else {
        return true;
    };
    for _ in 0..MOST_ANCESTORS {
        // A parent that has ended or is hidden is no Slurm daemon: those run as the same user. Process 0 is the parent of
        // the first process, or is outside the container.
        let Some(text) = status(&process).filter(|_| process != "0") else {
            return false;
        };
        let name = field(&text, "Name:").unwrap_or_default();
        // Debian's executables have this suffix. slurmctld runs through a link without it until it reconfigures.
        let name = name.strip_suffix("-wlm").unwrap_or(name);
        if DAEMONS.contains(&name) {
            return true;
        }
        if name == OF_JOBS {
            return false;
        }
        process = parent(&text);
    }
    false
}

fn field<'a>(status: &'a str, key: &str) -> Option<&'a str> {
    status.lines().find_map(|line| line.strip_prefix(key)).map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_descendants_of_a_daemon_are_slurms() {
        for (ancestors, expected) in [
            (&["slurmctld", "systemd"][..], true),
            (&["slurmscriptd", "slurmctld", "systemd"], true),
            (&["slurmd", "systemd"], true),
            (&["sh", "slurmd"], true),
            (&["slurmctld"], true),
            (&["slurmctld-wlm", "systemd"], true),
            (&["sh", "slurmd-wlm", "systemd"], true),
            // RebootProgram is a script, which calls another.
            (&["rebuild.sh", "sh", "slurmscriptd"], true),
            (&["python3", "sh", "sshd", "sshd", "systemd"], false),
            (&["cron", "cron", "systemd"], false),
            (&["sshd", "sshd", "systemd"], false),
            (&["bash", "sudo", "bash", "sshd", "systemd"], false),
            // An orphan, adopted by the first process.
            (&["systemd"], false),
            (&["slurmrestd", "systemd"], false),
            // The script of a job.
            (&["bash", "slurmstepd", "slurmd"], false),
            (&["slurm_script", "slurmstepd-wlm", "slurmd", "systemd"], false),
            (&["slurmctld-helper", "systemd"], false),
            (&["a", "b", "c", "d", "e", "f", "slurmctld"], false),
            (&[], false),
        ] {
            let status = |process: &str| {
                let number = if process == "self" { 0 } else { process.parse().ok()? };
                let name = match usize::checked_sub(number, 1) {
                    None => "rebuild",
                    Some(index) => ancestors.get(index)?,
                };
                let parent = ancestors.get(number).map_or(0, |_| number + 1);
                Some(format!("Name:\t{name}\nUmask:\t0022\nPid:\t{number}\nPPid:\t{parent}\n"))
            };
            assert_eq!(descends_from_slurm(status), expected, "{ancestors:?}");
        }
    }

    #[test]
    fn a_hidden_parent_is_not_slurm() {
        let known = |all: &'static [(&str, &str)]| {
            move |process: &str| {
                let (_, parent) = all.iter().find(|(id, _)| *id == process)?;
                Some(format!("Name:\tsh\nPPid:\t{parent}\n"))
            }
        };
        assert!(descends_from_slurm(known(&[])), "no /proc");
        assert!(!descends_from_slurm(known(&[("self", "7")])), "a hidden parent");
        assert!(!descends_from_slurm(known(&[("self", "7"), ("7", "6")])), "a hidden ancestor");
        assert!(!descends_from_slurm(known(&[("self", "0")])));
    }

    #[test]
    fn each_role_has_its_own_sign_of_slurm() {
        let (bare, shell) = (&["SLURM_CONF"][..], &["SLURM_CONF", "PATH"][..]);
        for (role, variables, by_daemon, terminal, expected) in [
            (ProgramRole::Resume, &["SLURM_RESUME_FILE", "PATH"][..], false, true, Caller::Slurm),
            (
                ProgramRole::Resume,
                &["SLURM_RESUME_FILE", "SLURM_JOB_ID"],
                true,
                false,
                Caller::Slurm,
            ),
            (ProgramRole::Resume, &["SLURM_JOB_ID"], true, false, Caller::RebootJob),
            (ProgramRole::Resume, bare, true, false, Caller::Slurm),
            (ProgramRole::Resume, shell, false, true, Caller::Operator),
            (ProgramRole::Resume, shell, false, false, Caller::Script),
            (ProgramRole::Suspend, bare, true, false, Caller::Slurm),
            (ProgramRole::Suspend, shell, true, true, Caller::Operator),
            (ProgramRole::Reboot, &[], true, false, Caller::Slurm),
            (ProgramRole::Reboot, bare, false, false, Caller::Script),
            (ProgramRole::Reboot, &["SLURM_JOB_ID"], false, false, Caller::Script),
            (ProgramRole::Reboot, &[], true, true, Caller::Operator),
        ] {
            let signs = CallSigns { by_daemon, terminal };
            let caller = Caller::of(role, signs, |name| variables.contains(&name));
            assert_eq!(caller, expected, "{role:?} {variables:?}");
        }
    }
}

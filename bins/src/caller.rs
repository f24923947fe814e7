//! Who has called us: one of Slurm's daemons, or anybody else.

/// Those that call a program of ours only when its nodes may go down.
const DAEMONS: [&str; 3] = ["slurmctld", "slurmscriptd", "slurmd"];

/// What runs jobs, whose scripts may call anything: slurmd, behind it, has asked for nothing.
const OF_JOBS: &str = "slurmstepd";

/// How many ancestors are looked at: a site's own script or two may stand between a daemon and us.
const MOST_ANCESTORS: usize = 6;

/// True if one of Slurm's daemons has called us, be it by a script; and where there is no /proc to say so.
#[must_use]
pub fn is_slurm() -> bool {
    descends_from_slurm(|process| std::fs::read_to_string(format!("/proc/{process}/status")).ok())
}

/// The same by what `/proc/<process>/status` says of each; ours is `self`, as /proc may count otherwise than we do.
fn descends_from_slurm(status: impl Fn(&str) -> Option<String>) -> bool {
    let parent = |text: &str| field(text, "PPid:").unwrap_or("0").to_owned();
    let Some(mut process) = status("self").map(|text| parent(&text)) else {
        return true;
    };
    for _ in 0..MOST_ANCESTORS {
        // One that has ended, or is hidden from us, is no daemon that waits for us: those are of our own user. So is
        // the parent of the first process, and of one that was started from outside of its container.
        let Some(text) = status(&process).filter(|_| process != "0") else {
            return false;
        };
        let name = field(&text, "Name:").unwrap_or_default();
        // Debian calls the files so, and links to them: after a reconfiguration slurmctld runs the file itself.
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
    fn a_rebuild_from_ansible_or_cron_was_slurms_own() {
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
            // Left behind by its parent, and taken in by the first process.
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
    fn a_parent_that_is_hidden_was_taken_for_slurm() {
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
}

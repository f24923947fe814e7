//! Who has called us: one of Slurm's daemons, or anybody else.

/// Those that call a program of ours only when its nodes may go down.
const DAEMONS: [&str; 4] = ["slurmctld", "slurmscriptd", "slurmd", "slurmstepd"];

/// How many ancestors are looked at: a site's own script or two may stand between a daemon and us.
const MOST_ANCESTORS: usize = 6;

/// True if one of Slurm's daemons has called us, be it by a script; and where nobody can say.
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
    for generation in 0..MOST_ANCESTORS {
        // The parent of the first process, and of one that was started from outside of its container.
        if process == "0" {
            return false;
        }
        let Some(text) = status(&process) else {
            // An ancestor farther away that has ended, or is hidden from us, is no daemon that waits for us.
            return generation == 0;
        };
        if field(&text, "Name:").is_some_and(is_daemon) {
            return true;
        }
        process = parent(&text);
    }
    false
}

/// Debian calls the files so, and links to them: after a reconfiguration slurmctld runs the file itself.
fn is_daemon(name: &str) -> bool {
    DAEMONS.contains(&name.strip_suffix("-wlm").unwrap_or(name))
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
            (&["bash", "slurmstepd", "slurmd"], true),
            (&["python3", "sh", "sshd", "sshd", "systemd"], false),
            (&["cron", "cron", "systemd"], false),
            (&["sshd", "sshd", "systemd"], false),
            (&["bash", "sudo", "bash", "sshd", "systemd"], false),
            // Left behind by its parent, and taken in by the first process.
            (&["systemd"], false),
            (&["slurmrestd", "systemd"], false),
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
    fn where_nobody_can_say_it_may_be_slurm() {
        let known = |all: &'static [(&str, &str)]| {
            move |process: &str| {
                let (_, parent) = all.iter().find(|(id, _)| *id == process)?;
                Some(format!("Name:\tsh\nPPid:\t{parent}\n"))
            }
        };
        assert!(descends_from_slurm(known(&[])), "no /proc");
        assert!(descends_from_slurm(known(&[("self", "7")])), "a hidden parent");
        assert!(!descends_from_slurm(known(&[("self", "7"), ("7", "6")])), "a hidden ancestor");
        assert!(!descends_from_slurm(known(&[("self", "0")])));
    }
}

//! Process groups.

use rustix::process::Pid;

/// True while a process of the group runs. One that has ended and that nobody reaps does not: it
/// keeps the group's number taken, and cannot be ended any further.
pub(crate) fn lives(group: Pid) -> bool {
    if rustix::process::test_kill_process_group(group).is_err() {
        return false;
    }
    // What cannot be looked at is taken to run.
    let Ok(processes) = std::fs::read_dir("/proc") else {
        return true;
    };
    let group = group.as_raw_nonzero().to_string();
    processes.filter_map(Result::ok).any(|process| {
        let stat = std::fs::read_to_string(process.path().join("stat")).unwrap_or_default();
        runs_in(&stat, &group)
    })
}

/// Reads `/proc/PID/stat`: the number, the name in brackets, the state, the parent, the group.
fn runs_in(stat: &str, group: &str) -> bool {
    // The name may itself have brackets and spaces.
    let Some((_, rest)) = stat.rsplit_once(") ") else {
        return false;
    };
    let mut fields = rest.split(' ');
    let state = fields.next();
    fields.nth(1) == Some(group) && !matches!(state, Some("Z" | "X"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::CommandExt as _;
    use std::process::Command;
    use std::time::{Duration, Instant};

    #[test]
    fn a_line_of_proc_is_read() {
        let table = [
            ("7 (sleep) S 1 7 7 0", true),
            ("8 (a) b) S 1) R 1 7 7 0", true),
            ("8 (sh) Z 1 7 7 0", false),
            ("8 (sh) S 7 8 7 0", false),
            ("", false),
        ];
        for (stat, expected) in table {
            assert_eq!(runs_in(stat, "7"), expected, "{stat}");
        }
    }

    #[test]
    fn a_process_that_is_not_reaped_does_not_keep_its_group_alive() {
        let mut child = Command::new("sleep").arg("1000").process_group(0).spawn().unwrap();
        let group = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
        assert!(lives(group));
        child.kill().unwrap();
        let deadline = Instant::now() + Duration::from_mins(1);
        while lives(group) {
            assert!(Instant::now() < deadline, "it never ends");
            std::thread::yield_now();
        }
        assert!(rustix::process::test_kill_process_group(group).is_ok(), "its number is taken");
        child.wait().unwrap();
        assert!(!lives(group));
    }
}

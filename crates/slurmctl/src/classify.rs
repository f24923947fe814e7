//! Classification of Slurm's error messages.

use crate::ErrorKind;

/// The kind of a failure, and the line that decided it. Lines about nodes are ignored: they hold free text.
pub(crate) fn classify<'a>(lines: impl Iterator<Item = &'a str>) -> (ErrorKind, &'a str) {
    let lines: Vec<&str> = lines.filter(|line| !line.starts_with("NodeName=")).collect();
    let find = |is: fn(&str) -> bool| lines.iter().copied().find(|line| is(line));
    if let Some(line) = find(is_unavailable) {
        (ErrorKind::Unavailable, line)
    } else if let Some(line) = find(is_unknown) {
        (ErrorKind::NotFound, line)
    } else {
        (ErrorKind::Refused, lines.first().copied().unwrap_or_default())
    }
}

/// Messages of 22.05, 24.11, 26.05 and the C library after which the same call may work a moment later.
fn is_unavailable(line: &str) -> bool {
    let phrases = [
        "Unable to contact slurm controller",
        "Zero Bytes were transmitted",
        "Socket timed out",
        "Communication connection failure",
        "Communication shutdown failure",
        "Message send failure",
        "Message receive failure",
        // A munged is being restarted.
        "Protocol authentication error",
        "Rate limit exceeded",
        "Connection refused",
        "Connection reset by peer",
        "Connection timed out",
        "standby mode",
        "Transport endpoint is not connected",
    ];
    phrases.iter().any(|phrase| line.contains(phrase))
}

fn is_unknown(line: &str) -> bool {
    let phrases = ["Invalid node name", "Invalid job id", "invalid partition"];
    let show = ["Node ", "Partition "].iter().any(|thing| line.starts_with(thing));
    phrases.iter().any(|phrase| line.contains(phrase)) || (show && line.ends_with(" not found"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slurmctld_that_does_not_answer_is_unavailable() {
        for words in [
            "Unable to contact slurm controller (send failure)",
            "Zero Bytes were transmitted or received",
            "Socket timed out on send/recv operation",
            "Communication connection failure",
            "Communication shutdown failure",
            "Message send failure",
            "Message receive failure",
            "Protocol authentication error",
            "Rate limit exceeded, please retry momentarily",
            "Rate limit exceeded, please retry later",
            "Connection refused",
            "Connection reset by peer",
            "Connection timed out reading",
            "Slurm backup controller in standby mode",
            "Controller is in standby mode, try a different controller",
            "Transport endpoint is not connected",
        ] {
            let line = format!("slurm_update error: {words}");
            assert_eq!(classify(line.lines()), (ErrorKind::Unavailable, line.as_str()));
        }
        // These are permanent.
        for words in [
            "Requested nodes are busy",
            "Reboot already in progress",
            "Unexpected message received",
            "Access/permission denied",
            "Incompatible versions of client and server code",
        ] {
            let line = format!("slurm_update error: {words}");
            assert_eq!(classify(line.lines()), (ErrorKind::Refused, line.as_str()));
        }
    }

    #[test]
    fn a_later_line_decides_if_it_is_more_specific() {
        let table = [
            (
                "error: get_addr_info: getaddrinfo() failed: Name or service not known\n\
                 slurm_update error: Unable to contact slurm controller (connect failure)",
                (
                    ErrorKind::Unavailable,
                    "slurm_update error: Unable to contact slurm controller (connect failure)",
                ),
            ),
            (
                "error: a warning\nslurm_update error: Invalid node name specified",
                (ErrorKind::NotFound, "slurm_update error: Invalid node name specified"),
            ),
            ("first\nsecond", (ErrorKind::Refused, "first")),
            ("NodeName=n1 Reason=Connection refused\nno luck", (ErrorKind::Refused, "no luck")),
            ("Node n1 not found", (ErrorKind::NotFound, "Node n1 not found")),
            ("plugin x not found", (ErrorKind::Refused, "plugin x not found")),
            ("", (ErrorKind::Refused, "")),
        ];
        for (text, expected) in table {
            assert_eq!(classify(text.lines()), expected, "{text}");
        }
    }
}

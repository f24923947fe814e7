//! What kind of failure Slurm's words stand for.

use crate::ErrorKind;

/// The kind, and the line that decided: a cause may be told before what came of it.
///
/// Lines about nodes are left out, since they hold whatever somebody wrote.
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

fn is_unavailable(line: &str) -> bool {
    let phrases = [
        "Unable to contact slurm controller",
        "Zero Bytes were transmitted",
        "Socket timed out",
        "Communication connection failure",
        "Connection refused",
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
    fn a_line_after_the_first_decides_if_it_says_more() {
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

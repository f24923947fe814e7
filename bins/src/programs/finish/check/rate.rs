//! Whether Slurm asks for nodes as fast as a job of all of them needs them.

use super::Point;
use slurmconf::Config;

/// A `ResumeRate` by which the first nodes have come and gone before the last are asked for.
pub(super) fn point(config: &Config) -> Option<Point> {
    let nodes = config.cloud_nodes();
    let (rate, timeout) = (config.power.resume_rate, *config.resume_timeouts(&nodes).end());
    let in_time = u64::from(rate).saturating_mul(timeout.as_secs()) / 60;
    let all = u64::try_from(nodes.len()).unwrap_or(u64::MAX);
    (rate > 0 && in_time < all).then(|| {
        Point::Odd(format!(
            "ResumeRate={rate} starts {in_time} nodes within ResumeTimeout ({} s), and {all} are elastic: the programs pace \
             themselves, so that Slurm need not: ResumeRate=0",
            timeout.as_secs()
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_that_keeps_large_jobs_waiting_was_all_well() {
        for (settings, nodes, odd) in [
            ("ResumeRate=20\nResumeTimeout=600\n", 201, true),
            ("ResumeRate=20\nResumeTimeout=600\n", 200, false),
            ("ResumeRate=0\nResumeTimeout=600\n", 10_000, false),
            // Slurm's own: 300 a minute, and one minute.
            ("", 300, false),
            ("", 301, true),
        ] {
            let text = format!("{settings}NodeName=login1\nNodeName=n[1-{nodes}] State=CLOUD\n");
            let found = point(&Config::parse(&text).unwrap());
            let said = matches!(&found, Some(Point::Odd(text)) if text.contains("ResumeRate=0"));
            assert_eq!(said, odd, "{settings}{nodes}");
            assert_eq!(found.is_some(), odd);
        }
    }
}

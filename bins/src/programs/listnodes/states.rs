//! Which states are asked for, in Slurm's words, in sinfo's and in the cloud's.

use cloud_core::InstanceState;
use slurmctl::{BaseState, StateFlag};

/// States that a node may be in; none at all asks for any.
#[derive(Debug)]
pub(super) struct States(Vec<String>);

/// What sinfo calls states that scontrol writes otherwise.
const SHORT: [(&str, &str); 8] = [
    ("alloc", "allocated"),
    ("comp", "completing"),
    ("maint", "maintenance"),
    ("mix", "mixed"),
    ("no_respond", "not_responding"),
    ("plnd", "planned"),
    ("resv", "reserved"),
    ("unk", "unknown"),
];

/// Words of nodes that have a job, or had one a moment ago.
const BUSY: [&str; 3] = ["allocated", "mixed", "completing"];

impl States {
    pub(super) fn new(words: &[String]) -> Self {
        let whole = |word: &String| {
            let word = word.trim().to_lowercase();
            let long = SHORT.iter().find(|(short, _)| *short == word);
            long.map_or(word, |(_, long)| (*long).to_owned())
        };
        Self(words.iter().map(whole).collect())
    }

    pub(super) fn is_any(&self) -> bool {
        self.0.is_empty()
    }

    /// True if a node in this state of Slurm, such as `idle+cloud`, and of the cloud is asked for.
    pub(super) fn fit(&self, slurm: &str, cloud: &str) -> bool {
        self.is_any() || self.0.iter().any(|wanted| has(slurm, cloud, wanted))
    }

    /// The words that nobody writes: not Slurm, not sinfo, not a cloud, and none of these nodes either.
    pub(super) fn unknown<'a>(&self, shown: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<&str> {
        let mut unknown: Vec<&str> =
            self.0.iter().map(String::as_str).filter(|word| !is_word(word)).collect();
        for (slurm, cloud) in shown {
            unknown.retain(|word| !has(slurm, cloud, word));
        }
        unknown
    }
}

/// True if one of the two states has this word, or is what sinfo calls by it.
pub(super) fn has(slurm: &str, cloud: &str, wanted: &str) -> bool {
    let slurm_has = |wanted: &str| slurm.split('+').any(|word| word.eq_ignore_ascii_case(wanted));
    let busy = || BUSY.iter().any(|word| slurm_has(word));
    match wanted {
        "drained" => slurm_has("drain") && !busy(),
        "draining" => slurm_has("drain") && busy(),
        _ => slurm_has(wanted) || cloud.eq_ignore_ascii_case(wanted),
    }
}

fn is_word(word: &str) -> bool {
    use InstanceState::{Failed, Pending, Running, Stopped, Stopping, Terminated, Terminating};
    let slurms = word.to_uppercase();
    let clouds = [Pending, Running, Stopping, Stopped, Terminating, Terminated, Failed];
    !matches!(BaseState::from(slurms.as_str()), BaseState::Other(_))
        || !matches!(StateFlag::from(slurms.as_str()), StateFlag::Other(_))
        || clouds.iter().any(|state| state.to_string() == word)
        || matches!(word, "drained" | "draining")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn states(words: &[&str]) -> States {
        States::new(&words.iter().map(ToString::to_string).collect::<Vec<_>>())
    }

    #[test]
    fn a_state_is_asked_for_in_the_words_of_slurm_sinfo_or_the_cloud() {
        for (wanted, slurm, cloud, fits) in [
            (&["idle"][..], "idle+cloud", "running", true),
            (&["IDLE"], "idle+cloud", "running", true),
            (&["running"], "idle+cloud", "running", true),
            (&["down", "idle"], "idle+cloud", "-", true),
            (&["down", "mixed"], "idle+cloud", "-", false),
            (&["mix"], "mixed+cloud", "running", true),
            (&["power"], "idle+powering_up", "-", false),
            (&["drain"], "idle+cloud+drain", "running", true),
            (&["drained"], "idle+cloud+drain", "running", true),
            (&["drained"], "mixed+cloud+drain", "running", false),
            (&["draining"], "mixed+cloud+drain", "running", true),
            (&["draining"], "idle+cloud+drain", "running", false),
            (&["rescue"], "idle", "RESCUE", true),
            (&[], "idle", "-", true),
        ] {
            assert_eq!(states(wanted).fit(slurm, cloud), fits, "{wanted:?} of {slurm} {cloud}");
        }
    }

    #[test]
    fn words_that_nobody_writes_are_unknown() {
        let shown = [("idle+cloud", "RESCUE"), ("idle+blessed", "-")];
        let asked = states(&["idle", "alloc", "drained", "pending", "rescue", "blessed", "runing"]);
        assert_eq!(asked.unknown(shown.into_iter()), ["runing"]);
        assert_eq!(asked.unknown(std::iter::empty()), ["rescue", "blessed", "runing"]);
    }
}

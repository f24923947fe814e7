//! Findings that are only reported. Each is logged once, and again when it reappears.

use crate::plan::{Finding, Handling};
use crate::state::{State, StateFile};

/// Stores the findings that are only reported, and returns the new ones, one line each.
pub fn newly_reported(state: &dyn State, findings: &[Finding]) -> Vec<String> {
    let before = state.load(StateFile::Reported).ok().flatten().unwrap_or_default();
    let reported = findings.iter().filter(|finding| finding.handling == Handling::Reported);
    let now: Vec<String> = reported.map(|finding| finding.to_string().replace('\n', " ")).collect();
    // Without the state, the next run logs the same lines again.
    let _ = state.change(StateFile::Reported, &mut |_| now.join("\n"));
    now.into_iter().filter(|line| !before.lines().any(|known| known == line)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::FindingKind;
    use crate::state::MemoryState;

    fn finding(text: &str, handling: Handling) -> Finding {
        let (kind, text) = (FindingKind::Blind, text.to_owned());
        Finding { kind, node: None, instances: Vec::new(), text, handling }
    }

    #[test]
    fn a_finding_is_logged_once_and_again_when_it_comes_back() {
        let state = MemoryState::new();
        let [one, two] =
            ["two machines", "a stray drain"].map(|it| finding(it, Handling::Reported));
        let repaired = finding("an orphan", Handling::Repaired);
        let new = |findings: &[Finding]| newly_reported(&state, findings).len();
        assert_eq!(new(&[one.clone(), repaired.clone()]), 1);
        assert_eq!(new(&[one.clone(), two.clone()]), 1);
        assert_eq!(new(&[one.clone(), two.clone(), repaired]), 0);
        assert_eq!(new(&[two]), 0);
        assert_eq!(new(&[one]), 1);
    }
}

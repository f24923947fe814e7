//! Percentiles of the durations of phases.

use crate::life::Life;
use crate::phase::{Phase, PhaseSpan};

/// Percentiles of the duration of one phase, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PhaseTimes {
    /// The phase; none for the whole start, from the request to the registration of slurmd.
    pub phase: Option<Phase>,
    /// How many there are.
    pub count: usize,
    /// The median.
    pub p50: u64,
    /// The 90th percentile.
    pub p90: u64,
    /// The 99th percentile.
    pub p99: u64,
    /// The maximum.
    pub max: u64,
    /// The sum.
    pub sum: u64,
}

/// Computes the percentiles of each phase and of the whole start. Only phases that have ended count.
#[must_use]
pub fn phase_times<'l>(lives: impl IntoIterator<Item = &'l Life>) -> Vec<PhaseTimes> {
    let mut phases: [Vec<u64>; Phase::ALL.len()] = Default::default();
    let mut starts = Vec::new();
    for life in lives {
        for (phase, millis) in ended_phases(life) {
            let times = Phase::ALL.iter().position(|it| *it == phase);
            if let Some(times) = times.and_then(|index| phases.get_mut(index)) {
                times.push(millis);
            }
        }
        starts.extend(start_of(life));
    }
    let phases = Phase::ALL.into_iter().map(Some).zip(phases);
    let all = phases.chain([(None, starts)]);
    all.filter_map(|(phase, times)| summary(phase, times)).collect()
}

/// Duration of the start of a node, from the request to the registration of its slurmd.
pub(crate) fn start_of(life: &Life) -> Option<u64> {
    Some(life.registered?.saturating_sub(life.asked?))
}

/// The durations of the phases that have ended. The phase in which a node failed is incomplete.
pub(crate) fn ended_phases(life: &Life) -> Vec<(Phase, u64)> {
    let mut spans = life.phases(0);
    let ended = life.end.as_ref();
    if ended.is_none() || life.has_failed() {
        // The last phase of an open life has not ended.
        let last = ended.map_or_else(|| last_known(life), |end| end.at);
        spans = life.phases(last);
        if life.has_failed() {
            spans.pop();
        }
    }
    // Between its registration and its first job, a node does not wait for work.
    let works = spans.iter().position(|span| span.phase == Phase::Busy).unwrap_or_default();
    let counts = |(index, span): &(usize, PhaseSpan)| span.phase != Phase::Idle || *index >= works;
    let spans = spans.into_iter().enumerate().filter(counts);
    spans.map(|(_, span)| (span.phase, span.millis())).collect()
}

/// The start of the current phase of an open life.
fn last_known(life: &Life) -> u64 {
    let known = [life.asked, life.launched, life.running, life.up, life.registered];
    let work = life.work.iter().flat_map(|work| [Some(work.from), work.to]);
    known.into_iter().chain(work).flatten().max().unwrap_or_default()
}

fn summary(phase: Option<Phase>, mut times: Vec<u64>) -> Option<PhaseTimes> {
    times.sort_unstable();
    let at = |hundredths: usize| {
        // The nearest-rank method.
        let rank = (times.len() * hundredths).div_ceil(100).max(1);
        times.get(rank - 1).copied().unwrap_or_default()
    };
    Some(PhaseTimes {
        phase,
        count: times.len(),
        p50: at(50),
        p90: at(90),
        p99: at(99),
        max: *times.last()?,
        sum: times.iter().sum(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_nearest_ranks() {
        let times = summary(None, (1..=200).rev().collect()).unwrap();
        assert_eq!(
            (times.count, times.p50, times.p90, times.p99, times.max),
            (200, 100, 180, 198, 200)
        );
        assert_eq!(summary(None, vec![7]).map(|it| (it.p50, it.p99)), Some((7, 7)));
        assert_eq!(summary(None, Vec::new()), None);
    }

    #[test]
    fn a_phase_that_goes_on_does_not_count() {
        let life = Life { asked: Some(10), launched: Some(15), up: Some(40), ..Life::default() };
        let times = phase_times([&life]);
        let lengths: Vec<_> = times.iter().map(|it| (it.phase, it.sum)).collect();
        assert_eq!(lengths, [(Some(Phase::Asked), 5), (Some(Phase::Launched), 25)]);
    }
}

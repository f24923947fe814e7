//! Process CPU time, best of several interleaved rounds: the machine may be busy with other things.

use std::hint::black_box;

/// One way to do a workload: its name, and a run that gives seconds of CPU time for one repetition.
pub struct Contender<'a> {
    pub name: &'static str,
    pub run: Box<dyn Fn() -> f64 + 'a>,
}

/// A workload: its name, the bar for us (ratio to libslurm), and who takes part, libslurm first, we second.
pub struct Workload<'a> {
    pub name: &'static str,
    pub bar: f64,
    pub contenders: Vec<Contender<'a>>,
}

/// `repeat` times the same, the results kept until the clock has stopped: freeing is not counted.
pub fn contender<'a, T>(
    name: &'static str,
    repeat: usize,
    work: impl Fn() -> T + 'a,
) -> Contender<'a> {
    let run = move || {
        let mut kept = Vec::with_capacity(repeat);
        let start = cpu_seconds();
        for _ in 0..repeat {
            kept.push(black_box(work()));
        }
        (cpu_seconds() - start) / repeat as f64
    };
    Contender { name, run: Box::new(run) }
}

fn cpu_seconds() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a timespec to write to.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut time) };
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

impl Workload<'_> {
    /// The best time of each contender.
    pub fn measure(&self, rounds: usize) -> Vec<f64> {
        let mut best = vec![f64::INFINITY; self.contenders.len()];
        for _ in 0..rounds {
            for (best, contender) in best.iter_mut().zip(&self.contenders) {
                *best = best.min((contender.run)());
            }
        }
        best
    }
}

/// The most memory this process has held, in KiB.
pub fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or_default();
    line.trim().trim_end_matches(" kB").parse().unwrap_or_default()
}

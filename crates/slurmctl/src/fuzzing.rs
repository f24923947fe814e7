//! Every reader of what Slurm's programs print, for the fuzzer.

use crate::{ControllerConfig, accounting, parse, reservation, squeue};
use hostlist::Hostlist;

/// Reads a text as the output of each of Slurm's programs.
pub fn read(text: &str) {
    let _ = parse::nodes(text);
    parse::answers_for_all(text, &Hostlist::default());
    parse::is_up(text);
    let _ = squeue::jobs(text);
    squeue::submitted(text);
    let _ = accounting::records(text);
    text.lines().filter_map(accounting::owner).for_each(drop);
    reservation::parse(text);
    ControllerConfig::parse(text);
}

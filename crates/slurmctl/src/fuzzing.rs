//! Every reader of what Slurm's programs print, for the fuzzer.

use crate::{ControllerConfig, parse, squeue};
use hostlist::Hostlist;

/// Reads a text as the output of each of Slurm's programs.
pub fn read(text: &str) {
    let _ = parse::nodes(text);
    parse::answers_for_all(text, &Hostlist::default());
    parse::is_up(text);
    let _ = squeue::jobs(text);
    squeue::submitted(text);
    ControllerConfig::parse(text);
}

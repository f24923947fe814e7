//! Any text is what scontrol, squeue or sbatch printed, or an error; any bytes are a resume file or an error.
#![no_main]

use hostlist::Hostlist;
use libfuzzer_sys::fuzz_target;
use slurmctl::ResumeRequest;

fuzz_target!(|bytes: &[u8]| {
    let _ = ResumeRequest::parse(&Hostlist::default(), bytes);
    if let Ok(text) = std::str::from_utf8(bytes) {
        slurmctl::fuzzing::read(text);
    }
});

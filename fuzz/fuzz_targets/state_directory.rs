//! Any text is a file of the state directory; a broken one is as good as none.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| provision::state::fuzzing::read(text));

//! Any status and body is an answer of AWS that has a meaning.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|answer: (u16, &[u8])| cloud_aws::fuzzing::read(answer.0, answer.1));

//! Any text is a host list or an error. A list of names without strange characters prints as one that reads the same.
#![no_main]

use hostlist::{Dialect, Hostlist};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    for dialect in [Dialect::Modern, Dialect::V22_05] {
        let Ok(list) = Hostlist::parse_with(text, dialect) else { continue };
        let printed = list.to_string();
        // Like Slurm, we read a number of more than 64 bits as the largest one.
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        let is_plain = |name: &str| name.len() < 19 && name.chars().all(is_plain);
        if list.len() <= 10_000 && list.iter().all(|name| is_plain(&name)) {
            assert_eq!(Hostlist::parse_with(&printed, dialect).as_ref(), Ok(&list));
        }
    }
});

//! Any text is a host list or an error. A list of names without strange characters prints as one that reads the same.
#![no_main]

use hostlist::{Dialect, Hostlist};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    for dialect in [Dialect::Modern, Dialect::V22_05] {
        let Ok(list) = Hostlist::parse_with(text, dialect) else { continue };
        let printed = list.to_string();
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        if list.iter().take(10_000).all(|name| name.chars().all(plain)) && list.len() <= 10_000 {
            assert_eq!(Hostlist::parse_with(&printed, dialect).as_ref(), Ok(&list));
        }
    }
});

//! The inputs that all contenders get.

use std::ffi::CString;
use std::fmt::Write;

/// Slurm takes at most this many hosts in a range.
const CHUNK: usize = 65_536;

/// An expression as Rust and as C want it.
pub struct Expression {
    pub text: String,
    pub c: CString,
}

impl Expression {
    pub fn new(text: String) -> Self {
        let c = CString::new(text.as_str()).expect("no NUL");
        Self { text, c }
    }
}

/// `count` hosts `n00000000`…, in as few ranges as Slurm allows.
pub fn hosts(count: usize) -> Expression {
    let mut text = String::from("n[");
    for start in (0..count).step_by(CHUNK) {
        let end = (start + CHUNK).min(count) - 1;
        let _ = write!(text, "{}{start:08}-{end:08}", if start == 0 { "" } else { "," });
    }
    text.push(']');
    Expression::new(text)
}

/// 100,000 hosts in 2000 ranges of 50, with 10 missing after each; `shift` moves them all.
pub fn ranges(shift: usize) -> Expression {
    let items: Vec<String> =
        (0..2000).map(|i| 60 * i + shift).map(|lo| format!("{lo:08}-{:08}", lo + 49)).collect();
    Expression::new(format!("n[{}]", items.join(",")))
}

/// Names as Rust and as C want them.
pub struct Names {
    pub text: Vec<String>,
    pub c: Vec<CString>,
    pub joined: String,
}

impl Names {
    pub fn new(numbers: impl Iterator<Item = usize>) -> Self {
        let text: Vec<String> = numbers.map(|number| format!("n{number:08}")).collect();
        let c = text.iter().map(|name| CString::new(name.as_str()).expect("no NUL")).collect();
        let joined = text.join(",");
        Self { text, c, joined }
    }

    pub fn sorted(count: usize) -> Self {
        Self::new(0..count)
    }

    /// The same names in an order without runs, always the same one.
    pub fn shuffled(count: usize) -> Self {
        let mut numbers: Vec<usize> = (0..count).collect();
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        for i in (1..numbers.len()).rev() {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            numbers.swap(i, usize::try_from(state >> 33).expect("64 bits") % (i + 1));
        }
        Self::new(numbers.into_iter())
    }
}

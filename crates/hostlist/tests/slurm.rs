//! What two real Slurms answer, row by row: 22.05.8 and 26.05.3.
//!
//! `data/truth.json` holds chosen expressions, `data/fuzz.jsonl` random ones; rows with a `note` are
//! Slurm's own defects.

use hostlist::{Dialect, Hostlist, Parser};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::fmt::Write as _;

const TRUTH: &str = include_str!("data/truth.json");
const FUZZ: &str = include_str!("data/fuzz.jsonl");

/// Slurm counts the 2⁶⁴ hosts of `[0-18446744073709551615]` as none and then loses those after them; for
/// us that is an error.
const WRAPPED: &str = "n[0-18446744073709551615]";

#[derive(Default)]
struct Tally {
    rows: usize,
    texts: usize,
    wrong: Vec<String>,
}

impl Tally {
    /// Compares a string with what the table says; long ones stand there as length and digest.
    fn string(&mut self, what: &str, ours: &str, expected: &Value) {
        self.texts += usize::from(!expected.is_null());
        let same = match expected {
            Value::Null => true,
            Value::String(text) => ours == text,
            long => long["len"] == ours.len() && long["sha256"] == digest(ours),
        };
        if !same {
            self.wrong.push(format!("{what}: {ours:.200} instead of {expected:.200}"));
        }
    }

    fn row(&mut self, dialect: Dialect, expression: &str, expected: &Value) {
        self.rows += 1;
        let about = format!("{dialect:?} {expression:.80}");
        let parsed = Parser::new().dialect(dialect).lenient(true).parse(expression);
        let (list, expected) = match (parsed, expected["hostnames"].as_array()) {
            (Ok(list), Some(_)) => (list, expected),
            (Err(_), None) => return,
            (Ok(list), None) => return self.wrong.push(format!("{about}: read as {list:.80}")),
            (Err(error), Some(_)) => return self.wrong.push(format!("{about}: {error}")),
        };
        let names = list.to_vec();
        if expected["count"] != list.len() || names.len() != list.len() {
            self.wrong.push(format!("{about}: {} hosts", list.len()));
        }
        let listed = expected["hostnames"].as_array().map_or(&[][..], Vec::as_slice);
        let complete = listed.len() == names.len() || expected["truncated"] == true;
        if !complete || listed.iter().zip(&names).any(|(theirs, ours)| theirs != ours) {
            self.wrong.push(format!("{about}: other names: {:?}", &names[..names.len().min(20)]));
        }
        let lines: String = names.iter().flat_map(|name| [name, "\n"]).collect();
        let refolded: Hostlist = names.iter().collect();
        let uniq = list.uniq();
        self.string(&format!("{about}: names"), &digest(&lines), &expected["sha256"]);
        self.string(&format!("{about}: folded"), &list.to_string(), &expected["hostlist_folded"]);
        self.string(&format!("{about}: refolded"), &refolded.to_string(), &expected["refolded"]);
        if is_noted(expression) {
            return;
        }
        self.string(
            &format!("{about}: sorted"),
            &list.sorted().to_string(),
            &expected["hostlist_sorted"],
        );
        self.string(&format!("{about}: uniq"), &uniq.to_string(), &expected["uniq"]);
        let sorted = refolded.sorted().to_string();
        self.string(&format!("{about}: refolded, sorted"), &sorted, &expected["refolded_sorted"]);
        if expected["uniq_count"].is_u64() && expected["uniq_count"] != uniq.len() {
            self.wrong.push(format!("{about}: {} different hosts", uniq.len()));
        }
    }

    fn report(self, table: &str) {
        let Self { rows, texts, wrong } = self;
        println!("{table}: {rows} rows compared, {texts} texts, {} disagreements", wrong.len());
        assert_eq!(wrong, Vec::<String>::new());
        assert!(rows > 500 && texts > 2000, "the table was not read");
    }
}

/// Lists that Slurm sorts wrongly, because it compares numbers in 32 bits; the fold is right.
fn is_noted(expression: &str) -> bool {
    ["n4294967297,n1", "n1,n2,n4294967296,n4294967297"].contains(&expression)
}

fn digest(text: &str) -> String {
    hex(&Sha256::digest(text))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The answers of both Slurms; the newer one's is mostly "same".
fn both<'a>(row: &'a Value, old: &'a Value) -> [(Dialect, &'a Value); 2] {
    let new = &row["slurm_26_05"];
    [(Dialect::V22_05, old), (Dialect::Modern, if new == "same" { old } else { new })]
}

#[test]
fn every_chosen_row_agrees() {
    let rows: Vec<Value> = serde_json::from_str(TRUTH).expect("truth.json is JSON");
    let mut tally = Tally::default();
    for row in &rows {
        let expression = row["expr"].as_str().expect("expr is a string");
        if expression.starts_with(WRAPPED) || expression == "[" {
            continue;
        }
        assert!(
            row["note"].is_null() || is_noted(expression),
            "a note without a reason: {expression}"
        );
        for (dialect, expected) in both(row, row) {
            tally.row(dialect, expression, expected);
        }
    }
    tally.report("truth.json");
}

#[test]
fn every_random_row_agrees() {
    let mut tally = Tally::default();
    for line in FUZZ.lines() {
        let row: Value = serde_json::from_str(line).expect("a line of fuzz.jsonl is JSON");
        let expression = row["expr"].as_str().expect("expr is a string");
        for (dialect, expected) in both(&row, &row["slurm_22_05"]) {
            tally.row(dialect, expression, expected);
        }
    }
    tally.report("fuzz.jsonl");
}

/// Slurm 22.05 and 26.05 join neighbours while they read, before they sort.
#[test]
fn products_are_joined_before_they_are_sorted() {
    for (expression, sorted) in [
        ("x[1]n[98-99,100,008]", "x1n[98-100,008]"),
        ("x[1-2]n[98-99,100,008]", "x1n[98-100,008],x2n[98-100,008]"),
        ("r[1]n[98-99],r1n100,r1n008", "r1n[98-100,008]"),
        ("r[1-1]n[9,10,09]", "r1n[9-10,09]"),
    ] {
        let list: Hostlist = expression.parse().expect("a valid expression");
        assert_eq!(list.sorted().to_string(), sorted);
        assert_eq!(list.uniq().to_string(), sorted);
    }
}

#[test]
fn slurms_own_defects_get_an_error_or_the_sane_answer() {
    let strict = Parser::new();
    let old = Parser::new().dialect(Dialect::V22_05).lenient(true);
    for refused in [
        WRAPPED,
        "n[0-18446744073709551615],a",
        "n[0-18446744073709551615]x[1]",
        "a[x]b[1-2]c[1-2]",
        "a[1-65537]b[1-2]c[1-2]",
        "a[1-40000,40001-70000]b[1]c[1]",
        "n[1a-3]",
    ] {
        assert!(strict.parse(refused).is_err(), "{refused}");
    }
    assert!(old.parse("[").is_err());
    for (expression, sorted) in [
        ("n4294967297,n1", "n[1,4294967297]"),
        ("n1,n2,n4294967296,n4294967297", "n[1-2,4294967296-4294967297]"),
        ("n2147483650,n1", "n[1,2147483650]"),
    ] {
        let list: Hostlist = expression.parse().expect("a plain list");
        assert_eq!(list.sorted().to_string(), sorted);
        assert_eq!(list.uniq().to_string(), sorted);
    }
    for (expression, count) in
        [("n[18446744073709551614-18446744073709551615]", 2), ("n[18446744073709551615]x[1]", 1)]
    {
        let list: Hostlist = expression.parse().expect("within u64");
        assert_eq!((list.len(), list.to_vec().len()), (count, count));
    }
}

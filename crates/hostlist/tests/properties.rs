//! What must hold for every list.

use hostlist::{Dialect, Hostlist, Parser};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use std::collections::{BTreeSet, HashSet};
use std::num::NonZeroUsize;

/// `7`, `007`, `3-9`, `08-12`.
fn item() -> impl Strategy<Value = String> {
    (0_u64..120, 0_u64..6, 1_usize..4, any::<bool>()).prop_map(|(lo, more, width, single)| {
        if single { format!("{lo:0width$}") } else { format!("{lo:0width$}-{}", lo + more) }
    })
}

fn bracket() -> impl Strategy<Value = String> {
    vec(item(), 1..3).prop_map(|items| format!("[{}]", items.join(",")))
}

/// A plain name, one bracket, two or three, with or without a suffix; few stems, so that lists meet.
fn token() -> impl Strategy<Value = String> {
    let stem = select(vec!["n", "m", "n1", "n01", "r-", "é"]);
    let tail = select(vec!["", "", "", "-ib0", "x"]);
    (stem, vec((bracket(), select(vec!["", "b", "1"])), 0..4), tail).prop_map(
        |(stem, brackets, tail)| {
            let brackets: String =
                brackets.into_iter().flat_map(|(b, literal)| [b, literal.to_owned()]).collect();
            format!("{stem}{brackets}{tail}")
        },
    )
}

fn expression() -> impl Strategy<Value = String> {
    vec(token(), 0..5).prop_map(|tokens| tokens.join(","))
}

fn list() -> impl Strategy<Value = Hostlist> {
    expression().prop_map(|expression| expression.parse().unwrap())
}

/// Text made of what has a meaning in an expression.
fn jumble() -> impl Strategy<Value = String> {
    let pieces = select(vec![
        "[", "]", ",", "-", " ", "\n", "0", "1", "9", "65535", "n", "x", "+", "é", "0-65535",
    ]);
    vec(pieces, 0..30).prop_map(|pieces| pieces.concat())
}

fn set(list: &Hostlist) -> BTreeSet<String> {
    list.iter().collect()
}

/// The names with later copies dropped.
fn first_of_each(names: impl IntoIterator<Item = String>) -> Vec<String> {
    let mut seen = HashSet::new();
    names.into_iter().filter(|name| seen.insert(name.clone())).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn folding_and_reading_keeps_the_list(list in list()) {
        let again: Hostlist = list.to_string().parse().unwrap();
        prop_assert_eq!(&again, &list);
        let pushed: Hostlist = list.iter().collect();
        prop_assert_eq!(pushed.to_string().parse::<Hostlist>().unwrap(), list);
    }

    #[test]
    fn every_way_to_expand_gives_the_same_names(list in list()) {
        let names = list.to_vec();
        prop_assert_eq!(list.len(), names.len());
        prop_assert_eq!(list.iter().len(), names.len());
        prop_assert_eq!(&list.iter().collect::<Vec<_>>(), &names);
        let mut written = Vec::new();
        list.write_to(&mut written, ", ").unwrap();
        prop_assert_eq!(String::from_utf8(written).unwrap(), names.join(", "));
    }

    #[test]
    fn contains_and_position_are_those_of_the_expansion(list in list(), other in list()) {
        let names = list.to_vec();
        for name in names.iter().cloned().chain(&other).chain(["n".into(), "n9".into(), String::new()]) {
            let place = names.iter().position(|own| *own == name);
            prop_assert_eq!(list.position(&name), place, "{}", name);
            prop_assert_eq!(list.contains(&name), place.is_some());
        }
    }

    #[test]
    fn a_change_after_a_look_up_is_seen(list in list()) {
        let mut list = list;
        prop_assert!(!list.contains("new7"));
        list.push("new7");
        prop_assert_eq!(list.position("new7"), Some(list.len() - 1));
    }

    #[test]
    fn set_operations_are_those_of_the_expansion(a in list(), b in list()) {
        let (names_a, names_b) = (set(&a), set(&b));
        for (result, expected) in [
            (a.union(&b), names_a.union(&names_b).cloned().collect::<BTreeSet<_>>()),
            (a.difference(&b), names_a.difference(&names_b).cloned().collect()),
            (a.intersection(&b), names_a.intersection(&names_b).cloned().collect()),
            (
                a.symmetric_difference(&b),
                names_a.symmetric_difference(&names_b).cloned().collect(),
            ),
        ] {
            prop_assert_eq!(result.len(), expected.len(), "a host twice in {}", result);
            prop_assert_eq!(set(&result), expected);
        }
    }

    #[test]
    fn sorting_keeps_every_host_and_uniq_every_name(list in list()) {
        let (mut names, mut sorted) = (list.to_vec(), list.sorted().to_vec());
        names.sort_unstable();
        sorted.sort_unstable();
        prop_assert_eq!(sorted, names);
        prop_assert_eq!(set(&list.uniq()), set(&list));
        prop_assert_eq!(list.sorted().sorted().to_string(), list.sorted().to_string());
    }

    #[test]
    fn removing_takes_the_first_copy_of_each(list in list(), gone in list()) {
        let mut expected = list.to_vec();
        for name in &gone {
            if let Some(at) = expected.iter().position(|own| *own == name) {
                expected.remove(at);
            }
        }
        let mut list = list;
        list.remove_first(&gone);
        prop_assert_eq!(list.to_vec(), expected);
    }

    #[test]
    fn chunks_joined_are_the_list(list in list(), size in 1_usize..20) {
        let chunks: Vec<Hostlist> = list.chunks(NonZeroUsize::new(size).unwrap()).collect();
        let mut joined = Hostlist::new();
        for (number, chunk) in (1..).zip(&chunks) {
            prop_assert!(chunk.len() == size || number == chunks.len());
            joined.append(chunk);
        }
        prop_assert_eq!(joined, list);
    }

    #[test]
    fn no_text_panics_or_runs_away(text in prop_oneof![jumble(), ".*"], lenient: bool, old: bool) {
        let dialect = if old { Dialect::V22_05 } else { Dialect::Modern };
        let parser = Parser::new().dialect(dialect).lenient(lenient).max_hosts(5000).max_bytes(100_000);
        match parser.parse(&text) {
            Ok(list) => {
                prop_assert!(list.len() <= 5000);
                prop_assert_eq!(list.to_vec().len(), list.len());
                prop_assert_eq!(list.sorted().len(), list.len());
                prop_assert_eq!(set(&list.uniq()), set(&list));
                prop_assert_eq!(set(&list.union(&list)), set(&list));
            }
            Err(error) => {
                prop_assert!(error.position() <= text.len());
                prop_assert!(error.to_string().contains('^'));
            }
        }
    }

    #[test]
    fn a_step_takes_every_so_many(lo in 0_u64..50, more in 0_u64..50, step in 1_usize..9, width in 1_usize..4) {
        let expression = format!("n[{lo:0width$}-{}/{step},7]x", lo + more);
        let expected: Vec<String> =
            (lo..=lo + more).step_by(step).map(|value| format!("n{value:0width$}x")).chain(["n7x".into()]).collect();
        prop_assert_eq!(Parser::new().steps(true).parse(&expression).unwrap().to_vec(), expected);
        prop_assert!(Parser::new().parse(&expression).is_err(), "Slurm refuses steps");
    }

    #[cfg(feature = "serde")]
    #[test]
    fn what_is_serialized_reads_back(list in list()) {
        let json = serde_json::to_string(&list).unwrap();
        prop_assert_eq!(serde_json::from_str::<Hostlist>(&json).unwrap(), list);
    }

    #[test]
    fn no_bytes_panic(bytes: Vec<u8>) {
        let read = Parser::new().max_hosts(5000).parse_bytes(&bytes);
        prop_assert!(read.is_ok() || read.is_err_and(|error| error.position() <= bytes.len()));
    }

    #[test]
    fn agrees_with_hostlist_parser_where_that_agrees_with_slurm(expression in common()) {
        let ours: Hostlist = expression.parse().unwrap();
        let theirs = hostlist_parser::parse(&expression).unwrap();
        prop_assert_eq!(first_of_each(&ours), theirs);
    }
}

/// Expressions that `hostlist-parser` reads as Slurm does: at most two brackets, padding that both keep.
fn common() -> impl Strategy<Value = String> {
    let plain = (0_u64..3000, 0_u64..20).prop_map(|(lo, more)| format!("{lo}-{}", lo + more));
    let single = (0_u64..3000).prop_map(|value| value.to_string());
    let padded = (0_u64..9, 1_u64..20, 2_usize..5)
        .prop_map(|(lo, more, width)| format!("{lo:0width$}-{:0width$}", lo + more));
    let bracket = vec(prop_oneof![plain, single, padded], 1..4)
        .prop_map(|items| format!("[{}]", items.join(",")));
    let name = ("[a-z][a-z.-]{0,4}", vec(bracket, 0..3), "[a-z]{0,3}", any::<bool>()).prop_map(
        |(stem, brackets, middle, number)| match &brackets[..] {
            [] => format!("{stem}{}", if number { "17" } else { "" }),
            [one] => format!("{stem}{one}"),
            more => format!("{stem}{}", more.join(&format!("{middle}-"))),
        },
    );
    vec(name, 1..5).prop_map(|names| names.join(","))
}

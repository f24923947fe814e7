//! What is measured, in the order of the table.

use crate::inputs::{Expression, Names, hosts, ranges};
use crate::measure::{Workload, contender};
use crate::slurm::List;
use hostlist::Hostlist;
use nodeset::{IdRangeTree, NodeSet};
use std::cell::RefCell;

pub const OURS: &str = "ours";
pub const SLURM: &str = "libslurm";

/// More than a million names of nine bytes with their separators.
const BUFFER: usize = 11_000_000;

pub struct Inputs {
    million: Expression,
    ten_million: Expression,
    product: Expression,
    few: Expression,
    a: Expression,
    b: Expression,
    sorted: Names,
    shuffled: Names,
    wanted: Names,
    buffer: RefCell<Vec<u8>>,
    list: Hostlist,
    slurm_list: List,
}

impl Inputs {
    pub fn new() -> Self {
        let a = ranges(0);
        Self {
            million: hosts(1_000_000),
            ten_million: hosts(10_000_000),
            product: Expression::new("r[0-999]n[0-999]".into()),
            few: Expression::new("n[1-4,7]".into()),
            b: ranges(25),
            sorted: Names::sorted(100_000),
            shuffled: Names::shuffled(100_000),
            wanted: Names::new((0..10_000).map(|i| i * 12)),
            buffer: RefCell::new(vec![0; BUFFER]),
            list: read(&a),
            slurm_list: List::new(&a.c),
            a,
        }
    }
}

fn read(expression: &Expression) -> Hostlist {
    expression.text.parse().expect("a valid expression")
}

fn nodes(expression: &Expression) -> NodeSet {
    expression.text.parse().expect("a valid expression")
}

fn iter_peer(expression: &Expression) -> hostlist_iter::Hostlist {
    hostlist_iter::Hostlist::new(&expression.text).expect("a valid expression")
}

pub fn all(inputs: &Inputs) -> Vec<Workload<'_>> {
    let mut all = expanding(inputs);
    all.extend(counting(inputs));
    all.extend(folding(inputs));
    all.extend(combining(inputs));
    all
}

fn expanding(inputs: &Inputs) -> Vec<Workload<'_>> {
    let Inputs { million, few, buffer, .. } = inputs;
    let into_buffer = vec![
        contender(SLURM, 1, || List::new(&million.c).write(&mut buffer.borrow_mut())),
        contender(OURS, 3, || {
            let mut buffer = buffer.borrow_mut();
            buffer.clear();
            read(million).write_to(&mut *buffer, ",").expect("memory");
            let written = buffer.len();
            buffer.resize(BUFFER, 0);
            written
        }),
    ];
    let borrowed = vec![
        contender(SLURM, 1, || List::new(&million.c).iterate()),
        contender(OURS, 3, || {
            let mut bytes = 0;
            read(million).for_each(|name| bytes += name.len());
            bytes
        }),
        contender("nodeset", 1, || nodes(million).iter().map(|name| name.len()).sum::<usize>()),
        contender("hostlist_iter", 1, || iter_peer(million).map(|name| name.len()).sum::<usize>()),
    ];
    vec![
        Workload { name: "expand 1 M into a buffer", bar: 0.03, contenders: into_buffer },
        owned("expand 1 M to Vec<String>", 0.45, 1, million),
        Workload { name: "iterate 1 M borrowed", bar: 0.05, contenders: borrowed },
        owned("parse+expand 10 k × n[1-4,7]", 0.4, 10_000, few),
    ]
}

/// Every name in a string of its own.
fn owned<'a>(
    name: &'static str,
    bar: f64,
    repeat: usize,
    expression: &'a Expression,
) -> Workload<'a> {
    let contenders = vec![
        contender(SLURM, repeat, || List::new(&expression.c).into_names()),
        contender(OURS, repeat, || read(expression).to_vec()),
        contender("nodeset", repeat, || nodes(expression).iter().collect::<Vec<_>>()),
        contender("hostlist", repeat, || peer_hostlist::expand(&expression.text).expect("valid")),
        contender("hostlist_iter", repeat, || iter_peer(expression).collect::<Vec<_>>()),
        contender("hostlist-parser", repeat, || {
            hostlist_parser::parse(&expression.text).expect("valid")
        }),
    ];
    Workload { name, bar, contenders }
}

fn counting(inputs: &Inputs) -> Vec<Workload<'_>> {
    vec![
        count("count 10 M in 153 ranges", 0.6, 200, &inputs.ten_million),
        count("count r[0-999]n[0-999]", 0.01, 200, &inputs.product),
        count("parse+count 10 k × n[1-4,7]", 0.35, 10_000, &inputs.few),
    ]
}

fn count<'a>(
    name: &'static str,
    bar: f64,
    repeat: usize,
    expression: &'a Expression,
) -> Workload<'a> {
    let contenders = vec![
        contender(SLURM, repeat, || List::new(&expression.c).count()),
        contender(OURS, repeat, || read(expression).len()),
        contender("nodeset", repeat.min(100), || nodes(expression).len()),
        contender("hostlist_iter", repeat.min(100), || iter_peer(expression).len()),
    ];
    Workload { name, bar, contenders }
}

fn folding(inputs: &Inputs) -> Vec<Workload<'_>> {
    let Inputs { sorted, shuffled, .. } = inputs;
    // nodeset takes names only as one expression, and shuffled ones only in its tree in sensible time.
    let tree =
        |names: &Names| names.joined.parse::<NodeSet<IdRangeTree>>().expect("valid").to_string();
    let collapse = |names: &Names| hostlist_iter::collapse_hosts(&names.text).expect("valid names");
    let folded = |names: &Names| names.text.iter().collect::<Hostlist>();
    vec![
        Workload {
            name: "fold 100 k sorted",
            bar: 0.15,
            contenders: vec![
                contender(SLURM, 1, || List::of_names(&sorted.c).folded()),
                contender(OURS, 3, move || folded(sorted).to_string()),
                contender("nodeset", 1, move || tree(sorted)),
                contender("hostlist_iter", 1, move || collapse(sorted)),
            ],
        },
        Workload {
            name: "fold 100 k shuffled, sorted",
            bar: 0.06,
            contenders: vec![
                contender(SLURM, 1, || {
                    let list = List::of_names(&shuffled.c);
                    list.sort();
                    list.folded()
                }),
                contender(OURS, 3, move || folded(shuffled).sorted().to_string()),
                contender("nodeset", 1, move || tree(shuffled)),
                contender("hostlist_iter", 1, move || collapse(shuffled)),
            ],
        },
        Workload {
            name: "fold 100 k shuffled, as is",
            bar: 0.10,
            contenders: vec![
                contender(SLURM, 1, || List::of_names(&shuffled.c).folded()),
                contender(OURS, 3, move || folded(shuffled).to_string()),
            ],
        },
    ]
}

fn combining(inputs: &Inputs) -> Vec<Workload<'_>> {
    let Inputs { a, b, wanted, list, slurm_list, .. } = inputs;
    let set = nodes(a);
    vec![
        Workload {
            name: "10 k look-ups in 2000 ranges",
            bar: 0.006,
            contenders: vec![
                contender(SLURM, 1, || {
                    wanted.c.iter().filter(|name| slurm_list.find(name)).count()
                }),
                contender(OURS, 5, || {
                    wanted.text.iter().filter(|name| list.contains(name)).count()
                }),
                contender("nodeset", 1, move || {
                    let single = |name: &String| name.parse::<NodeSet>().expect("a valid name");
                    wanted
                        .text
                        .iter()
                        .filter(|name| !set.intersection(&single(name)).is_empty())
                        .count()
                }),
            ],
        },
        Workload {
            name: "union of 2000 and 2000 ranges",
            bar: 0.15,
            contenders: vec![
                contender(SLURM, 10, || {
                    let list = List::new(&a.c);
                    list.push(&b.c);
                    list.uniq();
                    list
                }),
                contender(OURS, 10, || read(a).union(&read(b))),
                contender("nodeset", 10, || nodes(a).union(&nodes(b))),
            ],
        },
        Workload {
            name: "difference of the same",
            bar: 0.0005,
            contenders: vec![
                contender(SLURM, 1, || {
                    let list = List::new(&a.c);
                    list.delete(&b.c);
                    list
                }),
                contender(OURS, 10, || read(a).difference(&read(b))),
                contender("nodeset", 10, || nodes(a).difference(&nodes(b))),
            ],
        },
    ]
}

/// Panics where we and libslurm do not say the same: a fast wrong answer is worth nothing.
pub fn check(inputs: &Inputs) {
    let Inputs { sorted, shuffled, million, a, b, .. } = inputs;
    assert_eq!(read(million).len(), List::new(&million.c).count());
    for names in [sorted, shuffled] {
        let (ours, slurm) = (names.text.iter().collect::<Hostlist>(), List::of_names(&names.c));
        assert_eq!(ours.to_string(), slurm.folded().as_str());
        slurm.sort();
        assert_eq!(ours.sorted().to_string(), slurm.folded().as_str());
    }
    let union = List::new(&a.c);
    union.push(&b.c);
    union.uniq();
    assert_eq!(read(a).union(&read(b)).to_string(), union.folded().as_str());
    let difference = List::new(&a.c);
    difference.delete(&b.c);
    assert_eq!(read(a).difference(&read(b)).to_string(), difference.folded().as_str());
}

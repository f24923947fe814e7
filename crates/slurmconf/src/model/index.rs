//! Many nodes looked up by name.

use super::{Config, NodeDef};
use std::collections::HashMap;

/// The nodes of a configuration by name; made by [`Config::index`].
///
/// ```
/// use slurmconf::Config;
///
/// let config = Config::parse("NodeName=n[1-2] NodeAddr=10.0.0.[1-2] Port=7000\n")?;
/// let index = config.index();
/// let node = index.get("n2").unwrap();
/// assert_eq!((node.addr, node.hostname, node.port), (Some("10.0.0.2"), None, Some("7000")));
/// assert!(index.get("n3").is_none());
/// # Ok::<(), slurmconf::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct NodeIndex<'a> {
    lines: Vec<Line<'a>>,
    /// The line, and the number among its names.
    by_name: HashMap<String, (usize, usize)>,
}

#[derive(Clone, Debug)]
struct Line<'a> {
    node: &'a NodeDef,
    own: Vec<(&'static str, Vec<String>)>,
}

/// One node: the line it stands in, and what it has of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexedNode<'a> {
    /// The line.
    pub line: &'a NodeDef,
    /// Its `NodeAddr`.
    pub addr: Option<&'a str>,
    /// Its `NodeHostname`.
    pub hostname: Option<&'a str>,
    /// Its `Port`.
    pub port: Option<&'a str>,
}

impl<'a> NodeIndex<'a> {
    pub(super) fn new(config: &'a Config) -> Self {
        let mut index = Self { lines: Vec::new(), by_name: HashMap::new() };
        for node in &config.nodes {
            let (line, mut position) = (index.lines.len(), 0);
            node.names.for_each(|name| {
                index.by_name.entry(name.to_owned()).or_insert((line, position));
                position += 1;
            });
            index.lines.push(Line { node, own: node.own() });
        }
        index
    }

    /// The node of that name; in two lines, the first counts.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<IndexedNode<'_>> {
        let &(line, position) = self.by_name.get(name)?;
        let Line { node, own } = self.lines.get(line)?;
        let value = |key: &str| {
            let (_, values) = own.iter().find(|(known, _)| *known == key)?;
            values.get(position).or(values.first()).map(String::as_str)
        };
        Some(IndexedNode {
            line: node,
            addr: value("NodeAddr"),
            hostname: value("NodeHostname"),
            port: value("Port"),
        })
    }
}

//! Nodes put into the generated section of slurm.conf, or taken out of it.

use super::Refusal;
use super::exclusions::{EXCLUDED, with_exclusions};
use crate::world::World;
use hostlist::{Hostlist, NodeName};
use slurmconf::{
    Config, Definition, DefinitionKind, Document, Line, Markers, NodeDef, SlurmVersion, Statement,
};

/// Nodes that are to be in slurm.conf beside a node like them.
pub(super) struct Addition {
    pub(super) like: NodeName,
    pub(super) nodes: Vec<NodeName>,
}

/// The text of the document with nodes added and removed; only lines between the markers change.
///
/// An error if the markers are missing, or if a line outside them would have to change.
pub(super) fn edited(
    document: &Document,
    version: SlurmVersion,
    additions: &[Addition],
    removed: &Hostlist,
    world: World<'_>,
) -> Result<Vec<u8>, Refusal> {
    let conf = |error: slurmconf::Error| Refusal::BadConf(error.to_string());
    let section = document.section(Markers::NODES).map_err(conf)?;
    // It stands for bytes that are lost: what is outside stays as it is, and of what is inside most is kept.
    if section.contains(char::REPLACEMENT_CHARACTER) {
        return Err(Refusal::BadConf(format!(
            "{} is not UTF-8 between the markers: iconv -f latin1 -t utf8 mends it",
            document.name()
        )));
    }
    let inside = Document::parse(section.as_str());
    outside(document, &section, additions, removed)?;
    let mut text = String::new();
    for line in inside.lines() {
        match change(&line, additions, removed)? {
            Change::None => text.push_str(&line.text()),
            Change::Gone => {}
            Change::Line(line) => {
                text.push_str(&line);
                text.push('\n');
            }
        }
    }
    let mut new = document.clone();
    let text = with_exclusions(&text, document, world.conf.config(), version).map_err(conf)?;
    new.replace_section(Markers::NODES, &text).map_err(conf)?;
    Config::parse(&text).map_err(conf)?;
    Ok(new.as_bytes().to_vec())
}

enum Change {
    None,
    Gone,
    Line(String),
}

fn change(line: &Line<'_>, additions: &[Addition], removed: &Hostlist) -> Result<Change, Refusal> {
    let Some(definition) = definition(line) else {
        return Ok(Change::None);
    };
    let kind = definition.kind;
    let text = line.text();
    let bad = |error: slurmconf::Error| Refusal::BadConf(error.to_string());
    let config = Config::parse(text.trim_end()).map_err(bad)?;
    let listed = |list: &Option<Hostlist>| {
        list.as_ref().and_then(|nodes| members(nodes, additions, removed))
    };
    match kind {
        DefinitionKind::Node => {
            let def: NodeDef = text.trim_end().parse().map_err(bad)?;
            node(def, additions, removed)
        }
        DefinitionKind::Partition => Ok(config
            .partitions
            .into_iter()
            .find_map(|mut partition| {
                partition.nodes = some(listed(&partition.nodes)?);
                Some(Change::Line(partition.to_string()))
            })
            .unwrap_or(Change::None)),
        DefinitionKind::NodeSet => Ok(config
            .node_sets
            .into_iter()
            .find_map(|mut set| {
                set.nodes = some(listed(&set.nodes)?);
                Some(Change::Line(set.to_string()))
            })
            .unwrap_or(Change::None)),
        // Somebody wrote it about these very nodes; what is to become of it is theirs to say.
        DefinitionKind::DownNodes
            if lists(&definition).iter().any(|list| members(list, &[], removed).is_some()) =>
        {
            let name = definition.name.value;
            Err(Refusal::BadConf(format!("{kind}={name} names nodes that are to go")))
        }
        DefinitionKind::DownNodes | DefinitionKind::Frontend | DefinitionKind::PowerAction => {
            Ok(Change::None)
        }
    }
}

fn node(mut def: NodeDef, additions: &[Addition], removed: &Hostlist) -> Result<Change, Refusal> {
    let Some(names) = members(&def.names, additions, removed) else {
        return Ok(Change::None);
    };
    if def.addr.is_some() || def.hostname.is_some() || def.port.is_some() {
        return Err(Refusal::BadConf(format!("{} has addresses of its own", def.names)));
    }
    def.names = names;
    Ok(if def.names.is_empty() { Change::Gone } else { Change::Line(def.to_string()) })
}

/// Nothing in place of an empty list, which Slurm does not read.
fn some(list: Hostlist) -> Option<Hostlist> {
    (!list.is_empty()).then_some(list)
}

/// The list with what is added and removed; nothing if that changes nothing.
fn members(list: &Hostlist, additions: &[Addition], removed: &Hostlist) -> Option<Hostlist> {
    let mut new = list.clone();
    for addition in additions.iter().filter(|addition| list.contains(addition.like.as_str())) {
        new.extend(&addition.nodes);
    }
    let new = new.difference(removed);
    (new != list.difference(&Hostlist::new())).then_some(new)
}

/// Refuses if a line outside the markers names the nodes.
fn outside(
    document: &Document,
    section: &str,
    additions: &[Addition],
    removed: &Hostlist,
) -> Result<(), Refusal> {
    let mut all = document.clone();
    let bad = |error: slurmconf::Error| Refusal::BadConf(error.to_string());
    if !section.is_empty() {
        all.replace_section(Markers::NODES, "").map_err(bad)?;
    }
    for line in all.lines() {
        if let Ok(Statement::Parameter(pair)) = line.read()
            && pair.key.eq_ignore_ascii_case(EXCLUDED)
            && let Ok(list) = pair.value.parse::<Hostlist>()
            && members(&list, additions, removed).is_some()
        {
            return Err(Refusal::NamedOutside(format!("{EXCLUDED}={}", pair.value)));
        }
        let Some(definition) = definition(&line) else {
            continue;
        };
        for list in lists(&definition) {
            if members(&list, additions, removed).is_some() {
                let Definition { kind, name, .. } = definition;
                return Err(Refusal::NamedOutside(format!("{kind}={}", name.value)));
            }
        }
    }
    Ok(())
}

/// The lists of nodes in a definition.
fn lists(definition: &Definition<'_>) -> Vec<Hostlist> {
    let named = match definition.kind {
        DefinitionKind::Node | DefinitionKind::DownNodes => Some(&definition.name),
        DefinitionKind::Partition
        | DefinitionKind::NodeSet
        | DefinitionKind::Frontend
        | DefinitionKind::PowerAction => None,
    };
    let nodes = definition.attributes.iter().filter(|pair| pair.key.eq_ignore_ascii_case("nodes"));
    named.into_iter().chain(nodes).filter_map(|pair| pair.value.parse().ok()).collect()
}

fn definition<'a>(line: &Line<'a>) -> Option<Definition<'a>> {
    match line.read() {
        Ok(Statement::Definition(definition)) => Some(definition),
        Ok(Statement::Blank | Statement::Include(_) | Statement::Parameter(_)) | Err(_) => None,
    }
}

//! Nodes that slurmctld must never stop, by a line between the markers.

use hostlist::Hostlist;
use slurmconf::{
    Cluster, Config, ConfiguredState, DefinitionKind, Document, Error, Line, Markers, SlurmVersion,
    Statement, SuspendTime,
};
use std::fmt::Write as _;

/// The parameter. Said twice in slurm.conf, the later counts alone.
pub(super) const EXCLUDED: &str = "SuspendExcNodes";

/// What is to stand between the markers of a document of this configuration: the cluster, and which of its nodes slurmctld,
/// which is of this version, must never stop.
pub fn node_section(
    cluster: &Cluster,
    document: &Document,
    config: &Config,
    version: SlurmVersion,
) -> slurmconf::Result<String> {
    with_exclusions(&cluster.to_string(), document, config, version)
}

/// The section with the nodes that slurmctld must never switch off: those of it that are not elastic.
///
/// Written even while power saving is off: whoever turns it on later does not run `finish`. Where somebody says
/// outside the section which ones it must not, that counts; an error if it leaves one out.
pub(super) fn with_exclusions(
    section: &str,
    document: &Document,
    config: &Config,
    version: SlurmVersion,
) -> slurmconf::Result<String> {
    let mut text: String = Document::parse(section)
        .lines()
        .filter(|line| !is_exclusion(line))
        .map(|line| line.text().into_owned())
        .collect();
    let new = below_defaults(document, &text)?;
    let mut always = Hostlist::new();
    for def in &new.nodes {
        if !def.is_cloud() && def.state != Some(ConfiguredState::Future) {
            always.append(&def.names);
        }
    }
    let before = document.section(Markers::NODES)?;
    let mut whole = replaced(config, &Config::parse(&before)?, new);
    let theirs = excluded_outside(config, document);
    whole.power.suspend_exc_nodes.clone_from(&theirs);
    let stoppable = whole.suspendable(&always, version);
    let spared_by_part = !whole.power.suspend_exc_parts.is_empty()
        && powered(whole).suspendable(&always, version).is_empty();
    match theirs {
        Some(said) if !stoppable.is_empty() => {
            let line = format!("{said},{stoppable}");
            return Err(Error::persistent_nodes_suspendable(said, stoppable, line));
        }
        None if !always.is_empty() && !spared_by_part => {
            if !text.ends_with('\n') {
                text.push('\n');
            }
            let _ = writeln!(text, "{EXCLUDED}={always}");
        }
        Some(_) | None => {}
    }
    Ok(text)
}

/// The configuration when slurmctld switches nodes off, if it does not yet.
fn powered(mut config: Config) -> Config {
    let power = &mut config.power;
    let _ = power.suspend_program.get_or_insert_default();
    let _ = power.resume_program.get_or_insert_default();
    if power.suspend_time == SuspendTime::Never {
        power.suspend_time = SuspendTime::Seconds(0);
    }
    config
}

/// What `SuspendExcNodes` says outside the section of the document, there or in another file; of several the last.
#[must_use]
pub(crate) fn excluded_outside(config: &Config, document: &Document) -> Option<String> {
    let section = document.section(Markers::NODES).unwrap_or_default();
    let mut all: Vec<&str> = config.get_all(EXCLUDED).collect();
    for own in Document::parse(section).get_all(EXCLUDED) {
        if let Some(place) = all.iter().position(|said| *said == own) {
            all.remove(place);
        }
    }
    all.last().map(|said| (*said).to_owned())
}

fn is_exclusion(line: &Line<'_>) -> bool {
    matches!(line.read(), Ok(Statement::Parameter(pair)) if pair.key.eq_ignore_ascii_case(EXCLUDED))
}

/// The configuration when a file of it, which may be one of several, has another section.
pub(crate) fn rewritten(config: &Config, before: &[u8], after: &[u8]) -> slurmconf::Result<Config> {
    let section = |text: &[u8]| {
        let document = Document::parse(text);
        below_defaults(&document, &document.section(Markers::NODES)?)
    };
    Ok(replaced(config, &section(before)?, section(after)?))
}

/// What the section says in its place, where the `DEFAULT` lines above it in the same file count for it, too.
fn below_defaults(document: &Document, section: &str) -> slurmconf::Result<Config> {
    // Alone first: an error in it is reported with its own line numbers.
    let alone = Config::parse(section)?;
    let is_start = |line: &str| line.trim_end() == Markers::NODES.start;
    let above = document.lines().take_while(|line| !line.text().lines().any(is_start));
    let defaults: String = above.filter(is_default).map(|line| line.text().into_owned()).collect();
    if defaults.is_empty() { Ok(alone) } else { Config::parse(&format!("{defaults}{section}")) }
}

fn is_default(line: &Line<'_>) -> bool {
    let Ok(Statement::Definition(definition)) = line.read() else {
        return false;
    };
    let has_defaults = match definition.kind {
        DefinitionKind::Node | DefinitionKind::Partition => true,
        DefinitionKind::NodeSet
        | DefinitionKind::DownNodes
        | DefinitionKind::Frontend
        | DefinitionKind::PowerAction => false,
    };
    has_defaults && definition.name.value.eq_ignore_ascii_case("DEFAULT")
}

/// The configuration with another section.
fn replaced(config: &Config, before: &Config, after: Config) -> Config {
    let mut whole = config.clone();
    let was: Hostlist = before.nodes.iter().flat_map(|def| def.names.iter()).collect();
    whole.nodes.retain(|def| !def.names.iter().any(|name| was.contains(&name)));
    whole.partitions.retain(|known| before.partitions.iter().all(|old| old.name != known.name));
    whole.node_sets.retain(|known| before.node_sets.iter().all(|old| old.name != known.name));
    whole.nodes.extend(after.nodes);
    whole.partitions.extend(after.partitions);
    whole.node_sets.extend(after.node_sets);
    whole
}

//! CitC's `shapes.yaml`.

use super::{Memory, Shape, Shapes};
use crate::{
    error::{Problem, Result},
    yaml::{Node, Source},
};

/// No machine has more of anything than this, be it cores, sockets or threads.
const MOST_CORES: u32 = 65_536;
/// 4 PiB in MiB: the most that fits the number type of YAML counts.
const MOST_MEMORY: u32 = u32::MAX;

impl Shapes {
    /// Adds the shapes of a `shapes.yaml` as CitC has it, over those already there.
    ///
    /// Each has `memory` (MiB, taken as `RealMemory`) and `cores_per_socket`, and may have `threads_per_core`,
    /// `sockets`, `gres` and `arch`; other keys are for other programs. `file` is the name errors call it by.
    pub fn read(&mut self, file: &str, text: &str) -> Result<()> {
        let source = Source::new(file, text);
        let root = source.read()?;
        for (name, fields) in source.map(file, &root)? {
            let key = source.text("shape name", name)?;
            let shape = shape(&source, &key, name, fields)?;
            self.insert(key, shape);
        }
        Ok(())
    }
}

fn shape(source: &Source<'_>, what: &str, name: &Node, fields: &Node) -> Result<Shape> {
    let fields = source.map(what, fields)?;
    let field = |key: &str| {
        let named = |node: &Node| source.text(what, node).is_ok_and(|text| text == key);
        fields.iter().find(|(node, _)| named(node)).map(|(_, value)| value)
    };
    let number = |key: &str, most: u32| {
        field(key).map(|node| source.number(&format!("{what}: {key}"), node, (1, most))).transpose()
    };
    let text = |key: &str, default: &str| {
        let text = field(key).map(|node| source.text(&format!("{what}: {key}"), node)).transpose();
        text.map(|text| text.unwrap_or_else(|| default.to_owned()))
    };
    let missing = |key| source.error(name, Problem::MissingKey { what: what.to_owned(), key });
    let memory = number("memory", MOST_MEMORY)?.ok_or_else(|| missing("memory"))?;
    let cores = number("cores_per_socket", MOST_CORES)?;
    Ok(Shape {
        sockets: number("sockets", MOST_CORES)?.unwrap_or(1),
        cores_per_socket: cores.ok_or_else(|| missing("cores_per_socket"))?,
        threads_per_core: number("threads_per_core", MOST_CORES)?.unwrap_or(1),
        memory: Memory::Real(u64::from(memory)),
        gres: text("gres", "")?,
        arch: text("arch", "x86_64")?,
    })
}

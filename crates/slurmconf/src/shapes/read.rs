//! CitC's `shapes.yaml`.

use super::{Memory, Shape, Shapes};
use crate::{
    error::Result,
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
    /// `sockets`, `gres` and `arch`; other keys are for other programs. One without `gres` keeps what is known of
    /// it: CitC's file has none, not even for shapes with graphics cards. `file` is the name errors call it by.
    pub fn read(&mut self, file: &str, text: &str) -> Result<()> {
        self.read_over(file, text, |known| known.map(|known| known.gres).unwrap_or_default())
    }

    /// The same where a shape without `gres` has none, as CitC reads it.
    pub fn read_as_citc(&mut self, file: &str, text: &str) -> Result<()> {
        self.read_over(file, text, |_| String::new())
    }

    fn read_over(
        &mut self,
        file: &str,
        text: &str,
        unsaid_gres: impl Fn(Option<Shape>) -> String,
    ) -> Result<()> {
        let source = Source::new(file, text);
        let root = source.read()?;
        for (name, fields) in source.map(file, &root)? {
            let key = source.text("shape name", name)?;
            let gres = unsaid_gres(self.get(&key));
            let shape = shape(&source, (&key, &gres), name, fields)?;
            self.insert(key, shape);
        }
        Ok(())
    }
}

fn shape(
    source: &Source<'_>,
    (what, gres): (&str, &str),
    name: &Node,
    fields: &Node,
) -> Result<Shape> {
    let fields = source.map(what, fields)?;
    let bounded = |key: &str, node, most| source.number(&format!("{what}: {key}"), node, (1, most));
    let needed = |key, most| bounded(key, source.field((what, name), fields, key)?, most);
    let count = |key| Node::get(fields, key).map_or(Ok(1), |node| bounded(key, node, MOST_CORES));
    let text = |key: &str, default: &str| {
        let found = Node::get(fields, key);
        found.map_or(Ok(default.to_owned()), |node| source.text(&format!("{what}: {key}"), node))
    };
    Ok(Shape {
        memory: Memory::Real(u64::from(needed("memory", MOST_MEMORY)?)),
        sockets: count("sockets")?,
        cores_per_socket: needed("cores_per_socket", MOST_CORES)?,
        threads_per_core: count("threads_per_core")?,
        gres: text("gres", gres)?,
        arch: text("arch", "x86_64")?,
    })
}

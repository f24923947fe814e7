//! CitC's `shapes.yaml`.

use super::{Memory, NodeShape, Shapes};
use crate::{
    error::Result,
    yaml::{Source, YamlNode},
};

/// More sockets, cores or threads than any machine has.
const MOST_CORES: u32 = 65_536;

impl Shapes {
    /// Adds the shapes of CitC's `shapes.yaml`, which replace known ones; `file` is the name that errors call it by.
    ///
    /// Each has `memory` (MiB, taken as `RealMemory`) and `cores_per_socket`, and may have `threads_per_core`,
    /// `sockets`, `gres` and `arch`; other keys are ignored. A shape without `gres` keeps the known value, because
    /// CitC's file has none even for shapes with GPUs.
    pub fn read(&mut self, file: &str, text: &str) -> Result<()> {
        self.read_with(file, text, |known| known.map(|known| known.gres).unwrap_or_default())
    }

    /// Adds the shapes of a `shapes.yaml` as CitC does: a shape without `gres` has no generic resources.
    pub fn read_as_citc(&mut self, file: &str, text: &str) -> Result<()> {
        self.read_with(file, text, |_| String::new())
    }

    fn read_with(
        &mut self,
        file: &str,
        text: &str,
        default_gres: impl Fn(Option<NodeShape>) -> String,
    ) -> Result<()> {
        let source = Source::new(file, text);
        let root = source.read()?;
        for (name, fields) in source.map(file, &root)? {
            let key = source.text("shape name", name)?;
            let (shape, gres) = shape(&source, &key, name, fields)?;
            let gres = gres.unwrap_or_else(|| default_gres(self.get(&key)));
            self.insert(key, NodeShape { gres, ..shape });
        }
        Ok(())
    }
}

/// Reads one shape, and its `gres` if it has any.
fn shape(
    source: &Source<'_>,
    what: &str,
    name: &YamlNode,
    fields: &YamlNode,
) -> Result<(NodeShape, Option<String>)> {
    let fields = source.map(what, fields)?;
    let bounded = |key: &str, node, most| source.number(&format!("{what}: {key}"), node, (1, most));
    let required = |key, most| bounded(key, source.required(what, name, fields, key)?, most);
    let count =
        |key| YamlNode::get(fields, key).map_or(Ok(1), |node| bounded(key, node, MOST_CORES));
    let text = |key: &str| {
        YamlNode::get(fields, key)
            .map(|node| source.text(&format!("{what}: {key}"), node))
            .transpose()
    };
    let shape = NodeShape {
        memory: Memory::Real(u64::from(required("memory", u32::MAX)?)),
        sockets: count("sockets")?,
        cores_per_socket: required("cores_per_socket", MOST_CORES)?,
        threads_per_core: count("threads_per_core")?,
        gres: String::new(),
        arch: text("arch")?.unwrap_or_else(|| "x86_64".to_owned()),
    };
    Ok((shape, text("gres")?))
}

//! Plans as JSON: without the text of files, and not read back.

use super::print::Said;
use super::{Finding, JobGroup, Plan, Stage, Step};
use cloud_core::InstanceId;
use hostlist::NodeName;
use serde::ser::{Serialize, SerializeMap as _, SerializeStruct as _, Serializer};

impl Serialize for Said {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::One(text) => serializer.serialize_str(text),
            Self::Many(texts) => texts.serialize(serializer),
        }
    }
}

fn names(nodes: &[NodeName]) -> Vec<&str> {
    nodes.iter().map(NodeName::as_str).collect()
}

impl Serialize for Step {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let row = self.row();
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("step", row.verb)?;
        map.serialize_entry("nodes", &names(row.nodes))?;
        let ids: Vec<&str> = self.instances().into_iter().map(InstanceId::as_str).collect();
        map.serialize_entry("instances", &ids)?;
        for (key, value) in row.details.iter().filter(|(key, _)| *key != "id") {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}

impl Serialize for Stage {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = serializer.serialize_struct("Stage", 4)?;
        out.serialize_field("what", self.what)?;
        out.serialize_field("begin", &self.begin.to_string())?;
        out.serialize_field("steps", &self.steps)?;
        out.serialize_field("undo", &self.undo)?;
        out.end()
    }
}

impl Serialize for JobGroup {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = serializer.serialize_struct("JobGroup", 2)?;
        out.serialize_field("job", &self.job.get())?;
        out.serialize_field("nodes", &names(&self.nodes))?;
        out.end()
    }
}

impl Serialize for Finding {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let ids: Vec<&str> = self.instances.iter().map(InstanceId::as_str).collect();
        let mut out = serializer.serialize_struct("Finding", 5)?;
        out.serialize_field("kind", self.kind.as_str())?;
        out.serialize_field("node", &self.node.as_ref().map(NodeName::as_str))?;
        out.serialize_field("instances", &ids)?;
        out.serialize_field("text", &self.text)?;
        out.serialize_field("handling", self.handling.as_str())?;
        out.end()
    }
}

impl Serialize for Plan {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = serializer.serialize_struct("Plan", 4)?;
        out.serialize_field("operation", self.operation.as_str())?;
        out.serialize_field("stages", &self.stages)?;
        out.serialize_field("jobs", &self.groups)?;
        out.serialize_field("findings", &self.findings)?;
        out.end()
    }
}

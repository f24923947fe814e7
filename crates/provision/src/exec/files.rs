//! Writes the files of a plan.

use super::LAST_ANSWERS;
use super::stage::Executor;
use crate::addresses;
use crate::cooldown::Cooldowns;
use crate::failure::chain;
use crate::plan::{WrittenFile, hosts, inventory_ini, inventory_json, machines, rewritten};
use crate::state::atomic_write;
use crate::world::{Fleet, Roster, World};
use cloud_core::{Error, InstanceFilter};
use hostlist::NodeName;
use std::path::{Path, PathBuf};
use tokio::time::timeout_at;

impl Executor<'_> {
    fn path(&self, which: WrittenFile) -> Option<PathBuf> {
        let files = self.tools.files;
        match which {
            WrittenFile::SlurmConf => files.slurm_conf.clone(),
            WrittenFile::Hosts => files.hosts.clone(),
            WrittenFile::Inventory => files.inventory.clone(),
            WrittenFile::Topology => files.topology.clone(),
        }
    }

    /// Writes a file of the plan, unless somebody else has changed it since it was read: the plan may have waited for jobs,
    /// and no line of others may be lost.
    pub(super) fn write(
        &mut self,
        which: WrittenFile,
        before: &[u8],
        text: &[u8],
        drops: Vec<NodeName>,
    ) {
        if let Some(path) = self.path(which)
            && !(self.is_still(&path, before) && self.replace(&path, text))
        {
            return;
        }
        self.dropped.extend(drops);
        match which {
            WrittenFile::SlurmConf => {
                self.written = rewritten(self.conf.config(), before, text).ok();
            }
            WrittenFile::Hosts | WrittenFile::Inventory | WrittenFile::Topology => {}
        }
    }

    /// True if the file still has this text. Otherwise reports a failure.
    fn is_still(&mut self, path: &Path, text: &[u8]) -> bool {
        let now = std::fs::read(path);
        let missing = |error: &std::io::Error| error.kind() == std::io::ErrorKind::NotFound;
        let same = match &now {
            Ok(now) => now == text,
            Err(error) => missing(error) && text.is_empty(),
        };
        if !same {
            let why = now.err().map_or_else(
                || "was changed while this was under way".to_owned(),
                |error| format!("cannot be read any more ({error})"),
            );
            let remedy = "run it again, and it goes on from here";
            let failure = format!("{} {why}, and is left as it is: {remedy}", path.display());
            self.report.failures.push(failure);
        }
        same
    }

    /// Replaces a file atomically. False if that fails.
    fn replace(&mut self, path: &Path, text: &[u8]) -> bool {
        let result = atomic_write::replace(path, text);
        self.report.failures.extend(result.as_ref().err().map(|error| chain(error)));
        result.is_ok()
    }

    /// Generates a file from a new observation of the cloud, and writes it if it changed.
    pub(super) async fn refresh(&mut self, which: WrittenFile) {
        let Some(path) = self.path(which) else {
            return;
        };
        let new = match self.anew(which, &path).await {
            Ok(Some(new)) => new,
            Ok(None) => return,
            Err(error) => {
                self.report.failures.push(format!("{}: {error}", path.display()));
                return;
            }
        };
        let _ = self.replace(&path, &new);
    }

    /// The new text of a file. None if it has that text already.
    async fn anew(
        &self,
        which: WrittenFile,
        path: &Path,
    ) -> Result<Option<Vec<u8>>, Box<dyn std::error::Error>> {
        let written = self.written.as_ref().map(Roster::new);
        let conf = written.as_ref().unwrap_or(self.conf);
        let fleet = timeout_at(self.deadline + LAST_ANSWERS, self.fleet(conf)).await??;
        let world = World {
            site: self.site,
            conf,
            fleet: &fleet,
            slurm: None,
            jobs: None,
            cooldowns: &Cooldowns::new(),
            spending: None,
            now: self.tools.now(),
        };
        let machines = machines(world);
        let old = match std::fs::read(path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
            // A file that cannot be read may have lines of others.
            read => read?,
        };
        let new = match which {
            WrittenFile::SlurmConf | WrittenFile::Topology => return Ok(None),
            WrittenFile::Hosts => hosts(&old, &machines, None)?,
            WrittenFile::Inventory if path.extension().is_some_and(|end| end == "json") => {
                format!("{:#}\n", inventory_json(&machines, conf)).into_bytes()
            }
            WrittenFile::Inventory => inventory_ini(&machines, conf).into_bytes(),
        };
        Ok((new != old).then_some(new))
    }

    /// Our instances with their addresses.
    pub(super) async fn fleet(&self, conf: &Roster<'_>) -> Result<Fleet, Error> {
        let identity = &self.site.identity;
        let listed = self.tools.cloud.list(&InstanceFilter::tagged(identity.tags())).await?;
        let mut fleet = Fleet::new(identity, conf, listed, true);
        fleet.set_addresses(&addresses::look_up(self.tools.cloud, fleet.instances()).await?);
        Ok(fleet)
    }
}

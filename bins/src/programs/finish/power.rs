//! The lines of slurm.conf outside the node section: programs and times.

use super::inputs::Inputs;
use crate::args::CONFIG;
use crate::context::Context;
use crate::diagnostic::Diagnostic;
use provision::conf::{gres_types, suspend_exclusions};
use slurmconf::{ElasticSettings, Program};
use slurmctl::Controller as _;
use std::path::Path;

/// The lines for slurm.conf, with the programs in the directory of this one.
pub(super) fn lines(context: &Context<'_>, inputs: &Inputs) -> Result<String, Diagnostic> {
    let config = context.bootstrap.common.config.as_deref();
    let here = std::env::current_exe()?;
    let folder = here.parent().map(Path::to_path_buf).unwrap_or_default();
    let version = context.slurm.controller.version();
    // slurmctld runs in another directory.
    let config = config.map(|path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned()));
    let custom = config.as_deref().filter(|path| *path != Path::new(CONFIG));
    // Only a PowerAction can pass arguments; earlier releases need an alias.
    let actions = version.has_power_actions();
    let arguments: Vec<String> = match custom {
        Some(path) if actions => vec!["--config".to_owned(), path.display().to_string()],
        Some(path) => {
            context.warn(&format!(
                "Slurm {version} passes its programs no options, so they will read {CONFIG} and not {}",
                path.display()
            ));
            Vec::new()
        }
        None => Vec::new(),
    };
    let program = |name: &str, option: Option<&str>| Program {
        path: folder.join(name).display().to_string(),
        arguments: arguments.iter().cloned().chain(option.map(str::to_owned)).collect(),
    };
    let settings =
        ElasticSettings::new(version, program("startnode", None), program("stopnode", None));
    let mut settings = settings.with_current_values(&context.slurm.config);
    settings.resume_fail = Some(if actions {
        program("startnode", Some("--failed"))
    } else {
        program("startnode-failed", None)
    });
    settings.reboot = Some(program("rebuild", None));
    settings.prolog = prolog(context, &folder);
    let mut text = settings.text()?;
    let Inputs { cluster, marked, .. } = inputs;
    let excluded = suspend_exclusions(&context.slurm.config, version, marked, cluster);
    text.push_str(&excluded.unwrap_or_default());
    Ok(match gres_types(&inputs.cluster, &context.slurm.config) {
        None => text,
        Some(types) => format!("{types}\n{text}"),
    })
}

/// The program that ends when the nodes of a job are up, where it is installed beside ours and slurm.conf names no other.
fn prolog(context: &Context<'_>, folder: &Path) -> Option<String> {
    let path = folder.parent()?.join("share/slurm-elastic/await-nodes");
    let named = context.slurm.config.get("PrologSlurmctld");
    path.is_file().then(|| unless_other(path.display().to_string(), named))?
}

fn unless_other(ours: String, named: Option<&str>) -> Option<String> {
    named.is_none_or(|named| named == ours).then_some(ours)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_prolog_is_printed_again_where_slurm_conf_has_it_and_in_place_of_no_other() {
        let line = |named| unless_other("/usr/local/share/await-nodes".to_owned(), named);
        assert!(line(None).is_some());
        assert!(line(Some("/usr/local/share/await-nodes")).is_some());
        assert!(line(Some("/etc/slurm/prolog")).is_none());
    }
}

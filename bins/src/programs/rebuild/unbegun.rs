//! Rebuilds that could not even begin, and for which Slurm waits.

use crate::args::Common;
use crate::diagnostic::Diagnostic;
use crate::environment::Environment;
use crate::log::Level;
use crate::wiring::{self, Unreachable};
use hostlist::NodeName;
use provision::exec::{Cancel, Files, Tools};
use provision::plan::Operation;
use provision::run::{self, Run};
use provision::state::MemoryState;
use provision::{Cause, Identity, NodeReport, Outcome, Report, Roster, Site};
use std::io::IsTerminal as _;
use std::time::SystemTime;

/// Tells Slurm why nodes will not come: neither they nor their jobs need wait for ResumeTimeout.
pub(in crate::programs) async fn tell(
    program: &'static str,
    common: &Common,
    names: &[NodeName],
    diagnostic: &Diagnostic,
) {
    let environment = Environment::read();
    let called = ["SLURM_CONF", "SLURM_JOB_ID"].iter().any(|name| environment.get(name).is_some());
    // slurmctld's RebootProgram has none of these variables, and a site's own shells may; its ResumeProgram has them.
    let asked = environment.by_slurm || (program == "startnode" && called);
    // Whoever sits there, or has it called by Ansible or cron, has made a mistake, and a rebuild that Slurm waits for may
    // be on its way.
    if std::io::stderr().is_terminal() || !asked {
        return;
    }
    let untold = match told(common, &environment, names, diagnostic).await {
        Ok(warnings) => warnings,
        Err(why) => vec![format!("Slurm could not be told why nodes are not rebuilt: {why}")],
    };
    if called {
        let output = crate::context::output(common, &environment);
        for text in &untold {
            output.complain(text);
        }
    }
    crate::programs::note(program, common, Level::Error, &untold);
}

/// What could not be told.
async fn told(
    common: &Common,
    environment: &Environment,
    names: &[NodeName],
    diagnostic: &Diagnostic,
) -> Result<Vec<String>, Diagnostic> {
    let mut environment = environment.clone();
    let (paths, before) = match crate::context::settings(common) {
        Ok((settings, _)) => {
            environment = crate::context::own_environment(common, &settings, environment);
            (settings.paths, "")
        }
        Err(_) => (crate::context::legible_paths(common), "configuration: "),
    };
    let slurm = wiring::slurm(common, &paths, &environment).await?;
    let (cloud, state, files) =
        (Unreachable::new(diagnostic.clone()), MemoryState::new(), Files::default());
    let (site, roster) = (Site::new(Identity::by_name()), Roster::new(&slurm.config));
    let run = Run {
        tools: Tools {
            cloud: &cloud,
            slurm: &slurm.controller,
            state: &state,
            clock: &SystemTime::now,
            progress: &(),
            files: &files,
            run: "",
            cancel: Cancel::never(),
        },
        site: &site,
        conf: &roster,
    };
    let why = format!("{before}{}", diagnostic.messages().first().map_or("", String::as_str));
    let failed = NodeReport::new(Outcome::Failed).because(Cause::Refused, why);
    let mut report = Report::new(Operation::Rebuild);
    report.nodes.extend(names.iter().map(|name| (name.clone(), failed.clone())));
    run::tell_not_rebuilt(&run, &mut report).await;
    Ok(report.warnings)
}

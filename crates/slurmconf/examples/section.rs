//! Puts the nodes that a limits.yaml allows into a slurm.conf and says what that changes.
//!
//! ```text
//! section SLURM.CONF LIMITS.YAML SHAPES.YAML SLURM-VERSION
//! ```
//!
//! The new slurm.conf goes to standard output, the changes to standard error. Nothing is written.

use slurmconf::{Action, Config, Document, GenerateOptions, Limits, Markers, Shapes, SlurmVersion};
use slurmconf::{diff, generate};
use std::error::Error;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [conf, limits, shapes, version] = &arguments[..] else {
        let _ = writeln!(
            io::stderr(),
            "usage: section SLURM.CONF LIMITS.YAML SHAPES.YAML SLURM-VERSION"
        );
        return ExitCode::from(2);
    };
    match section(conf, limits, shapes, version) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "section: {error}");
            ExitCode::from(2)
        }
    }
}

fn section(conf: &str, limits: &str, file: &str, version: &str) -> Result<(), Box<dyn Error>> {
    let version: SlurmVersion = version.parse()?;
    let old = std::fs::read(conf)?;
    let limits = Limits::read(limits, &std::fs::read_to_string(limits)?)?;
    let mut shapes = Shapes::new();
    shapes.read(file, &std::fs::read_to_string(file)?)?;
    let cluster = generate(&limits, &shapes, &GenerateOptions::default())?;
    let mut new = Document::parse(old.clone()).named(conf);
    new.replace_section(Markers::NODES, &cluster.to_string())?;

    let read = |text: &[u8]| Config::load(Path::new(conf), version, |_| Ok(text.to_vec()));
    let changes = diff(&read(&old)?, &read(new.as_bytes())?);
    let advice = match changes.action(version) {
        Action::Nothing => "nothing to do",
        Action::Reconfigure => "scontrol reconfigure takes it up",
        Action::Restart => "slurmctld must be restarted",
    };
    writeln!(io::stderr(), "  + {}\n  - {}\n  = {advice}", changes.added, changes.removed)?;
    io::stdout().write_all(new.as_bytes())?;
    Ok(())
}

//! Writes what `./install` installs beside the programs: man pages, completions and the list of other names.
//!
//! `cargo run -p bins --example pages -- DIR`

use bins::{alias, programs};
use clap::Command;
use clap_complete::{Shell, generate_to};
use clap_mangen::generate_to as pages_to;
use std::env;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

fn main() -> io::Result<()> {
    let folder = env::args_os().nth(1).map(PathBuf::from);
    let folder = folder.ok_or_else(|| io::Error::other("usage: pages DIR"))?;
    let pages = folder.join("man");
    fs::create_dir_all(&pages)?;
    for command in programs::commands() {
        // clap repeats its own `help` as if it were one of our commands.
        pages_to(command.clone().disable_help_subcommand(true), &pages)?;
        completions(&folder.join("completions"), command)?;
    }
    complete(&pages)?;
    let mut aliases = File::create(folder.join("aliases"))?;
    alias::ALL.iter().try_for_each(|alias| writeln!(aliases, "{} {}", alias.name, alias.program))
}

/// Adds what clap does not write.
fn complete(pages: &Path) -> io::Result<()> {
    for page in fs::read_dir(pages)? {
        let path = page?.path();
        let text = fs::read_to_string(&path)?;
        fs::write(&path, format!("{}{FILES}{}", sections(&text), see_also()))?;
    }
    Ok(())
}

/// clap does not know that what comes last are examples, one a line, and exit codes.
fn sections(page: &str) -> String {
    let page = page.replace(".SH EXTRA\nExamples:\n", ".SH EXAMPLES\n.nf\n");
    page.replace("\n\nExit code: ", "\n.fi\n.SH \"EXIT STATUS\"\n")
}

const FILES: &str = ".SH FILES
.TP
/etc/citc/startnode.yaml
The configuration. docs/configuration.md, which is installed in share/doc/slurm\\-elastic, has every key of it, and limits.yaml.
.TP
limits.yaml
How many nodes of which kind there may be; finish and resize read it in the current directory.
.TP
/var/lib/slurm\\-elastic
Locks, cool\\-downs and what was done. It may be lost at any time.
.TP
/var/log/slurm/elastic.log
The log.
.SH ENVIRONMENT
.TP
SLURM_CONF
slurm.conf, where the configuration does not name it.
.TP
SLURM_RESUME_FILE
Set by slurmctld: which job each node is for.
.TP
OCI_CLI_*, OS_*
Credentials, as Oracle\\(aqs and OpenStack\\(aqs own clients take them.
";

fn see_also() -> String {
    let ours: Vec<String> = programs::commands()
        .iter()
        .map(|command| format!(".BR {} (1),\n", command.get_name()))
        .collect();
    format!(".SH \"SEE ALSO\"\n{}.BR slurm.conf (5),\n.BR scontrol (1)\n", ours.concat())
}

fn completions(folder: &Path, mut command: Command) -> io::Result<()> {
    let name = command.get_name().to_owned();
    for shell in [Shell::Bash, Shell::Fish, Shell::Zsh] {
        let folder = folder.join(shell.to_string());
        fs::create_dir_all(&folder)?;
        generate_to(shell, &mut command, &name, &folder)?;
    }
    Ok(())
}

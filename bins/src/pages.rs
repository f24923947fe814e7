//! Man pages, shell completions and the list of names, which `./install` installs with the programs.

use crate::alias;
use crate::multicall::{self, NAME};
use crate::programs::PROGRAMS;
use clap::Command;
use clap_complete::{Shell, generate_to};
use clap_mangen::{Man, generate_to as pages_to};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::symlink;
use std::path::Path;

/// Writes `man`, `completions`, and `names`, the names of all hard links, into a directory.
pub(crate) fn write(directory: &Path) -> io::Result<()> {
    let (pages, shells) = (directory.join("man"), directory.join("completions"));
    fs::create_dir_all(&pages)?;
    for program in &PROGRAMS {
        let command = (program.command)();
        // Otherwise clap lists its own `help` as a command.
        pages_to(command.clone().disable_help_subcommand(true), &pages)?;
        completions(&shells, command)?;
    }
    let whole = multicall::command().disable_help_subcommand(true);
    completions(&shells, whole.clone())?;
    Man::new(whole).render(&mut File::create(pages.join(format!("{NAME}.1")))?)?;
    complete(&pages)?;
    for program in &PROGRAMS {
        link(&pages, &format!("{NAME}-{}", program.subcommand), program.name)?;
    }
    for alias in &alias::ALL {
        link(&pages, alias.name, alias.program)?;
    }
    fs::write(directory.join("names"), multicall::names().join("\n") + "\n")
}

/// Links another name to a page.
fn link(pages: &Path, name: &str, program: &str) -> io::Result<()> {
    let path = pages.join(format!("{name}.1"));
    match symlink(format!("{program}.1"), path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        linked => linked,
    }
}

/// Adds the sections that clap does not write.
fn complete(pages: &Path) -> io::Result<()> {
    for page in fs::read_dir(pages)? {
        let path = page?.path();
        let text = fs::read_to_string(&path)?;
        fs::write(&path, format!("{}{FILES}{}", sections(&text), see_also()))?;
    }
    Ok(())
}

/// Splits clap's section EXTRA into examples, exit status and notes.
fn sections(page: &str) -> String {
    let page = page.replace(".SH EXTRA\nExamples:\n", ".SH EXAMPLES\n.nf\n");
    let page = page.replace("\n\nExit code: ", "\n.fi\n.SH \"EXIT STATUS\"\n");
    page.replace(".SH EXTRA\n", ".SH NOTES\n")
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
    let names = [NAME].into_iter().chain(PROGRAMS.iter().map(|program| program.name));
    let programs: Vec<String> = names.map(|name| format!(".BR {name} (1),\n")).collect();
    format!(".SH \"SEE ALSO\"\n{}.BR slurm.conf (5),\n.BR scontrol (1)\n", programs.concat())
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

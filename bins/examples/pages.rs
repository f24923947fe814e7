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
    for command in programs::commands() {
        man(&folder.join("man"), command.clone())?;
        completions(&folder.join("completions"), command)?;
    }
    let mut aliases = File::create(folder.join("aliases"))?;
    alias::ALL.iter().try_for_each(|alias| writeln!(aliases, "{} {}", alias.name, alias.program))
}

fn man(folder: &Path, command: Command) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    // clap repeats its own `help` as if it were one of our commands.
    pages_to(command.disable_help_subcommand(true), folder)?;
    for page in fs::read_dir(folder)? {
        let path = page?.path();
        let text = fs::read_to_string(&path)?;
        // clap does not know that what comes last are examples.
        fs::write(&path, text.replace(".SH EXTRA\n", ".SH EXAMPLES\n"))?;
    }
    Ok(())
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

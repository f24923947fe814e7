//! Running a program: no shell, no environment but what is given, a deadline, and bounded output.

use crate::{Error, ErrorKind, Result, reason::clean};
use rustix::{
    io::Errno,
    process::{Pid, Signal, kill_process_group},
};
use std::{
    ffi::OsString,
    io,
    path::Path,
    process::{ExitStatus, Stdio},
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _},
    process::{Child, Command},
    time::timeout,
};

/// Most bytes of a command line, or of what came of it, that an error shows.
pub(crate) const LONGEST_SHOWN: usize = 300;

/// How long output is still waited for when the program itself has ended: a daemon that it started
/// may keep the pipe for good.
const LINGER: Duration = Duration::from_secs(1);

/// How programs are run.
#[derive(Clone, Debug)]
pub(crate) struct Runner {
    /// All of their environment.
    pub(crate) environment: Vec<(OsString, OsString)>,
    /// How long one may take.
    pub(crate) timeout: Duration,
    /// How many bytes one may print.
    pub(crate) longest: usize,
}

/// What a program printed, and how it ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Printed {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Printed {
    /// All that it said: Slurm's programs do not always use standard error.
    pub(crate) fn lines(&self) -> impl Iterator<Item = &str> {
        let lines = self.stderr.lines().chain(self.stdout.lines());
        lines.map(str::trim).filter(|line| !line.is_empty())
    }
}

/// Kills a program and all that it started, unless it has ended by itself.
struct Leash(Option<Pid>);

impl Leash {
    fn new(child: &Child) -> Self {
        Self(child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw))
    }

    fn let_go(mut self) {
        self.0 = None;
    }
}

impl Drop for Leash {
    fn drop(&mut self) {
        if let Some(group) = self.0 {
            // Nothing to do about a group that is gone.
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

/// A command as an error shows it.
pub(crate) fn shown(program: &Path, arguments: &[String]) -> String {
    let words = arguments.iter().map(String::as_str);
    let line: Vec<_> =
        [&*program.to_string_lossy()].into_iter().chain(words).map(str::to_owned).collect();
    let line = line.join(" ");
    let short = clean(&line, LONGEST_SHOWN);
    if line.len() > LONGEST_SHOWN { format!("{short}…") } else { short }
}

impl Runner {
    /// Runs a program to its end, whatever its exit code.
    ///
    /// It has a process group of its own, so that all of it can be killed. A signal to *our* group does
    /// not reach it: killed so, we leave it behind, and what it was asked for may still be done.
    pub(crate) async fn run(&self, program: &Path, arguments: &[String]) -> Result<Printed> {
        let error = |kind| Error::new(kind, shown(program, arguments));
        let mut child = Command::new(program)
            .args(arguments)
            .env_clear()
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .map_err(|source| error(unstarted(&source)).caused_by(source))?;
        // Dropped before the child, and let go once that has ended: the group's number is surely its own.
        let leash = Leash::new(&child);
        let mut stdout = Pipe::new(child.stdout.take(), self.longest);
        let mut stderr = Pipe::new(child.stderr.take(), self.longest);
        let end = timeout(self.timeout, wait(&mut child, &mut stdout, &mut stderr)).await;
        let Ok(status) = end else {
            let text = format!("no answer in {:?}", self.timeout);
            return Err(error(ErrorKind::Unavailable).because(text));
        };
        let status = status.map_err(|source| error(ErrorKind::Unavailable).caused_by(source))?;
        if status.is_some() {
            leash.let_go();
            // Whoever keeps it open longer is not waited for.
            if let Ok(result) = timeout(LINGER, drain(&mut stdout, &mut stderr)).await {
                result.map_err(|source| error(ErrorKind::Unavailable).caused_by(source))?;
            }
        }
        let Some(status) = status.filter(|_| !stdout.is_full() && !stderr.is_full()) else {
            let text = format!("more than {} bytes of output", self.longest);
            return Err(error(ErrorKind::Protocol).because(text));
        };
        Ok(Printed { code: status.code(), stdout: stdout.text(), stderr: stderr.text() })
    }
}

/// What it means that a program could not be started. One that is there, but not for this machine, is as good as none.
fn unstarted(error: &io::Error) -> ErrorKind {
    match Errno::from_io_error(error) {
        // Too many processes or files, too little memory, an upgrade about to replace it, be it on another host: over in
        // a moment.
        Some(
            Errno::AGAIN
            | Errno::NOMEM
            | Errno::MFILE
            | Errno::NFILE
            | Errno::TXTBSY
            | Errno::STALE
            | Errno::IO
            | Errno::INTR,
        ) => ErrorKind::Unavailable,
        Some(_) | None => ErrorKind::Missing,
    }
}

/// Reads until the program has ended; nothing if there is too much output.
async fn wait(
    child: &mut Child,
    stdout: &mut Pipe<impl AsyncRead + Unpin>,
    stderr: &mut Pipe<impl AsyncRead + Unpin>,
) -> io::Result<Option<ExitStatus>> {
    while !stdout.is_full() && !stderr.is_full() {
        tokio::select! {
            status = child.wait() => return status.map(Some),
            result = stdout.read(), if !stdout.is_done() => result?,
            result = stderr.read(), if !stderr.is_done() => result?,
        }
    }
    Ok(None)
}

/// Reads what is left, until its end or until there is too much of it.
async fn drain(
    stdout: &mut Pipe<impl AsyncRead + Unpin>,
    stderr: &mut Pipe<impl AsyncRead + Unpin>,
) -> io::Result<()> {
    while !(stdout.is_full() || stderr.is_full() || (stdout.is_done() && stderr.is_done())) {
        tokio::select! {
            result = stdout.read(), if !stdout.is_done() => result?,
            result = stderr.read(), if !stderr.is_done() => result?,
        }
    }
    Ok(())
}

/// One end of a pipe, and what came out of it.
struct Pipe<R> {
    reader: Option<R>,
    bytes: Vec<u8>,
    longest: usize,
}

impl<R: AsyncRead + Unpin> Pipe<R> {
    fn new(reader: Option<R>, longest: usize) -> Self {
        Self { reader, bytes: Vec::new(), longest }
    }

    fn is_done(&self) -> bool {
        self.reader.is_none()
    }

    fn is_full(&self) -> bool {
        self.bytes.len() > self.longest
    }

    async fn read(&mut self) -> io::Result<()> {
        if let Some(reader) = &mut self.reader
            && reader.read_buf(&mut self.bytes).await? == 0
        {
            self.reader = None;
        }
        Ok(())
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_short_of_processes_was_one_without_scontrol() {
        for (errno, kind) in [
            (Errno::NOENT, ErrorKind::Missing),
            (Errno::ACCESS, ErrorKind::Missing),
            (Errno::PERM, ErrorKind::Missing),
            (Errno::NOTDIR, ErrorKind::Missing),
            (Errno::NOEXEC, ErrorKind::Missing),
            (Errno::LOOP, ErrorKind::Missing),
            (Errno::AGAIN, ErrorKind::Unavailable),
            (Errno::NOMEM, ErrorKind::Unavailable),
            (Errno::MFILE, ErrorKind::Unavailable),
            (Errno::NFILE, ErrorKind::Unavailable),
            (Errno::TXTBSY, ErrorKind::Unavailable),
            (Errno::STALE, ErrorKind::Unavailable),
        ] {
            assert_eq!(unstarted(&errno.into()), kind, "{errno}");
        }
    }
}

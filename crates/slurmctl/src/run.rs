//! Runs a program without a shell, with a given environment, a deadline and bounded output.

use crate::{Error, ErrorKind, Result, reason::clean};
use rustix::{
    io::Errno,
    process::{Pid, Signal, kill_process_group},
};
use std::{
    ffi::OsString,
    io,
    path::Path,
    pin::pin,
    process::{ExitStatus, Stdio},
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _},
    process::{Child, ChildStdin, Command},
    time::timeout,
};

/// The most bytes of a command line, or of its output, that an error shows.
pub(crate) const LONGEST_SHOWN: usize = 300;

/// How long to wait for output after the program has ended: a daemon that it started may keep the pipe open.
const LINGER: Duration = Duration::from_secs(1);

/// How programs are run.
#[derive(Clone, Debug)]
pub(crate) struct Runner {
    /// Their whole environment.
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
    /// All non-empty lines: Slurm's programs do not always use standard error.
    pub(crate) fn lines(&self) -> impl Iterator<Item = &str> {
        let lines = self.stderr.lines().chain(self.stdout.lines());
        lines.map(str::trim).filter(|line| !line.is_empty())
    }
}

/// Kills the process group of a program when dropped, unless disarmed.
struct KillOnDrop(Option<Pid>);

impl KillOnDrop {
    fn new(child: &Child) -> Self {
        Self(child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw))
    }

    fn disarm(mut self) {
        self.0 = None;
    }
}

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        if let Some(group) = self.0 {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

/// A command line as errors show it.
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
    /// It has its own process group, which is killed at the deadline. A signal to the caller's group does not reach it, and
    /// it may outlive this process.
    pub(crate) async fn run(&self, program: &Path, arguments: &[String]) -> Result<Printed> {
        self.start(program, arguments, None).await
    }

    /// Runs a program that reads this text from its standard input.
    pub(crate) async fn run_with(
        &self,
        program: &Path,
        arguments: &[String],
        input: String,
    ) -> Result<Printed> {
        self.start(program, arguments, Some(input)).await
    }

    async fn start(
        &self,
        program: &Path,
        arguments: &[String],
        input: Option<String>,
    ) -> Result<Printed> {
        let error = |kind| Error::new(kind, shown(program, arguments));
        let mut child = Command::new(program)
            .args(arguments)
            .env_clear()
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .current_dir("/")
            .stdin(if input.is_some() { Stdio::piped() } else { Stdio::null() })
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .map_err(|source| error(unstarted(&source)).caused_by(source))?;
        // Dropped before the child is reaped, so that the id of the group cannot be reused.
        let kill_on_drop = KillOnDrop::new(&child);
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let stdin = child.stdin.take();
        let (mut printed, mut complaints) = (Vec::new(), Vec::new());
        let failed = |source: io::Error| match source.kind() {
            io::ErrorKind::FileTooLarge => {
                let text = format!("more than {} bytes of output", self.longest);
                error(ErrorKind::Protocol).because(text)
            }
            _ => error(ErrorKind::Unavailable).caused_by(source),
        };
        let status = {
            let mut reading = pin!(async {
                tokio::try_join!(
                    read(stdout, &mut printed, self.longest),
                    read(stderr, &mut complaints, self.longest),
                    write(stdin, input.unwrap_or_default())
                )
            });
            let end = timeout(self.timeout, wait(&mut child, reading.as_mut())).await;
            let Ok(end) = end else {
                let text = format!("no answer in {:?}", self.timeout);
                return Err(error(ErrorKind::Unavailable).because(text));
            };
            let (status, read) = end.map_err(failed)?;
            kill_on_drop.disarm();
            if !read && let Ok(result) = timeout(LINGER, reading).await {
                result.map_err(failed)?;
            }
            status
        };
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Ok(Printed { code: status.code(), stdout: text(printed), stderr: text(complaints) })
    }
}

/// The kind of a failure to start a program. A program that cannot run on this machine counts as missing.
fn unstarted(error: &io::Error) -> ErrorKind {
    match Errno::from_io_error(error) {
        // Too many processes or files, too little memory, or an upgrade in progress: try again in a moment.
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

/// Waits for the program while reading its output. The flag tells whether the output was read to its end.
async fn wait(
    child: &mut Child,
    reading: impl Future<Output = io::Result<((), (), ())>>,
) -> io::Result<(ExitStatus, bool)> {
    tokio::select! {
        status = child.wait() => Ok((status?, false)),
        result = reading => {
            result?;
            Ok((child.wait().await?, true))
        }
    }
}

/// Writes a text to a pipe and closes it. A program that ends before it has read all of it says why itself.
async fn write(pipe: Option<ChildStdin>, text: String) -> io::Result<()> {
    let Some(mut pipe) = pipe else { return Ok(()) };
    match pipe.write_all(text.as_bytes()).await {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result,
    }
}

/// Reads a pipe to its end; more than `longest` bytes are an error.
async fn read(
    pipe: Option<impl AsyncRead + Unpin>,
    bytes: &mut Vec<u8>,
    longest: usize,
) -> io::Result<()> {
    let Some(mut pipe) = pipe else { return Ok(()) };
    while pipe.read_buf(bytes).await? > 0 {
        if bytes.len() > longest {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shortage_of_resources_is_not_a_missing_program() {
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

//! A cloud that runs.

use crate::admin::Admin;
use crate::credentials::Credentials;
use crate::directory_lock::DirectoryLock;
use crate::error::Error;
use crate::machine::{Order, Programs, end_left, keep};
use crate::server::{serve, tick};
use crate::settings::CloudSettings;
use crate::shared::Shared;
use crate::temporary;
use crate::world::World;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{mpsc, oneshot};

/// A cloud that listens until it is dropped.
///
/// It has a thread and a clock of its own, so that a test may block, or pause tokio's time.
#[derive(Debug)]
pub struct Cloud {
    address: SocketAddr,
    credentials: Credentials,
    settings: CloudSettings,
    shared: Arc<Shared>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
    /// Given back last, when nothing writes there any more.
    _lock: Option<DirectoryLock>,
}

impl Cloud {
    /// Starts a cloud, which takes requests when this returns.
    pub async fn start(mut settings: CloudSettings) -> Result<Self, Error> {
        let timing = settings.timing.checked();
        settings.timing = timing.map_err(|(name, seconds)| Error::Timing { name, seconds })?;
        settings.check()?;
        // Before anything else: until it is ours, everything there is another's.
        let hold = settings.state.as_deref().map(DirectoryLock::take).transpose()?;
        let fail = |source| Error::Listen { address: settings.listen.clone(), source };
        let listener = TcpListener::bind(&settings.listen).map_err(fail)?;
        listener.set_nonblocking(true).map_err(fail)?;
        let address = listener.local_addr().map_err(fail)?;
        let programs = !settings.machine_up.is_empty() || !settings.machine_down.is_empty();
        let (orders, received) = programs.then(mpsc::unbounded_channel).unzip();
        let shared = Arc::new(Shared::new(&settings, orders)?);
        let (machines, made) = machines((&settings, &shared), address, received)?;
        let (stop, stopped) = oneshot::channel();
        let life = Life { listener, shared: Arc::clone(&shared), machines, stopped };
        let (ready, started) = oneshot::channel();
        let threads = settings.threads;
        // A runtime cannot end inside another, so it begins and ends on a thread of its own.
        let body = move || match runtime(threads) {
            Ok(runtime) => runtime.block_on(life.live(ready)),
            Err(source) => drop(ready.send(Err(source))),
        };
        let thread = std::thread::Builder::new().name("cloud-sim".to_owned());
        let unable = |source| Error::System { what: "start a thread", source };
        let thread = thread.spawn(body).map_err(unable)?;
        let gone = || io::Error::other("the thread ended");
        started.await.unwrap_or_else(|_| Err(gone())).map_err(unable)?;
        Ok(Self {
            address,
            credentials: Credentials::new(&settings),
            settings,
            shared,
            stop: Some(stop),
            thread: Some(thread),
            _lock: hold.or(made),
        })
    }

    /// Where it listens, such as `http://127.0.0.1:40123`.
    #[must_use]
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The cloud's other side.
    #[must_use]
    pub fn admin(&self) -> Admin {
        Admin::new(Arc::clone(&self.shared))
    }

    /// What a client needs to sign requests.
    #[must_use]
    pub fn credentials(&self) -> &Credentials {
        &self.credentials
    }

    /// What it was started with.
    #[must_use]
    pub fn settings(&self) -> &CloudSettings {
        &self.settings
    }
}

impl Drop for Cloud {
    fn drop(&mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
        if let Some(thread) = self.thread.take() {
            // The machines have to be off, and the port free, when this returns.
            let _ = thread.join();
        }
    }
}

fn runtime(threads: usize) -> io::Result<Runtime> {
    let cores = || std::thread::available_parallelism().map_or(2, usize::from);
    let threads = if threads == 0 { cores() } else { threads };
    let mut builder =
        if threads == 1 { Builder::new_current_thread() } else { Builder::new_multi_thread() };
    builder.worker_threads(threads).enable_all().build()
}

/// What there is to do about machines.
#[derive(Debug)]
enum Machines {
    /// There is nowhere where any could be left.
    None,
    /// Those that an earlier run left in this directory are ended.
    Left(PathBuf),
    /// Those that an earlier run left are ended, and orders are carried out.
    Kept(mpsc::UnboundedReceiver<Order>, Programs),
}

/// What there is to do about machines, with the line to their keeper, if they have one; and the
/// directory that was made for them, if there is no state.
fn machines(
    (settings, shared): (&CloudSettings, &Shared),
    address: SocketAddr,
    line: Option<mpsc::UnboundedReceiver<Order>>,
) -> Result<(Machines, Option<DirectoryLock>), Error> {
    let (directory, hold) = match (&settings.state, &line) {
        (Some(state), _) => (whole(state)?, None),
        (None, Some(_)) => {
            let (directory, hold) = temporary::make()?;
            (directory, Some(hold))
        }
        (None, None) => return Ok((Machines::None, None)),
    };
    let Some(line) = line else {
        return Ok((Machines::Left(directory), hold));
    };
    let programs = Programs {
        up: settings.machine_up.clone(),
        down: settings.machine_down.clone(),
        directory,
        temporary: settings.state.is_none(),
        service: format!("http://{address}"),
        hurry: shared.hurry.subscribe(),
    };
    Ok((Machines::Kept(line, programs), hold))
}

/// A directory by the one spelling that it has, because machines that were left behind are found
/// by that of their files.
fn whole(directory: &Path) -> Result<PathBuf, Error> {
    let fail = |source| Error::File { path: directory.to_owned(), source };
    std::fs::canonicalize(directory).map_err(fail)
}

/// What the thread of a cloud has.
struct Life {
    listener: TcpListener,
    shared: Arc<Shared>,
    machines: Machines,
    stopped: oneshot::Receiver<()>,
}

impl Life {
    async fn live(self, ready: oneshot::Sender<io::Result<()>>) {
        let listener = match tokio::net::TcpListener::from_std(self.listener) {
            Ok(listener) => listener,
            Err(source) => return drop(ready.send(Err(source))),
        };
        let keeper = match self.machines {
            Machines::None => None,
            Machines::Left(directory) => Some(tokio::spawn(end_left(directory))),
            Machines::Kept(line, programs) => Some(tokio::spawn(keep(line, programs))),
        };
        let serving = tokio::spawn(serve(listener, Arc::clone(&self.shared)));
        let ticking = tokio::spawn(tick(Arc::clone(&self.shared)));
        let _ = ready.send(Ok(()));
        let _ = self.stopped.await;
        serving.abort();
        ticking.abort();
        // With its connections: what nobody keeps any more must not be promised to a client.
        let _ = serving.await;
        self.shared.with(World::dismiss_machines);
        if let Some(keeper) = keeper {
            let _ = keeper.await;
        }
    }
}

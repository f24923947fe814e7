//! The proxy in front of a cloud that speaks EC2, as a program.

use clap::Parser;
use cloud_sim::Error;
use cloud_sim::ec2::Proxy;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Forwards EC2's requests to a cloud such as moto's server, with faults on demand.
///
/// Prints its address as one line when it takes requests, and runs until it is killed. Rules, throttling, latency, lag and
/// recorded requests are under /admin/, as those of cloud-sim.
#[derive(Debug, Parser)]
#[command(version)]
struct Arguments {
    /// Where to listen; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:0")]
    listen: String,
    /// The cloud, such as `http://127.0.0.1:5000`
    #[arg(long, value_name = "URL")]
    to: String,
    /// A directory where the address is written to `endpoint`
    #[arg(long, value_name = "DIRECTORY")]
    state: Option<PathBuf>,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match run(Arguments::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            complain(&error);
            ExitCode::from(2)
        }
    }
}

#[expect(clippy::print_stderr, reason = "the one place that says why the program ends")]
fn complain(error: &Error) {
    eprintln!("ec2-proxy: {}", cloud_sim::chain(error));
}

async fn run(arguments: Arguments) -> Result<(), Error> {
    let upstream = arguments.to.trim_start_matches("http://").trim_end_matches('/');
    let proxy = Proxy::start(&arguments.listen, upstream).await?;
    if let Some(directory) = &arguments.state {
        announce(directory, &proxy.endpoint())?;
    }
    let mut out = io::stdout();
    let _ = writeln!(out, "{}", proxy.endpoint()).and_then(|()| out.flush());
    std::future::pending().await
}

/// Writes the address whole.
fn announce(directory: &Path, endpoint: &str) -> Result<(), Error> {
    let (path, new) = (directory.join("endpoint"), directory.join("endpoint.new"));
    let write = || {
        std::fs::create_dir_all(directory)?;
        std::fs::write(&new, endpoint)?;
        std::fs::rename(&new, &path)
    };
    write().map_err(|source| Error::File { path: path.clone(), source })
}

//! `leasehold demo`: runs a server in this process, with sample workspaces, workers and load.

use crate::serve::RunningServer;
use crate::settings::Settings;
use anyhow::{Context, Result};
use clap::Args;
use leasehold_client::Client;
use leasehold_console::demo::{Demo, DemoOptions};
use leasehold_console::{ColorChoice, Output, OutputFlags, OutputFormat, Session, top};
use leasehold_process::logging::{self, LogFormat};
use leasehold_process::signals::Signals;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

const POLL_INTERVAL: Duration = Duration::from_secs(1);
const LINE_INTERVAL: Duration = Duration::from_secs(2);

/// Flags of `leasehold demo`.
#[derive(Args)]
pub(crate) struct DemoCommand {
    /// Data directory to keep and reuse [default: a temporary directory, removed at the end].
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// API listen address, as `host:port` [default: 127.0.0.1:7777, or any free port if that is in use].
    #[arg(long, value_name = "ADDR")]
    listen: Option<String>,
    /// Print one line of figures every two seconds instead of the live screen; the default if standard output is not a terminal.
    #[arg(long)]
    plain: bool,
    /// Use colours; `auto` uses them on terminals unless NO_COLOR is set.
    #[arg(long, value_enum, default_value_t)]
    color: ColorChoice,
}

/// The data directory of the demo.
enum DemoDir {
    Persistent(PathBuf),
    Temporary(TempDir),
}

impl DemoDir {
    fn path(&self) -> &Path {
        match self {
            Self::Persistent(path) => path,
            Self::Temporary(dir) => dir.path(),
        }
    }
}

impl DemoCommand {
    pub(crate) fn run(&self) -> Result<()> {
        let out = Output::new(&OutputFlags {
            output: OutputFormat::Table,
            color: self.color,
        });
        let draws = out.is_terminal() && !self.plain;
        let dir = self.dir()?;
        if draws {
            let file = dir.path().join("leasehold.log");
            let log =
                File::create(&file).with_context(|| format!("cannot write {}", file.display()))?;
            logging::start_in(log, "info")?;
        } else {
            logging::start("warn", LogFormat::Text)?;
        }
        let mut settings = Settings {
            data_dir: dir.path().to_owned(),
            ..Settings::default()
        };
        settings.server.listen = match &self.listen {
            Some(listen) => listen.clone(),
            None => free_address(settings.server.listen),
        };
        tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()
            .context("cannot start the async runtime")?
            .block_on(run_demo(settings, &dir, out, draws))
    }

    fn dir(&self) -> Result<DemoDir> {
        match &self.data_dir {
            Some(path) => {
                crate::data_dir::create(path)?;
                Ok(DemoDir::Persistent(path.clone()))
            }
            None => {
                let made = tempfile::Builder::new().prefix("leasehold-demo-").tempdir();
                Ok(DemoDir::Temporary(made.context(
                    "cannot create a temporary directory for the demo",
                )?))
            }
        }
    }
}

/// The default address, or a free port if it is in use.
fn free_address(default: String) -> String {
    match std::net::TcpListener::bind(&default) {
        Ok(_) => default,
        Err(_) => "127.0.0.1:0".to_owned(),
    }
}

async fn run_demo(settings: Settings, dir: &DemoDir, out: Output, draws: bool) -> Result<()> {
    let mut user_signals = Signals::listen(false)?;
    // The server stops after the workers and the load.
    let (stop_demo, stop_server) = (CancellationToken::new(), CancellationToken::new());
    let mut signals = Signals::of(stop_server.clone());
    let started = RunningServer::start(settings, &mut signals, |_, _, _, _| {}).await?;
    let serving = started.context("the server stopped during startup")?;
    let url = serving.url().to_owned();
    let mut server = tokio::spawn(serving.run_until_stopped(signals));
    let result = async {
        let key = std::fs::read_to_string(dir.path().join("admin.key"));
        let key = key.context("cannot read the administrator key")?;
        let session = Session::with(Client::new(&url, key.trim())?, &url, out);
        let demo = Demo::prepare(&session, DemoOptions::default()).await?;
        greet(&url, dir);
        let running = tokio::spawn(demo.run(stop_demo.clone()));
        let shown = tokio::select! {
            shown = show(&session, draws, &stop_demo) => shown,
            _ = user_signals.stop() => Ok(()),
            ended = server_ended(&mut server) => ended,
        };
        stop_demo.cancel();
        running.await??;
        shown
    }
    .await;
    stop_server.cancel();
    if !server.is_finished() {
        server.await??;
    }
    result
}

async fn show(session: &Session, draws: bool, stop_demo: &CancellationToken) -> Result<()> {
    let stop_demo = stop_demo.clone();
    let shown = match draws {
        true => top::show(session, POLL_INTERVAL, stop_demo).await,
        false => top::print_lines(session, LINE_INTERVAL, stop_demo).await,
    };
    Ok(shown?)
}

/// Ends the demo if the server stops.
async fn server_ended(server: &mut JoinHandle<Result<()>>) -> Result<()> {
    server.await?.context("demo server failed")
}

#[allow(clippy::print_stdout, reason = "greeting of an interactive command")]
fn greet(url: &str, dir: &DemoDir) {
    let data = dir.path().display();
    let lifetime = match dir {
        DemoDir::Persistent(_) => "kept",
        DemoDir::Temporary(_) => "removed at the end",
    };
    println!("Leasehold demo");
    println!("  listens     {url}");
    println!("  data        {data}  ({lifetime})");
    println!(
        "  workspaces  sparrow (FREE), acme (PRO), globex (ENTERPRISE), and magpie (PRO), the noisy neighbour"
    );
    println!(
        "  watch       leasehold top --data-dir {data}  (in another terminal; every command accepts --data-dir)"
    );
    println!("  stop        Ctrl-C");
}

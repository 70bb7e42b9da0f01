//! `leasehold demo`: a server of its own in this process, with workspaces, workers and a load that one can watch.

use crate::serve::Serving;
use crate::settings::Settings;
use anyhow::{Context, Result};
use clap::Args;
use leasehold_client::Client;
use leasehold_console::demo::{Demo, DemoOptions};
use leasehold_console::{ColorChoice, Format, Output, OutputFlags, Session, top};
use leasehold_process::logging::{self, LogFormat};
use leasehold_process::signals::Signals;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

const LOOK_EVERY: Duration = Duration::from_secs(1);
const TELL_EVERY: Duration = Duration::from_secs(2);

/// The flags.
#[derive(Args)]
pub(crate) struct DemoCommand {
    /// Keep everything in this folder and go on with it next time [default: a folder that is removed at the end].
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// Where the API listens, as `host:port` [default: 127.0.0.1:7777, or any free port if that is taken].
    #[arg(long, value_name = "ADDR")]
    listen: Option<String>,
    /// Print a line of figures every two seconds instead of drawing, as it also does where there is no terminal.
    #[arg(long)]
    plain: bool,
    /// Whether to use colours: on terminals unless NO_COLOR is set, always, or never.
    #[arg(long, value_enum, default_value_t)]
    color: ColorChoice,
}

/// Where the demo keeps its things.
enum Folder {
    Kept(PathBuf),
    Passing(TempDir),
}

impl Folder {
    fn path(&self) -> &Path {
        match self {
            Self::Kept(path) => path,
            Self::Passing(folder) => folder.path(),
        }
    }
}

impl DemoCommand {
    pub(crate) fn run(&self) -> Result<()> {
        let out = Output::new(&OutputFlags {
            output: Format::Table,
            color: self.color,
        });
        let draws = out.is_terminal() && !self.plain;
        let folder = self.folder()?;
        if draws {
            let file = folder.path().join("leasehold.log");
            let log = File::create(&file)
                .with_context(|| format!("{} cannot be written", file.display()))?;
            logging::start_in(log, "info")?;
        } else {
            logging::start("warn", LogFormat::Text)?;
        }
        let mut settings = Settings {
            data_dir: folder.path().to_owned(),
            ..Settings::default()
        };
        settings.server.listen = match &self.listen {
            Some(listen) => listen.clone(),
            None => free(settings.server.listen),
        };
        tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()
            .context("the async runtime cannot be started")?
            .block_on(play(settings, &folder, out, draws))
    }

    fn folder(&self) -> Result<Folder> {
        match &self.data_dir {
            Some(path) => {
                crate::data_folder::make(path)?;
                Ok(Folder::Kept(path.clone()))
            }
            None => {
                let made = tempfile::Builder::new().prefix("leasehold-demo-").tempdir();
                Ok(Folder::Passing(
                    made.context("no folder can be made for the demo")?,
                ))
            }
        }
    }
}

/// The usual place, or another if somebody is there: a demo beside a server is as welcome.
fn free(usual: String) -> String {
    match std::net::TcpListener::bind(&usual) {
        Ok(_) => usual,
        Err(_) => "127.0.0.1:0".to_owned(),
    }
}

async fn play(settings: Settings, folder: &Folder, out: Output, draws: bool) -> Result<()> {
    let mut told = Signals::listen(false)?;
    // The server outlives what plays on it.
    let (curtain, lights) = (CancellationToken::new(), CancellationToken::new());
    let mut signals = Signals::of(lights.clone());
    let begun = Serving::begin(settings, &mut signals, |_, _, _, _| {}).await?;
    let serving = begun.context("the server ended before it began")?;
    let url = serving.url().to_owned();
    let mut server = tokio::spawn(serving.until_told(signals));
    let played = async {
        let key = std::fs::read_to_string(folder.path().join("admin.key"));
        let key = key.context("the administrator's key cannot be read")?;
        let session = Session::with(Client::new(&url, key.trim())?, &url, out);
        let demo = Demo::prepare(&session, DemoOptions::default()).await?;
        greet(&url, folder);
        let playing = tokio::spawn(demo.play(curtain.clone()));
        let shown = tokio::select! {
            shown = show(&session, draws, &curtain) => shown,
            _ = told.stop() => Ok(()),
            ended = ended(&mut server) => ended,
        };
        curtain.cancel();
        playing.await??;
        shown
    }
    .await;
    lights.cancel();
    if !server.is_finished() {
        server.await??;
    }
    played
}

async fn show(session: &Session, draws: bool, curtain: &CancellationToken) -> Result<()> {
    let curtain = curtain.clone();
    let shown = match draws {
        true => top::show(session, LOOK_EVERY, curtain).await,
        false => top::tell(session, TELL_EVERY, curtain).await,
    };
    Ok(shown?)
}

/// A server that ends by itself takes the demo with it.
async fn ended(server: &mut JoinHandle<Result<()>>) -> Result<()> {
    server.await?.context("the demo's server")
}

#[allow(clippy::print_stdout, reason = "this is for whoever started it")]
fn greet(url: &str, folder: &Folder) {
    let data = folder.path().display();
    let fate = match folder {
        Folder::Kept(_) => "kept",
        Folder::Passing(_) => "removed at the end",
    };
    println!("Leasehold's demo, a server of its own");
    println!("  listens     {url}");
    println!("  data        {data}  ({fate})");
    println!(
        "  workspaces  sparrow (FREE), acme (PRO), globex (ENTERPRISE), and magpie (PRO), the noisy neighbour"
    );
    println!(
        "  look        leasehold top --data-dir {data}  (in another terminal; every command takes --data-dir)"
    );
    println!("  end         Ctrl-C");
}

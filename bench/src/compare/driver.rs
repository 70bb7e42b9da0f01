//! One measurement by a driver: a process that speaks JSON lines. Knows no job queue.

use super::install::Installed;
use crate::backend::BenchBackend;
use crate::usage::Used;
use crate::workqueue::ours::Begun;
use crate::workqueue::{Delays, Run};
use anyhow::{Context, Result, bail};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

/// For one step of a driver: to get ready, to measure, to close.
const PATIENCE: Duration = Duration::from_secs(900);

/// A driver's process; it does not outlive this.
struct Driver {
    child: Child,
    told: ChildStdin,
    says: Lines<BufReader<ChildStdout>>,
}

#[derive(Deserialize)]
struct Ready {
    ready: bool,
}

/// What a driver has found.
#[derive(Deserialize)]
struct Found {
    seconds: f64,
    /// Seconds of processor time.
    cpu: f64,
    /// MiB.
    memory: f64,
    #[serde(default, rename = "afterCommit")]
    after_commit: Vec<f64>,
    #[serde(default, rename = "afterCall")]
    after_call: Vec<f64>,
}

/// Runs one measurement on a database of its own.
pub(super) async fn measure(
    installed: &Installed,
    backend: &mut dyn BenchBackend,
    (driver, what): (&str, &str),
    arguments: &Value,
    jobs: u32,
) -> Result<(Run, Delays)> {
    let mut driver = Driver::start(installed, driver, what, arguments)?;
    let ready: Ready = driver.hear().await?;
    anyhow::ensure!(ready.ready, "the driver is not ready");
    let begun = Begun::new(backend).await?;
    let usage = begun.usage().await?;
    driver.tell("go").await?;
    let found: Found = driver.hear().await?;
    let used = Used {
        elapsed: Duration::from_secs_f64(found.seconds),
        processor: Some(found.cpu),
        memory: Some(found.memory),
        ..usage.end().await?
    };
    driver.end().await?;
    let delays = Delays {
        after_commit: found.after_commit,
        after_call: found.after_call,
    };
    Ok((begun.end(backend, jobs, used).await?, delays))
}

impl Driver {
    fn start(installed: &Installed, file: &str, what: &str, arguments: &Value) -> Result<Self> {
        let mut child = Command::new(installed.node())
            .arg(installed.folder().join(file))
            .arg(what)
            .arg(arguments.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .context("node could not be started")?;
        let told = child.stdin.take().context("its input")?;
        let says = child.stdout.take().context("its output")?;
        Ok(Self {
            child,
            told,
            says: BufReader::new(says).lines(),
        })
    }

    async fn tell(&mut self, what: &str) -> Result<()> {
        self.told.write_all(what.as_bytes()).await?;
        Ok(self.told.write_all(b"\n").await?)
    }

    async fn hear<T: DeserializeOwned>(&mut self) -> Result<T> {
        match timeout(PATIENCE, self.says.next_line()).await?? {
            Some(line) => Ok(serde_json::from_str(&line)?),
            None => bail!("the driver has ended early"),
        }
    }

    async fn end(mut self) -> Result<()> {
        self.tell("close").await?;
        timeout(PATIENCE, self.child.wait()).await??;
        Ok(())
    }
}

//! Runs one measurement in a driver, a process that speaks JSON lines. Knows no job queue.

use super::install::NpmInstall;
use crate::backend::BenchBackend;
use crate::usage::Usage;
use crate::workqueue::leasehold::RunMeter;
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

/// Timeout of each step of a driver: prepare, measure, close.
const STEP_TIMEOUT: Duration = Duration::from_secs(900);

/// A driver process, killed on drop.
struct Driver {
    child: Child,
    stdin: ChildStdin,
    stdout: Lines<BufReader<ChildStdout>>,
}

#[derive(Deserialize)]
struct Ready {
    ready: bool,
}

/// The result of a driver.
#[derive(Deserialize)]
struct DriverResult {
    seconds: f64,
    /// CPU seconds.
    cpu: f64,
    /// Peak memory in MiB.
    memory: f64,
    #[serde(default, rename = "afterCommit")]
    after_commit: Vec<f64>,
    #[serde(default, rename = "afterCall")]
    after_call: Vec<f64>,
}

/// Runs one measurement on a new database.
pub(super) async fn measure(
    installed: &NpmInstall,
    backend: &mut dyn BenchBackend,
    (driver, what): (&str, &str),
    arguments: &Value,
    jobs: u32,
) -> Result<(Run, Delays)> {
    let mut driver = Driver::start(installed, driver, what, arguments)?;
    let ready: Ready = driver.receive().await?;
    anyhow::ensure!(ready.ready, "the driver did not become ready");
    let begun = RunMeter::new(backend).await?;
    let usage = begun.usage().await?;
    driver.send("go").await?;
    let found: DriverResult = driver.receive().await?;
    let used = Usage {
        elapsed: Duration::from_secs_f64(found.seconds),
        cpu: Some(found.cpu),
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
    fn start(installed: &NpmInstall, file: &str, what: &str, arguments: &Value) -> Result<Self> {
        let mut child = Command::new(installed.node())
            .arg(installed.dir().join(file))
            .arg(what)
            .arg(arguments.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .context("failed to start node; is Node.js installed?")?;
        let stdin = child.stdin.take().context("the driver has no stdin")?;
        let stdout = child.stdout.take().context("the driver has no stdout")?;
        Ok(Self {
            child,
            stdin,
            stdout: BufReader::new(stdout).lines(),
        })
    }

    async fn send(&mut self, what: &str) -> Result<()> {
        self.stdin.write_all(what.as_bytes()).await?;
        Ok(self.stdin.write_all(b"\n").await?)
    }

    async fn receive<T: DeserializeOwned>(&mut self) -> Result<T> {
        match timeout(STEP_TIMEOUT, self.stdout.next_line()).await?? {
            Some(line) => Ok(serde_json::from_str(&line)?),
            None => bail!("the driver exited before it reported a result"),
        }
    }

    async fn end(mut self) -> Result<()> {
        self.send("close").await?;
        timeout(STEP_TIMEOUT, self.child.wait()).await??;
        Ok(())
    }
}

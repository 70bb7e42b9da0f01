//! `leasehold job work`: a worker that starts a program for each job.

use crate::child_environment::private_variables;
use crate::command_error::CommandResult;
use crate::exit::{Exit, Failure};
use crate::input;
use crate::listing::note;
use crate::output::clean;
use crate::session::Session;
use clap::Args;
use leasehold_client::HttpSource;
use leasehold_client::api::key::{Access, Payloads, Scope};
use leasehold_worker::{JobContext, JobError, Worker};
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::Value;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// Maximum length of the error message taken from standard error.
const ERROR_MAX_CHARS: usize = 1_000;

/// Flags of `leasehold job work`.
#[derive(Args, Clone, Debug)]
pub struct WorkArgs {
    /// Queue name.
    queue: String,
    /// Maximum number of concurrent jobs.
    #[arg(long, value_name = "N", default_value_t = 1)]
    concurrency: usize,
    /// Lease duration, such as 30s [default: the queue's].
    #[arg(long, value_name = "TIME", value_parser = input::duration)]
    lease: Option<Duration>,
    /// Run one job and exit.
    #[arg(long, conflicts_with = "concurrency")]
    once: bool,
    /// Program and its arguments.
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<String>,
}

impl WorkArgs {
    pub(super) async fn run(self, session: &Session) -> CommandResult {
        // Fails at once on an invalid key or an unreachable server; the worker itself would retry forever.
        self.check_key(session).await?;
        if let Some(program) = self.command.first() {
            find_program(program)?;
        }
        let stop = CancellationToken::new();
        let (command, once, done) = (Arc::new(self.command), self.once, stop.clone());
        let handler = move |payload: Value, job: JobContext| {
            let (command, done) = (command.clone(), done.clone());
            async move {
                let ended = run(&command, &payload, &job).await;
                if once {
                    done.cancel();
                }
                ended
            }
        };
        let source = HttpSource::new(session.client.clone());
        let mut worker = Worker::builder(Arc::new(source))
            .queue(&self.queue)
            .concurrency(self.concurrency)
            .default_handler(handler);
        if once {
            worker = worker.prefetch(0);
        }
        if let Some(lease) = self.lease {
            worker = worker.lease(lease);
        }
        let worker = worker
            .build()
            .map_err(|error| Failure::usage(error.to_string()))?;
        if !once {
            let text = format!(
                "worker for queue {} is running; Ctrl-C stops it after its running jobs finish (at most 25 s)",
                self.queue
            );
            note(&text);
        }
        let signal = shutdown_signal()?;
        let until = async move {
            tokio::select! {
                () = stop.cancelled() => {}
                () = signal => {}
            }
        };
        let stats = worker.run(until).await;
        let (completed, failed, retried) = (stats.completed, stats.failed, stats.retried);
        let text = format!("{completed} completed, {failed} failed, {retried} retried");
        note(&text);
        Ok(())
    }
}

impl WorkArgs {
    /// Fails if the key has no access to the queue; the worker itself would wait forever.
    async fn check_key(&self, session: &Session) -> CommandResult {
        let has_access = match &session.me().await?.scope {
            Scope::Admin => true,
            Scope::Worker { queues } => queues.contains(&self.queue),
            Scope::Workspace { .. } | Scope::Metrics => false,
        };
        let me = session.me().await?;
        if has_access && (me.access == Access::Read || me.payloads == Payloads::Hidden) {
            let message = "access denied: a read-only key, or one from which payloads are hidden, cannot run jobs";
            return Err(Failure::new(Exit::Denied, message).into());
        }
        if has_access {
            return Ok(());
        }
        let message = format!(
            "access denied: this key has no access to queue `{0}`; create one with `leasehold key create NAME --for-queue {0}`",
            clean(&self.queue)
        );
        Err(Failure::new(Exit::Denied, message).into())
    }
}

/// Fails if the program does not exist; else every job would use up its attempts.
fn find_program(program: &str) -> Result<(), Failure> {
    let is_executable = |file: &Path| {
        file.metadata()
            .is_ok_and(|metadata| metadata.is_file() && metadata.mode() & 0o111 != 0)
    };
    let found = if program.contains('/') {
        is_executable(Path::new(program))
    } else {
        let path = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&path).any(|dir| is_executable(&dir.join(program)))
    };
    if found {
        return Ok(());
    }
    Err(Failure::usage(format!(
        "program `{}` not found or not executable",
        clean(program)
    )))
}

fn shutdown_signal() -> std::io::Result<impl Future<Output = ()>> {
    let (mut interrupt, mut terminate) = (
        signal(SignalKind::interrupt())?,
        signal(SignalKind::terminate())?,
    );
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    })
}

/// Runs the program for one job. The worker drops this future when the lease is lost; that kills the program.
async fn run(command: &[String], payload: &Value, job: &JobContext) -> Result<Value, JobError> {
    let [program, arguments @ ..] = command else {
        return Err(JobError::permanent("no program given"));
    };
    let mut command = Command::new(program);
    for variable in private_variables() {
        command.env_remove(variable);
    }
    let mut child = command
        .args(arguments)
        .env("LEASEHOLD_JOB_ID", job.id().to_string())
        .env("LEASEHOLD_JOB_KIND", job.kind())
        .env("LEASEHOLD_JOB_QUEUE", job.queue())
        .env("LEASEHOLD_JOB_ATTEMPT", job.attempt().to_string())
        // The program continues the job's trace, never the worker's own.
        .env_remove("TRACEPARENT")
        .envs(job.trace_context().map(|trace| ("TRACEPARENT", trace)))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        // A separate process group: Ctrl-C reaches only the worker, which lets the program finish.
        .process_group(0)
        .spawn()
        .map_err(|error| JobError::new(format!("cannot start {program}: {error}")))?;
    let group = ProcessGroup::of(&child);
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let text = serde_json::to_vec(payload)?;
    let feed = async move {
        if let Some(mut stdin) = stdin {
            // A program may ignore its input.
            let _ = stdin.write_all(&text).await;
        }
    };
    let end = async move {
        let status = child.wait().await;
        // Kills leftover child processes, which would keep the output open.
        drop(group);
        status
    };
    let (status, out, err, ()) = tokio::join!(end, read_all(stdout), read_all(stderr), feed);
    let status =
        status.map_err(|error| JobError::new(format!("cannot wait for {program}: {error}")))?;
    if !status.success() {
        return Err(JobError::new(failure_message(&err, status)));
    }
    let text = String::from_utf8_lossy(&out);
    let text = text.trim();
    if text.is_empty() {
        return Ok(Value::Null);
    }
    Ok(serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned())))
}

/// The process group of a program. Dropping it kills every process of the group that still runs.
struct ProcessGroup(Option<Pid>);

impl ProcessGroup {
    fn of(child: &Child) -> Self {
        let number = child.id().and_then(|number| i32::try_from(number).ok());
        Self(number.and_then(Pid::from_raw))
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        if let Some(group) = self.0 {
            // Fails if no process is left.
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

/// Reads a stream to its end or first error.
async fn read_all(from: Option<impl AsyncRead + Unpin>) -> Vec<u8> {
    let mut read = Vec::new();
    if let Some(mut from) = from {
        let _ = from.read_to_end(&mut read).await;
    }
    read
}

fn failure_message(stderr: &[u8], status: std::process::ExitStatus) -> String {
    let text = String::from_utf8_lossy(stderr);
    let text = text.trim();
    let skipped = text.chars().count().saturating_sub(ERROR_MAX_CHARS);
    let text: String = text.chars().skip(skipped).collect();
    if text.is_empty() {
        return status.to_string();
    }
    format!("{status}: {text}")
}

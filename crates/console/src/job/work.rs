//! `leasehold job work`: a worker whose handler is a program that is started for each job.

use crate::exit::{Exit, Failure};
use crate::input;
use crate::listing::note;
use crate::output::clean;
use crate::session::Session;
use crate::trouble::Outcome;
use clap::Args;
use leasehold_client::HttpSource;
use leasehold_client::api::key::Scope;
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

/// How much of what a program said of its failure is kept.
const ERROR_MAX_CHARS: usize = 1_000;

/// What to work on, and with what.
#[derive(Args, Clone, Debug)]
pub struct Work {
    /// The queue.
    queue: String,
    /// How many jobs at once.
    #[arg(long, value_name = "N", default_value_t = 1)]
    concurrency: usize,
    /// How long a lease lasts, instead of as the queue says.
    #[arg(long, value_name = "TIME", value_parser = input::span)]
    lease: Option<Duration>,
    /// Work on one job, and end.
    #[arg(long, conflicts_with = "concurrency")]
    once: bool,
    /// The program and its arguments.
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<String>,
}

impl Work {
    pub(super) async fn run(self, session: &Session) -> Outcome {
        // A wrong key, a server that is not there: told at once, not by a worker that waits for ever.
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
        let mut worker = Worker::of(Arc::new(source))
            .queue(&self.queue)
            .concurrency(self.concurrency)
            .other_kinds(handler);
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
                "working on {}; Ctrl-C ends it when its jobs are done, within 25 s",
                self.queue
            );
            note(&text);
        }
        let told = told_to_stop()?;
        let until = async move {
            tokio::select! {
                () = stop.cancelled() => {}
                () = told => {}
            }
        };
        let stats = worker.run(until).await;
        let (completed, failed, retried) = (stats.completed, stats.failed, stats.retried);
        let text = format!("{completed} completed, {failed} failed, {retried} to be tried again");
        note(&text);
        Ok(())
    }
}

impl Work {
    /// A worker that may not have a single job would wait for ever.
    async fn check_key(&self, session: &Session) -> Outcome {
        let opens = match &session.me().await?.scope {
            Scope::Admin => true,
            Scope::Worker { queues } => queues.contains(&self.queue),
            Scope::Workspace { .. } => false,
        };
        if opens {
            return Ok(());
        }
        let message = format!(
            "the key does not open the queue `{0}`; `leasehold key create NAME --for-queue {0}` makes one that does",
            clean(&self.queue)
        );
        Err(Failure::new(Exit::Denied, message).into())
    }
}

/// A program that is not there would use up the attempts of every job.
fn find_program(program: &str) -> Result<(), Failure> {
    let there = |file: &Path| {
        file.metadata()
            .is_ok_and(|about| about.is_file() && about.mode() & 0o111 != 0)
    };
    let found = if program.contains('/') {
        there(Path::new(program))
    } else {
        let path = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&path).any(|folder| there(&folder.join(program)))
    };
    if found {
        return Ok(());
    }
    Err(Failure::usage(format!(
        "there is no program `{}` that can be run",
        clean(program)
    )))
}

fn told_to_stop() -> std::io::Result<impl Future<Output = ()>> {
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

/// Dropped when the lease is lost or the worker leaves, and the program ends with it.
async fn run(command: &[String], payload: &Value, job: &JobContext) -> Result<Value, JobError> {
    let [program, arguments @ ..] = command else {
        return Err(JobError::permanent("no program is named"));
    };
    let mut child = Command::new(program)
        .args(arguments)
        .env("LEASEHOLD_JOB_ID", job.id().to_string())
        .env("LEASEHOLD_JOB_KIND", job.kind())
        .env("LEASEHOLD_JOB_QUEUE", job.queue())
        .env("LEASEHOLD_JOB_ATTEMPT", job.attempt().to_string())
        // Never the worker's own: the program goes on with the job's trace, or with none.
        .env_remove("TRACEPARENT")
        .envs(job.trace_context().map(|trace| ("TRACEPARENT", trace)))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        // A group of its own: Ctrl-C at the terminal is for the worker, which lets it finish.
        .process_group(0)
        .spawn()
        .map_err(|error| JobError::new(format!("{program} cannot be started: {error}")))?;
    let group = Group::of(&child);
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let text = serde_json::to_vec(payload)?;
    let feed = async move {
        if let Some(mut stdin) = stdin {
            // A program that does not read its input is free not to.
            let _ = stdin.write_all(&text).await;
        }
    };
    let end = async move {
        let status = child.wait().await;
        // What it left behind would keep its output open.
        drop(group);
        status
    };
    let (status, out, err, ()) = tokio::join!(end, whole(stdout), whole(stderr), feed);
    let status = status.map_err(|error| JobError::new(format!("{program} was lost: {error}")))?;
    if !status.success() {
        return Err(JobError::new(failed(&err, status)));
    }
    let text = String::from_utf8_lossy(&out);
    let text = text.trim();
    if text.is_empty() {
        return Ok(Value::Null);
    }
    Ok(serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned())))
}

/// A program and whatever it started. Dropped, all of them are gone: after the program's own end only what it has left behind.
struct Group(Option<Pid>);

impl Group {
    fn of(child: &Child) -> Self {
        let number = child.id().and_then(|number| i32::try_from(number).ok());
        Self(number.and_then(Pid::from_raw))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(group) = self.0 {
            // Nobody may be left, which is as well.
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

/// All that comes, as far as it comes.
async fn whole(from: Option<impl AsyncRead + Unpin>) -> Vec<u8> {
    let mut read = Vec::new();
    if let Some(mut from) = from {
        let _ = from.read_to_end(&mut read).await;
    }
    read
}

fn failed(stderr: &[u8], status: std::process::ExitStatus) -> String {
    let said = String::from_utf8_lossy(stderr);
    let said = said.trim();
    let skipped = said.chars().count().saturating_sub(ERROR_MAX_CHARS);
    let said: String = said.chars().skip(skipped).collect();
    if said.is_empty() {
        return status.to_string();
    }
    format!("{status}: {said}")
}

//! `leasehold request enqueue`: one request from flags, or many from a file of JSON lines.

use super::watch;
use crate::bulk::{BulkProgress, JsonLines};
use crate::command_error::CommandResult;
use crate::exit::Failure;
use crate::input;
use crate::listing::note;
use crate::scope::WorkspaceFlag;
use crate::session::Session;
use clap::Args;
use leasehold_client::api::request::{NewRequest, NewRequests};
use leasehold_core::duration::millis;
use leasehold_core::{DefinitionId, JsonText, RequestId, Timestamp, WorkspaceId};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::PathBuf;
use std::time::Duration;

/// Flags of `leasehold request enqueue`.
#[derive(Args, Clone, Debug)]
pub struct EnqueueArguments {
    /// Definition name or id.
    definition: String,
    /// Params as JSON.
    #[arg(long, value_name = "JSON", conflicts_with = "params_file")]
    params: Option<String>,
    /// File with the params as JSON; `-` for standard input.
    #[arg(long, value_name = "FILE")]
    params_file: Option<PathBuf>,
    /// Priority from -1000 to 1000; higher is admitted first.
    #[arg(
        long,
        value_name = "N",
        default_value_t = 0,
        allow_negative_numbers = true,
        value_parser = clap::value_parser!(i16).range(-1000..=1000)
    )]
    priority: i16,
    /// Earliest start time, such as 2026-11-16T09:00:00Z.
    #[arg(long, value_name = "TIME", value_parser = input::timestamp, conflicts_with = "after")]
    at: Option<Timestamp>,
    /// Delay before the earliest start, such as 10m; uses this machine's clock.
    #[arg(long = "in", id = "after", value_name = "TIME", value_parser = input::duration)]
    after: Option<Duration>,
    /// Idempotency key: a repeated call returns the same request.
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
    /// Validity of the idempotency key, such as 24h [default: as long as the request is stored].
    #[arg(long, value_name = "TIME", value_parser = input::duration, requires = "key")]
    window: Option<Duration>,
    /// Watch the request until it finishes.
    #[arg(long)]
    watch: bool,
    /// Enqueue one request per line of this file: JSON objects with params, priority, run_at, idempotency_key, dedupe_window_ms; `-` for standard input.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["params", "params_file", "priority", "at", "after", "key", "watch"])]
    from: Option<PathBuf>,
}

/// One line of the `--from` file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    #[serde(default)]
    params: JsonText,
    #[serde(default)]
    priority: i16,
    run_at: Option<Timestamp>,
    idempotency_key: Option<String>,
    dedupe_window_ms: Option<u64>,
}

impl EnqueueArguments {
    pub(super) async fn run(self, session: &Session, scope: &WorkspaceFlag) -> CommandResult {
        // Validates the input before the first call.
        let params = input::document(
            "params",
            self.params.as_deref(),
            self.params_file.as_deref(),
        )?;
        let workspace = scope.id(session).await?;
        let definition = session.definition(workspace, &self.definition).await?;
        if let Some(file) = &self.from {
            return many(session, workspace, definition, JsonLines::open(file)?).await;
        }
        let mut new = NewRequest::new(definition, params.unwrap_or(Value::Null));
        new.priority = self.priority;
        new.run_at = match self.after {
            Some(after) => Some(run_at_after(after)?),
            None => self.at,
        };
        new.idempotency_key = self.key;
        new.dedupe_window_ms = self.window.map(millis);
        let enqueued = session.client.request_enqueue(workspace, &new).await?;
        if self.watch {
            note(&format!("request {}", enqueued.id));
            return watch::watch_to_end(session, workspace, enqueued.id).await;
        }
        let done = if enqueued.inserted {
            "enqueued"
        } else {
            "already exists (same idempotency key)"
        };
        print_enqueued(session, enqueued.id, &enqueued, done)
    }
}

fn run_at_after(after: Duration) -> Result<Timestamp, Failure> {
    let at = jiff::Timestamp::now().checked_add(after);
    at.map_err(|_| Failure::usage("--in: the time is out of range"))
}

/// Prints only the id if standard output is not a terminal, else a sentence.
pub(super) fn print_enqueued(
    session: &Session,
    id: RequestId,
    answer: &impl Serialize,
    done: &str,
) -> CommandResult {
    let out = &session.out;
    if out.is_json() {
        return Ok(out.json(answer)?);
    }
    if !out.is_terminal() {
        return Ok(out.line(id.to_string())?);
    }
    Ok(out.line(format!(
        "request {id} {done}; follow it with `leasehold request watch {id}`"
    ))?)
}

async fn many(
    session: &Session,
    workspace: WorkspaceId,
    definition: DefinitionId,
    lines: JsonLines,
) -> CommandResult {
    let mut bulk = BulkProgress::new("enqueued", lines.bytes());
    for batch in lines.batches() {
        let batch = bulk.with_progress(batch)?;
        let requests = batch.read(|line: Line| NewRequest {
            definition,
            params: line.params,
            priority: line.priority,
            run_at: line.run_at,
            idempotency_key: line.idempotency_key,
            dedupe_window_ms: line.dedupe_window_ms,
        });
        let requests = bulk.with_progress(requests)?;
        let sent = NewRequests { requests };
        let answers = session.client.request_enqueue_many(workspace, &sent).await;
        let answers = bulk.with_progress(answers.map_err(|error| session.failure(error)))?;
        if session.out.is_json() {
            for answer in &answers {
                session.out.json_line(answer)?;
            }
        }
        bulk.step(answers.len(), batch.bytes);
    }
    bulk.end();
    Ok(())
}

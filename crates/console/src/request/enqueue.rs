//! `leasehold request enqueue`: one request from flags, or many from a file of JSON lines.

use super::watch;
use crate::bulk::{Bulk, Lines};
use crate::exit::Failure;
use crate::input;
use crate::listing::note;
use crate::scope::WorkspaceFlag;
use crate::session::Session;
use crate::trouble::Outcome;
use clap::Args;
use leasehold_client::api::request::{NewRequest, NewRequests};
use leasehold_core::duration::millis;
use leasehold_core::{DefinitionId, RequestId, Timestamp, WorkspaceId};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::PathBuf;
use std::time::Duration;

/// What to ask for.
#[derive(Args, Clone, Debug)]
pub struct Enqueue {
    /// What to run, by name or id.
    definition: String,
    /// What to run it with, as JSON.
    #[arg(long, value_name = "JSON", conflicts_with = "params_file")]
    params: Option<String>,
    /// The same from a file, or `-`.
    #[arg(long, value_name = "FILE")]
    params_file: Option<PathBuf>,
    /// Higher goes first, from -1000 to 1000.
    #[arg(
        long,
        value_name = "N",
        default_value_t = 0,
        allow_negative_numbers = true,
        value_parser = clap::value_parser!(i16).range(-1000..=1000)
    )]
    priority: i16,
    /// Not before this moment, as 2026-11-16T09:00:00Z.
    #[arg(long, value_name = "TIME", value_parser = input::moment, conflicts_with = "after")]
    at: Option<Timestamp>,
    /// Not before so long from now by this machine's clock, as 10m.
    #[arg(long = "in", id = "after", value_name = "TIME", value_parser = input::span)]
    after: Option<Duration>,
    /// An idempotency key: the same call again is the same request.
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
    /// How long that key holds; without it, as long as the request is kept.
    #[arg(long, value_name = "TIME", value_parser = input::span, requires = "key")]
    window: Option<Duration>,
    /// Watch it until it has ended.
    #[arg(long)]
    watch: bool,
    /// Enqueue one request a line of this file: JSON objects with params, priority, run_at, idempotency_key; `-` is standard input.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["params", "params_file", "priority", "at", "after", "key", "watch"])]
    from: Option<PathBuf>,
}

/// A line of a file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    #[serde(default)]
    params: Value,
    #[serde(default)]
    priority: i16,
    run_at: Option<Timestamp>,
    idempotency_key: Option<String>,
    dedupe_window_ms: Option<u64>,
}

impl Enqueue {
    pub(super) async fn run(self, session: &Session, scope: &WorkspaceFlag) -> Outcome {
        // What is written wrong is told before anything is asked of the server.
        let params = input::document(
            "params",
            self.params.as_deref(),
            self.params_file.as_deref(),
        )?;
        let workspace = scope.id(session).await?;
        let definition = session.definition(workspace, &self.definition).await?;
        if let Some(file) = &self.from {
            return many(session, workspace, definition, Lines::open(file)?).await;
        }
        let mut new = NewRequest::new(definition, params.unwrap_or(Value::Null));
        new.priority = self.priority;
        new.run_at = match self.after {
            Some(after) => Some(later(after)?),
            None => self.at,
        };
        new.idempotency_key = self.key;
        new.dedupe_window_ms = self.window.map(millis);
        let enqueued = session.client.request_enqueue(workspace, &new).await?;
        if self.watch {
            note(&format!("request {}", enqueued.id));
            return watch::until_it_ends(session, workspace, enqueued.id).await;
        }
        let done = if enqueued.inserted {
            "enqueued"
        } else {
            "there already, by its key"
        };
        told(session, enqueued.id, &enqueued, done)
    }
}

fn later(after: Duration) -> Result<Timestamp, Failure> {
    let at = jiff::Timestamp::now().checked_add(after);
    at.map_err(|_| Failure::usage("--in: that is too far away"))
}

/// The id alone where a program reads it, a sentence for people.
pub(super) fn told(
    session: &Session,
    id: RequestId,
    answer: &impl Serialize,
    done: &str,
) -> Outcome {
    let out = &session.out;
    if out.is_json() {
        return Ok(out.json(answer)?);
    }
    if !out.is_terminal() {
        return Ok(out.line(id.to_string())?);
    }
    Ok(out.line(format!(
        "request {id} is {done}; `leasehold request watch {id}` shows what becomes of it"
    ))?)
}

async fn many(
    session: &Session,
    workspace: WorkspaceId,
    definition: DefinitionId,
    lines: Lines,
) -> Outcome {
    let mut bulk = Bulk::new("enqueued", lines.bytes());
    for batch in lines.batches() {
        let batch = bulk.stopped(batch)?;
        let requests = batch.read(|line: Line| NewRequest {
            definition,
            params: line.params,
            priority: line.priority,
            run_at: line.run_at,
            idempotency_key: line.idempotency_key,
            dedupe_window_ms: line.dedupe_window_ms,
        });
        let requests = bulk.stopped(requests)?;
        let sent = NewRequests { requests };
        let answers = session.client.request_enqueue_many(workspace, &sent).await;
        let answers = bulk.stopped(answers.map_err(|error| session.failure(error)))?;
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

//! `leasehold job enqueue`: one job from flags, or many from a file of JSON lines.

use crate::bulk::{BulkProgress, JsonLines};
use crate::command_error::CommandResult;
use crate::input;
use crate::session::Session;
use clap::Args;
use leasehold_client::api::job::{NewJob, NewJobs};
use leasehold_core::duration::millis;
use leasehold_core::{JsonText, Timestamp};
use serde_json::Value;
use std::path::PathBuf;
use std::time::Duration;

/// Flags of `leasehold job enqueue`.
#[derive(Args, Clone, Debug)]
pub struct EnqueueJob {
    /// Queue name; the queue is created if it does not exist.
    queue: String,
    /// Job kind; workers select the handler by it.
    #[arg(required_unless_present = "from")]
    kind: Option<String>,
    /// Payload as JSON.
    #[arg(long, value_name = "JSON", conflicts_with = "payload_file")]
    payload: Option<String>,
    /// File with the payload as JSON; `-` for standard input.
    #[arg(long, value_name = "FILE")]
    payload_file: Option<PathBuf>,
    /// Priority from -1000 to 1000; higher is claimed first.
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
    /// Delay before the earliest start, such as 10m.
    #[arg(long = "in", id = "after", value_name = "TIME", value_parser = input::duration)]
    after: Option<Duration>,
    /// Deduplication key: a repeated call returns the same job until it finishes.
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
    /// Maximum number of attempts [default: the queue's].
    #[arg(long, value_name = "N")]
    max_attempts: Option<u32>,
    /// Timeout of one attempt, such as 5m [default: the queue's].
    #[arg(long, value_name = "TIME", value_parser = input::duration)]
    timeout: Option<Duration>,
    /// Enqueue one job per line of this file: JSON objects as in the API (kind, payload, priority, …); `-` for standard input.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["kind", "payload", "payload_file", "priority", "at", "after", "key", "max_attempts", "timeout"])]
    from: Option<PathBuf>,
}

impl EnqueueJob {
    pub(super) async fn run(self, session: &Session) -> CommandResult {
        if let Some(file) = &self.from {
            return many(session, &self.queue, JsonLines::open(file)?).await;
        }
        let payload = input::document::<Value>(
            "payload",
            self.payload.as_deref(),
            self.payload_file.as_deref(),
        )?;
        let payload = JsonText::of(&payload.unwrap_or(Value::Null));
        let payload = payload.map_err(|error| crate::Failure::usage(error.to_string()))?;
        let mut new = NewJob::new(self.kind.unwrap_or_default(), payload);
        new.priority = self.priority;
        new.run_at = self.at;
        new.run_in_ms = self.after.map(millis);
        new.dedup_key = self.key;
        new.max_attempts = self.max_attempts;
        new.timeout_ms = self.timeout.map(millis);
        let enqueued = session.client.job_enqueue(&self.queue, &new).await?;
        let out = &session.out;
        if out.is_json() {
            return Ok(out.json(&enqueued)?);
        }
        let id = enqueued.id;
        if !out.is_terminal() {
            return Ok(out.line(id.to_string())?);
        }
        let done = if enqueued.inserted {
            "enqueued"
        } else {
            "already exists (same deduplication key)"
        };
        Ok(out.line(format!(
            "job {id} {done}; show it with `leasehold job get {id}`"
        ))?)
    }
}

async fn many(session: &Session, queue: &str, lines: JsonLines) -> CommandResult {
    let mut bulk = BulkProgress::new("enqueued", lines.bytes());
    for batch in lines.batches() {
        let batch = bulk.with_progress(batch)?;
        let jobs = bulk.with_progress(batch.read(|job: NewJob| job))?;
        let sent = NewJobs { jobs };
        let answers = session.client.job_enqueue_many(queue, &sent).await;
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

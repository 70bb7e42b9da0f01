//! `leasehold job enqueue`: one job from flags, or many from a file of JSON lines.

use crate::bulk::{Bulk, Lines};
use crate::input;
use crate::session::Session;
use crate::trouble::Outcome;
use clap::Args;
use leasehold_client::api::job::{NewJob, NewJobs};
use leasehold_core::duration::millis;
use leasehold_core::{JsonText, Timestamp};
use serde_json::Value;
use std::path::PathBuf;
use std::time::Duration;

/// What to work on.
#[derive(Args, Clone, Debug)]
pub struct EnqueueJob {
    /// The queue; it is made if it is not there.
    queue: String,
    /// What sort of work it is; workers find their handler by it.
    #[arg(required_unless_present = "from")]
    kind: Option<String>,
    /// What to work on, as JSON.
    #[arg(long, value_name = "JSON", conflicts_with = "payload_file")]
    payload: Option<String>,
    /// The same from a file, or `-`.
    #[arg(long, value_name = "FILE")]
    payload_file: Option<PathBuf>,
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
    /// Not before so long from now, as 10m.
    #[arg(long = "in", id = "after", value_name = "TIME", value_parser = input::span)]
    after: Option<Duration>,
    /// A deduplication key: the same call again is the same job, until it has ended.
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
    /// How often it is tried, instead of as the queue says.
    #[arg(long, value_name = "N")]
    max_attempts: Option<u32>,
    /// How long an attempt may take, instead of as the queue says.
    #[arg(long, value_name = "TIME", value_parser = input::span)]
    timeout: Option<Duration>,
    /// Enqueue one job a line of this file: JSON objects as the API takes them (kind, payload, priority, …); `-` is standard input.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["kind", "payload", "payload_file", "priority", "at", "after", "key", "max_attempts", "timeout"])]
    from: Option<PathBuf>,
}

impl EnqueueJob {
    pub(super) async fn run(self, session: &Session) -> Outcome {
        if let Some(file) = &self.from {
            return many(session, &self.queue, Lines::open(file)?).await;
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
            "there already, by its key"
        };
        Ok(out.line(format!(
            "job {id} is {done}; `leasehold job get {id}` shows what becomes of it"
        ))?)
    }
}

async fn many(session: &Session, queue: &str, lines: Lines) -> Outcome {
    let mut bulk = Bulk::new("enqueued", lines.bytes());
    for batch in lines.batches() {
        let batch = bulk.stopped(batch)?;
        let jobs = bulk.stopped(batch.read(|job: NewJob| job))?;
        let sent = NewJobs { jobs };
        let answers = session.client.job_enqueue_many(queue, &sent).await;
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

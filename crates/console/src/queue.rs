//! `leasehold queue`: queues of jobs and what holds for them.

use crate::command::Act;
use crate::input;
use crate::listing::Listing;
use crate::output::clean;
use crate::scope::WorkspaceFlag;
use crate::session::Session;
use crate::shown;
use crate::trouble::{OrMissing, Outcome};
use clap::{Args, Subcommand};
use leasehold_client::api::queue::{JobLimit, Queue, QueueChange};
use leasehold_core::duration::millis;
use std::time::Duration;

/// What to do with queues.
#[derive(Subcommand, Clone, Debug)]
pub enum QueueAction {
    /// Lists queues.
    List(Listing),
    /// Shows a queue and counts its jobs.
    Get {
        /// Its name.
        queue: String,
    },
    /// Changes what holds for a queue, or makes it.
    Set(SetQueue),
    /// Gives workers nothing more from it, until it is resumed.
    Pause {
        /// Its name.
        queue: String,
    },
    /// Gives workers its jobs again.
    Resume {
        /// Its name.
        queue: String,
    },
    /// Shows or sets how many jobs of all queues together may run at once.
    TotalLimit {
        /// A number, or `none`.
        limit: Option<String>,
    },
}

/// What to change; what is not said stays as it is.
#[derive(Args, Clone, Debug)]
pub struct SetQueue {
    /// Its name.
    queue: String,
    /// How many of its jobs may run at once among all workers.
    #[arg(long, value_name = "N", conflicts_with = "no_limit")]
    limit: Option<u32>,
    /// No such limit.
    #[arg(long)]
    no_limit: bool,
    /// How long a claim lasts where the worker does not say.
    #[arg(long, value_name = "TIME", value_parser = input::span)]
    lease: Option<Duration>,
    /// How often a job is tried where it does not say itself.
    #[arg(long, value_name = "N")]
    max_attempts: Option<u32>,
    /// How long an attempt may take where the job does not say.
    #[arg(long, value_name = "TIME", value_parser = input::span, conflicts_with = "no_timeout")]
    timeout: Option<Duration>,
    /// No such limit.
    #[arg(long)]
    no_timeout: bool,
    /// Whether completed jobs are kept until they are pruned.
    #[arg(long, value_name = "true|false")]
    keep_completed: Option<bool>,
}

impl Act for QueueAction {
    async fn act(self, session: &Session, _: &WorkspaceFlag) -> Outcome {
        match self {
            Self::List(listing) => list(session, listing).await,
            Self::Get { queue } => get(session, &queue).await,
            Self::Set(set) => update(session, &set.queue, set.change()).await,
            Self::Pause { queue } => pause(session, &queue, true).await,
            Self::Resume { queue } => pause(session, &queue, false).await,
            Self::TotalLimit { limit } => total(session, limit.as_deref()).await,
        }
    }
}

impl SetQueue {
    fn change(&self) -> QueueChange {
        let timeout = self.timeout.map(millis);
        QueueChange {
            limit: self.limit.map(Some).or(self.no_limit.then_some(None)),
            paused: None,
            keep_completed: self.keep_completed,
            lease_ms: self.lease.map(millis),
            max_attempts: self.max_attempts,
            backoff: None,
            timeout_ms: timeout.map(Some).or(self.no_timeout.then_some(None)),
        }
    }
}

/// Setting up makes a queue that is not there; pausing one is a slip.
async fn pause(session: &Session, name: &str, paused: bool) -> Outcome {
    let queue = session.client.queue_get(name).await;
    queue.or_missing(|| format!("queue `{name}`"), "queue list")?;
    let change = QueueChange {
        paused: Some(paused),
        ..QueueChange::default()
    };
    update(session, name, change).await
}

async fn list(session: &Session, listing: Listing) -> Outcome {
    let headings = [
        "NAME", "LIMIT", "STATE", "LEASE", "TRIES", "TIMEOUT", "KEEPS",
    ];
    let none = "there are no queues; the first job or setting makes one";
    let row = |queue: &Queue| {
        vec![
            clean(&queue.name),
            shown::limit(queue.limit),
            shown::yes(queue.paused, "paused"),
            shown::length(queue.lease_ms),
            queue.max_attempts.to_string(),
            queue
                .timeout_ms
                .map_or_else(|| "none".to_owned(), shown::length),
            if queue.keep_completed {
                "completed"
            } else {
                "failed only"
            }
            .to_owned(),
        ]
    };
    let rows = async |items: &[Queue]| Ok(items.iter().map(row).collect());
    let list = session.client.queue_list();
    listing.print(session, list, &headings, none, rows).await
}

async fn get(session: &Session, name: &str) -> Outcome {
    let queue = session.client.queue_get(name).await;
    let queue = queue.or_missing(|| format!("queue `{name}`"), "queue list")?;
    let counts = session.client.queue_counts(name).await?;
    if session.out.is_json() {
        let both = serde_json::json!({"queue": queue, "counts": counts});
        return Ok(session.out.json(&both)?);
    }
    let mut fields = about(&queue);
    fields.extend([
        ("ready", counts.ready.to_string()),
        ("scheduled", counts.scheduled.to_string()),
        ("running", counts.running.to_string()),
        ("completed", counts.completed.to_string()),
        ("failed", counts.failed.to_string()),
    ]);
    Ok(session.out.fields(fields)?)
}

fn about(queue: &Queue) -> Vec<(&'static str, String)> {
    let backoff = queue.backoff;
    let waits = format!(
        "{} at first, times {}, {} at most",
        shown::length(backoff.base_ms),
        backoff.factor,
        shown::length(backoff.max_ms)
    );
    vec![
        ("queue", clean(&queue.name)),
        ("limit", shown::limit(queue.limit)),
        ("state", shown::yes(queue.paused, "paused")),
        ("lease", shown::length(queue.lease_ms)),
        ("tries", queue.max_attempts.to_string()),
        ("waits", waits),
        (
            "timeout",
            queue
                .timeout_ms
                .map_or_else(|| "none".to_owned(), shown::length),
        ),
        (
            "keeps completed",
            if queue.keep_completed { "yes" } else { "no" }.to_owned(),
        ),
    ]
}

async fn update(session: &Session, name: &str, change: QueueChange) -> Outcome {
    let queue = session.client.queue_update(name, &change).await?;
    if session.out.is_json() {
        return Ok(session.out.json(&queue)?);
    }
    Ok(session.out.fields(about(&queue))?)
}

async fn total(session: &Session, set: Option<&str>) -> Outcome {
    if let Some(text) = set {
        let limit = match text {
            "none" => None,
            number => Some(number.parse().map_err(|_| {
                crate::Failure::usage(format!("`{number}` is no limit; write a number, or `none`"))
            })?),
        };
        session.client.job_limit_set(limit).await?;
    }
    let limit = session.client.job_limit().await?;
    if session.out.is_json() {
        return Ok(session.out.json(&JobLimit { limit })?);
    }
    Ok(session
        .out
        .fields(vec![("jobs at once", shown::limit(limit))])?)
}

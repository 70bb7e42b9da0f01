//! `leasehold queue`: shows, configures, shares and pauses job queues.

use crate::command::Execute;
use crate::command_error::{CommandResult, OrNotFound};
use crate::display;
use crate::input;
use crate::listing::Listing;
use crate::output::clean;
use crate::scope::WorkspaceFlag;
use crate::session::Session;
use clap::{ArgGroup, Args, Subcommand};
use leasehold_client::api::queue::{JobLimit, Queue, QueueChange, QueueSharing, SharedWith};
use leasehold_core::duration::millis;
use std::time::Duration;

/// Names of workspaces that a line of the list shows.
const LISTED_WORKSPACES: usize = 3;

/// Subcommands of `leasehold queue`.
#[derive(Subcommand, Clone, Debug)]
pub enum QueueAction {
    /// List queues.
    List(Listing),
    /// Show a queue and its job counts.
    Get {
        /// Queue name.
        queue: String,
    },
    /// Change the settings of a queue; create it if it does not exist.
    Set(SetQueue),
    /// Set which workspaces may use a queue in their graphs, besides its owner; create it if it does not exist.
    Share(ShareQueue),
    /// Stop handing out the jobs of a queue until it is resumed.
    Pause {
        /// Queue name.
        queue: String,
    },
    /// Resume a paused queue.
    Resume {
        /// Queue name.
        queue: String,
    },
    /// Show or set the limit of running jobs across all queues.
    TotalLimit {
        /// New limit: a number, or `none`.
        limit: Option<String>,
    },
}

/// Flags of `leasehold queue set`; omitted flags keep the current values.
#[derive(Args, Clone, Debug)]
pub struct SetQueue {
    /// Queue name.
    queue: String,
    /// Maximum number of running jobs of this queue, across all workers.
    #[arg(long, value_name = "N", conflicts_with = "no_limit")]
    limit: Option<u32>,
    /// Remove the limit.
    #[arg(long)]
    no_limit: bool,
    /// Default lease duration for workers that set none, such as 30s.
    #[arg(long, value_name = "TIME", value_parser = input::duration)]
    lease: Option<Duration>,
    /// Default maximum number of attempts per job.
    #[arg(long, value_name = "N")]
    max_attempts: Option<u32>,
    /// Default timeout of one attempt, such as 5m.
    #[arg(long, value_name = "TIME", value_parser = input::duration, conflicts_with = "no_timeout")]
    timeout: Option<Duration>,
    /// Remove the default timeout.
    #[arg(long)]
    no_timeout: bool,
    /// Keep completed jobs until retention.completed, or delete them at once.
    #[arg(long, value_name = "true|false")]
    keep_completed: Option<bool>,
}

/// Flags of `leasehold queue share`; they replace the current sharing.
#[derive(Args, Clone, Debug)]
#[command(group = ArgGroup::new("sharing").required(true))]
pub struct ShareQueue {
    /// Queue name.
    queue: String,
    /// Name of a workspace to share the queue with; repeat it for more.
    #[arg(long, value_name = "WORKSPACE", group = "sharing")]
    with: Vec<String>,
    /// Share the queue with every workspace.
    #[arg(long, group = "sharing")]
    with_all: bool,
    /// Share the queue with no workspace.
    #[arg(long, group = "sharing")]
    with_none: bool,
}

impl Execute for QueueAction {
    async fn execute(self, session: &Session, _: &WorkspaceFlag) -> CommandResult {
        match self {
            Self::List(listing) => list(session, listing).await,
            Self::Get { queue } => get(session, &queue).await,
            Self::Set(set) => update(session, &set.queue, set.change()).await,
            Self::Share(share) => share_queue(session, share).await,
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

/// Unlike `set`, does not create a missing queue.
async fn pause(session: &Session, name: &str, paused: bool) -> CommandResult {
    let queue = session.client.queue_get(name).await;
    queue.or_not_found(|| format!("queue `{name}`"), "queue list")?;
    let change = QueueChange {
        paused: Some(paused),
        ..QueueChange::default()
    };
    update(session, name, change).await
}

async fn list(session: &Session, listing: Listing) -> CommandResult {
    let headings = [
        "NAME",
        "OWNER",
        "SHARED WITH",
        "LIMIT",
        "STATE",
        "LEASE",
        "ATTEMPTS",
        "TIMEOUT",
        "RETAINS",
    ];
    let none = "no queues; the first enqueued job or `leasehold queue set` creates one";
    let row = |queue: &Queue| {
        vec![
            clean(&queue.name),
            owner(queue),
            shared_with(queue, LISTED_WORKSPACES),
            display::limit(queue.limit),
            display::word_if(queue.paused, "paused"),
            display::duration(queue.lease_ms),
            queue.max_attempts.to_string(),
            queue
                .timeout_ms
                .map_or_else(|| "none".to_owned(), display::duration),
            if queue.keep_completed {
                "all"
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

async fn get(session: &Session, name: &str) -> CommandResult {
    let queue = session.client.queue_get(name).await;
    let queue = queue.or_not_found(|| format!("queue `{name}`"), "queue list")?;
    let counts = session.client.queue_counts(name).await?;
    if session.out.is_json() {
        let both = serde_json::json!({"queue": queue, "counts": counts});
        return Ok(session.out.json(&both)?);
    }
    let mut fields = fields(&queue);
    fields.extend([
        ("ready", counts.ready.to_string()),
        ("scheduled", counts.scheduled.to_string()),
        ("running", counts.running.to_string()),
        ("completed", counts.completed.to_string()),
        ("failed", counts.failed.to_string()),
    ]);
    Ok(session.out.fields(fields)?)
}

fn fields(queue: &Queue) -> Vec<(&'static str, String)> {
    let options = queue.backoff;
    let backoff = format!(
        "{} initially, factor {}, maximum {}",
        display::duration(options.base_ms),
        options.factor,
        display::duration(options.max_ms)
    );
    let mut fields = vec![("queue", clean(&queue.name))];
    if queue.owner.is_some() {
        fields.push(("owner", owner(queue)));
        fields.push(("shared with", shared_with(queue, usize::MAX)));
    }
    fields.extend([
        ("limit", display::limit(queue.limit)),
        ("state", display::word_if(queue.paused, "paused")),
        ("lease", display::duration(queue.lease_ms)),
        ("max attempts", queue.max_attempts.to_string()),
        ("backoff", backoff),
        (
            "timeout",
            queue
                .timeout_ms
                .map_or_else(|| "none".to_owned(), display::duration),
        ),
        (
            "keep completed",
            if queue.keep_completed { "yes" } else { "no" }.to_owned(),
        ),
    ]);
    fields
}

/// The workspace that owns a queue. A key that may not see it gets an empty text.
fn owner(queue: &Queue) -> String {
    match &queue.owner {
        Some(Some(workspace)) => clean(workspace),
        Some(None) => "installation".to_owned(),
        None => String::new(),
    }
}

/// The workspaces with which a queue is shared, up to `max` of them by name.
fn shared_with(queue: &Queue, max: usize) -> String {
    match &queue.shared_with {
        Some(SharedWith::All(_)) => "all".to_owned(),
        Some(SharedWith::Workspaces(names)) if names.is_empty() => "none".to_owned(),
        Some(SharedWith::Workspaces(names)) => {
            let mut shown: Vec<String> = names.iter().take(max).map(|name| clean(name)).collect();
            if names.len() > shown.len() {
                shown.push(format!("{} more", names.len() - shown.len()));
            }
            shown.join(", ")
        }
        None => String::new(),
    }
}

async fn share_queue(session: &Session, share: ShareQueue) -> CommandResult {
    let shared_with = match share.with_all {
        true => SharedWith::ALL,
        false => SharedWith::Workspaces(share.with),
    };
    let sharing = QueueSharing { shared_with };
    let queue = session.client.queue_share(&share.queue, &sharing).await?;
    show(session, &queue)
}

async fn update(session: &Session, name: &str, change: QueueChange) -> CommandResult {
    let queue = session.client.queue_update(name, &change).await?;
    show(session, &queue)
}

fn show(session: &Session, queue: &Queue) -> CommandResult {
    if session.out.is_json() {
        return Ok(session.out.json(queue)?);
    }
    Ok(session.out.fields(fields(queue))?)
}

async fn total(session: &Session, set: Option<&str>) -> CommandResult {
    if let Some(text) = set {
        let limit = match text {
            "none" => None,
            number => Some(number.parse().map_err(|_| {
                crate::Failure::usage(format!(
                    "invalid limit `{number}`: expected a number or `none`"
                ))
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
        .fields(vec![("total limit", display::limit(limit))])?)
}

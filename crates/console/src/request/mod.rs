//! `leasehold request`: enqueues, shows, watches, cancels and redrives requests.

mod enqueue;
mod watch;

use crate::command::Execute;
use crate::command_error::{CommandResult, OrNotFound};
use crate::display;
use crate::input;
use crate::listing::{Listing, note};
use crate::output::clean;
use crate::scope::{NameCache, WorkspaceFlag};
use crate::session::Session;
use clap::{Args, Subcommand};
use enqueue::EnqueueArguments;
use leasehold_client::RequestFilter;
use leasehold_client::api::request::{CancelOptions, CancelState, Request};
use leasehold_core::{FailureReason, Named, RequestId, RequestStatus, WorkspaceId};

/// Subcommands of `leasehold request`.
#[derive(Subcommand, Clone, Debug)]
pub enum RequestAction {
    /// Enqueue a request to run a definition; with --from, many requests.
    Enqueue(EnqueueArguments),
    /// Show a request.
    Get {
        /// Request id.
        id: RequestId,
    },
    /// List requests, newest first.
    List(ListRequests),
    /// Print every transition of a request and its nodes until it finishes.
    ///
    /// Exits with 0 if the request completed, with 7 if it failed.
    Watch {
        /// Request id.
        id: RequestId,
    },
    /// Explain why a request is not running, and how many requests are ahead of it.
    Why {
        /// Request id.
        id: RequestId,
    },
    /// List every transition of a request and its actor.
    Timeline {
        /// Request id.
        id: RequestId,
    },
    /// Cancel a request: immediately if it is pending, through the engine if it runs.
    Cancel {
        /// Request id.
        id: RequestId,
        /// Terminate a running execution without letting it clean up.
        #[arg(long)]
        force: bool,
    },
    /// Enqueue a copy of a failed request; the failed request stays unchanged.
    ///
    /// Rejected while an earlier redrive of the request has not ended. After that another redrive repeats the work, even if the earlier one completed.
    Redrive {
        /// Request id.
        id: RequestId,
    },
}

/// Flags of `leasehold request list`.
#[derive(Args, Clone, Debug)]
pub struct ListRequests {
    /// Only requests in this status.
    #[arg(long, value_parser = input::request_status(), ignore_case = true)]
    status: Option<RequestStatus>,
    /// Only requests of this definition, by name or id.
    #[arg(long, value_name = "NAME|ID", conflicts_with = "all_workspaces")]
    definition: Option<String>,
    /// Only requests that failed for this reason.
    #[arg(long, value_parser = input::reason(), ignore_case = true)]
    reason: Option<FailureReason>,
    /// Include all workspaces (requires an administrator key).
    #[arg(long, short = 'A')]
    all_workspaces: bool,
    #[command(flatten)]
    listing: Listing,
}

pub(crate) const LIST_COMMAND: &str = "request list";

impl Execute for RequestAction {
    async fn execute(self, session: &Session, scope: &WorkspaceFlag) -> CommandResult {
        match self {
            Self::Enqueue(enqueue) => enqueue.run(session, scope).await,
            Self::List(list) => list.run(session, scope).await,
            Self::Get { id } => {
                let workspace = scope.of_request(session, id).await?;
                let request = read(session, workspace, id).await?;
                print(session, &request).await
            }
            Self::Watch { id } => {
                let workspace = scope.of_request(session, id).await?;
                watch::watch_to_end(session, workspace, id).await
            }
            Self::Why { id } => why(session, scope.of_request(session, id).await?, id).await,
            Self::Timeline { id } => {
                timeline(session, scope.of_request(session, id).await?, id).await
            }
            Self::Cancel { id, force } => {
                cancel(session, scope.of_request(session, id).await?, id, force).await
            }
            Self::Redrive { id } => {
                let workspace = scope.of_request(session, id).await?;
                let redriven = session.client.request_redrive(workspace, id).await;
                let redriven = redriven.or_not_found(|| format!("request {id}"), LIST_COMMAND)?;
                enqueue::print_enqueued(
                    session,
                    redriven.request,
                    &redriven,
                    "enqueued as a redrive",
                )
            }
        }
    }
}

async fn read(session: &Session, workspace: WorkspaceId, id: RequestId) -> CommandResult<Request> {
    let request = session.client.request_get(workspace, id).await;
    request.or_not_found(|| format!("request {id}"), LIST_COMMAND)
}

async fn print(session: &Session, request: &Request) -> CommandResult {
    let out = &session.out;
    if out.is_json() {
        return Ok(out.json(request)?);
    }
    let mut names = NameCache::default();
    let id = |id: Option<String>| id.unwrap_or_default();
    Ok(out.fields(vec![
        ("request", request.id.to_string()),
        ("status", display::request_status(out, &request.status)),
        (
            "reason",
            id(request.failure_reason.as_ref().map(reason_text)),
        ),
        (
            "error",
            clean(request.last_error.as_deref().unwrap_or_default()),
        ),
        (
            "workspace",
            clean(&names.workspace(session, request.workspace).await),
        ),
        (
            "definition",
            clean(&names.definition(session, request).await),
        ),
        ("version", request.version.to_string()),
        (
            "execution",
            id(request.execution.map(|execution| execution.to_string())),
        ),
        ("priority", request.priority.to_string()),
        (
            "key",
            clean(request.idempotency_key.as_deref().unwrap_or_default()),
        ),
        (
            "redrive of",
            id(request.redrive_of.map(|of| of.to_string())),
        ),
        ("enqueued", display::timestamp(request.created_at)),
        (
            "not before",
            if request.run_at > request.created_at {
                display::timestamp(request.run_at)
            } else {
                String::new()
            },
        ),
        ("claimed", display::optional_timestamp(request.claimed_at)),
        (
            "dispatched",
            display::optional_timestamp(request.dispatched_at),
        ),
        (
            "cancel requested",
            display::optional_timestamp(request.cancel_requested_at),
        ),
        ("finished", display::optional_timestamp(request.finished_at)),
        ("params", clean(request.params.as_str())),
    ])?)
}

impl ListRequests {
    async fn run(self, session: &Session, scope: &WorkspaceFlag) -> CommandResult {
        let mut filter = RequestFilter {
            status: self.status,
            definition: None,
            reason: self.reason,
        };
        let list = if self.all_workspaces {
            session.client.request_list_all(filter)
        } else {
            let workspace = scope.id(session).await?;
            if let Some(named) = &self.definition {
                filter.definition = Some(session.definition(workspace, named).await?);
            }
            session.client.request_list(workspace, filter)
        };
        let none = "no matching requests; enqueue one with `leasehold request enqueue DEFINITION`";
        let all = self.all_workspaces;
        let rows = async |items: &[Request]| rows(session, items, all).await;
        self.listing
            .print(session, list, headings(all), none, rows)
            .await
    }
}

const HEADINGS: [&str; 7] = [
    "ID",
    "STATUS",
    "WORKSPACE",
    "DEFINITION",
    "PRIORITY",
    "ENQUEUED",
    "LAST ERROR",
];
const WORKSPACE_HEADINGS: [&str; 6] = [
    "ID",
    "STATUS",
    "DEFINITION",
    "PRIORITY",
    "ENQUEUED",
    "LAST ERROR",
];

pub(crate) fn headings(all_workspaces: bool) -> &'static [&'static str] {
    if all_workspaces {
        &HEADINGS
    } else {
        &WORKSPACE_HEADINGS
    }
}

/// Table rows of requests.
pub(crate) async fn rows(
    session: &Session,
    items: &[Request],
    all_workspaces: bool,
) -> CommandResult<Vec<Vec<String>>> {
    let (mut names, now) = (NameCache::default(), jiff::Timestamp::now());
    let mut rows = Vec::new();
    for request in items {
        let mut row = vec![
            request.id.to_string(),
            display::request_status(&session.out, &request.status),
        ];
        if all_workspaces {
            row.push(clean(&names.workspace(session, request.workspace).await));
        }
        row.extend([
            clean(&names.definition(session, request).await),
            request.priority.to_string(),
            display::age(request.created_at, now),
            last_error(request),
        ]);
        rows.push(row);
    }
    Ok(rows)
}

/// A reason that only a newer program knows may be any text.
fn reason_text(reason: &Named<FailureReason>) -> String {
    clean(&reason.to_string())
}

fn last_error(request: &Request) -> String {
    let error = request.last_error.as_deref().unwrap_or_default();
    match &request.failure_reason {
        Some(reason) if error.is_empty() => reason_text(reason),
        Some(reason) => display::truncate(&format!("{reason}: {error}")),
        None => display::truncate(error),
    }
}

async fn why(session: &Session, workspace: WorkspaceId, id: RequestId) -> CommandResult {
    let why = session.client.request_why(workspace, id).await;
    let why = why.or_not_found(|| format!("request {id}"), LIST_COMMAND)?;
    let out = &session.out;
    if out.is_json() {
        return Ok(out.json(&why)?);
    }
    out.line(clean(&why.explanation))?;
    let ahead = why.ahead.map(|ahead| match (why.more_ahead, ahead) {
        (true, most) => format!("more than {most}"),
        (false, 0) => "none: next in its workspace".to_owned(),
        (false, few) => few.to_string(),
    });
    let also = why.also.iter().filter_map(|reason| {
        let value = serde_json::to_value(reason).ok()?;
        Some(value.get("code")?.as_str()?.replace('_', " "))
    });
    let also: Vec<String> = also.collect();
    let start = why.estimated_start;
    let start = start.map(|at| {
        format!(
            "{}, {}",
            display::age(at, jiff::Timestamp::now()),
            display::timestamp(at)
        )
    });
    let fields = vec![
        ("ahead", ahead.unwrap_or_default()),
        ("also", also.join(", ")),
        ("estimated start", start.unwrap_or_default()),
    ];
    if fields.iter().all(|(_, value)| value.is_empty()) {
        return Ok(());
    }
    Ok(out.fields(fields)?)
}

async fn timeline(session: &Session, workspace: WorkspaceId, id: RequestId) -> CommandResult {
    let timeline = session.client.request_timeline(workspace, id).await;
    let timeline = timeline.or_not_found(|| format!("request {id}"), LIST_COMMAND)?;
    let out = &session.out;
    if out.is_json() {
        return Ok(out.json(&timeline)?);
    }
    if timeline.beginning_pruned {
        note("the first transitions are older than the longest retention and were pruned");
    }
    let rows = timeline.events.iter().map(|event| {
        vec![
            display::timestamp(event.at),
            display::request_status(out, &event.to),
            clean(&event.by),
            display::truncate(event.reason.as_deref().unwrap_or_default()),
        ]
    });
    Ok(out.table(&["AT", "TO", "BY", "REASON"], rows.collect())?)
}

async fn cancel(
    session: &Session,
    workspace: WorkspaceId,
    id: RequestId,
    force: bool,
) -> CommandResult {
    let cancelled = session
        .client
        .request_cancel(workspace, id, CancelOptions { force })
        .await;
    let cancelled = cancelled.or_not_found(|| format!("request {id}"), LIST_COMMAND)?;
    if session.out.is_json() {
        return Ok(session.out.json(&cancelled)?);
    }
    let line = match cancelled.state {
        CancelState::Cancelled => format!("cancelled request {id}"),
        CancelState::Cancelling => {
            format!("cancelling request {id}; follow it with `leasehold request watch {id}`")
        }
    };
    Ok(session.out.line(line)?)
}

//! `leasehold request`: enqueueing, looking at, watching, cancelling and redriving requests.

mod enqueue;
mod watch;

use crate::command::Act;
use crate::input;
use crate::listing::Listing;
use crate::output::clean;
use crate::scope::{Names, WorkspaceFlag};
use crate::session::Session;
use crate::shown;
use crate::trouble::{OrMissing, Outcome};
use clap::{Args, Subcommand};
use enqueue::Enqueue;
use leasehold_client::RequestFilter;
use leasehold_client::api::request::{Cancel, CancelState, Request};
use leasehold_core::{FailureReason, RequestId, RequestStatus, WorkspaceId};

/// What to do with requests.
#[derive(Subcommand, Clone, Debug)]
pub enum RequestAction {
    /// Asks to run a definition; with --from, many times.
    Enqueue(Enqueue),
    /// Shows a request.
    Get {
        /// Its id.
        id: RequestId,
    },
    /// Lists requests, newest first.
    List(ListRequests),
    /// Shows every step of a request and of its nodes as it happens, until it has ended.
    ///
    /// Exits with 0 if it completed, with 7 if it failed.
    Watch {
        /// Its id.
        id: RequestId,
    },
    /// Says why a request is not running now, and how many go before it.
    Why {
        /// Its id.
        id: RequestId,
    },
    /// Lists every transition of a request, with who did it.
    Timeline {
        /// Its id.
        id: RequestId,
    },
    /// Cancels a request: at once if it waits, through the engine if it runs.
    Cancel {
        /// Its id.
        id: RequestId,
        /// Ends a running execution without asking it.
        #[arg(long)]
        force: bool,
    },
    /// Enqueues a failed request anew; the failed one stays as it is.
    Redrive {
        /// Its id.
        id: RequestId,
    },
}

/// Which requests to list.
#[derive(Args, Clone, Debug)]
pub struct ListRequests {
    /// Only those in this status.
    #[arg(long, value_parser = input::request_status(), ignore_case = true)]
    status: Option<RequestStatus>,
    /// Only those of this definition, by name or id.
    #[arg(long, value_name = "NAME|ID", conflicts_with = "all_workspaces")]
    definition: Option<String>,
    /// Only those that failed for this reason.
    #[arg(long, value_parser = input::reason(), ignore_case = true)]
    reason: Option<FailureReason>,
    /// Those of all workspaces; for administrators.
    #[arg(long, short = 'A')]
    all_workspaces: bool,
    #[command(flatten)]
    listing: Listing,
}

pub(crate) const LOOK: &str = "request list";

impl Act for RequestAction {
    async fn act(self, session: &Session, scope: &WorkspaceFlag) -> Outcome {
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
                watch::until_it_ends(session, workspace, id).await
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
                let redriven = redriven.or_missing(|| format!("request {id}"), LOOK)?;
                enqueue::told(session, redriven.request, &redriven, "enqueued anew")
            }
        }
    }
}

async fn read(session: &Session, workspace: WorkspaceId, id: RequestId) -> Outcome<Request> {
    let request = session.client.request_get(workspace, id).await;
    request.or_missing(|| format!("request {id}"), LOOK)
}

async fn print(session: &Session, request: &Request) -> Outcome {
    let out = &session.out;
    if out.is_json() {
        return Ok(out.json(request)?);
    }
    let mut names = Names::default();
    let id = |id: Option<String>| id.unwrap_or_default();
    Ok(out.fields(vec![
        ("request", request.id.to_string()),
        ("status", shown::request_status(out, request.status)),
        (
            "reason",
            id(request.failure_reason.map(|reason| reason.to_string())),
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
        ("enqueued", shown::moment(request.created_at)),
        (
            "not before",
            if request.run_at > request.created_at {
                shown::moment(request.run_at)
            } else {
                String::new()
            },
        ),
        ("claimed", shown::maybe(request.claimed_at)),
        ("dispatched", shown::maybe(request.dispatched_at)),
        ("cancelled", shown::maybe(request.cancel_requested_at)),
        ("ended", shown::maybe(request.finished_at)),
        ("params", clean(&shown::value(&request.params))),
    ])?)
}

impl ListRequests {
    async fn run(self, session: &Session, scope: &WorkspaceFlag) -> Outcome {
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
        let none = "there are no such requests; `leasehold request enqueue DEFINITION` makes one";
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
const OF_ONE: [&str; 6] = [
    "ID",
    "STATUS",
    "DEFINITION",
    "PRIORITY",
    "ENQUEUED",
    "LAST ERROR",
];

pub(crate) fn headings(all_workspaces: bool) -> &'static [&'static str] {
    if all_workspaces { &HEADINGS } else { &OF_ONE }
}

/// How requests look in a list.
pub(crate) async fn rows(
    session: &Session,
    items: &[Request],
    all_workspaces: bool,
) -> Outcome<Vec<Vec<String>>> {
    let (mut names, now) = (Names::default(), jiff::Timestamp::now());
    let mut rows = Vec::new();
    for request in items {
        let mut row = vec![
            request.id.to_string(),
            shown::request_status(&session.out, request.status),
        ];
        if all_workspaces {
            row.push(clean(&names.workspace(session, request.workspace).await));
        }
        row.extend([
            clean(&names.definition(session, request).await),
            request.priority.to_string(),
            shown::age(request.created_at, now),
            wrong(request),
        ]);
        rows.push(row);
    }
    Ok(rows)
}

fn wrong(request: &Request) -> String {
    let error = request.last_error.as_deref().unwrap_or_default();
    match request.failure_reason {
        Some(reason) if error.is_empty() => reason.to_string(),
        Some(reason) => shown::cut(&format!("{reason}: {error}")),
        None => shown::cut(error),
    }
}

async fn why(session: &Session, workspace: WorkspaceId, id: RequestId) -> Outcome {
    let why = session.client.request_why(workspace, id).await;
    let why = why.or_missing(|| format!("request {id}"), LOOK)?;
    let out = &session.out;
    if out.is_json() {
        return Ok(out.json(&why)?);
    }
    out.line(clean(&why.explanation))?;
    let ahead = why.ahead.map(|ahead| match (why.more_ahead, ahead) {
        (true, most) => format!("more than {most}"),
        (false, 0) => "none: it is the next of its workspace".to_owned(),
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
            shown::age(at, jiff::Timestamp::now()),
            shown::moment(at)
        )
    });
    let fields = vec![
        ("ahead", ahead.unwrap_or_default()),
        ("also", also.join(", ")),
        ("may start", start.unwrap_or_default()),
    ];
    if fields.iter().all(|(_, value)| value.is_empty()) {
        return Ok(());
    }
    Ok(out.fields(fields)?)
}

async fn timeline(session: &Session, workspace: WorkspaceId, id: RequestId) -> Outcome {
    let events = session.client.request_timeline(workspace, id).await;
    let events = events.or_missing(|| format!("request {id}"), LOOK)?;
    let out = &session.out;
    if out.is_json() {
        return Ok(out.json(&events)?);
    }
    let rows = events.iter().map(|event| {
        vec![
            shown::moment(event.at),
            shown::request_status(out, event.to),
            clean(&event.by),
            shown::cut(event.reason.as_deref().unwrap_or_default()),
        ]
    });
    Ok(out.table(&["AT", "TO", "BY", "WHY"], rows.collect())?)
}

async fn cancel(session: &Session, workspace: WorkspaceId, id: RequestId, force: bool) -> Outcome {
    let cancelled = session
        .client
        .request_cancel(workspace, id, Cancel { force })
        .await;
    let cancelled = cancelled.or_missing(|| format!("request {id}"), LOOK)?;
    if session.out.is_json() {
        return Ok(session.out.json(&cancelled)?);
    }
    let line = match cancelled.state {
        CancelState::Cancelled => format!("request {id} is cancelled"),
        CancelState::Cancelling => {
            format!("request {id} is being cancelled; `leasehold request watch {id}` shows its end")
        }
    };
    Ok(session.out.line(line)?)
}

//! Who may call which route: one table, one guard in front of every route. A route that is not in the table is open to nobody.

use crate::refusal::Refusal;
use crate::state::State;
use axum::extract::rejection::RawPathParamsRejection;
use axum::extract::{MatchedPath, RawPathParams, Request, State as Reached};
use axum::http::{Method, header};
use axum::middleware::Next;
use axum::response::Response;
use leasehold_api::Code;
use leasehold_core::WorkspaceId;
use leasehold_core::key::{Need, Verdict};
use leasehold_store::key::Key;
use std::sync::Arc;

/// What a route needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// Nothing.
    Open,
    /// Any key.
    AnyKey,
    /// An administrator's key.
    Admin,
    /// A key of the workspace in the path, or an administrator's.
    Workspace,
    /// A key of the queue in the path, or an administrator's.
    Queue,
    /// A worker's key or an administrator's. What it touches is guarded by its leases, or by the route.
    Jobs,
}

use Access::{Admin, AnyKey, Jobs, Open, Queue, Workspace};

/// Every route and what it needs.
pub(crate) const TABLE: &[(Method, &str, Access)] = &[
    (Method::GET, "/healthz", Open),
    (Method::GET, "/readyz", Open),
    (Method::GET, "/openapi.json", Open),
    (Method::GET, "/schemas/graph.json", Open),
    (Method::GET, "/errors", Open),
    (Method::GET, "/errors/{code}", Open),
    (Method::GET, "/metrics", Admin),
    (Method::GET, "/v1/me", AnyKey),
    (Method::GET, "/v1/keys", Admin),
    (Method::POST, "/v1/keys", Admin),
    (Method::GET, "/v1/keys/{key}", Admin),
    (Method::DELETE, "/v1/keys/{key}", Admin),
    (Method::GET, "/v1/workspaces", Admin),
    (Method::POST, "/v1/workspaces", Admin),
    (Method::GET, "/v1/workspaces/{workspace}", Workspace),
    (Method::PATCH, "/v1/workspaces/{workspace}", Admin),
    (Method::DELETE, "/v1/workspaces/{workspace}", Admin),
    (
        Method::GET,
        "/v1/workspaces/{workspace}/definitions",
        Workspace,
    ),
    (
        Method::POST,
        "/v1/workspaces/{workspace}/definitions",
        Workspace,
    ),
    (
        Method::GET,
        "/v1/workspaces/{workspace}/definitions/{definition}",
        Workspace,
    ),
    (
        Method::DELETE,
        "/v1/workspaces/{workspace}/definitions/{definition}",
        Workspace,
    ),
    (
        Method::GET,
        "/v1/workspaces/{workspace}/definitions/{definition}/versions",
        Workspace,
    ),
    (
        Method::POST,
        "/v1/workspaces/{workspace}/definitions/{definition}/versions",
        Workspace,
    ),
    (
        Method::GET,
        "/v1/workspaces/{workspace}/versions/{version}",
        Workspace,
    ),
    (
        Method::GET,
        "/v1/workspaces/{workspace}/requests",
        Workspace,
    ),
    (
        Method::POST,
        "/v1/workspaces/{workspace}/requests",
        Workspace,
    ),
    (
        Method::POST,
        "/v1/workspaces/{workspace}/requests/batch",
        Workspace,
    ),
    (
        Method::GET,
        "/v1/workspaces/{workspace}/requests/{request}",
        Workspace,
    ),
    (
        Method::GET,
        "/v1/workspaces/{workspace}/requests/{request}/timeline",
        Workspace,
    ),
    (
        Method::GET,
        "/v1/workspaces/{workspace}/requests/{request}/why",
        Workspace,
    ),
    (
        Method::POST,
        "/v1/workspaces/{workspace}/requests/{request}/cancel",
        Workspace,
    ),
    (
        Method::POST,
        "/v1/workspaces/{workspace}/requests/{request}/redrive",
        Workspace,
    ),
    (
        Method::GET,
        "/v1/workspaces/{workspace}/dead-letters",
        Workspace,
    ),
    (
        Method::POST,
        "/v1/workspaces/{workspace}/dead-letters/redrive",
        Workspace,
    ),
    (
        Method::GET,
        "/v1/workspaces/{workspace}/executions",
        Workspace,
    ),
    (
        Method::GET,
        "/v1/workspaces/{workspace}/executions/{execution}",
        Workspace,
    ),
    (
        Method::GET,
        "/v1/workspaces/{workspace}/executions/{execution}/graph",
        Workspace,
    ),
    (
        Method::GET,
        "/v1/workspaces/{workspace}/executions/{execution}/nodes/{node}",
        Workspace,
    ),
    (Method::GET, "/v1/workspaces/{workspace}/changes", Workspace),
    (Method::GET, "/v1/overview", Admin),
    (Method::GET, "/v1/requests", Admin),
    (Method::GET, "/v1/requests/{request}", Admin),
    (Method::GET, "/v1/executions/{execution}", Admin),
    (Method::GET, "/v1/changes", Admin),
    (Method::GET, "/v1/queues", Admin),
    (Method::GET, "/v1/queues/{queue}", Queue),
    (Method::PATCH, "/v1/queues/{queue}", Admin),
    (Method::GET, "/v1/queues/{queue}/counts", Queue),
    (Method::GET, "/v1/queues/{queue}/jobs", Queue),
    (Method::POST, "/v1/queues/{queue}/jobs", Queue),
    (Method::POST, "/v1/queues/{queue}/jobs/batch", Queue),
    (Method::POST, "/v1/queues/{queue}/claim", Queue),
    (Method::GET, "/v1/jobs", Admin),
    (Method::GET, "/v1/jobs/{job}", Jobs),
    (Method::POST, "/v1/jobs/{job}/cancel", Jobs),
    (Method::POST, "/v1/jobs/renew", Jobs),
    (Method::POST, "/v1/jobs/finish", Jobs),
    (Method::POST, "/v1/jobs/progress", Jobs),
    (Method::POST, "/v1/executions/{execution}/ended", Jobs),
    (Method::GET, "/v1/job-limit", Admin),
    (Method::PUT, "/v1/job-limit", Admin),
    (Method::GET, "/v1/locks", Admin),
    (Method::GET, "/v1/instances", Admin),
    (Method::GET, "/v1/doctor", Admin),
];

/// Seconds after which a call of the key may have ended.
const RETRY_AFTER: u64 = 1;

/// Whoever calls, known by the key.
#[derive(Clone, Debug)]
pub(crate) struct Caller(pub(crate) Arc<Key>);

impl Caller {
    /// As the event log names it.
    pub(crate) fn name(&self) -> String {
        let name: String = self.0.name.chars().take(150).collect();
        format!("{name} ({})", self.0.id)
    }

    /// Whether it may know of everything.
    pub(crate) fn is_admin(&self) -> bool {
        self.0.scope.may(&Need::Admin) == Verdict::Allowed
    }

    /// Whether it may see the jobs of this queue.
    pub(crate) fn works_for(&self, queue: &str) -> bool {
        self.0.scope.may(&Need::Queue(queue)) == Verdict::Allowed
    }
}

/// What is shown although the store does not answer: it tells why.
const SEEN_ALONE: &str = "/metrics";

/// Lets a call through if its key opens its route.
pub(crate) async fn guard(
    Reached(state): Reached<State>,
    matched: MatchedPath,
    params: Result<RawPathParams, RawPathParamsRejection>,
    mut request: Request,
    next: Next,
) -> Result<Response, Refusal> {
    let Some(access) = needed(request.method(), matched.as_str()) else {
        tracing::error!(
            method = %request.method(),
            route = matched.as_str(),
            "a route is missing in the table of access; it is open to nobody"
        );
        return Err(Refusal::not_found());
    };
    if access == Open {
        return Ok(next.run(request).await);
    }
    let key = match bearer(&request) {
        Some(text) if matched.as_str() == SEEN_ALONE => state.keys.open_even_alone(text).await?,
        Some(text) => state.keys.open(text).await?,
        None => None,
    };
    let Some(key) = key else {
        return Err(Refusal::of(
            Code::Unauthenticated,
            "send a key that is not revoked as `Authorization: Bearer …`",
        ));
    };
    let params = params.map_err(|error| Refusal::parameter("path", error.body_text()))?;
    match verdict(&key, access, &params) {
        Verdict::Allowed => {}
        Verdict::Hidden => return Err(Refusal::not_found()),
        Verdict::Forbidden => {
            return Err(Refusal::of(
                Code::Forbidden,
                format!("a key for {} does not open this", kind_in_words(&key)),
            ));
        }
    }
    let Some(_place) = state.calls.enter(key.id) else {
        let detail = "the key has as many calls under way as it may";
        return Err(Refusal::of(Code::Overloaded, detail).retry_after(RETRY_AFTER));
    };
    request.extensions_mut().insert(Caller(key));
    Ok(next.run(request).await)
}

fn needed(method: &Method, path: &str) -> Option<Access> {
    let method = if method == Method::HEAD {
        &Method::GET
    } else {
        method
    };
    let row = TABLE.iter().find(|row| row.0 == *method && row.1 == path)?;
    Some(row.2)
}

fn verdict(key: &Key, access: Access, params: &RawPathParams) -> Verdict {
    let param = |name: &str| {
        params
            .iter()
            .find(|(key, _)| *key == name)
            .map(|(_, value)| value)
    };
    match access {
        Open | AnyKey => key.scope.may(&Need::AnyKey),
        Admin => key.scope.may(&Need::Admin),
        Jobs => key.scope.may(&Need::Jobs),
        Queue => key
            .scope
            .may(&Need::Queue(param("queue").unwrap_or_default())),
        Workspace => {
            // What is no id at all is nobody's workspace: an administrator hears so from the route.
            let id = param("workspace").and_then(|text| text.parse().ok());
            key.scope
                .may(&Need::Workspace(id.unwrap_or(WorkspaceId::from(NOBODY))))
        }
    }
}

const NOBODY: uuid::Uuid = uuid::Uuid::nil();

fn bearer(request: &Request) -> Option<&str> {
    let value = request
        .headers()
        .get(header::AUTHORIZATION)?
        .to_str()
        .ok()?;
    let (scheme, text) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| text.trim())
}

fn kind_in_words(key: &Key) -> &'static str {
    match key.scope.kind() {
        "workspace" => "a workspace",
        "worker" => "workers",
        _ => "administrators",
    }
}

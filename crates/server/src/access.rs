//! Authorization: checks that the key of a call satisfies the access that the route declares.

use crate::api_error::ApiError;
use crate::route::RoutePolicy;
use crate::state::State;
use axum::Extension;
use axum::extract::rejection::RawPathParamsRejection;
use axum::extract::{RawPathParams, Request, State as AxumState};
use axum::http::header;
use axum::middleware::Next;
use axum::response::Response;
use leasehold_api::Code;
use leasehold_core::WorkspaceId;
use leasehold_core::key::{AccessDecision, Permission};
use leasehold_store::key::Key;
use std::sync::Arc;

/// The access that a route requires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// No key.
    Open,
    /// Any key.
    AnyKey,
    /// An administrator's key.
    Admin,
    /// A key of the workspace in the path, or an administrator's.
    Workspace,
    /// A key of the queue in the path, or an administrator's.
    Queue,
    /// A worker's key or an administrator's. The leases or the handler restrict which jobs the call may touch.
    Jobs,
}

/// `Retry-After` in seconds for a key at its concurrency limit.
const RETRY_AFTER: u64 = 1;

/// The authenticated caller: its key.
#[derive(Clone, Debug)]
pub(crate) struct Caller(pub(crate) Arc<Key>);

impl Caller {
    /// Returns the caller's name as the event log records it.
    pub(crate) fn name(&self) -> String {
        let name: String = self.0.name.chars().take(150).collect();
        format!("{name} ({})", self.0.id)
    }

    /// Whether the caller is an administrator.
    pub(crate) fn is_admin(&self) -> bool {
        self.0.scope.authorize(&Permission::Admin) == AccessDecision::Allowed
    }

    /// Whether the caller has access to the jobs of this queue.
    pub(crate) fn may_access_queue(&self, queue: &str) -> bool {
        self.0.scope.authorize(&Permission::Queue(queue)) == AccessDecision::Allowed
    }
}

/// Rejects a call whose key is invalid or has no access to the route.
pub(crate) async fn authorize(
    AxumState(state): AxumState<State>,
    Extension(policy): Extension<RoutePolicy>,
    params: Result<RawPathParams, RawPathParamsRejection>,
    mut request: Request,
    next: Next,
) -> Result<Response, ApiError> {
    if policy.access == Access::Open {
        return Ok(next.run(request).await);
    }
    let key = match bearer(&request) {
        // A monitoring route also answers while the store is unavailable.
        Some(text) if !policy.sheddable => state.keys.find_or_stale(text).await?,
        Some(text) => state.keys.find(text).await?,
        None => None,
    };
    let Some(key) = key else {
        return Err(ApiError::new(
            Code::Unauthenticated,
            "missing, unknown or revoked API key; send a valid key as `Authorization: Bearer …`",
        ));
    };
    let params = params.map_err(|error| ApiError::parameter("path", error.body_text()))?;
    match decide_access(&key, policy.access, &params) {
        AccessDecision::Allowed => {}
        AccessDecision::Hidden => {
            let what = match policy.access {
                Access::Queue | Access::Jobs => "queue",
                _ => "workspace",
            };
            return Err(ApiError::not_found(what));
        }
        AccessDecision::Forbidden => {
            return Err(ApiError::new(
                Code::Forbidden,
                format!("{} has no access to this route", scope_name(&key)),
            ));
        }
    }
    let Some(_permit) = state.calls.acquire(key.id) else {
        let detail = "too many concurrent calls with this key";
        return Err(ApiError::new(Code::Overloaded, detail).retry_after(RETRY_AFTER));
    };
    request.extensions_mut().insert(Caller(key));
    Ok(next.run(request).await)
}

fn decide_access(key: &Key, access: Access, params: &RawPathParams) -> AccessDecision {
    let param = |name: &str| {
        params
            .iter()
            .find(|(key, _)| *key == name)
            .map(|(_, value)| value)
    };
    match access {
        Access::Open | Access::AnyKey => key.scope.authorize(&Permission::AnyKey),
        Access::Admin => key.scope.authorize(&Permission::Admin),
        Access::Jobs => key.scope.authorize(&Permission::Jobs),
        Access::Queue => key
            .scope
            .authorize(&Permission::Queue(param("queue").unwrap_or_default())),
        Access::Workspace => {
            // Text that is not an id matches no workspace. For an administrator the handler rejects it.
            let id = param("workspace").and_then(|text| text.parse().ok());
            key.scope.authorize(&Permission::Workspace(
                id.unwrap_or(WorkspaceId::from(NO_WORKSPACE)),
            ))
        }
    }
}

const NO_WORKSPACE: uuid::Uuid = uuid::Uuid::nil();

fn bearer(request: &Request) -> Option<&str> {
    let value = request
        .headers()
        .get(header::AUTHORIZATION)?
        .to_str()
        .ok()?;
    let (scheme, text) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| text.trim())
}

fn scope_name(key: &Key) -> &'static str {
    match key.scope.kind() {
        "workspace" => "a workspace key",
        "worker" => "a worker key",
        _ => "an administrator key",
    }
}

//! The guard in front of every route: whether the key of a call satisfies the access that the route's row declares.

use crate::refusal::Refusal;
use crate::route::RoutePolicy;
use crate::state::State;
use axum::Extension;
use axum::extract::rejection::RawPathParamsRejection;
use axum::extract::{RawPathParams, Request, State as Reached};
use axum::http::header;
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

/// Lets a call through if its key opens its route.
pub(crate) async fn guard(
    Reached(state): Reached<State>,
    Extension(policy): Extension<RoutePolicy>,
    params: Result<RawPathParams, RawPathParamsRejection>,
    mut request: Request,
    next: Next,
) -> Result<Response, Refusal> {
    if policy.access == Access::Open {
        return Ok(next.run(request).await);
    }
    let key = match bearer(&request) {
        // A route that monitors the server answers also while the store does not.
        Some(text) if !policy.sheddable => state.keys.open_even_alone(text).await?,
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
    match verdict(&key, policy.access, &params) {
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

fn verdict(key: &Key, access: Access, params: &RawPathParams) -> Verdict {
    let param = |name: &str| {
        params
            .iter()
            .find(|(key, _)| *key == name)
            .map(|(_, value)| value)
    };
    match access {
        Access::Open | Access::AnyKey => key.scope.may(&Need::AnyKey),
        Access::Admin => key.scope.may(&Need::Admin),
        Access::Jobs => key.scope.may(&Need::Jobs),
        Access::Queue => key
            .scope
            .may(&Need::Queue(param("queue").unwrap_or_default())),
        Access::Workspace => {
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

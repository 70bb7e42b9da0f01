//! Authorization: checks that the key of a call satisfies the access that the route declares.

use crate::api_error::{ApiError, ApiResult};
use crate::key_cache::KeyLookup;
use crate::load_shed::overloaded;
use crate::route::RoutePolicy;
use crate::state::State;
use axum::extract::rejection::RawPathParamsRejection;
use axum::extract::{RawPathParams, Request};
use axum::http::header;
use leasehold_api::Code;
use leasehold_core::WorkspaceId;
use leasehold_core::key::{AccessDecision, CallNeeds, KeyScope, Payloads, Permission};
use leasehold_store::Actor;
use leasehold_store::key::Key;
use std::sync::Arc;

/// The access that a route requires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// No key.
    Open,
    /// Any key except a metrics key.
    AnyKey,
    /// An administrator's key.
    Admin,
    /// A key of the workspace in the path, or an administrator's.
    Workspace,
    /// A key of the queue in the path, or an administrator's.
    Queue,
    /// A worker's key or an administrator's. The leases or the handler restrict which jobs the call may touch.
    Jobs,
    /// A workspace's key or an administrator's. The handler restricts a workspace's key to the entries of its workspace.
    Audit,
    /// A metrics key or an administrator's.
    Metrics,
}

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
        self.scope().authorize(&Permission::Admin) == AccessDecision::Allowed
    }

    /// Whether the caller has access to the jobs of this queue.
    pub(crate) fn may_access_queue(&self, queue: &str) -> bool {
        self.scope().authorize(&Permission::Queue(queue)) == AccessDecision::Allowed
    }

    /// Returns what the caller's key gives access to.
    pub(crate) fn scope(&self) -> &KeyScope {
        &self.0.rights.scope
    }

    /// Returns whether responses to the caller contain payloads.
    pub(crate) fn payloads(&self) -> Payloads {
        self.0.rights.payloads
    }

    /// Returns the caller as the audit log records it.
    pub(crate) fn actor(&self) -> Actor {
        self.0.actor()
    }
}

/// Rejects a call whose key is invalid or has no access to the route. Attaches the caller to the request, and returns the path parameters.
pub(crate) async fn authorize(
    state: &State,
    policy: RoutePolicy,
    params: Result<RawPathParams, RawPathParamsRejection>,
    request: &mut Request,
) -> ApiResult<Option<RawPathParams>> {
    if policy.access == Access::Open {
        return Ok(params.ok());
    }
    let found = match bearer(request) {
        // A monitoring route also answers while the store is unavailable.
        Some(text) if !policy.sheddable => state.keys.find_or_stale(text).await?,
        Some(text) => state.keys.find(text).await?,
        None => KeyLookup::Unknown,
    };
    let key = valid(found)?;
    let params = params.map_err(|error| ApiError::parameter("path", error.body_text()))?;
    let needs = CallNeeds {
        changes: !request.method().is_safe(),
        payloads: policy.needs_payloads,
    };
    check_access(&key, policy.access, &params, needs)?;
    request.extensions_mut().insert(Caller(key));
    Ok(Some(params))
}

/// Returns the key if it is valid.
pub(crate) fn valid(found: KeyLookup) -> Result<Arc<Key>, ApiError> {
    match found {
        KeyLookup::Valid(key) => Ok(key),
        KeyLookup::Expired(at) => Err(ApiError::new(
            Code::Unauthenticated,
            format!("the API key expired at {at}; send a valid key as `Authorization: Bearer …`"),
        )),
        KeyLookup::Overloaded => Err(overloaded(
            "too many calls wait for the lookup of their API key",
        )),
        KeyLookup::Unknown => Err(ApiError::new(
            Code::Unauthenticated,
            "missing, unknown or revoked API key; send a valid key as `Authorization: Bearer …`",
        )),
    }
}

fn check_access(
    key: &Key,
    access: Access,
    params: &RawPathParams,
    needs: CallNeeds,
) -> Result<(), ApiError> {
    match decide_access(key, access, params, needs) {
        AccessDecision::Allowed => Ok(()),
        AccessDecision::Hidden => {
            let what = match access {
                Access::Queue | Access::Jobs => "queue",
                _ => "workspace",
            };
            Err(ApiError::not_found(what))
        }
        AccessDecision::Forbidden => Err(ApiError::new(
            Code::Forbidden,
            format!("{} has no access to this route", scope_name(key)),
        )),
        AccessDecision::ReadOnly => Err(ApiError::new(
            Code::ReadOnlyKey,
            "this key is read-only, and this route changes something; use a key with full access",
        )),
        AccessDecision::PayloadsHidden => Err(ApiError::new(
            Code::Forbidden,
            "payloads are hidden from this key, and this route gives access to them: it claims jobs or publishes what receives params; use a key that sees payloads",
        )),
    }
}

fn decide_access(
    key: &Key,
    access: Access,
    params: &RawPathParams,
    needs: CallNeeds,
) -> AccessDecision {
    let param = |name: &str| {
        params
            .iter()
            .find(|(key, _)| *key == name)
            .map(|(_, value)| value)
    };
    let permission = match access {
        Access::Open | Access::AnyKey => Permission::AnyKey,
        Access::Admin => Permission::Admin,
        Access::Jobs => Permission::Jobs,
        Access::Audit => Permission::Audit,
        Access::Metrics => Permission::Metrics,
        Access::Queue => Permission::Queue(param("queue").unwrap_or_default()),
        Access::Workspace => {
            // Text that is not an id matches no workspace. For an administrator the handler rejects it.
            let id = param("workspace").and_then(|text| text.parse().ok());
            Permission::Workspace(id.unwrap_or(WorkspaceId::from(NO_WORKSPACE)))
        }
    };
    key.rights.authorize(&permission, needs)
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
    match key.rights.scope {
        KeyScope::Workspace(_) => "a workspace key",
        KeyScope::Worker { .. } => "a worker key",
        KeyScope::Metrics => "a metrics key",
        KeyScope::Admin => "an administrator key",
    }
}

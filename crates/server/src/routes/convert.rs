//! Conversions between store types and JSON types for workspaces and keys. No business logic.

use leasehold_api as api;
use leasehold_core::key::KeyScope;
use leasehold_store as store;

pub(super) fn workspace(from: store::workspace::Workspace) -> api::workspace::Workspace {
    let plan = from.plan.max_concurrent_executions();
    api::workspace::Workspace {
        id: from.id,
        name: from.name,
        plan: from.plan,
        max_concurrent_executions: from.limit_override.unwrap_or(plan),
        overridden: from.limit_override.is_some(),
        paused: from.paused,
        created_at: from.created_at,
    }
}

pub(super) fn workspace_state(
    from: store::workspace::WorkspaceUse,
) -> api::workspace::WorkspaceState {
    api::workspace::WorkspaceState {
        workspace: workspace(from.workspace),
        slots: api::workspace::Slots {
            limit: from.slots.limit,
            in_use: from.slots.in_use,
        },
        requests: counts(from.requests),
    }
}

pub(super) fn counts(from: store::request::Counts) -> api::workspace::RequestCounts {
    api::workspace::RequestCounts {
        pending: from.pending,
        claimed: from.claimed,
        dispatched: from.dispatched,
        completed: from.completed,
        failed: from.failed,
    }
}

pub(super) fn key(from: &store::key::Key) -> api::key::Key {
    api::key::Key {
        id: from.id,
        name: from.name.clone(),
        scope: match &from.scope {
            KeyScope::Admin => api::key::Scope::Admin,
            KeyScope::Workspace(workspace) => api::key::Scope::Workspace {
                workspace: *workspace,
            },
            KeyScope::Worker { queues } => api::key::Scope::Worker {
                queues: queues.clone(),
            },
        },
        created_at: from.created_at,
        revoked_at: from.revoked_at,
    }
}

pub(super) fn scope(from: api::key::Scope) -> KeyScope {
    match from {
        api::key::Scope::Admin => KeyScope::Admin,
        api::key::Scope::Workspace { workspace } => KeyScope::Workspace(workspace),
        api::key::Scope::Worker { queues } => KeyScope::Worker { queues },
    }
}

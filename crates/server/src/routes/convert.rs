//! Conversions between store types and JSON types for workspaces, keys and the audit log. No business logic.

use leasehold_api as api;
use leasehold_core::key::{KeyAccess, KeyRights, KeyScope, Payloads};
use leasehold_core::quota::{effective_max_open_bytes, effective_max_pending};
use leasehold_ops::key::KeySpec;
use leasehold_store as store;
use std::time::Duration;

pub(super) fn workspace(from: store::workspace::Workspace) -> api::workspace::Workspace {
    let plan = from.plan.max_concurrent_executions();
    api::workspace::Workspace {
        id: from.id,
        name: from.name,
        plan: from.plan,
        max_concurrent_executions: from.limit_override.unwrap_or(plan),
        overridden: from.limit_override.is_some(),
        max_pending: effective_max_pending(from.max_pending_override),
        max_open_bytes: effective_max_open_bytes(from.plan, from.max_open_bytes_override),
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
        open_bytes: None,
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
        scope: match &from.rights.scope {
            KeyScope::Admin => api::key::Scope::Admin,
            KeyScope::Workspace(workspace) => api::key::Scope::Workspace {
                workspace: *workspace,
            },
            KeyScope::Worker { queues } => api::key::Scope::Worker {
                queues: queues.clone(),
            },
            KeyScope::Metrics => api::key::Scope::Metrics,
        },
        access: match from.rights.access {
            KeyAccess::Full => api::key::Access::Full,
            KeyAccess::Read => api::key::Access::Read,
        },
        payloads: match from.rights.payloads {
            Payloads::Shown => api::key::Payloads::Shown,
            Payloads::Hidden => api::key::Payloads::Hidden,
        },
        created_at: from.created_at,
        revoked_at: from.revoked_at,
        expires_at: from.expires_at,
        expired: from.is_expired,
        last_used_at: from.last_used_at,
        successor: from.successor,
    }
}

pub(super) fn key_spec(from: api::key::NewKey) -> KeySpec {
    KeySpec {
        name: from.name,
        rights: KeyRights {
            scope: scope(from.scope),
            access: match from.access {
                api::key::Access::Full => KeyAccess::Full,
                api::key::Access::Read => KeyAccess::Read,
            },
            payloads: match from.payloads {
                api::key::Payloads::Shown => Payloads::Shown,
                api::key::Payloads::Hidden => Payloads::Hidden,
            },
        },
        expires_in: from.expires_in_ms.map(Duration::from_millis),
    }
}

fn scope(from: api::key::Scope) -> KeyScope {
    match from {
        api::key::Scope::Admin => KeyScope::Admin,
        api::key::Scope::Workspace { workspace } => KeyScope::Workspace(workspace),
        api::key::Scope::Worker { queues } => KeyScope::Worker { queues },
        api::key::Scope::Metrics => KeyScope::Metrics,
    }
}

pub(super) fn audit_entry(from: store::audit::AuditEntry) -> api::audit::AuditEntry {
    api::audit::AuditEntry {
        id: from.id,
        at: from.at,
        key: from.actor.key(),
        actor: from.actor.name().to_owned(),
        action: from.action,
        workspace: from.workspace,
        target: from.target,
        details: from.details,
    }
}

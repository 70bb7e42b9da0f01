//! The owner of a call: the workspace or key that shared pools count it for. Knows no pool and no route.
//!
//! The owner is a task-local value, like a tracing span: the layers and the store behind a route read it, so no handler passes it on. A task that a call
//! spawns must be given the owner. Outside of a call there is none: that is the server's own work, which no pool of the API counts.

use leasehold_core::key::KeyScope;
use leasehold_core::{KeyId, WorkspaceId};
use leasehold_store::key::Key;
use std::fmt;

tokio::task_local! {
    static OWNER: Owner;
}

/// The workspace of a key, or the key itself if it has no workspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Owner {
    Workspace(WorkspaceId),
    Key(KeyId),
    /// All callers without a valid key together.
    Anonymous,
}

impl Owner {
    /// Returns the owner of the calls with this key.
    pub(crate) fn of(key: &Key) -> Self {
        match key.rights.scope {
            KeyScope::Workspace(id) => Self::Workspace(id),
            _ => Self::Key(key.id),
        }
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Workspace(_) => "this workspace",
            Self::Key(_) => "this key",
            Self::Anonymous => "callers without a key",
        })
    }
}

/// Returns the owner of the call that runs now.
pub(crate) fn current() -> Option<Owner> {
    OWNER.try_with(|owner| *owner).ok()
}

/// Runs a call, or a part of it, for this owner; for none, as the server's own work.
pub(crate) async fn scope<T>(owner: Option<Owner>, run: impl Future<Output = T>) -> T {
    match owner {
        Some(owner) => OWNER.scope(owner, run).await,
        None => run.await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn owner_is_known_within_the_call_and_nowhere_else() {
        assert_eq!(current(), None);
        let inner = scope(Some(Owner::Anonymous), async {
            tokio::task::yield_now().await;
            let spawned = tokio::spawn(async { current() }).await;
            (current(), spawned.ok().flatten())
        });
        assert_eq!(inner.await, (Some(Owner::Anonymous), None));
        assert_eq!(scope(None, async { current() }).await, None);
    }
}

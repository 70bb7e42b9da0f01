//! The owner of a call: the workspace or key that shared pools count it for. Knows no pool and no route.
//!
//! The owner is a task-local value, like a tracing span: the layers and the store behind a route read it, so no handler passes it on. A task that a call
//! spawns must be given the owner; `call_task` does that. Outside of a call there is none: that is the server's own work, which no pool of the API counts.

use leasehold_core::key::KeyScope;
use leasehold_core::{KeyId, WorkspaceId};
use leasehold_store::key::Key;
use std::any::Any;
use std::fmt;
use std::sync::Arc;

tokio::task_local! {
    static CALL: RunningCall;
}

/// What a call holds in shared pools for as long as any part of it runs.
pub(crate) type Place = Arc<dyn Any + Send + Sync>;

/// The call that a task serves. Cheap to clone; a clone keeps its place.
#[derive(Clone)]
pub(crate) struct RunningCall {
    owner: Owner,
    #[expect(dead_code, reason = "held until the call and its parts have ended")]
    place: Option<Place>,
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
    CALL.try_with(|call| call.owner).ok()
}

/// Returns the call that runs now.
pub(crate) fn running() -> Option<RunningCall> {
    CALL.try_with(RunningCall::clone).ok()
}

impl RunningCall {
    /// Returns a call of this owner that holds this place.
    pub(crate) fn new(owner: Owner, place: Option<Place>) -> Self {
        Self { owner, place }
    }
}

/// Runs a call or a part of it; for none, as the server's own work.
pub(crate) async fn scope<T>(call: Option<RunningCall>, run: impl Future<Output = T>) -> T {
    match call {
        Some(call) => CALL.scope(call, run).await,
        None => run.await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn owner_is_known_within_the_call_and_nowhere_else() {
        assert_eq!(current(), None);
        let call = RunningCall::new(Owner::Anonymous, None);
        let inner = scope(Some(call), async {
            tokio::task::yield_now().await;
            let spawned = tokio::spawn(async { current() }).await;
            (current(), spawned.ok().flatten())
        });
        assert_eq!(inner.await, (Some(Owner::Anonymous), None));
        assert_eq!(scope(None, async { current() }).await, None);
    }
}

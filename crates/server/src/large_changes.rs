//! Turns of changes of many items, in front of a store with one writer: the changes of other owners wait behind few of them. Knows no route.

use crate::call_owner::{self, Owner};
use crate::owner_pool::{OwnerPermit, OwnerPool};
use leasehold_core::limits::{LARGE_CHANGE_MIN_ITEMS, LARGE_CHANGES_MAX};
use leasehold_store::Capabilities;
use std::sync::Arc;

/// Limits the large changes under way, shared fairly by workspace or key. Clones share the limit.
#[derive(Clone)]
pub(crate) struct LargeChanges(Option<Arc<OwnerPool>>);

impl LargeChanges {
    /// Limits the changes of a store that has one writer; on others changes share the connections.
    pub(crate) fn new(capabilities: Capabilities) -> Self {
        let one_writer = !capabilities.changes_use_connections;
        Self(one_writer.then(|| OwnerPool::new(LARGE_CHANGES_MAX)))
    }

    /// Waits for the turn of a change of so many items; a small one needs none. Dropping the permit ends the turn.
    pub(crate) async fn permit(&self, items: usize) -> Option<OwnerPermit> {
        if items < LARGE_CHANGE_MIN_ITEMS {
            return None;
        }
        self.turn().await
    }

    /// Waits for the turn of a change that is large whatever its number of items.
    pub(crate) async fn turn(&self) -> Option<OwnerPermit> {
        let pool = self.0.as_ref()?;
        let owner = call_owner::current().unwrap_or(Owner::Anonymous);
        Some(pool.acquire(owner).await)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::call_owner::RunningCall;
    use futures::FutureExt;
    use uuid::Uuid;

    fn changes(changes_use_connections: bool) -> LargeChanges {
        LargeChanges::new(Capabilities {
            name: "test",
            shared: changes_use_connections,
            connections: 4,
            changes_use_connections,
        })
    }

    /// Takes a permit for a workspace, if there is one now.
    fn take(changes: &LargeChanges, workspace: u128, items: usize) -> Option<Option<OwnerPermit>> {
        let owner = Owner::Workspace(Uuid::from_u128(workspace).into());
        let call = RunningCall::new(owner, None);
        call_owner::scope(Some(call), changes.permit(items)).now_or_never()
    }

    #[test]
    fn large_changes_of_one_workspace_leave_a_turn_for_another() {
        let changes = changes(false);
        let first = take(&changes, 1, LARGE_CHANGE_MIN_ITEMS).unwrap();
        assert!(first.is_some());
        assert!(take(&changes, 1, LARGE_CHANGE_MIN_ITEMS).is_none());
        let small = take(&changes, 1, LARGE_CHANGE_MIN_ITEMS - 1);
        assert!(small.unwrap().is_none(), "a small change needs no turn");
        assert!(take(&changes, 2, LARGE_CHANGE_MIN_ITEMS).unwrap().is_some());
        drop(first);
        assert!(take(&changes, 1, LARGE_CHANGE_MIN_ITEMS).is_some());
    }

    #[test]
    fn store_with_many_writers_has_no_turns() {
        let changes = changes(true);
        for _ in 0..10 {
            assert!(take(&changes, 1, 10_000).unwrap().is_none());
        }
    }
}

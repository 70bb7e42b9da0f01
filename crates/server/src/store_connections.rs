//! Shares the store's connections among the calls of the API: a layer in front of the store that counts each call for its owner. Knows no route.

use crate::call_owner;
use crate::owner_pool::OwnerPool;
use leasehold_store::{Capabilities, LayeredStore, Result, Store, StoreCall, StoreLayer};
use std::sync::Arc;

/// Shares the connections of this store fairly among the workspaces and keys that call the API. An engine that uses the store must use the result too.
/// Work of the server itself is not limited: a fifth of the connections is kept for it.
pub fn share_connections(store: Arc<dyn Store>) -> Arc<dyn Store> {
    let capabilities = store.capabilities();
    let layer = SharedConnections {
        pool: OwnerPool::new(api_connections(capabilities)),
        counted: StoreCall::all()
            .map(|call| call.is_read() || capabilities.changes_use_connections)
            .collect(),
    };
    Arc::new(LayeredStore::new(store, layer))
}

/// The connections that calls of the API may use at once.
fn api_connections(capabilities: Capabilities) -> usize {
    let all = capabilities.connections;
    all - all / 5
}

struct SharedConnections {
    pool: Arc<OwnerPool>,
    /// Whether a call needs a connection of its own, by the index of the call.
    counted: Vec<bool>,
}

impl StoreLayer for SharedConnections {
    type Observer = ();

    fn observer(&self) -> &() {
        &()
    }

    async fn call<T: Send>(
        &self,
        call: StoreCall,
        run: impl Future<Output = Result<T>> + Send,
    ) -> Result<T> {
        let owner = call_owner::current().filter(|_| self.counted[call.index()]);
        let _permit = match owner {
            Some(owner) => Some(self.pool.acquire(owner).await),
            None => None,
        };
        run.await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fifth_of_the_connections_is_kept_for_the_server() {
        let sizes = [1, 4, 5, 10, 16].map(|connections| {
            api_connections(Capabilities {
                name: "test",
                shared: true,
                connections,
                changes_use_connections: true,
            })
        });
        assert_eq!(sizes, [1, 4, 4, 8, 13]);
    }
}

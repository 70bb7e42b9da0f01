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
        reads_only: !capabilities.changes_use_connections,
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
    /// Whether changes need no connection of their own.
    reads_only: bool,
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
        let _permit = match call_owner::current() {
            Some(owner) if call.is_read() || !self.reads_only => {
                Some(self.pool.acquire(owner).await)
            }
            _ => None,
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

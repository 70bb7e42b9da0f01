//! Polls the store for changes, once for all change streams of the process, and only while a stream is open. Knows no stream.

use leasehold_core::WorkspaceId;
use leasehold_core::limits::PAGE_MAX;
use leasehold_store::change::{ChangeCursor, ChangeStart};
use leasehold_store::{Result, Store};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// Time between two polls.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

pub(crate) struct ChangeWatcher {
    store: Arc<dyn Store>,
    stop: CancellationToken,
    subscribers: Mutex<Subscribers>,
}

/// The open streams, by workspace; `None` is all workspaces.
#[derive(Default)]
struct Subscribers {
    polling: bool,
    senders: HashMap<Option<WorkspaceId>, watch::Sender<()>>,
}

/// The workspaces that have changes.
enum ChangeSet {
    None,
    Workspaces(HashSet<WorkspaceId>),
    /// Too many changes to tell: any workspace may have some.
    Any,
}

impl ChangeWatcher {
    pub(crate) fn new(store: Arc<dyn Store>, stop: CancellationToken) -> Arc<Self> {
        Arc::new(Self {
            store,
            stop,
            subscribers: Mutex::default(),
        })
    }

    /// Subscribes to changes of this workspace, or of all. The receiver is notified whenever there may be new changes.
    pub(crate) fn subscribe(
        self: &Arc<Self>,
        workspace: Option<WorkspaceId>,
    ) -> watch::Receiver<()> {
        let mut subscribers = self.subscribers();
        let receiver = subscribers
            .senders
            .entry(workspace)
            .or_default()
            .subscribe();
        if !std::mem::replace(&mut subscribers.polling, true) {
            tokio::spawn(Arc::clone(self).poll_loop());
        }
        receiver
    }

    async fn poll_loop(self: Arc<Self>) {
        let mut cursor = None;
        while self.has_subscribers() {
            match self.poll(cursor.take()).await {
                Ok((next, changes)) => {
                    cursor = Some(next);
                    self.notify(&changes);
                }
                // The streams also poll by themselves, and report the error.
                Err(error) => tracing::debug!(%error, "failed to poll for changes"),
            }
            tokio::select! {
                () = tokio::time::sleep(POLL_INTERVAL) => {}
                () = self.stop.cancelled() => {}
            }
        }
    }

    /// Whether to continue polling. Decided under the lock that `subscribe` takes, so a new subscriber cannot miss the end of the loop.
    fn has_subscribers(&self) -> bool {
        let mut subscribers = self.subscribers();
        subscribers
            .senders
            .retain(|_, sender| sender.receiver_count() > 0);
        subscribers.polling = !subscribers.senders.is_empty() && !self.stop.is_cancelled();
        subscribers.polling
    }

    /// Returns the current end of the change log and what changed since `cursor`; without a cursor anything may have.
    async fn poll(&self, cursor: Option<ChangeCursor>) -> Result<(ChangeCursor, ChangeSet)> {
        if let Some(cursor) = cursor {
            let start = ChangeStart::After(cursor);
            let page = self.store.change_list(&start, None, PAGE_MAX).await?;
            let changed: HashSet<_> = page.changes.iter().map(|c| c.event.workspace).collect();
            match page.changes.is_empty() {
                _ if page.more => {}
                true => return Ok((page.cursor, ChangeSet::None)),
                false => return Ok((page.cursor, ChangeSet::Workspaces(changed))),
            }
        }
        // The notified streams read after this point, so they see the changes skipped here.
        let now = self.store.change_list(&ChangeStart::Now, None, 1).await?;
        Ok((now.cursor, ChangeSet::Any))
    }

    fn notify(&self, changes: &ChangeSet) {
        for (workspace, sender) in &self.subscribers().senders {
            let concerned = match (changes, workspace) {
                (ChangeSet::None, _) => false,
                (ChangeSet::Any, _) | (ChangeSet::Workspaces(_), None) => true,
                (ChangeSet::Workspaces(changed), Some(workspace)) => changed.contains(workspace),
            };
            if concerned {
                sender.send_replace(());
            }
        }
    }

    fn subscribers(&self) -> MutexGuard<'_, Subscribers> {
        self.subscribers
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use leasehold_core::{Plan, VersionBody};
    use leasehold_store::definition::{NewDefinition, NewVersion, Publisher};
    use leasehold_store::request::{Enqueue, NewRequest};
    use leasehold_store::workspace::NewWorkspace;
    use leasehold_store::{SchemaStore, fresh_id};
    use leasehold_store_sqlite::{SqliteOptions, SqliteStore};
    use leasehold_testkit::eventually;
    use serde_json::Value;

    async fn watcher() -> Arc<ChangeWatcher> {
        let store = SqliteStore::open_in_memory(&SqliteOptions::default()).unwrap();
        store.schema_migrate().await.unwrap();
        ChangeWatcher::new(Arc::new(store), CancellationToken::new())
    }

    /// Creates a workspace with one request.
    async fn enqueue(store: &dyn Store, workspace: WorkspaceId) {
        let definition = fresh_id();
        let new = NewWorkspace {
            id: workspace,
            name: workspace.to_string(),
            plan: Plan::Free,
            limit_override: None,
        };
        store
            .workspace_create(&new, &leasehold_store::Actor::Local)
            .await
            .unwrap();
        let new = NewDefinition {
            id: definition,
            workspace,
            name: "order".to_owned(),
        };
        store
            .definition_create(&new, &leasehold_store::Actor::Local)
            .await
            .unwrap();
        let new = NewVersion {
            id: fresh_id(),
            workspace,
            definition,
            body: VersionBody::Binding {
                workflow_type: "Order".to_owned(),
                task_queue: "orders".to_owned(),
            },
            params_schema: None,
            execution_timeout: None,
            publisher: Publisher::Administrator,
        };
        let by = leasehold_store::Actor::Local;
        let published = store.version_publish(&new, &by).await.unwrap();
        published.version().unwrap();
        let call = Enqueue {
            workspace,
            requests: vec![NewRequest::new(fresh_id(), definition, Value::Null)],
            by: "test".to_owned(),
        };
        store.request_enqueue(&call).await.unwrap();
    }

    #[tokio::test]
    async fn subscribers_of_a_changed_workspace_and_of_all_are_notified() {
        let watcher = watcher().await;
        let (one, two) = (fresh_id(), fresh_id());
        let mut of_one = watcher.subscribe(Some(one));
        let mut of_two = watcher.subscribe(Some(two));
        let mut of_all = watcher.subscribe(None);
        // The first poll notifies all: it does not know what they have read.
        for receiver in [&mut of_one, &mut of_two, &mut of_all] {
            receiver.changed().await.unwrap();
        }
        enqueue(&*watcher.store, one).await;
        of_one.changed().await.unwrap();
        of_all.changed().await.unwrap();
        assert!(!of_two.has_changed().unwrap());
        enqueue(&*watcher.store, two).await;
        of_two.changed().await.unwrap();
    }

    #[tokio::test]
    async fn polling_stops_without_subscribers_and_starts_with_the_next() {
        let watcher = watcher().await;
        drop(watcher.subscribe(None));
        let stopped = eventually(Duration::from_secs(60), || async {
            !watcher.subscribers().polling
        });
        assert!(stopped.await);
        assert!(watcher.subscribers().senders.is_empty());
        let mut receiver = watcher.subscribe(None);
        receiver.changed().await.unwrap();
    }
}

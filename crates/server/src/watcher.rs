//! Whether anything has changed, and where: one look for all streams of the process, and none while nobody listens. Knows no stream.

use leasehold_core::WorkspaceId;
use leasehold_core::limits::PAGE_MAX;
use leasehold_store::change::{ChangeCursor, ChangeStart};
use leasehold_store::{Result, Store};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// Between two looks.
const PACE: Duration = Duration::from_millis(200);

pub(crate) struct Watcher {
    store: Arc<dyn Store>,
    stop: CancellationToken,
    heard: Mutex<Heard>,
}

/// Who listens: to a workspace, or to all.
#[derive(Default)]
struct Heard {
    watching: bool,
    bells: HashMap<Option<WorkspaceId>, watch::Sender<()>>,
}

/// What a look found.
enum News {
    None,
    Of(HashSet<WorkspaceId>),
    /// Too much to say of what.
    Plenty,
}

impl Watcher {
    pub(crate) fn new(store: Arc<dyn Store>, stop: CancellationToken) -> Arc<Self> {
        Arc::new(Self {
            store,
            stop,
            heard: Mutex::default(),
        })
    }

    /// Changes whenever there may be something new in the stream of this workspace, or of all.
    pub(crate) fn listen(self: &Arc<Self>, workspace: Option<WorkspaceId>) -> watch::Receiver<()> {
        let mut heard = self.heard();
        let listener = heard.bells.entry(workspace).or_default().subscribe();
        if !std::mem::replace(&mut heard.watching, true) {
            tokio::spawn(Arc::clone(self).watch());
        }
        listener
    }

    async fn watch(self: Arc<Self>) {
        let mut place = None;
        while self.is_heard() {
            match self.look(place.take()).await {
                Ok((there, news)) => {
                    place = Some(there);
                    self.ring(&news);
                }
                // The streams look for themselves as well, and hear what is wrong.
                Err(error) => tracing::debug!(%error, "no look at the changes"),
            }
            tokio::select! {
                () = tokio::time::sleep(PACE) => {}
                () = self.stop.cancelled() => {}
            }
        }
    }

    /// Whether to go on. That nobody listens is decided under the lock under which a listener finds out whether anybody watches.
    fn is_heard(&self) -> bool {
        let mut heard = self.heard();
        heard.bells.retain(|_, bell| bell.receiver_count() > 0);
        heard.watching = !heard.bells.is_empty() && !self.stop.is_cancelled();
        heard.watching
    }

    /// Where the stream is now, and what is new since `place`; since nowhere it may be anything.
    async fn look(&self, place: Option<ChangeCursor>) -> Result<(ChangeCursor, News)> {
        if let Some(place) = place {
            let start = ChangeStart::After(place);
            let page = self.store.change_list(&start, None, PAGE_MAX).await?;
            let touched: HashSet<_> = page.changes.iter().map(|c| c.event.workspace).collect();
            match page.changes.len() {
                0 => return Ok((page.cursor, News::None)),
                few if few < PAGE_MAX as usize => return Ok((page.cursor, News::Of(touched))),
                _ => {}
            }
        }
        // Whoever is woken looks later than this, so what is skipped here is seen there.
        let now = self.store.change_list(&ChangeStart::Now, None, 1).await?;
        Ok((now.cursor, News::Plenty))
    }

    fn ring(&self, news: &News) {
        for (whose, bell) in &self.heard().bells {
            let concerned = match (news, whose) {
                (News::None, _) => false,
                (News::Plenty, _) | (News::Of(_), None) => true,
                (News::Of(touched), Some(workspace)) => touched.contains(workspace),
            };
            if concerned {
                bell.send_replace(());
            }
        }
    }

    fn heard(&self) -> MutexGuard<'_, Heard> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use leasehold_core::{Plan, VersionBody};
    use leasehold_store::definition::{NewDefinition, NewVersion};
    use leasehold_store::request::{Enqueue, NewRequest};
    use leasehold_store::workspace::NewWorkspace;
    use leasehold_store::{SchemaStore, fresh_id};
    use leasehold_store_sqlite::{SqliteOptions, SqliteStore};
    use leasehold_testkit::eventually;
    use serde_json::Value;

    async fn watcher() -> Arc<Watcher> {
        let store = SqliteStore::open_in_memory(&SqliteOptions::default()).unwrap();
        store.schema_migrate().await.unwrap();
        Watcher::new(Arc::new(store), CancellationToken::new())
    }

    /// Makes a workspace with one request in it.
    async fn enqueue(store: &dyn Store, workspace: WorkspaceId) {
        let definition = fresh_id();
        let new = NewWorkspace {
            id: workspace,
            name: workspace.to_string(),
            plan: Plan::Free,
            limit_override: None,
        };
        store.workspace_create(&new).await.unwrap();
        let new = NewDefinition {
            id: definition,
            workspace,
            name: "order".to_owned(),
        };
        store.definition_create(&new).await.unwrap();
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
        };
        store.version_publish(&new).await.unwrap().unwrap();
        let call = Enqueue {
            workspace,
            requests: vec![NewRequest::new(fresh_id(), definition, Value::Null)],
            by: "test".to_owned(),
        };
        store.request_enqueue(&call).await.unwrap();
    }

    #[tokio::test]
    async fn those_are_woken_whose_workspace_has_changed_and_whoever_listens_to_all() {
        let watcher = watcher().await;
        let (one, two) = (fresh_id(), fresh_id());
        let mut of_one = watcher.listen(Some(one));
        let mut of_two = watcher.listen(Some(two));
        let mut of_all = watcher.listen(None);
        // The first look wakes everybody: it does not know what they have seen.
        for listener in [&mut of_one, &mut of_two, &mut of_all] {
            listener.changed().await.unwrap();
        }
        enqueue(&*watcher.store, one).await;
        of_one.changed().await.unwrap();
        of_all.changed().await.unwrap();
        assert!(!of_two.has_changed().unwrap());
        enqueue(&*watcher.store, two).await;
        of_two.changed().await.unwrap();
    }

    #[tokio::test]
    async fn nobody_watches_while_nobody_listens_and_somebody_does_again_when_one_comes_back() {
        let watcher = watcher().await;
        drop(watcher.listen(None));
        let rests = eventually(Duration::from_secs(10), || async {
            !watcher.heard().watching
        });
        assert!(rests.await);
        assert!(watcher.heard().bells.is_empty());
        let mut listener = watcher.listen(None);
        listener.changed().await.unwrap();
    }
}

//! One subscriber's stream of changes: reads one page at a time from its cursor, and ends when the key or the workspace is gone. Knows no route.

use crate::call_owner::{self, Owner, Place, RunningCall};
use crate::call_task;
use crate::cursors::ListCursors;
use crate::key_cache::KeyLookup;
use crate::owner_pool::OwnerPermit;
use crate::routes::convert_event;
use crate::state::State;
use axum::response::sse::Event;
use futures::Stream;
use leasehold_core::WorkspaceId;
use leasehold_store::change::{Change, ChangeCursor, ChangeStart};
use leasehold_store::key::Key;
use leasehold_store::{ErrorKind, Result, Store};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// Changes per page.
const PAGE: u32 = 100;
/// How often a stream polls without a notification.
const POLL_INTERVAL: Duration = Duration::from_secs(2);
/// Longest silence of a stream; a keep-alive comment lets both sides notice a broken connection.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(15);
/// How often the stream checks that its key and workspace are still valid.
const ACCESS_CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// The key of a stream and the workspace it reads.
pub(crate) struct ChangeSubscriber {
    pub(crate) key: Arc<Key>,
    /// Only changes of this workspace; `None` for all.
    pub(crate) workspace: Option<WorkspaceId>,
    /// Writes the positions that the subscriber receives.
    pub(crate) cursors: ListCursors<'static>,
    /// The permits of the stream: that of its owner and that of its key.
    pub(crate) permits: Arc<[OwnerPermit; 2]>,
}

/// Whether the workspace exists and is not deleted.
pub(crate) async fn workspace_exists(store: &dyn Store, workspace: WorkspaceId) -> Result<bool> {
    let found = store.workspace_get(workspace).await?;
    Ok(found.is_some_and(|workspace| workspace.deleted_at.is_none()))
}

/// Opens a stream: reads the first page, so that an invalid cursor is an error response, and continues from there.
pub(crate) async fn open(
    state: State,
    subscriber: ChangeSubscriber,
    start: ChangeStart,
) -> Result<impl Stream<Item = Result<Event, Infallible>> + use<>> {
    // Subscribe before reading the first page, so that later changes notify the stream.
    let notifications = state.watcher.subscribe(subscriber.workspace);
    let page = state
        .store
        .change_list(&start, subscriber.workspace, PAGE)
        .await?;
    let ready = Event::default().event("ready").data("{}");
    let ready = match start {
        // There is no cursor before the oldest change: a client that disconnects here starts from the oldest again.
        ChangeStart::Oldest => ready,
        ChangeStart::Now => ready.id(subscriber.cursors.seal(&page.cursor.0)),
        ChangeStart::After(cursor) => ready.id(subscriber.cursors.seal(cursor.0)),
    };
    let now = Instant::now();
    let stream = ChangeStream {
        state,
        subscriber,
        notifications,
        ready: Some(ready),
        buffer: page.changes.into(),
        cursor: page.cursor,
        checked_at: now,
        sent_at: now,
        ended: false,
    };
    Ok(futures::stream::unfold(stream, async |mut stream| {
        let event = call_owner::scope(Some(stream.call()), stream.next()).await?;
        Some((Ok(event), stream))
    }))
}

struct ChangeStream {
    state: State,
    subscriber: ChangeSubscriber,
    notifications: watch::Receiver<()>,
    ready: Option<Event>,
    /// Changes read and not yet sent.
    buffer: VecDeque<Change>,
    /// The end of the last page read.
    cursor: ChangeCursor,
    checked_at: Instant,
    sent_at: Instant,
    ended: bool,
}

impl ChangeStream {
    /// Returns the call whose parts read from the store. A part holds the permits of the stream until it has ended, even if the caller has disconnected.
    fn call(&self) -> RunningCall {
        let permits: Place = self.subscriber.permits.clone();
        RunningCall::new(Owner::of(&self.subscriber.key), Some(permits))
    }

    async fn next(&mut self) -> Option<Event> {
        if self.ended {
            return None;
        }
        let event = match self.next_event().await {
            Ok(event) => event,
            Err(reason) => {
                self.ended = true;
                Event::default().comment(reason)
            }
        };
        self.sent_at = Instant::now();
        Some(event)
    }

    /// Returns the next event, or why the stream ends.
    async fn next_event(&mut self) -> Result<Event, &'static str> {
        if let Some(ready) = self.ready.take() {
            return Ok(ready);
        }
        loop {
            if self.state.stop.is_cancelled() {
                return Err("the server is stopping; reconnect to another instance or later");
            }
            self.check_access().await?;
            if let Some(change) = self.buffer.pop_front() {
                return request_event(change, &self.subscriber.cursors);
            }
            let more = self.read_page().await?;
            if !self.buffer.is_empty() {
                continue;
            }
            if self.sent_at.elapsed() >= KEEP_ALIVE_INTERVAL {
                // An id without data is no event for the client, but moves its cursor past the changes of other workspaces.
                let id = self.subscriber.cursors.seal(&self.cursor.0);
                return Ok(Event::default().id(id).comment("keep-alive"));
            }
            if !more {
                self.wait().await;
            }
        }
    }

    /// Reads a page. Returns whether more changes may follow at once.
    async fn read_page(&mut self) -> Result<bool, &'static str> {
        // Later notifications are for changes after this page.
        self.notifications.mark_unchanged();
        let start = ChangeStart::After(self.cursor.clone());
        let (store, workspace) = (self.state.store.clone(), self.subscriber.workspace);
        let page = async move { store.change_list(&start, workspace, PAGE).await };
        let page = call_task::run(page)
            .await
            .map_err(|error| match error.kind {
                // The answer to the next connection explains it.
                ErrorKind::Gone(_) => "cursor_gone: the position is no longer valid",
                _ => {
                    tracing::warn!(%error, "change stream ended: the store is unavailable");
                    "the store is unavailable; reconnect later"
                }
            })?;
        self.cursor = page.cursor;
        self.buffer = page.changes.into();
        Ok(page.more)
    }

    async fn wait(&mut self) {
        let keep_alive = self.sent_at + KEEP_ALIVE_INTERVAL;
        let until = keep_alive.min(Instant::now() + POLL_INTERVAL);
        tokio::select! {
            // The sender lives as long as this receiver.
            _ = self.notifications.changed() => {}
            () = tokio::time::sleep_until(until) => {}
            () = self.state.stop.cancelled() => {}
        }
    }

    /// Checks from time to time that the key and the workspace are still valid.
    async fn check_access(&mut self) -> Result<(), &'static str> {
        if self.checked_at.elapsed() < ACCESS_CHECK_INTERVAL {
            return Ok(());
        }
        self.checked_at = Instant::now();
        let unavailable = |_| "the store is unavailable; reconnect later";
        let (state, key) = (self.state.clone(), self.subscriber.key.clone());
        let workspace = self.subscriber.workspace;
        let (found, exists) = call_task::run(async move {
            let found = state.keys.find_again(&key).await;
            // Read after the key: a key is also invalid because its workspace was deleted, and then that is the reason.
            let exists = match workspace {
                Some(id) => workspace_exists(&*state.store, id).await,
                None => Ok(true),
            };
            (found, exists)
        })
        .await;
        if !exists.map_err(unavailable)? {
            return Err("the workspace was deleted");
        }
        match found.map_err(unavailable)? {
            // Not looked up: the next check decides.
            KeyLookup::Valid(_) | KeyLookup::Overloaded => Ok(()),
            KeyLookup::Expired(_) => Err("the key expired"),
            KeyLookup::Unknown => Err("the key was revoked"),
        }
    }
}

fn request_event(change: Change, cursors: &ListCursors<'_>) -> Result<Event, &'static str> {
    let id = cursors.seal(&change.cursor.0);
    let event = Event::default().event("request").id(id);
    let event = event.json_data(convert_event(change.event));
    event.map_err(|error| {
        tracing::error!(%error, "failed to serialize a change; stream ended");
        "internal error; see the server's log"
    })
}

//! One listener's stream of changes: reads pages from its own place, never more than one ahead, and ends when it must. Knows no route.

use crate::places::KeyPlace;
use crate::routes::shown_event;
use crate::state::State;
use axum::response::sse::Event;
use futures::Stream;
use leasehold_core::WorkspaceId;
use leasehold_store::change::{Change, ChangeCursor, ChangeStart};
use leasehold_store::key::Key;
use leasehold_store::{Result, Store};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// Changes read at once.
const PAGE: u32 = 100;
/// How long a stream relies on being woken.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// How long a stream is silent at most, so that both sides notice when the other has gone.
const SILENT_MAX: Duration = Duration::from_secs(15);
/// How often it is checked that whoever listens still may.
const CHECK_EVERY: Duration = Duration::from_secs(1);

/// Who listens, and to what.
pub(crate) struct Listener {
    pub(crate) key: Arc<Key>,
    /// Only to this workspace; none for all.
    pub(crate) workspace: Option<WorkspaceId>,
    pub(crate) _place: KeyPlace,
}

/// Whether there is such a workspace to listen to.
pub(crate) async fn is_there(store: &dyn Store, workspace: WorkspaceId) -> Result<bool> {
    let found = store.workspace_get(workspace).await?;
    Ok(found.is_some_and(|workspace| workspace.deleted_at.is_none()))
}

/// Reads the first page, so that a place that is not one is refused, and goes on from there.
pub(crate) async fn begin(
    state: State,
    listener: Listener,
    start: ChangeStart,
) -> Result<impl Stream<Item = Result<Event, Infallible>> + use<>> {
    // Before the first page is read: what comes after it then wakes.
    let news = state.watcher.listen(listener.workspace);
    let page = state
        .store
        .change_list(&start, listener.workspace, PAGE)
        .await?;
    let ready = Event::default().event("ready").data("{}");
    let ready = match start {
        // There is no place before the oldest: whoever breaks off here begins there again.
        ChangeStart::Oldest => ready,
        ChangeStart::Now => ready.id(&page.cursor.0),
        ChangeStart::After(cursor) => ready.id(cursor.0),
    };
    let now = Instant::now();
    let reader = Reader {
        state,
        listener,
        news,
        ready: Some(ready),
        read: page.changes.into(),
        cursor: page.cursor,
        checked_at: now,
        spoke_at: now,
        ended: false,
    };
    Ok(futures::stream::unfold(reader, async |mut reader| {
        let event = reader.next().await?;
        Some((Ok(event), reader))
    }))
}

struct Reader {
    state: State,
    listener: Listener,
    news: watch::Receiver<()>,
    ready: Option<Event>,
    /// Read and not yet sent.
    read: VecDeque<Change>,
    /// Behind what was read.
    cursor: ChangeCursor,
    checked_at: Instant,
    spoke_at: Instant,
    ended: bool,
}

impl Reader {
    async fn next(&mut self) -> Option<Event> {
        if self.ended {
            return None;
        }
        let event = match self.find().await {
            Ok(event) => event,
            Err(farewell) => {
                self.ended = true;
                Event::default().comment(farewell)
            }
        };
        self.spoke_at = Instant::now();
        Some(event)
    }

    /// The next event, or why there is none any more.
    async fn find(&mut self) -> Result<Event, &'static str> {
        if let Some(ready) = self.ready.take() {
            return Ok(ready);
        }
        loop {
            if self.state.stop.is_cancelled() {
                return Err("the server stops; go on elsewhere or later");
            }
            self.check().await?;
            if let Some(change) = self.read.pop_front() {
                return shown(change);
            }
            if self.read_on().await? {
                continue;
            }
            if self.spoke_at.elapsed() >= SILENT_MAX {
                // An id without data says no event; it moves the place to go on from past what was not for this listener.
                return Ok(Event::default().id(&self.cursor.0).comment("nothing new"));
            }
            self.rest().await;
        }
    }

    /// Reads a page and says whether anything was on it.
    async fn read_on(&mut self) -> Result<bool, &'static str> {
        // What is news from here on is not on this page.
        self.news.mark_unchanged();
        let start = ChangeStart::After(self.cursor.clone());
        let page = self
            .state
            .store
            .change_list(&start, self.listener.workspace, PAGE);
        let page = page.await.map_err(|error| {
            tracing::warn!(%error, "a stream of changes ends");
            "the store does not answer; go on later"
        })?;
        self.cursor = page.cursor;
        self.read = page.changes.into();
        Ok(!self.read.is_empty())
    }

    async fn rest(&mut self) {
        let silent = self.spoke_at + SILENT_MAX;
        let until = silent.min(Instant::now() + LOOK_EVERY);
        tokio::select! {
            // Its other end is there as long as this one.
            _ = self.news.changed() => {}
            () = tokio::time::sleep_until(until) => {}
            () = self.state.stop.cancelled() => {}
        }
    }

    /// That whoever listens still may, now and then.
    async fn check(&mut self) -> Result<(), &'static str> {
        if self.checked_at.elapsed() < CHECK_EVERY {
            return Ok(());
        }
        self.checked_at = Instant::now();
        let unanswered = |_| "the store does not answer; go on later";
        let valid = self.state.keys.holds(&self.listener.key).await;
        if !valid.map_err(unanswered)? {
            return Err("the key is revoked");
        }
        match self.listener.workspace {
            Some(id) if !is_there(&*self.state.store, id).await.map_err(unanswered)? => {
                Err("the workspace is deleted")
            }
            _ => Ok(()),
        }
    }
}

fn shown(change: Change) -> Result<Event, &'static str> {
    let event = Event::default().event("request").id(&change.cursor.0);
    let event = event.json_data(shown_event(change.event));
    event.map_err(|error| {
        tracing::error!(%error, "a change cannot be shown");
        "the server failed; its log says why"
    })
}

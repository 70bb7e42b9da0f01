//! The stream of changes: goes on by itself where it was when its connection broke. Knows no request.

use crate::client::Client;
use crate::error::{ClientError, Result, unreachable};
use crate::sse::{self, Reader};
use futures::StreamExt;
use futures::stream::BoxStream;
use leasehold_api::change::Change;
use leasehold_core::WorkspaceId;
use leasehold_core::retry::Backoff;
use std::collections::VecDeque;
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// The server says something every 15 s; one that was silent for so long is gone.
const SILENCE: Duration = Duration::from_secs(45);
/// The waits between connections.
const WAITS: Backoff = Backoff {
    base: Duration::from_millis(100),
    factor: 2.0,
    max: Duration::from_secs(5),
    jitter: 0.5,
};

/// The changes of requests, as they happen.
pub struct Changes {
    client: Client,
    path: Vec<String>,
    /// Where it goes on, as soon as it is known.
    cursor: Option<String>,
    from_oldest: bool,
    open: Option<Open>,
    ready: VecDeque<sse::Event>,
    failures: u32,
}

struct Open {
    bytes: BoxStream<'static, reqwest::Result<bytes::Bytes>>,
    reader: Reader,
}

/// # The stream of changes
impl Client {
    /// The changes of a workspace's requests, or of all, from now on.
    pub fn changes(&self, workspace: Option<WorkspaceId>) -> Changes {
        Changes {
            client: self.clone(),
            path: path(workspace),
            cursor: None,
            from_oldest: false,
            open: None,
            ready: VecDeque::new(),
            failures: 0,
        }
    }
}

fn path(workspace: Option<WorkspaceId>) -> Vec<String> {
    let of = workspace.map(|workspace| ["workspaces".to_owned(), workspace.to_string()]);
    let parts = of.into_iter().flatten();
    [
        vec!["v1".to_owned()],
        parts.collect(),
        vec!["changes".to_owned()],
    ]
    .concat()
}

impl Changes {
    /// From the oldest that is kept, not from now on.
    #[must_use]
    pub fn from_oldest(mut self) -> Self {
        self.from_oldest = true;
        self
    }

    /// After this place of an earlier stream.
    #[must_use]
    pub fn after(mut self, cursor: impl Into<String>) -> Self {
        self.cursor = Some(cursor.into());
        self
    }

    /// Where a later stream goes on without missing or repeating anything; none before the first connection stands.
    pub fn cursor(&self) -> Option<&str> {
        self.cursor.as_deref()
    }

    /// Waits until the stream stands: what happens from then on is in it.
    ///
    /// # Errors
    /// As [`Changes::next`].
    pub async fn begin(&mut self) -> Result<()> {
        while self.cursor.is_none() && self.ready.is_empty() {
            self.read().await?;
        }
        Ok(())
    }

    /// The next change. Waits for it, and connects anew as often as that may help.
    ///
    /// # Errors
    /// If the server refuses the stream: the key does not open it, its workspace is gone, the place is unknown.
    pub async fn next(&mut self) -> Result<Change> {
        loop {
            while let Some(event) = self.ready.pop_front() {
                if let Some(id) = event.id {
                    self.cursor = Some(id);
                }
                if event.kind != "request" {
                    continue;
                }
                let read = serde_json::from_str(&event.data);
                let event = read.map_err(|error| ClientError::Unexpected(error.to_string()))?;
                let cursor = self.cursor.clone().unwrap_or_default();
                return Ok(Change { cursor, event });
            }
            self.read().await?;
        }
    }

    /// Reads some more, over a new connection if there is none.
    async fn read(&mut self) -> Result<()> {
        let Some(open) = &mut self.open else {
            return self.connect().await;
        };
        let some = match timeout(SILENCE, open.bytes.next()).await {
            Ok(Some(Ok(some))) => open.reader.push(&some).ok(),
            Ok(Some(Err(error))) => {
                tracing::debug!(error = %unreachable(error), "the stream of changes broke");
                None
            }
            Ok(None) | Err(_) => None,
        };
        match some {
            Some(events) => {
                self.failures = 0;
                self.ready.extend(events);
                if self.cursor.is_none()
                    && self
                        .ready
                        .front()
                        .is_some_and(|event| event.kind != "request")
                {
                    self.cursor = self.ready.pop_front().and_then(|event| event.id);
                }
            }
            None => {
                self.open = None;
                self.rest(None).await;
            }
        }
        Ok(())
    }

    async fn connect(&mut self) -> Result<()> {
        let path: Vec<&str> = self.path.iter().map(String::as_str).collect();
        let mut call = self.client.get(&path).header("accept", "text/event-stream");
        match &self.cursor {
            Some(cursor) => call = call.header("last-event-id", cursor),
            None => call = call.query("from", self.from_oldest.then_some("oldest")),
        }
        match call.open().await {
            Ok(response) => {
                self.open = Some(Open {
                    bytes: response.bytes_stream().boxed(),
                    reader: Reader::default(),
                });
                Ok(())
            }
            Err(error) if error.is_retryable() => {
                tracing::debug!(%error, "the stream of changes does not stand");
                self.rest(error.retry_after()).await;
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    async fn rest(&mut self, asked: Option<Duration>) {
        self.failures = self.failures.saturating_add(1);
        let wait = WAITS.delay(self.failures, fastrand::f64());
        sleep(wait.max(asked.unwrap_or_default())).await;
    }
}

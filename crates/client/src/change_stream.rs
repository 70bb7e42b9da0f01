//! The stream of changes, which reconnects and resumes after its last event. Knows no request.

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

/// The server sends something every 15 s; a connection without data for this long is dead.
const READ_TIMEOUT: Duration = Duration::from_secs(45);
/// The backoff between connections.
const BACKOFF: Backoff = Backoff {
    base: Duration::from_millis(100),
    factor: 2.0,
    max: Duration::from_secs(5),
    jitter: 0.5,
};

/// A stream of the changes of requests.
pub struct ChangeStream {
    client: Client,
    path: Vec<String>,
    /// Where the stream resumes, once known.
    cursor: Option<String>,
    from_oldest: bool,
    connection: Option<Connection>,
    ready: VecDeque<sse::Event>,
    failures: u32,
}

struct Connection {
    bytes: BoxStream<'static, reqwest::Result<bytes::Bytes>>,
    reader: Reader,
}

/// # Changes
impl Client {
    /// Streams the changes of one workspace's requests, or of all, from now on.
    pub fn changes(&self, workspace: Option<WorkspaceId>) -> ChangeStream {
        ChangeStream {
            client: self.clone(),
            path: path(workspace),
            cursor: None,
            from_oldest: false,
            connection: None,
            ready: VecDeque::new(),
            failures: 0,
        }
    }
}

fn path(workspace: Option<WorkspaceId>) -> Vec<String> {
    let workspace = workspace.map(|workspace| ["workspaces".to_owned(), workspace.to_string()]);
    let parts = workspace.into_iter().flatten();
    [
        vec!["v1".to_owned()],
        parts.collect(),
        vec!["changes".to_owned()],
    ]
    .concat()
}

impl ChangeStream {
    /// Starts at the oldest change in the store instead of now.
    #[must_use]
    pub fn from_oldest(mut self) -> Self {
        self.from_oldest = true;
        self
    }

    /// Starts after this cursor of an earlier stream.
    #[must_use]
    pub fn after(mut self, cursor: impl Into<String>) -> Self {
        self.cursor = Some(cursor.into());
        self
    }

    /// Returns the cursor after which a later stream resumes without gaps or repetitions; `None` before the first connection.
    pub fn cursor(&self) -> Option<&str> {
        self.cursor.as_deref()
    }

    /// Waits until the stream is connected: it contains all changes from then on.
    ///
    /// # Errors
    /// As [`ChangeStream::next`].
    pub async fn begin(&mut self) -> Result<()> {
        while self.cursor.is_none() && self.ready.is_empty() {
            self.read().await?;
        }
        Ok(())
    }

    /// Waits for the next change. Reconnects while the error is retryable.
    ///
    /// # Errors
    /// Fails if the server rejects the stream: the key has no access, the workspace is deleted, the cursor is unknown, or it is gone
    /// (`cursor_gone`): the database was restored, failed over or moved. Then read the current state, and open another stream without a cursor.
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

    /// Reads more bytes, over a new connection if there is none.
    async fn read(&mut self) -> Result<()> {
        let Some(connection) = &mut self.connection else {
            return self.connect().await;
        };
        let events = match timeout(READ_TIMEOUT, connection.bytes.next()).await {
            Ok(Some(Ok(bytes))) => connection.reader.push(&bytes).ok(),
            Ok(Some(Err(error))) => {
                tracing::debug!(error = %unreachable(error), "change stream connection lost");
                None
            }
            Ok(None) | Err(_) => None,
        };
        match events {
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
                self.connection = None;
                self.backoff(None).await;
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
                self.connection = Some(Connection {
                    bytes: response.bytes_stream().boxed(),
                    reader: Reader::default(),
                });
                Ok(())
            }
            Err(error) if error.is_retryable() => {
                tracing::debug!(%error, "failed to open the change stream");
                self.backoff(error.retry_after()).await;
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    async fn backoff(&mut self, retry_after: Option<Duration>) {
        self.failures = self.failures.saturating_add(1);
        let wait = BACKOFF.delay(self.failures, fastrand::f64());
        sleep(wait.max(retry_after.unwrap_or_default())).await;
    }
}

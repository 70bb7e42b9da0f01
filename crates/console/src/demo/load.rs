//! Asks for what the rhythm says, when it says so. A server that is away or full is no reason to end; a workspace that somebody deleted is left alone.

use super::cast::NOISY;
use super::rhythm::Rhythm;
use super::stage::Stream;
use leasehold_client::api::Code;
use leasehold_client::api::request::{NewRequest, NewRequests};
use leasehold_client::{Client, ClientError};
use std::time::Duration;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

/// With so many waiting a workspace asks for no more: the demo may run for days, paused workspaces and all.
const ENOUGH: u64 = 1_000;

pub(super) struct Load {
    client: Client,
    streams: Vec<Stream>,
    rhythm: Rhythm,
}

/// A stream and when it is its turn.
struct Next {
    stream: Stream,
    at: Instant,
}

impl Load {
    pub(super) fn new(client: Client, streams: Vec<Stream>, rhythm: Rhythm) -> Self {
        Self {
            client,
            streams,
            rhythm,
        }
    }

    /// Until told to stop, or until nothing is left to ask for.
    pub(super) async fn run(mut self, stop: CancellationToken) {
        let begun = Instant::now();
        let streams = std::mem::take(&mut self.streams);
        let mut all: Vec<Next> = streams
            .into_iter()
            .map(|stream| {
                // Everybody asks for something at once, so that there is something to see.
                Next { stream, at: begun }
            })
            .collect();
        while let Some(next) = all.iter_mut().min_by_key(|next| next.at) {
            tokio::select! {
                () = sleep_until(next.at) => {}
                () = stop.cancelled() => return,
            }
            let (stream, at) = (next.stream, next.at);
            let (count, gap) = self.turn(&stream, at - begun);
            // Later than planned is not made up for: a server that was away is not flooded.
            next.at = at.max(Instant::now()) + gap;
            let asked = tokio::select! {
                asked = self.ask(&stream, count) => asked,
                () = stop.cancelled() => return,
            };
            if let Err(error) = asked
                && gone(&error)
            {
                all.retain(|next| next.stream.definition != stream.definition);
            }
        }
        // Whoever watches may have deleted everything; the demo goes on all the same.
        stop.cancelled().await;
    }

    /// How many to ask for now, and how long to wait after that.
    fn turn(&mut self, stream: &Stream, now: Duration) -> (usize, Duration) {
        if stream.name == NOISY {
            return self.rhythm.burst();
        }
        (1, self.rhythm.gap(stream.each_second, now))
    }

    async fn ask(&mut self, stream: &Stream, count: usize) -> Result<(), ClientError> {
        let state = self.client.workspace_get(stream.workspace).await?;
        if state.requests.pending >= ENOUGH {
            return Ok(());
        }
        let mut requests = Vec::with_capacity(count);
        for _ in 0..count {
            let params = self.rhythm.params(stream.kind);
            requests.push(NewRequest::new(stream.definition, params));
        }
        let new = NewRequests { requests };
        let asked = self.client.request_enqueue_many(stream.workspace, &new);
        asked.await.map(drop)
    }
}

/// Whether there is nothing left to ask for.
fn gone(error: &ClientError) -> bool {
    matches!(
        error.code(),
        Some(Code::NotFound | Code::NotPublished | Code::Invalid)
    )
}

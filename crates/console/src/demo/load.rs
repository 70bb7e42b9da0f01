//! Enqueues requests at the rate of the load profile. Ignores an unreachable or overloaded server; drops the stream of a deleted workspace.

use super::fixtures::NOISY;
use super::load_profile::LoadProfile;
use super::setup::RequestStream;
use leasehold_client::api::Code;
use leasehold_client::api::request::{NewRequest, NewRequests};
use leasehold_client::{Client, ClientError};
use std::time::Duration;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

/// Above this backlog a workspace enqueues nothing, so that the demo can run for days with paused workspaces.
const MAX_PENDING: u64 = 1_000;

pub(super) struct LoadGenerator {
    client: Client,
    streams: Vec<RequestStream>,
    profile: LoadProfile,
}

/// A stream and the time of its next request.
struct ScheduledStream {
    stream: RequestStream,
    at: Instant,
}

impl LoadGenerator {
    pub(super) fn new(client: Client, streams: Vec<RequestStream>, profile: LoadProfile) -> Self {
        Self {
            client,
            streams,
            profile,
        }
    }

    /// Runs until stopped.
    pub(super) async fn run(mut self, stop: CancellationToken) {
        let started = Instant::now();
        let streams = std::mem::take(&mut self.streams);
        let mut all: Vec<ScheduledStream> = streams
            .into_iter()
            .map(|stream| {
                // Every stream starts at once, so that the screen is not empty.
                ScheduledStream {
                    stream,
                    at: started,
                }
            })
            .collect();
        while let Some(next) = all.iter_mut().min_by_key(|next| next.at) {
            tokio::select! {
                () = sleep_until(next.at) => {}
                () = stop.cancelled() => return,
            }
            let (stream, at) = (next.stream, next.at);
            let (count, gap) = self.next_batch(&stream, at - started);
            // Missed requests are not made up for, so that a restarted server is not flooded.
            next.at = at.max(Instant::now()) + gap;
            let enqueued = tokio::select! {
                enqueued = self.enqueue(&stream, count) => enqueued,
                () = stop.cancelled() => return,
            };
            if let Err(error) = enqueued
                && is_permanent(&error)
            {
                all.retain(|next| next.stream.definition != stream.definition);
            }
        }
        // Every workspace was deleted; the demo keeps running.
        stop.cancelled().await;
    }

    /// The number of requests to enqueue now, and the wait after them.
    fn next_batch(&mut self, stream: &RequestStream, now: Duration) -> (usize, Duration) {
        if stream.name == NOISY {
            return self.profile.burst();
        }
        (1, self.profile.gap(stream.rate_per_second, now))
    }

    async fn enqueue(&mut self, stream: &RequestStream, count: usize) -> Result<(), ClientError> {
        let state = self.client.workspace_get(stream.workspace).await?;
        if state.requests.pending >= MAX_PENDING {
            return Ok(());
        }
        let mut requests = Vec::with_capacity(count);
        for _ in 0..count {
            let params = self.profile.params(stream.kind);
            requests.push(NewRequest::new(stream.definition, params));
        }
        let new = NewRequests { requests };
        let enqueued = self.client.request_enqueue_many(stream.workspace, &new);
        enqueued.await.map(drop)
    }
}

/// Whether the stream can never succeed again.
fn is_permanent(error: &ClientError) -> bool {
    matches!(
        error.code(),
        Some(Code::NotFound | Code::NotPublished | Code::Invalid)
    )
}

//! Timeouts of a connection, and the progress of its responses.

#![allow(clippy::unwrap_used)]

use super::*;
use http_body_util::{BodyExt, Full};
use tokio::io::AsyncWriteExt;

const TIMEOUTS: ConnectionTimeouts = ConnectionTimeouts {
    head: Duration::from_secs(10),
    idle: Duration::from_secs(60),
    write: Duration::from_secs(5),
};

/// Returns the seconds until the connection times out.
fn left(tracker: &ActivityTracker) -> Option<u64> {
    let deadline = tracker.deadline(&TIMEOUTS)?;
    Some((deadline - Instant::now()).as_secs())
}

/// A body of this many bytes in one frame.
fn body(bytes: usize) -> Full<Bytes> {
    Full::new(Bytes::from(vec![b'x'; bytes]))
}

/// Polls a body as a protocol does, and returns its next chunk.
async fn next_chunk<H: Send + Sync + 'static>(
    body: &mut TrackedBody<Full<Bytes>, H>,
) -> Option<Bytes> {
    let frame = body.frame().await?.unwrap();
    frame.into_data().ok()
}

#[tokio::test(start_paused = true)]
async fn idle_timeout_is_longer_than_header_timeout() {
    let tracker = ActivityTracker::new();
    assert_eq!(left(&tracker), Some(10), "the first headers");
    let call = tracker.start_call();
    assert_eq!(left(&tracker), None, "a call is pending");
    let response = call.respond(body(1), ());
    assert_eq!(left(&tracker), Some(5), "its response is being sent");
    drop(response);
    assert_eq!(left(&tracker), Some(60), "idle");
    tokio::time::advance(Duration::from_secs(30)).await;
    tracker.read();
    tokio::time::advance(Duration::from_secs(4)).await;
    tracker.read();
    assert_eq!(left(&tracker), Some(6), "the next headers have begun");
}

#[tokio::test(start_paused = true)]
async fn only_sent_chunks_are_progress() {
    let tracker = ActivityTracker::new();
    let mut response = tracker.start_call().respond(body(CHUNK_BYTES + 1), ());
    let first = next_chunk(&mut response).await.unwrap();
    tokio::time::advance(Duration::from_secs(3)).await;
    // A ping that arrives and is answered, another call, and bytes of the chunk.
    tracker.read();
    tracker.written();
    drop(tracker.start_call());
    let part = first.slice(..10);
    drop(part);
    assert_eq!(left(&tracker), Some(2));
    drop(first);
    assert_eq!(left(&tracker), Some(5), "the chunk was sent");
    let last = next_chunk(&mut response).await.unwrap();
    assert_eq!(last.len(), 1);
    assert!(next_chunk(&mut response).await.is_none());
    drop(response);
    assert_eq!(left(&tracker), Some(5), "the last chunk is not sent yet");
    drop(last);
    assert_eq!(left(&tracker), Some(60));
}

#[tokio::test(start_paused = true)]
async fn stream_that_has_nothing_to_send_does_not_time_out() {
    let tracker = ActivityTracker::new();
    let events = http_body_util::StreamBody::new(futures::stream::pending::<
        Result<Frame<Bytes>, std::convert::Infallible>,
    >());
    let mut response = tracker.start_call().respond(events, ());
    assert_eq!(left(&tracker), Some(5), "the peer has accepted no data yet");
    let waits = futures::FutureExt::now_or_never(response.frame());
    assert!(waits.is_none());
    assert_eq!(left(&tracker), None);
}

#[tokio::test(start_paused = true)]
async fn one_unread_response_times_out_beside_others() {
    let tracker = ActivityTracker::new();
    let unread = tracker.start_call().respond(body(1), ());
    tokio::time::advance(Duration::from_secs(4)).await;
    let _pending = tracker.start_call();
    let mut other = tracker.start_call().respond(body(1), ());
    drop(next_chunk(&mut other).await);
    assert_eq!(left(&tracker), Some(1));
    drop(unread);
}

#[tokio::test(start_paused = true)]
async fn memory_is_held_until_the_last_byte_is_sent() {
    let tracker = ActivityTracker::new();
    let held = Arc::new(());
    let response = tracker.start_call();
    let mut response = response.respond(body(CHUNK_BYTES * 2), Arc::clone(&held));
    let (first, last) = (
        next_chunk(&mut response).await,
        next_chunk(&mut response).await,
    );
    drop(response);
    drop(last);
    assert_eq!(Arc::strong_count(&held), 2, "a chunk is in a buffer");
    drop(first);
    assert_eq!(Arc::strong_count(&held), 1);
}

#[tokio::test(start_paused = true)]
async fn idle_connection_times_out() {
    let tracker = ActivityTracker::new();
    let begun = Instant::now();
    drop(tracker.start_call());
    tracker.timed_out(&TIMEOUTS).await;
    assert_eq!(begun.elapsed().as_secs(), 60);
}

#[tokio::test(start_paused = true)]
async fn write_times_out_when_the_peer_does_not_read() {
    let (ours, _theirs) = tokio::io::duplex(16);
    let mut stream = TimedStream::new(ours, ActivityTracker::new(), TIMEOUTS.write);
    let begun = Instant::now();
    let error = stream.write_all(&[0; 64]).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut);
    assert_eq!(begun.elapsed().as_secs(), 5);
}

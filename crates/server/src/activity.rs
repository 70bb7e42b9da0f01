//! Tracks the activity of a connection and applies its idle, header and write timeouts. Knows no HTTP.

use axum::body::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use std::io::{self, ErrorKind, IoSlice};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep, sleep_until};

/// The timeouts of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ConnectionTimeouts {
    /// For the headers of a call, from their first byte; for the first call, from the start of the connection.
    pub(crate) head: Duration,
    /// Between two calls.
    pub(crate) idle: Duration,
    /// For a write that blocks because the peer does not read.
    pub(crate) write: Duration,
}

/// Tracks when a connection was last active.
pub(crate) struct ActivityTracker(Mutex<Activity>);

struct Activity {
    /// Calls without a response yet.
    pending: usize,
    /// Responses that are not sent completely.
    responding: usize,
    /// When data was last read or written.
    last_active: Instant,
    /// When the headers that are being read began.
    head: Option<Instant>,
}

impl ActivityTracker {
    pub(crate) fn new() -> Arc<Self> {
        let now = Instant::now();
        Arc::new(Self(Mutex::new(Activity {
            pending: 0,
            responding: 0,
            last_active: now,
            head: Some(now),
        })))
    }

    /// Returns when the connection times out without further activity, or `None` while a call is pending.
    fn deadline(&self, timeouts: &ConnectionTimeouts) -> Option<Instant> {
        let inner = self.inner();
        match (inner.pending, inner.responding, inner.head) {
            (0, 0, Some(begun)) => Some(begun + timeouts.head),
            (0, 0, None) => Some(inner.last_active + timeouts.idle),
            // A change stream sends a keep-alive more often than this.
            (0, _, _) => Some(inner.last_active + 2 * timeouts.write),
            _ => None,
        }
    }

    /// Completes when the connection has timed out.
    pub(crate) async fn timed_out(&self, timeouts: &ConnectionTimeouts) {
        loop {
            let now = Instant::now();
            // New activity may have an earlier deadline.
            let recheck = now + timeouts.head.min(timeouts.idle);
            match self.deadline(timeouts) {
                Some(deadline) if deadline <= now => return,
                Some(deadline) => sleep_until(deadline.min(recheck)).await,
                None => sleep_until(recheck).await,
            }
        }
    }

    /// Records the start of a call.
    pub(crate) fn start_call(self: &Arc<Self>) -> Call {
        let mut inner = self.inner();
        inner.pending += 1;
        inner.head = None;
        Call {
            tracker: Arc::clone(self),
            responding: false,
        }
    }

    fn read(&self) {
        let mut inner = self.inner();
        inner.last_active = Instant::now();
        if inner.pending + inner.responding == 0 {
            inner.head = inner.head.or(Some(inner.last_active));
        }
    }

    fn written(&self) {
        self.inner().last_active = Instant::now();
    }

    fn inner(&self) -> MutexGuard<'_, Activity> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A call in progress, from its headers to the end of its response.
pub(crate) struct Call {
    tracker: Arc<ActivityTracker>,
    responding: bool,
}

impl Call {
    /// Records that the response is being sent; wraps its body.
    pub(crate) fn respond<B>(mut self, body: B) -> TrackedBody<B> {
        self.responding = true;
        {
            let mut inner = self.tracker.inner();
            inner.pending -= 1;
            inner.responding += 1;
            inner.last_active = Instant::now();
        }
        TrackedBody { body, _call: self }
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        let mut inner = self.tracker.inner();
        if self.responding {
            inner.responding -= 1;
        } else {
            inner.pending -= 1;
        }
        inner.last_active = Instant::now();
    }
}

/// A response body that keeps its call in progress until it is sent.
pub(crate) struct TrackedBody<B> {
    body: B,
    _call: Call,
}

impl<B: Body<Data = Bytes> + Unpin> Body for TrackedBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A stream that reports its activity to a tracker and fails when a write times out.
pub(crate) struct TimedStream<S> {
    stream: S,
    tracker: Arc<ActivityTracker>,
    write_timeout: Duration,
    blocked: Option<Pin<Box<Sleep>>>,
}

impl<S> TimedStream<S> {
    pub(crate) fn new(stream: S, tracker: Arc<ActivityTracker>, write_timeout: Duration) -> Self {
        Self {
            stream,
            tracker,
            write_timeout,
            blocked: None,
        }
    }

    /// Fails a write that is blocked for longer than the write timeout.
    fn check_write<T>(
        &mut self,
        wrote: Poll<io::Result<T>>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<T>> {
        if wrote.is_ready() {
            self.blocked = None;
            self.tracker.written();
            return wrote;
        }
        let timeout = self.write_timeout;
        let blocked = self.blocked.get_or_insert_with(|| Box::pin(sleep(timeout)));
        ready!(blocked.as_mut().poll(context));
        Poll::Ready(Err(ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for TimedStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        if read.is_ready() && buffer.filled().len() > before {
            self.tracker.read();
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for TimedStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let wrote = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.check_write(wrote, context)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        // A flush of nothing is no activity: it is called repeatedly.
        match Pin::new(&mut self.stream).poll_flush(context) {
            Poll::Ready(done) => Poll::Ready(done),
            waiting => self.check_write(waiting, context),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let closed = Pin::new(&mut self.stream).poll_shutdown(context);
        self.check_write(closed, context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let wrote = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.check_write(wrote, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
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

    #[tokio::test(start_paused = true)]
    async fn idle_timeout_is_longer_than_header_timeout() {
        let tracker = ActivityTracker::new();
        assert_eq!(left(&tracker), Some(10), "the first headers");
        let call = tracker.start_call();
        assert_eq!(left(&tracker), None, "a call is pending");
        let response = call.respond(());
        assert_eq!(left(&tracker), Some(10), "its response is being sent");
        drop(response);
        assert_eq!(left(&tracker), Some(60), "idle");
        tokio::time::advance(Duration::from_secs(30)).await;
        tracker.read();
        tokio::time::advance(Duration::from_secs(4)).await;
        tracker.read();
        assert_eq!(left(&tracker), Some(6), "the next headers have begun");
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
}

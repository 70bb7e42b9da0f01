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
    /// For a write, or the next chunk of a response, that blocks because the peer does not read.
    pub(crate) write: Duration,
}

/// Bytes of a response body that must be sent within the write timeout.
const CHUNK_BYTES: usize = 64 * 1024;

/// Tracks when a connection was last active, and which of its responses the peer does not read.
pub(crate) struct ActivityTracker(Mutex<Activity>);

struct Activity {
    /// Calls without a response yet.
    pending: usize,
    /// The responses that are not sent completely: one over HTTP/1, as many as there are streams over HTTP/2.
    responses: Vec<Progress>,
    next_response: u64,
    /// When data was last read or written, or a call ended.
    last_active: Instant,
    /// When the headers that are being read began.
    head: Option<Instant>,
}

/// The progress of a response, in bytes of its body that left the process. Other traffic of the connection is none.
struct Progress {
    /// The number of the response.
    response: u64,
    /// Chunks that are passed to the protocol and not sent yet.
    unsent: usize,
    /// Since when the response waits for the peer; none while the peer waits for the response.
    blocked_since: Option<Instant>,
}

impl Progress {
    /// Records that the peer accepts more data; it is blocked only by what was passed to the protocol before.
    fn unblock(&mut self) {
        if self.unsent == 0 {
            self.blocked_since = None;
        }
    }
}

impl ActivityTracker {
    pub(crate) fn new() -> Arc<Self> {
        let now = Instant::now();
        Arc::new(Self(Mutex::new(Activity {
            pending: 0,
            responses: Vec::new(),
            next_response: 0,
            last_active: now,
            head: Some(now),
        })))
    }

    /// Returns when the connection times out without further activity, or `None` while a call is pending and every response is read.
    fn deadline(&self, timeouts: &ConnectionTimeouts) -> Option<Instant> {
        let inner = self.inner();
        let blocked = inner.responses.iter().filter_map(|one| one.blocked_since);
        if let Some(since) = blocked.min() {
            return Some(since + timeouts.write);
        }
        match (inner.pending + inner.responses.len(), inner.head) {
            (0, Some(begun)) => Some(begun + timeouts.head),
            (0, None) => Some(inner.last_active + timeouts.idle),
            _ => None,
        }
    }

    /// Completes when the connection has timed out.
    pub(crate) async fn timed_out(&self, timeouts: &ConnectionTimeouts) {
        loop {
            let now = Instant::now();
            // New activity may have an earlier deadline.
            let recheck = now + timeouts.head.min(timeouts.idle).min(timeouts.write);
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
        Call(Arc::clone(self))
    }

    fn read(&self) {
        let mut inner = self.inner();
        inner.last_active = Instant::now();
        if inner.pending + inner.responses.len() == 0 {
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

/// A call without a response yet.
pub(crate) struct Call(Arc<ActivityTracker>);

impl Call {
    /// Records that the response is being sent; wraps its body. `held` is dropped when the last byte of the body is sent.
    pub(crate) fn respond<B, H>(self, body: B, held: H) -> TrackedBody<B, H> {
        let tracker = Arc::clone(&self.0);
        let number = {
            let mut inner = tracker.inner();
            let number = inner.next_response;
            inner.next_response += 1;
            inner.responses.push(Progress {
                response: number,
                unsent: 0,
                blocked_since: Some(Instant::now()),
            });
            number
        };
        TrackedBody {
            body,
            rest: Bytes::new(),
            response: Arc::new(SentResponse {
                tracker,
                number,
                _held: held,
            }),
        }
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        let mut inner = self.0.inner();
        inner.pending -= 1;
        inner.last_active = Instant::now();
    }
}

/// A response that is being sent. Its body and every chunk of it that is not sent refer to it.
struct SentResponse<H> {
    tracker: Arc<ActivityTracker>,
    number: u64,
    _held: H,
}

impl<H> SentResponse<H> {
    fn update(&self, change: impl FnOnce(&mut Progress)) {
        let mut inner = self.tracker.inner();
        let mut responses = inner.responses.iter_mut();
        if let Some(progress) = responses.find(|one| one.response == self.number) {
            change(progress);
        }
    }
}

impl<H> Drop for SentResponse<H> {
    fn drop(&mut self) {
        let mut inner = self.tracker.inner();
        inner.responses.retain(|one| one.response != self.number);
        inner.last_active = Instant::now();
    }
}

/// A part of a body. The protocol drops it when it has written its last byte to the connection.
struct Chunk<H> {
    bytes: Bytes,
    response: Arc<SentResponse<H>>,
}

impl<H> AsRef<[u8]> for Chunk<H> {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl<H> Drop for Chunk<H> {
    fn drop(&mut self) {
        self.response.update(|progress| {
            progress.unsent -= 1;
            progress.blocked_since = Some(Instant::now());
        });
    }
}

/// A response body that tracks how much of it is sent, in chunks.
pub(crate) struct TrackedBody<B, H> {
    body: B,
    /// The part of the last frame that is not passed to the protocol yet.
    rest: Bytes,
    response: Arc<SentResponse<H>>,
}

impl<B, H: Send + Sync + 'static> TrackedBody<B, H> {
    /// Takes the next chunk.
    fn chunk(&mut self) -> Bytes {
        let bytes = self.rest.split_to(self.rest.len().min(CHUNK_BYTES));
        self.response.update(|progress| {
            progress.unblock();
            progress.unsent += 1;
            progress.blocked_since.get_or_insert_with(Instant::now);
        });
        Bytes::from_owner(Chunk {
            bytes,
            response: Arc::clone(&self.response),
        })
    }
}

impl<B, H> Body for TrackedBody<B, H>
where
    B: Body<Data = Bytes> + Unpin,
    H: Send + Sync + 'static,
{
    type Data = Bytes;
    type Error = B::Error;

    /// The protocol calls this only while the peer accepts data.
    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        if self.rest.is_empty() {
            let polled = Pin::new(&mut self.body).poll_frame(context);
            match polled.map_ok(Frame::into_data) {
                Poll::Ready(Some(Ok(Ok(data)))) if !data.is_empty() => self.rest = data,
                other => {
                    // The peer waits for data.
                    self.response.update(Progress::unblock);
                    return other.map_ok(|frame| frame.map_or_else(|frame| frame, Frame::data));
                }
            }
        }
        let chunk = self.chunk();
        Poll::Ready(Some(Ok(Frame::data(chunk))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let rest = self.rest.len() as u64;
        let inner = self.body.size_hint();
        let mut hint = SizeHint::new();
        if let Some(upper) = inner.upper() {
            hint.set_upper(upper + rest);
        }
        hint.set_lower(inner.lower() + rest);
        hint
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
mod tests;

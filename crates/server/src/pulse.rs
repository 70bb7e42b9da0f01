//! The pulse of a connection: what moves on it and when it has stood still for too long. Knows no HTTP.

use axum::body::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use std::io::{self, ErrorKind, IoSlice};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep, sleep_until};

/// How long each state of a connection may last.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    /// For the head of a call, from its first byte; for the first one, from the beginning.
    pub(crate) head: Duration,
    /// Between two calls.
    pub(crate) idle: Duration,
    /// For a peer that does not take what is sent to it.
    pub(crate) write: Duration,
}

/// What is known of a connection.
pub(crate) struct Pulse(Mutex<Inner>);

struct Inner {
    /// Calls whose answer is not known yet.
    serving: usize,
    /// Answers that are not all sent.
    answering: usize,
    /// When something was last read or written.
    moved: Instant,
    /// When the head that is being read began.
    head: Option<Instant>,
}

impl Pulse {
    pub(crate) fn new() -> Arc<Self> {
        let now = Instant::now();
        Arc::new(Self(Mutex::new(Inner {
            serving: 0,
            answering: 0,
            moved: now,
            head: Some(now),
        })))
    }

    /// When the connection has stood still for too long, if nothing moves; none while a call is served.
    fn deadline(&self, patience: &Patience) -> Option<Instant> {
        let inner = self.inner();
        match (inner.serving, inner.answering, inner.head) {
            (0, 0, Some(begun)) => Some(begun + patience.head),
            (0, 0, None) => Some(inner.moved + patience.idle),
            // A stream says something more often than this.
            (0, _, _) => Some(inner.moved + 2 * patience.write),
            _ => None,
        }
    }

    /// Returns when the connection has stood still for too long.
    pub(crate) async fn stopped(&self, patience: &Patience) {
        loop {
            let now = Instant::now();
            // What begins meanwhile may have a nearer deadline.
            let look = now + patience.head.min(patience.idle);
            match self.deadline(patience) {
                Some(deadline) if deadline <= now => return,
                Some(deadline) => sleep_until(deadline.min(look)).await,
                None => sleep_until(look).await,
            }
        }
    }

    /// A call has begun.
    pub(crate) fn call(self: &Arc<Self>) -> Call {
        let mut inner = self.inner();
        inner.serving += 1;
        inner.head = None;
        Call {
            pulse: Arc::clone(self),
            answering: false,
        }
    }

    fn read(&self) {
        let mut inner = self.inner();
        inner.moved = Instant::now();
        if inner.serving + inner.answering == 0 {
            inner.head = inner.head.or(Some(inner.moved));
        }
    }

    fn written(&self) {
        self.inner().moved = Instant::now();
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A call under way, from its head to the end of its answer.
pub(crate) struct Call {
    pulse: Arc<Pulse>,
    answering: bool,
}

impl Call {
    /// Its answer is known and goes out now.
    pub(crate) fn answer<B>(mut self, body: B) -> Answer<B> {
        self.answering = true;
        {
            let mut inner = self.pulse.inner();
            inner.serving -= 1;
            inner.answering += 1;
            inner.moved = Instant::now();
        }
        Answer { body, _call: self }
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        let mut inner = self.pulse.inner();
        if self.answering {
            inner.answering -= 1;
        } else {
            inner.serving -= 1;
        }
        inner.moved = Instant::now();
    }
}

/// The body of an answer, which keeps its call under way.
pub(crate) struct Answer<B> {
    body: B,
    _call: Call,
}

impl<B: Body<Data = Bytes> + Unpin> Body for Answer<B> {
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

/// A stream that tells its pulse what moves, and fails when its peer takes nothing for too long.
pub(crate) struct Watched<S> {
    stream: S,
    pulse: Arc<Pulse>,
    patience: Duration,
    stuck: Option<Pin<Box<Sleep>>>,
}

impl<S> Watched<S> {
    pub(crate) fn new(stream: S, pulse: Arc<Pulse>, patience: Duration) -> Self {
        Self {
            stream,
            pulse,
            patience,
            stuck: None,
        }
    }

    /// What came of a write; one that cannot go on fails in time.
    fn judged<T>(
        &mut self,
        wrote: Poll<io::Result<T>>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<T>> {
        if wrote.is_ready() {
            self.stuck = None;
            self.pulse.written();
            return wrote;
        }
        let patience = self.patience;
        let stuck = self.stuck.get_or_insert_with(|| Box::pin(sleep(patience)));
        ready!(stuck.as_mut().poll(context));
        Poll::Ready(Err(ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        if read.is_ready() && buffer.filled().len() > before {
            self.pulse.read();
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let wrote = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.judged(wrote, context)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        // A flush with nothing to do is no movement: it is asked for again and again.
        match Pin::new(&mut self.stream).poll_flush(context) {
            Poll::Ready(done) => Poll::Ready(done),
            waiting => self.judged(waiting, context),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let closed = Pin::new(&mut self.stream).poll_shutdown(context);
        self.judged(closed, context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let wrote = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.judged(wrote, context)
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

    const PATIENCE: Patience = Patience {
        head: Duration::from_secs(10),
        idle: Duration::from_secs(60),
        write: Duration::from_secs(5),
    };

    /// How long after now it would be cut.
    fn left(pulse: &Pulse) -> Option<u64> {
        let deadline = pulse.deadline(&PATIENCE)?;
        Some((deadline - Instant::now()).as_secs())
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_may_stand_idle_longer_than_a_head_may_take() {
        let pulse = Pulse::new();
        assert_eq!(left(&pulse), Some(10), "the first head");
        let call = pulse.call();
        assert_eq!(left(&pulse), None, "a call is served");
        let answer = call.answer(());
        assert_eq!(left(&pulse), Some(10), "its answer goes out");
        drop(answer);
        assert_eq!(left(&pulse), Some(60), "idle");
        tokio::time::advance(Duration::from_secs(30)).await;
        pulse.read();
        tokio::time::advance(Duration::from_secs(4)).await;
        pulse.read();
        assert_eq!(left(&pulse), Some(6), "the next head has begun");
    }

    #[tokio::test(start_paused = true)]
    async fn standing_still_is_noticed_in_time() {
        let pulse = Pulse::new();
        let begun = Instant::now();
        drop(pulse.call());
        pulse.stopped(&PATIENCE).await;
        assert_eq!(begun.elapsed().as_secs(), 60);
    }

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_takes_nothing_ends_the_write() {
        let (ours, _theirs) = tokio::io::duplex(16);
        let mut watched = Watched::new(ours, Pulse::new(), PATIENCE.write);
        let begun = Instant::now();
        let error = watched.write_all(&[0; 64]).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut);
        assert_eq!(begun.elapsed().as_secs(), 5);
    }
}

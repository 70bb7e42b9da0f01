//! A stream that refuses HTTP/1 messages whose lines end with a bare LF. Knows no route.
//!
//! hyper accepts a bare LF as the end of a line. A proxy in front of the server may not, and then both disagree where a message ends (request
//! smuggling). The stream checks what hyper is about to read. It passes on a head up to its end and waits until hyper has parsed it, so that only
//! hyper decides how the body is framed.

use crate::line_scanner::{Framing, LineScanner, Scan, Stop};
use bytes::Bytes;
use hyper::body::SizeHint;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// What hyper reads instead of a bare LF and everything after it: a byte that no line of a message may contain, and the end of the message. So
/// hyper answers 400, after the responses to earlier requests, and closes the connection.
const INVALID_END: &[u8] = b"\0\r\n\r\n";
/// The same for a bare LF in the line with a chunk's size, which hyper itself refuses.
const BARE_LF: &[u8] = b"\n";

/// How the body of the message is framed that hyper has parsed last. Shared by a connection's stream and its service.
#[derive(Clone, Debug, Default)]
pub(crate) struct ParsedFraming(Arc<Mutex<Option<Framing>>>);

impl ParsedFraming {
    /// Records the framing of a message that hyper has parsed, by the size of its body.
    pub(crate) fn set(&self, body: &SizeHint) {
        let framing = match body.exact() {
            Some(length) => Framing::Length(length),
            None => Framing::Chunked,
        };
        *self.inner() = Some(framing);
    }

    fn take(&self) -> Option<Framing> {
        self.inner().take()
    }

    fn inner(&self) -> MutexGuard<'_, Option<Framing>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A stream that refuses bare LFs. Passes HTTP/2 unchanged.
pub(crate) struct StrictStream<S> {
    stream: S,
    scanner: LineScanner,
    framing: ParsedFraming,
    /// What was read from the stream and not passed on yet.
    held: Bytes,
}

impl<S> StrictStream<S> {
    pub(crate) fn new(stream: S, framing: ParsedFraming) -> Self {
        Self {
            stream,
            scanner: LineScanner::new(),
            framing,
            held: Bytes::new(),
        }
    }

    /// Passes on what is held, up to the next stop.
    fn pass_held(&mut self, buffer: &mut ReadBuf<'_>) {
        if !self.scanner.is_refused() {
            let length = self.held.len().min(buffer.remaining());
            let scan = self.scanner.scan(&self.held[..length]);
            buffer.put_slice(&self.held.split_to(scan.passed));
            self.stop(scan);
            // An empty read would be the end of the stream.
            if scan.passed > 0 {
                return;
            }
        }
        let length = self.held.len().min(buffer.remaining());
        buffer.put_slice(&self.held.split_to(length));
    }

    /// Replaces what follows a bare LF.
    fn stop(&mut self, scan: Scan) {
        match scan.stop {
            None | Some(Stop::HeadEnd) => {}
            Some(Stop::BareLf) => self.held = Bytes::from_static(INVALID_END),
            Some(Stop::BareLfInChunkSize) => self.held = Bytes::from_static(BARE_LF),
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for StrictStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if this.scanner.is_at_head_end() {
            match this.framing.take() {
                Some(framing) => this.scanner.head_parsed(framing),
                // hyper parses a head before it reads on, and calls the service in between. If it refused the head, it reads no more.
                None => return Poll::Pending,
            }
        }
        if this.held.is_empty() && !this.scanner.is_refused() {
            let start = buffer.filled().len();
            ready!(Pin::new(&mut this.stream).poll_read(context, buffer))?;
            let scan = this.scanner.scan(&buffer.filled()[start..]);
            let passed = start + scan.passed;
            this.held = Bytes::copy_from_slice(&buffer.filled()[passed..]);
            buffer.set_filled(passed);
            this.stop(scan);
            if scan.passed > 0 || this.held.is_empty() {
                return Poll::Ready(Ok(()));
            }
        }
        this.pass_held(buffer);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for StrictStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

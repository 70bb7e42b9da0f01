//! Serves one connection: HTTP/1.1 or HTTP/2 over any stream. Knows no route.

use crate::activity::{ActivityTracker, Call, ConnectionTimeouts, TimedStream, TrackedBody};
use crate::api_error::ApiError;
use crate::call_memory::ResponseMemory;
use crate::host;
use crate::options::ServerOptions;
use crate::strict_stream::{ParsedFraming, StrictStream};
use axum::Router;
use axum::http::Request;
use axum::response::{IntoResponse, Response};
use hyper::body::{Body, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use leasehold_core::limits::HEADERS_MAX;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

/// Concurrent calls of one HTTP/2 connection.
const HTTP2_STREAMS_MAX: u32 = 100;
/// Flow-control window of one HTTP/2 connection, in bytes.
const WINDOW: u32 = 256 * 1024;
/// Bytes of one HTTP/2 response that wait for the connection.
const SEND_BUFFER_BYTES: usize = 64 * 1024;
/// Time limit for the graceful shutdown of a timed-out connection.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(1);

/// The HTTP configuration shared by all connections.
pub(crate) struct Protocol {
    builder: Builder<TokioExecutor>,
    timeouts: ConnectionTimeouts,
    app: Router,
}

impl Protocol {
    pub(crate) fn new(app: Router, options: &ServerOptions) -> Self {
        let mut builder = Builder::new(TokioExecutor::new());
        builder
            .http1()
            // The activity tracker times headers: it tells slow headers from an idle connection.
            .header_read_timeout(None)
            .max_buf_size(options.header_max_bytes);
        builder
            .http2()
            .max_concurrent_streams(HTTP2_STREAMS_MAX)
            .initial_stream_window_size(WINDOW / 2)
            .initial_connection_window_size(WINDOW)
            .max_send_buf_size(SEND_BUFFER_BYTES)
            .max_header_list_size(u32::try_from(options.header_max_bytes).unwrap_or(u32::MAX));
        Self {
            builder,
            timeouts: ConnectionTimeouts {
                head: options.header_timeout,
                idle: options.idle_timeout,
                write: options.write_timeout,
            },
            app,
        }
    }

    /// Serves until the peer disconnects, the connection times out or the server stops; calls in progress are finished.
    pub(crate) async fn serve<S>(&self, stream: S, stop: &CancellationToken)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let tracker = ActivityTracker::new();
        let framing = ParsedFraming::default();
        let service = service_fn(|request: Request<Incoming>| {
            let call = tracker.start_call();
            framing.set(&request.body().size_hint());
            let app = self.app.clone();
            async move {
                let response = match host::check(&request).and_then(|()| check_headers(&request)) {
                    Ok(()) => app.oneshot(request.map(axum::body::Body::new)).await?,
                    Err(error) => error.into_response(),
                };
                Ok::<_, std::convert::Infallible>(respond(call, response))
            }
        });
        let stream = TimedStream::new(stream, Arc::clone(&tracker), self.timeouts.write);
        let stream = StrictStream::new(stream, framing.clone());
        let connection = self.builder.serve_connection(TokioIo::new(stream), service);
        let mut connection = pin!(connection);
        let timed_out = tokio::select! {
            ended = connection.as_mut() => return log(ended),
            () = tracker.timed_out(&self.timeouts) => true,
            () = stop.cancelled() => false,
        };
        connection.as_mut().graceful_shutdown();
        if timed_out {
            // A peer that still sends nothing is cut off.
            match tokio::time::timeout(SHUTDOWN_TIMEOUT, connection).await {
                Ok(ended) => log(ended),
                Err(_) => tracing::debug!("timed-out connection closed"),
            }
        } else {
            tokio::select! {
                ended = connection.as_mut() => log(ended),
                () = tracker.timed_out(&self.timeouts) => {}
            }
        }
    }
}

/// Rejects a request with too many headers: each takes many times its size in memory, for as long as the body is
/// received. In HTTP/1, hyper has the same limit and answers 431.
fn check_headers<B>(request: &Request<B>) -> Result<(), ApiError> {
    let headers = request.headers().len();
    if headers > HEADERS_MAX {
        let detail =
            format!("the request has {headers} headers; at most {HEADERS_MAX} are allowed");
        return Err(ApiError::parameter("headers", detail));
    }
    Ok(())
}

/// Passes the response to the connection, with the memory that it holds until its last byte is sent.
fn respond(
    call: Call,
    mut response: Response,
) -> axum::http::Response<TrackedBody<axum::body::Body, Option<ResponseMemory>>> {
    let memory = response.extensions_mut().remove::<ResponseMemory>();
    response.map(|body| call.respond(body, memory))
}

/// Logs a broken connection at debug level: it is usually the peer's fault.
fn log(ended: Result<(), Box<dyn std::error::Error + Send + Sync>>) {
    if let Err(error) = ended {
        tracing::debug!(error, "connection failed");
    }
}

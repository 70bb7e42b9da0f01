//! Serves one connection: HTTP/1.1 or HTTP/2 over any stream. Knows no route.

use crate::activity::{ActivityTracker, ConnectionTimeouts, TimedStream};
use crate::options::ServerOptions;
use axum::Router;
use axum::http::Request;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
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
        let service = service_fn(|request: Request<Incoming>| {
            let call = tracker.start_call();
            let app = self.app.clone();
            async move {
                let response = app.oneshot(request.map(axum::body::Body::new)).await?;
                Ok::<_, std::convert::Infallible>(response.map(|body| call.respond(body)))
            }
        });
        let stream = TimedStream::new(stream, Arc::clone(&tracker), self.timeouts.write);
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

/// Logs a broken connection at debug level: it is usually the peer's fault.
fn log(ended: Result<(), Box<dyn std::error::Error + Send + Sync>>) {
    if let Err(error) = ended {
        tracing::debug!(error, "connection failed");
    }
}

//! One connection, from its first byte to its last: HTTP/1.1 or HTTP/2 over whatever stream it is. Knows no route.

use crate::options::ServerOptions;
use crate::pulse::{Patience, Pulse, Watched};
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

/// Calls at once on one HTTP/2 connection.
const CALLS_EACH: u32 = 100;
/// What a peer may send on one HTTP/2 connection before somebody reads it.
const WINDOW: u32 = 256 * 1024;
/// How long a connection that stood still has to end in order.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// How connections are served; the same for all of them.
pub(crate) struct Protocol {
    builder: Builder<TokioExecutor>,
    patience: Patience,
    app: Router,
}

impl Protocol {
    pub(crate) fn new(app: Router, options: &ServerOptions) -> Self {
        let mut builder = Builder::new(TokioExecutor::new());
        builder
            .http1()
            // Heads are timed by the pulse, which tells a slow one from an idle connection.
            .header_read_timeout(None)
            .max_buf_size(options.header_max_bytes);
        builder
            .http2()
            .max_concurrent_streams(CALLS_EACH)
            .initial_stream_window_size(WINDOW / 2)
            .initial_connection_window_size(WINDOW)
            .max_header_list_size(u32::try_from(options.header_max_bytes).unwrap_or(u32::MAX));
        Self {
            builder,
            patience: Patience {
                head: options.header_timeout,
                idle: options.idle_timeout,
                write: options.write_timeout,
            },
            app,
        }
    }

    /// Serves until the peer leaves, stands still for too long, or we stop; then what is under way is finished.
    pub(crate) async fn serve<S>(&self, stream: S, stop: &CancellationToken)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let pulse = Pulse::new();
        let service = service_fn(|request: Request<Incoming>| {
            let call = pulse.call();
            let app = self.app.clone();
            async move {
                let response = app.oneshot(request.map(axum::body::Body::new)).await?;
                Ok::<_, std::convert::Infallible>(response.map(|body| call.answer(body)))
            }
        });
        let stream = Watched::new(stream, Arc::clone(&pulse), self.patience.write);
        let connection = self.builder.serve_connection(TokioIo::new(stream), service);
        let mut connection = pin!(connection);
        let stood_still = tokio::select! {
            ended = connection.as_mut() => return log(ended),
            () = pulse.stopped(&self.patience) => true,
            () = stop.cancelled() => false,
        };
        connection.as_mut().graceful_shutdown();
        if stood_still {
            // Whoever says nothing now is cut off.
            match tokio::time::timeout(LAST_WORDS, connection).await {
                Ok(ended) => log(ended),
                Err(_) => tracing::debug!("a connection that stood still was cut"),
            }
        } else {
            tokio::select! {
                ended = connection.as_mut() => log(ended),
                () = pulse.stopped(&self.patience) => {}
            }
        }
    }
}

/// What peers do wrong is their business.
fn log(ended: Result<(), Box<dyn std::error::Error + Send + Sync>>) {
    if let Err(error) = ended {
        tracing::debug!(error, "a connection broke off");
    }
}

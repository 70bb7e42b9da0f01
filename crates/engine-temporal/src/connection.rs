//! The gRPC connection: opened on first use, shared by all calls, reopened when it is lost. Knows no call by name.
//!
//! A gRPC channel reconnects by itself, but each call then waits for its own attempt, one after the other. So a channel that
//! failed to reconnect is discarded, and all calls share the next attempt.

use crate::options::Target;
use crate::proto::{Call, GetSystemInfoRequest};
use futures::FutureExt;
use futures::future::{BoxFuture, Shared};
use leasehold_core::limits::ERROR_MAX_CHARS;
use leasehold_core::text::clip;
use std::error::Error as StdError;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tonic::client::Grpc;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::metadata::MetadataValue;
use tonic::transport::Channel;
use tonic::{Code, Request, Status};
use tonic_prost::ProstCodec;

/// Maximum size of a response: a page of a history may be large.
const RESPONSE_MAX_BYTES: usize = 128 * 1024 * 1024;

/// Why a call has no response.
#[derive(Debug)]
pub(crate) enum RpcError {
    /// There is no connection; the call was not sent.
    NotConnected(String),
    /// The call may have been sent; the status is the server's or gRPC's own.
    Status(Status),
}

/// The connection to a Temporal frontend. Clones share it.
#[derive(Clone)]
pub(crate) struct Connection(Arc<ConnectionInner>);

struct ConnectionInner {
    target: Target,
    connect_timeout: Duration,
    /// Never held across an await.
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    channel: Option<Arc<LiveChannel>>,
    attempt: Option<Attempt>,
}

type Attempt = Shared<BoxFuture<'static, Result<Arc<LiveChannel>, String>>>;

struct LiveChannel {
    channel: Channel,
    /// Set when the channel has lost its connection.
    lost: watch::Sender<bool>,
}

impl Connection {
    pub(crate) fn new(target: Target, connect_timeout: Duration) -> Self {
        Self(Arc::new(ConnectionInner {
            target,
            connect_timeout,
            state: Mutex::default(),
        }))
    }

    /// Sends one call without retries: connects if needed, and waits at most `limit` for the response.
    pub(crate) async fn call<C: Call>(
        &self,
        limit: Duration,
        message: C,
    ) -> Result<C::Response, RpcError> {
        let live = self.channel().await.map_err(RpcError::NotConnected)?;
        let response = tokio::time::timeout(limit, self.send(&live.channel, limit, message));
        let mut lost = live.lost.subscribe();
        tokio::select! {
            biased;
            response = response => match response {
                Ok(Ok(response)) => Ok(response),
                Ok(Err(status)) => Err(self.classify_status(&live, status)),
                Err(_elapsed) => {
                    self.discard(&live);
                    Err(RpcError::Status(Status::deadline_exceeded(format!("no response within {limit:?}"))))
                }
            },
            // A call still waiting now would wait for its own connection attempt.
            _ = lost.wait_for(|lost| *lost) => Err(RpcError::Status(Status::unavailable("the connection was lost"))),
        }
    }

    async fn send<C: Call>(
        &self,
        channel: &Channel,
        limit: Duration,
        message: C,
    ) -> Result<C::Response, Status> {
        let namespace = message.namespace().map(MetadataValue::try_from);
        let mut request = Request::new(message);
        request.set_timeout(limit);
        let headers = request.metadata_mut();
        // A proxy routes by this header. The server rejects a name that is not a valid header value.
        if let Some(Ok(namespace)) = namespace {
            headers.insert("temporal-namespace", namespace);
        }
        if let Some(bearer) = &self.0.target.authorization {
            headers.insert("authorization", bearer.clone());
        }
        headers.insert("client-name", MetadataValue::from_static("leasehold"));
        headers.insert(
            "client-version",
            MetadataValue::from_static(env!("CARGO_PKG_VERSION")),
        );
        let mut grpc = Grpc::new(channel.clone()).max_decoding_message_size(RESPONSE_MAX_BYTES);
        grpc.ready()
            .await
            .map_err(|error| Status::from_error(error.into()))?;
        let path = PathAndQuery::try_from(C::path());
        let path = path.map_err(|error| Status::internal(error.to_string()))?;
        let codec = ProstCodec::<C, C::Response>::default();
        Ok(grpc.unary(request, path, codec).await?.into_inner())
    }

    fn classify_status(&self, live: &Arc<LiveChannel>, status: Status) -> RpcError {
        let caused_by =
            |is_cause: fn(&(dyn StdError + 'static)) -> bool| sources(&status).any(is_cause);
        if caused_by(|source| source.is::<tonic::ConnectError>()) {
            self.discard(live);
            live.lost.send_replace(true);
            return RpcError::NotConnected(explain(&status));
        }
        // The channel has the same timeout as this client, and may detect it first.
        if caused_by(|source| source.is::<tonic::TimeoutExpired>()) {
            self.discard(live);
        }
        RpcError::Status(status)
    }

    /// Returns the channel, or waits for the connection attempt under way.
    async fn channel(&self) -> Result<Arc<LiveChannel>, String> {
        let attempt = {
            let mut state = self.state();
            if let Some(live) = &state.channel {
                return Ok(live.clone());
            }
            match &state.attempt {
                Some(attempt) => attempt.clone(),
                None => {
                    let attempt = self.clone().attempt();
                    state.attempt = Some(attempt.clone());
                    attempt
                }
            }
        };
        attempt.await
    }

    /// Connects in its own task, so that the attempt survives the call that started it.
    fn attempt(self) -> Attempt {
        let task = tokio::spawn(async move {
            let outcome = self.connect().await;
            let mut state = self.state();
            state.attempt = None;
            state.channel = outcome.as_ref().ok().cloned();
            outcome
        });
        task.map(|end| end.unwrap_or_else(|error| Err(error.to_string())))
            .boxed()
            .shared()
    }

    async fn connect(&self) -> Result<Arc<LiveChannel>, String> {
        let limit = self.0.connect_timeout;
        match tokio::time::timeout(limit, self.handshake()).await {
            Ok(connected) => connected.map(|channel| {
                tracing::debug!("connected to Temporal");
                let lost = watch::Sender::new(false);
                Arc::new(LiveChannel { channel, lost })
            }),
            Err(_elapsed) => Err(format!("no connection within {limit:?}")),
        }
    }

    /// Connects and calls GetSystemInfo, so that a server that accepts connections but never answers counts as unreachable.
    async fn handshake(&self) -> Result<Channel, String> {
        let limit = self.0.connect_timeout;
        let endpoint = self
            .0
            .target
            .endpoint(limit)
            .map_err(|error| error_chain(&error))?;
        let channel = endpoint
            .connect()
            .await
            .map_err(|error| error_chain(&error))?;
        match self.send(&channel, limit, GetSystemInfoRequest {}).await {
            Ok(()) => Ok(channel),
            // The server is older than the call.
            Err(status) if status.code() == Code::Unimplemented => Ok(channel),
            Err(status) => Err(explain(&status)),
        }
    }

    /// Discards the channel, so that the next call reconnects.
    ///
    /// Also after a deadline: a channel may hang while it reconnects, and would block all later calls. A new one
    /// is cheap.
    fn discard(&self, live: &Arc<LiveChannel>) {
        let mut state = self.state();
        if state
            .channel
            .as_ref()
            .is_some_and(|current| Arc::ptr_eq(current, live))
        {
            state.channel = None;
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the text of a status and of its causes.
pub(crate) fn explain(status: &Status) -> String {
    let text = match status.message() {
        "" => status.code().description().to_owned(),
        message => message.to_owned(),
    };
    let below = status
        .source()
        .map(error_chain)
        .filter(|below| *below != text);
    let full = match below {
        Some(below) => format!("{:?}: {text}: {below}", status.code()),
        None => format!("{:?}: {text}", status.code()),
    };
    clip(&full, ERROR_MAX_CHARS)
}

/// Joins the texts of an error and its causes.
pub fn error_chain(error: &(dyn StdError + 'static)) -> String {
    let mut text = error.to_string();
    for source in sources(error) {
        let more = source.to_string();
        // Layers often repeat what they wrap.
        if !text.ends_with(&more) {
            text = format!("{text}: {more}");
        }
    }
    clip(&text, ERROR_MAX_CHARS)
}

fn sources<'a>(
    error: &'a (dyn StdError + 'static),
) -> impl Iterator<Item = &'a (dyn StdError + 'static)> {
    std::iter::successors(error.source(), |error| (*error).source())
}

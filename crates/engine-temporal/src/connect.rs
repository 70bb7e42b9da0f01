//! The one connection: made when first needed, shared by all calls, made anew when it is lost. Knows no call by name.
//!
//! A gRPC channel reconnects by itself, but one call after the other, each waiting for its own attempt. So a channel that
//! could not reconnect is thrown away, and all calls wait for the one next attempt.

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

/// The largest answer that is read: a page of a history may be large.
const ANSWER_MAX_BYTES: usize = 128 * 1024 * 1024;

/// Why a call brought no answer.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// There is no connection: the call was not sent.
    NotConnected(String),
    /// The call may have been sent; this is what came back, or what gRPC made of it.
    Status(Status),
}

/// The connection to one frontend. Cheap to clone; clones share it.
#[derive(Clone)]
pub(crate) struct Link(Arc<Shape>);

struct Shape {
    target: Target,
    connect_timeout: Duration,
    /// Never held across an await.
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    live: Option<Arc<Live>>,
    attempt: Option<Attempt>,
}

type Attempt = Shared<BoxFuture<'static, Result<Arc<Live>, String>>>;

struct Live {
    channel: Channel,
    /// Turns true when the channel is known to have no connection.
    lost: watch::Sender<bool>,
}

impl Link {
    pub(crate) fn new(target: Target, connect_timeout: Duration) -> Self {
        Self(Arc::new(Shape {
            target,
            connect_timeout,
            state: Mutex::default(),
        }))
    }

    /// Makes one call, once: connects if need be, waits at most `limit` for the answer, and never tries again.
    pub(crate) async fn call<C: Call>(
        &self,
        limit: Duration,
        message: C,
    ) -> Result<C::Answer, Trouble> {
        let live = self.live().await.map_err(Trouble::NotConnected)?;
        let answer = tokio::time::timeout(limit, self.send(&live.channel, limit, message));
        let mut lost = live.lost.subscribe();
        tokio::select! {
            biased;
            answer = answer => match answer {
                Ok(Ok(answer)) => Ok(answer),
                Ok(Err(status)) => Err(self.judge(&live, status)),
                Err(_elapsed) => {
                    self.discard(&live);
                    Err(Trouble::Status(Status::deadline_exceeded(format!("no answer within {limit:?}"))))
                }
            },
            // What is still waiting now would wait for an attempt to connect of its own.
            _ = lost.wait_for(|lost| *lost) => Err(Trouble::Status(Status::unavailable("the connection was lost"))),
        }
    }

    async fn send<C: Call>(
        &self,
        channel: &Channel,
        limit: Duration,
        message: C,
    ) -> Result<C::Answer, Status> {
        let namespace = message.namespace().map(MetadataValue::try_from);
        let mut request = Request::new(message);
        request.set_timeout(limit);
        let headers = request.metadata_mut();
        // By it a proxy finds the cell that serves the namespace. A name no header can carry is refused by the server.
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
        let mut grpc = Grpc::new(channel.clone()).max_decoding_message_size(ANSWER_MAX_BYTES);
        grpc.ready()
            .await
            .map_err(|error| Status::from_error(error.into()))?;
        let path = PathAndQuery::try_from(C::path());
        let path = path.map_err(|error| Status::internal(error.to_string()))?;
        let codec = ProstCodec::<C, C::Answer>::default();
        Ok(grpc.unary(request, path, codec).await?.into_inner())
    }

    fn judge(&self, live: &Arc<Live>, status: Status) -> Trouble {
        let is = |what: fn(&(dyn StdError + 'static)) -> bool| sources(&status).any(what);
        if is(|source| source.is::<tonic::ConnectError>()) {
            self.discard(live);
            live.lost.send_replace(true);
            return Trouble::NotConnected(explain(&status));
        }
        // The channel keeps the same time as we do, and may be first.
        if is(|source| source.is::<tonic::TimeoutExpired>()) {
            self.discard(live);
        }
        Trouble::Status(status)
    }

    /// The connection, or the outcome of the one attempt under way.
    async fn live(&self) -> Result<Arc<Live>, String> {
        let attempt = {
            let mut state = self.state();
            if let Some(live) = &state.live {
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

    /// Runs as a task, so that it goes on when the call that began it is given up.
    fn attempt(self) -> Attempt {
        let task = tokio::spawn(async move {
            let outcome = self.connect().await;
            let mut state = self.state();
            state.attempt = None;
            state.live = outcome.as_ref().ok().cloned();
            outcome
        });
        task.map(|end| end.unwrap_or_else(|broken| Err(broken.to_string())))
            .boxed()
            .shared()
    }

    async fn connect(&self) -> Result<Arc<Live>, String> {
        let limit = self.0.connect_timeout;
        match tokio::time::timeout(limit, self.greet()).await {
            Ok(connected) => connected.map(|channel| {
                tracing::debug!("connected to Temporal");
                let lost = watch::Sender::new(false);
                Arc::new(Live { channel, lost })
            }),
            Err(_elapsed) => Err(format!("no connection within {limit:?}")),
        }
    }

    /// Asks the server for its capabilities too, so what accepts a connection but never answers is no connection.
    async fn greet(&self) -> Result<Channel, String> {
        let limit = self.0.connect_timeout;
        let endpoint = self
            .0
            .target
            .endpoint(limit)
            .map_err(|error| chain(&error))?;
        let channel = endpoint.connect().await.map_err(|error| chain(&error))?;
        match self.send(&channel, limit, GetSystemInfoRequest {}).await {
            Ok(()) => Ok(channel),
            // A server of before the call was there.
            Err(status) if status.code() == Code::Unimplemented => Ok(channel),
            Err(status) => Err(explain(&status)),
        }
    }

    /// The next call connects anew, unless that has happened already.
    ///
    /// Also after a deadline has passed: a channel may hang while it reconnects, and would for all that come. A new one
    /// costs little.
    fn discard(&self, live: &Arc<Live>) {
        let mut state = self.state();
        if state
            .live
            .as_ref()
            .is_some_and(|held| Arc::ptr_eq(held, live))
        {
            state.live = None;
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a status says, with the errors that it was made of.
pub(crate) fn explain(status: &Status) -> String {
    let said = match status.message() {
        "" => status.code().description().to_owned(),
        message => message.to_owned(),
    };
    let below = status.source().map(chain).filter(|below| *below != said);
    let text = match below {
        Some(below) => format!("{:?}: {said}: {below}", status.code()),
        None => format!("{:?}: {said}", status.code()),
    };
    clip(&text, ERROR_MAX_CHARS)
}

/// An error with its causes.
pub fn chain(error: &(dyn StdError + 'static)) -> String {
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

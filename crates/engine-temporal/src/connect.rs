//! The one connection: made when first needed, shared by all calls, made anew when it is lost. Knows no call by name.
//!
//! The SDK's channel reconnects by itself, but one call after the other, each waiting for its own attempt. So a channel that
//! could not reconnect is thrown away, and everybody waits for the one next attempt.

use futures::FutureExt;
use futures::future::{BoxFuture, Shared};
use leasehold_core::limits::ERROR_MAX_CHARS;
use leasehold_core::text::clip;
use std::error::Error as StdError;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use temporalio_client::errors::ClientConnectError;
use temporalio_client::grpc::WorkflowService;
use temporalio_client::tonic::{self, Request, Response, Status};
use temporalio_client::{Connection, ConnectionOptions};
use tokio::sync::watch;

/// Why a call brought no answer.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// There is no connection: the call was not sent.
    NotConnected(String),
    /// The call may have been sent; this is what came back, or what the SDK made of it.
    Status(Status),
}

/// The connection to one frontend. Cheap to clone; clones share it.
#[derive(Clone)]
pub(crate) struct Link(Arc<Shape>);

struct Shape {
    options: ConnectionOptions,
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
    connection: Connection,
    /// Turns true when the channel is known to have no connection.
    lost: watch::Sender<bool>,
}

impl Link {
    pub(crate) fn new(options: ConnectionOptions, connect_timeout: Duration) -> Self {
        Self(Arc::new(Shape {
            options,
            connect_timeout,
            state: Mutex::default(),
        }))
    }

    /// Makes one call, once: connects if need be, waits at most `limit` for the answer, and never tries again.
    ///
    /// It goes to the SDK's bare service client. The SDK's other way in retries, and copies each message to be able to.
    pub(crate) async fn call<M, R, F, Sent>(
        &self,
        limit: Duration,
        message: M,
        send: F,
    ) -> Result<R, Trouble>
    where
        F: FnOnce(Box<dyn WorkflowService>, Request<M>) -> Sent,
        Sent: Future<Output = Result<Response<R>, Status>>,
    {
        let live = self.live().await.map_err(Trouble::NotConnected)?;
        let mut request = Request::new(message);
        request.set_timeout(limit);
        let answer = tokio::time::timeout(limit, send(live.connection.workflow_service(), request));
        let mut lost = live.lost.subscribe();
        tokio::select! {
            biased;
            answer = answer => match answer {
                Ok(Ok(response)) => Ok(response.into_inner()),
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

    /// Runs as a task, so that it goes on when whoever began it stops waiting.
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

    /// Asks the server for its capabilities too, so what accepts a connection but never answers is no connection.
    async fn connect(&self) -> Result<Arc<Live>, String> {
        let limit = self.0.connect_timeout;
        let connecting = Connection::connect(self.0.options.clone());
        match tokio::time::timeout(limit, connecting).await {
            Ok(Ok(connection)) => {
                tracing::debug!("connected to Temporal");
                let lost = watch::Sender::new(false);
                Ok(Arc::new(Live { connection, lost }))
            }
            Ok(Err(error)) => Err(not_connected(&error)),
            Err(_elapsed) => Err(format!("no connection within {limit:?}")),
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

/// Why there is no connection.
pub(crate) fn not_connected(error: &ClientConnectError) -> String {
    match error {
        ClientConnectError::SystemInfoCallError(status) => explain(status),
        ClientConnectError::TonicTransportError(error) => chain(error),
        error => chain(error),
    }
}

/// What a status says, with whatever it was made of.
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

pub(crate) fn chain(error: &(dyn StdError + 'static)) -> String {
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

//! The deadline of a call: what takes too long is answered, and what was begun is finished whether or not anybody still listens.

use crate::options::ServerOptions;
use crate::refusal::Refusal;
use crate::state::State;
use axum::extract::{MatchedPath, Request, State as Reached};
use axum::http::Method;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use leasehold_api::Code;
use std::time::Duration;

/// How a call is waited for.
enum Patience {
    /// So long; it is finished even if whoever asked has gone.
    Until(Duration),
    /// So long; it ends when whoever asked has gone.
    WhileHeard(Duration),
    /// As long as it is listened to.
    Streams,
}

pub(crate) async fn deadline(
    Reached(state): Reached<State>,
    matched: MatchedPath,
    request: Request,
    next: Next,
) -> Response {
    let (limit, answer) = match patience(request.method(), matched.as_str(), &state.options) {
        Patience::Streams => return next.run(request).await,
        Patience::WhileHeard(limit) => {
            (limit, tokio::time::timeout(limit, next.run(request)).await)
        }
        Patience::Until(limit) => {
            let serving = tokio::spawn(next.run(request));
            match tokio::time::timeout(limit, serving).await {
                Ok(Ok(response)) => (limit, Ok(response)),
                Ok(Err(broken)) => return broken_off(&broken),
                Err(elapsed) => (limit, Err(elapsed)),
            }
        }
    };
    answer.unwrap_or_else(|_| {
        Refusal::of(
            Code::DeadlineExceeded,
            format!("it took longer than {limit:?}; whether it was done is not known"),
        )
        .into_response()
    })
}

fn patience(method: &Method, route: &str, options: &ServerOptions) -> Patience {
    let usual = options.request_timeout;
    if route.ends_with("/changes") {
        Patience::Streams
    } else if route.ends_with("/claim") {
        Patience::WhileHeard(usual + options.claim_wait_max)
    } else if matches!(*method, Method::GET | Method::HEAD) {
        // It changes nothing, so nobody needs it who does not wait for it.
        Patience::WhileHeard(usual)
    } else {
        Patience::Until(usual)
    }
}

fn broken_off(broken: &tokio::task::JoinError) -> Response {
    tracing::error!(error = %broken, "a call broke off");
    Refusal::of(Code::Internal, "the server failed; its log says why").into_response()
}

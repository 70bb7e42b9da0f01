//! The deadline of a call: what takes too long is answered, and what was begun is finished whether or not anybody still listens.

use crate::options::ServerOptions;
use crate::refusal::Refusal;
use crate::route::{Deadline, RoutePolicy};
use crate::state::State;
use axum::Extension;
use axum::extract::{Request, State as Reached};
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
    Extension(policy): Extension<RoutePolicy>,
    request: Request,
    next: Next,
) -> Response {
    let (limit, answer) = match patience(request.method(), policy.deadline, &state.options) {
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

fn patience(method: &Method, deadline: Deadline, options: &ServerOptions) -> Patience {
    let usual = options.request_timeout;
    match deadline {
        Deadline::Unbounded => Patience::Streams,
        Deadline::LongPoll => Patience::WhileHeard(usual + options.claim_wait_max),
        // A call that changes nothing ends when its caller hangs up.
        Deadline::RequestTimeout if matches!(*method, Method::GET | Method::HEAD) => {
            Patience::WhileHeard(usual)
        }
        Deadline::RequestTimeout => Patience::Until(usual),
    }
}

fn broken_off(broken: &tokio::task::JoinError) -> Response {
    tracing::error!(error = %broken, "a call broke off");
    Refusal::of(Code::Internal, "the server failed; its log says why").into_response()
}

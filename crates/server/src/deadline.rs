//! The deadline of a call: a call over its time limit gets 504, and a change that has begun still runs to its end.

use crate::api_error::{ApiError, ApiResult};
use crate::options::ServerOptions;
use crate::route::{Deadline, RoutePolicy};
use crate::state::State;
use axum::Extension;
use axum::extract::{Request, State as AxumState};
use axum::http::Method;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use leasehold_api::Code;
use std::time::Duration;

/// The time limit of a call, and what happens when its caller disconnects.
enum CallTimeout {
    /// Limited; runs to completion even if the caller disconnects.
    RunToCompletion(Duration),
    /// Limited; cancelled when the caller disconnects.
    CancelOnDisconnect(Duration),
    /// Unlimited; cancelled when the caller disconnects.
    Unlimited,
}

pub(crate) async fn apply_deadline(
    AxumState(state): AxumState<State>,
    Extension(policy): Extension<RoutePolicy>,
    request: Request,
    next: Next,
) -> Response {
    let (limit, answer) = match call_timeout(request.method(), policy.deadline, &state.options) {
        CallTimeout::Unlimited => return next.run(request).await,
        CallTimeout::CancelOnDisconnect(limit) => {
            (limit, tokio::time::timeout(limit, next.run(request)).await)
        }
        CallTimeout::RunToCompletion(limit) => {
            let serving = tokio::spawn(next.run(request));
            match tokio::time::timeout(limit, serving).await {
                Ok(Ok(response)) => (limit, Ok(response)),
                Ok(Err(error)) => return aborted(&error),
                Err(elapsed) => (limit, Err(elapsed)),
            }
        }
    };
    answer.unwrap_or_else(|_| exceeded(limit).into_response())
}

/// Waits for a part of a call whose route has no deadline.
pub(crate) async fn within<T>(limit: Duration, part: impl Future<Output = T>) -> ApiResult<T> {
    let finished = tokio::time::timeout(limit, part).await;
    finished.map_err(|_| exceeded(limit))
}

fn exceeded(limit: Duration) -> ApiError {
    let detail =
        format!("the call took longer than {limit:?}; it is unknown whether it was carried out");
    ApiError::new(Code::DeadlineExceeded, detail)
}

fn call_timeout(method: &Method, deadline: Deadline, options: &ServerOptions) -> CallTimeout {
    let limit = options.request_timeout;
    match deadline {
        Deadline::Unbounded => CallTimeout::Unlimited,
        Deadline::LongPoll => CallTimeout::CancelOnDisconnect(limit + options.claim_wait_max),
        // A call that only reads is cancelled when its caller disconnects.
        Deadline::RequestTimeout if matches!(*method, Method::GET | Method::HEAD) => {
            CallTimeout::CancelOnDisconnect(limit)
        }
        Deadline::RequestTimeout => CallTimeout::RunToCompletion(limit),
    }
}

fn aborted(error: &tokio::task::JoinError) -> Response {
    tracing::error!(%error, "request handler was aborted");
    ApiError::new(Code::Internal, "internal error; see the server's log").into_response()
}

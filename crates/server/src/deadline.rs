//! The deadline of a call: a call over its time limit gets 504, and what has begun still runs to its end.

use crate::api_error::{ApiError, ApiResult};
use crate::options::ServerOptions;
use crate::route::{Deadline, RoutePolicy};
use axum::response::{IntoResponse, Response};
use leasehold_api::Code;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// The time limit of a call, and what happens when its caller disconnects.
#[derive(Clone, Copy)]
pub(crate) enum CallTimeout {
    /// Runs to completion even if the caller disconnects.
    RunToCompletion(Duration),
    /// Cancelled when the caller disconnects.
    CancelOnDisconnect(Duration),
}

/// Waits for what comes before a call has a place, and ends it when the caller disconnects: it must not outlive its caller, because nothing counts it.
pub(crate) async fn before<T>(
    timeout: CallTimeout,
    part: impl Future<Output = ApiResult<T>>,
) -> ApiResult<T> {
    let (CallTimeout::RunToCompletion(limit) | CallTimeout::CancelOnDisconnect(limit)) = timeout;
    let finished = tokio::time::timeout(limit, part).await;
    finished.unwrap_or_else(|_| Err(exceeded(limit)))
}

/// Waits for the response to a call that began at this time, for as long as the call may take.
pub(crate) async fn apply(
    timeout: CallTimeout,
    begun: Instant,
    response: impl Future<Output = Response> + Send + 'static,
) -> Response {
    let (limit, answer) = match timeout {
        CallTimeout::CancelOnDisconnect(limit) => {
            (limit, timeout_at(begun + limit, response).await)
        }
        CallTimeout::RunToCompletion(limit) => {
            let serving = tokio::spawn(response);
            match timeout_at(begun + limit, serving).await {
                Ok(Ok(response)) => (limit, Ok(response)),
                Ok(Err(error)) => return aborted(&error),
                Err(elapsed) => (limit, Err(elapsed)),
            }
        }
    };
    answer.unwrap_or_else(|_| exceeded(limit).into_response())
}

fn exceeded(limit: Duration) -> ApiError {
    let detail =
        format!("the call took longer than {limit:?}; it is unknown whether it was carried out");
    ApiError::new(Code::DeadlineExceeded, detail)
}

/// Returns the time limit of a call.
pub(crate) fn call_timeout(policy: RoutePolicy, options: &ServerOptions) -> CallTimeout {
    let limit = options.request_timeout;
    match policy.deadline {
        // It has no place, so nothing would limit the calls that outlive their callers.
        Deadline::RequestTimeout if !policy.sheddable => CallTimeout::CancelOnDisconnect(limit),
        Deadline::LongPoll => CallTimeout::CancelOnDisconnect(limit + options.claim_wait_max),
        // Reads too: the store goes on with a statement whose caller has disconnected, so the caller's places must stay taken.
        Deadline::RequestTimeout => CallTimeout::RunToCompletion(limit),
    }
}

fn aborted(error: &tokio::task::JoinError) -> Response {
    tracing::error!(%error, "request handler was aborted");
    ApiError::new(Code::Internal, "internal error; see the server's log").into_response()
}

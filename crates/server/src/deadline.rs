//! The deadline of a call: a call over its time limit gets 504, and what has begun still runs to its end.

use crate::api_error::{ApiError, ApiResult};
use crate::options::ServerOptions;
use crate::route::Deadline;
use axum::response::{IntoResponse, Response};
use leasehold_api::Code;
use std::time::Duration;

/// The time limit of a call, and what happens when its caller disconnects.
pub(crate) enum CallTimeout {
    /// Limited; runs to completion even if the caller disconnects.
    RunToCompletion(Duration),
    /// Limited; cancelled when the caller disconnects.
    CancelOnDisconnect(Duration),
    /// Unlimited; cancelled when the caller disconnects.
    Unlimited,
}

/// Waits for the response to a call, for as long as the call may take.
pub(crate) async fn apply(
    timeout: CallTimeout,
    response: impl Future<Output = Response> + Send + 'static,
) -> Response {
    let (limit, answer) = match timeout {
        CallTimeout::Unlimited => return response.await,
        CallTimeout::CancelOnDisconnect(limit) => {
            (limit, tokio::time::timeout(limit, response).await)
        }
        CallTimeout::RunToCompletion(limit) => {
            let serving = tokio::spawn(response);
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

/// Returns the time limit of a call.
pub(crate) fn call_timeout(deadline: Deadline, options: &ServerOptions) -> CallTimeout {
    let limit = options.request_timeout;
    match deadline {
        Deadline::Unbounded => CallTimeout::Unlimited,
        Deadline::LongPoll => CallTimeout::CancelOnDisconnect(limit + options.claim_wait_max),
        // Reads too: the store goes on with a statement whose caller has disconnected, so the caller's places must stay taken.
        Deadline::RequestTimeout => CallTimeout::RunToCompletion(limit),
    }
}

fn aborted(error: &tokio::task::JoinError) -> Response {
    tracing::error!(%error, "request handler was aborted");
    ApiError::new(Code::Internal, "internal error; see the server's log").into_response()
}

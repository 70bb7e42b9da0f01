//! How long activities may take, how often Temporal tries them again, and what their failures say. Runs nothing.

use leasehold_core::job::JobRetry;
use leasehold_engine_temporal::graph_payload::timed_out;
use std::time::Duration;
use temporalio_common::RetryPolicy;
use temporalio_common::error::{IncomingError, TimeoutType};
use temporalio_sdk::error::ActivityExecutionError;
use temporalio_sdk::{ActivityOptions, LocalActivityOptions, WorkflowCancellationToken};

/// A worker that was killed is noticed after this.
pub(crate) const HEARTBEAT_TIMEOUT: Duration = Duration::from_secs(10);
/// How often an activity says that it goes on.
pub(crate) const HEARTBEAT: Duration = Duration::from_secs(2);
/// A call ends by its own timeout, which says more than Temporal's; this is for one that does not.
const GRACE: Duration = Duration::from_secs(5);
/// Longer than any job may take: whoever has it decides, and the execution's own timeout.
const TASK_TIMEOUT: Duration = Duration::from_secs(10 * 366 * 86_400);
/// How long waiting for a server that is away may grow.
const TASK_RETRY_MAX: Duration = Duration::from_secs(5);
/// Time for a word to the server.
const END_TIMEOUT: Duration = Duration::from_secs(2);

pub(crate) fn of_call(
    node: &str,
    timeout: Duration,
    retry: &JobRetry,
    nodes: &WorkflowCancellationToken,
) -> ActivityOptions {
    // Temporal refuses a first wait of nothing, and a longest one below the first.
    let base = retry.backoff.base.max(Duration::from_millis(1));
    let policy = RetryPolicy::builder()
        .initial_interval(base)
        .backoff_coefficient(retry.backoff.factor.max(1.0))
        .maximum_interval(retry.backoff.max.max(base))
        .maximum_attempts(retry.max_attempts.max(1))
        .build();
    ActivityOptions::with_start_to_close_timeout(timeout.saturating_add(GRACE))
        .activity_id(node)
        .heartbeat_timeout(HEARTBEAT_TIMEOUT)
        .retry_policy(policy)
        .cancellation_token(nodes.clone())
        .build()
}

/// The job has its own attempts; Temporal's are for finding out about it, and never run out.
pub(crate) fn of_task(node: &str, nodes: &WorkflowCancellationToken) -> ActivityOptions {
    let policy = RetryPolicy::builder()
        .initial_interval(Duration::from_millis(500))
        .maximum_interval(TASK_RETRY_MAX)
        .maximum_attempts(0)
        .build();
    ActivityOptions::with_start_to_close_timeout(TASK_TIMEOUT)
        .activity_id(node)
        .heartbeat_timeout(HEARTBEAT_TIMEOUT)
        .retry_policy(policy)
        .cancellation_token(nodes.clone())
        .build()
}

pub(crate) fn of_the_end() -> LocalActivityOptions {
    LocalActivityOptions::builder()
        .retry_policy(RetryPolicy::builder().maximum_attempts(1).build())
        .schedule_to_close_timeout(END_TIMEOUT)
        .start_to_close_timeout(END_TIMEOUT)
        .cancellation_token(WorkflowCancellationToken::new())
        .build()
}

/// What a node's failure is told as.
pub(crate) fn said(error: &ActivityExecutionError) -> String {
    match error.cause() {
        Some(IncomingError::Application(failure)) => failure.to_string(),
        Some(IncomingError::Timeout(timeout)) => {
            timed_out(timeout.timeout_type() == TimeoutType::Heartbeat).to_owned()
        }
        _ => error.to_string(),
    }
}

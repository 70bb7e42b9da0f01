//! The timeouts and retry policies of activities, and the texts of their failures. Runs nothing.

use leasehold_core::job::JobRetry;
use leasehold_engine_temporal::graph_payload::timeout_message;
use std::time::Duration;
use temporalio_common::RetryPolicy;
use temporalio_common::error::{IncomingError, TimeoutType};
use temporalio_sdk::error::ActivityExecutionError;
use temporalio_sdk::{ActivityOptions, LocalActivityOptions, WorkflowCancellationToken};

/// Temporal detects a killed worker after this time.
pub(crate) const HEARTBEAT_TIMEOUT: Duration = Duration::from_secs(10);
/// The interval between heartbeats of an activity.
pub(crate) const HEARTBEAT: Duration = Duration::from_secs(2);
/// Added to a call's own timeout, whose error is clearer than Temporal's; Temporal's timeout is only a fallback.
const GRACE: Duration = Duration::from_secs(5);
/// Longer than any job: the job's own timeout and the execution's timeout apply first.
const TASK_TIMEOUT: Duration = Duration::from_secs(10 * 366 * 86_400);
/// The longest retry delay while the server is down.
const TASK_RETRY_MAX: Duration = Duration::from_secs(5);
/// Timeout of the end hint.
const END_TIMEOUT: Duration = Duration::from_secs(2);

pub(crate) fn call_options(
    node: &str,
    timeout: Duration,
    retry: &JobRetry,
    nodes: &WorkflowCancellationToken,
) -> ActivityOptions {
    // Temporal rejects an initial interval of zero and a maximum below the initial interval.
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

/// The job has its own attempts; Temporal's attempts only poll it and are unlimited.
pub(crate) fn task_options(node: &str, nodes: &WorkflowCancellationToken) -> ActivityOptions {
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

pub(crate) fn end_options() -> LocalActivityOptions {
    LocalActivityOptions::builder()
        .retry_policy(RetryPolicy::builder().maximum_attempts(1).build())
        .schedule_to_close_timeout(END_TIMEOUT)
        .start_to_close_timeout(END_TIMEOUT)
        .cancellation_token(WorkflowCancellationToken::new())
        .build()
}

/// Returns the error text of a failed node.
pub(crate) fn failure_text(error: &ActivityExecutionError) -> String {
    match error.cause() {
        Some(IncomingError::Application(failure)) => failure.to_string(),
        Some(IncomingError::Timeout(timeout)) => {
            timeout_message(timeout.timeout_type() == TimeoutType::Heartbeat).to_owned()
        }
        _ => error.to_string(),
    }
}

//! Starts one claimed request in the engine; the outcome of the start decides the outcome of the claim. See ADR 3.

use super::flush::ResolvedClaim;
use super::held_claims::LeaseDeadline;
use super::trace::{self, RequestTrace};
use super::{Shared, log};
use crate::circuit_breaker::StartUnderWay;
use crate::crash::poisoned_error;
use leasehold_core::retry::Backoff;
use leasehold_core::{ExecutionEnd, FailureReason, JsonText, Version};
use leasehold_engine::{Description, Start, StartOutcome, StartPrevented};
use leasehold_service::catch_panic;
use leasehold_store::execution::ExecutionFinish;
use leasehold_store::request::{ClaimedRequest, ExecutionOrigin, ReleaseKind};
use std::sync::Arc;
use std::time::Duration;

/// The longest delay before an unknown start is repeated. It holds a slot, and the engine may be back.
const UNKNOWN_MAX_DELAY: Duration = Duration::from_secs(30);
/// After so many failures while other starts succeed, the request is the cause, and the delay may grow up to the maximum backoff.
const FAILURES_BESIDE_SUCCESSES: u32 = 5;

/// A claimed request to be started.
pub(super) struct AdmittedRequest {
    pub(super) claimed: ClaimedRequest,
    pub(super) deadline: LeaseDeadline,
    pub(super) trace: RequestTrace,
    pub(super) under_way: StartUnderWay,
}

impl AdmittedRequest {
    pub(super) fn resolved_as(self, resolution: Resolution) -> ResolvedClaim {
        drop(self.under_way);
        ResolvedClaim {
            claimed: self.claimed,
            resolution,
            trace: self.trace,
        }
    }
}

/// The outcome of a claim.
#[derive(Debug)]
pub(super) enum Resolution {
    /// The engine runs the execution.
    Dispatched,
    /// The execution has already ended in the engine.
    Ended(ExecutionFinish),
    /// The request returns to PENDING, or fails if its kind says so.
    Release {
        kind: ReleaseKind,
        delay: Duration,
        error: Option<String>,
    },
    /// The request cannot be started and fails.
    Fail(FailureReason, String),
    /// The claim was lost; its new owner resolves the request.
    Lost,
}

/// Resolves one claim. A panic or a timeout affects this claim only.
pub(super) async fn resolve(shared: &Shared, admitted: &mut AdmittedRequest) -> Resolution {
    let params = std::mem::take(&mut admitted.claimed.params);
    let admitted = &*admitted;
    let claimed = &admitted.claimed;
    let attempt = catch_panic(attempt(shared, admitted, params));
    match tokio::time::timeout(shared.options.start_timeout, attempt).await {
        Ok(Ok(resolution)) => resolution,
        Ok(Err(_panic)) => {
            let error = "the start panicked";
            log::start_panicked(claimed, error);
            shared.options.telemetry.metrics.task_panicked("start");
            release_unknown(shared, claimed, error.to_owned())
        }
        Err(_elapsed) => {
            let error = format!("no answer within {:?}", shared.options.start_timeout);
            let outcome = StartOutcome::Unknown {
                error: error.clone(),
            };
            record(shared, claimed, &outcome);
            unknown(shared, claimed, error)
        }
    }
}

async fn attempt(shared: &Shared, admitted: &AdmittedRequest, params: JsonText) -> Resolution {
    let AdmittedRequest {
        claimed,
        deadline,
        trace,
        under_way: _,
    } = admitted;
    if claimed.crashes.is_poisoned() {
        let error = poisoned_error(claimed.crashes);
        return give_up(shared, claimed, FailureReason::Poisoned, error).await;
    }
    if let Some(error) = &claimed.unreadable {
        return resolve_unreadable(shared, claimed, error.clone()).await;
    }
    let version = match load_version(shared, claimed).await {
        Ok(version) => version,
        Err(resolution) => return resolution,
    };
    if !deadline.is_valid() {
        return Resolution::Lost;
    }
    log::dispatching(claimed);
    let call = trace.begin_start(shared.engine.name());
    let start = Start {
        execution: claimed.execution,
        request: claimed.id,
        workspace: claimed.workspace,
        definition: claimed.definition,
        version,
        priority: claimed.priority,
        params,
        crashed: claimed.crashes.any(),
        trace: trace::outgoing_context(&call, claimed),
        trace_context: claimed.trace_context.clone(),
    };
    let outcome = shared.engine.start(&start).await;
    log::answered(claimed, &outcome);
    trace::answered(call, &outcome);
    let is_first_failure = record(shared, claimed, &outcome);
    resolve_outcome(shared, claimed, outcome, is_first_failure).await
}

async fn resolve_outcome(
    shared: &Shared,
    claimed: &ClaimedRequest,
    outcome: StartOutcome,
    is_first_failure: bool,
) -> Resolution {
    let is_cancelled = claimed.cancel_requested && claimed.origin == ExecutionOrigin::Kept;
    match outcome {
        StartOutcome::Started | StartOutcome::AlreadyStarted { .. } if is_cancelled => {
            terminate_cancelled(shared, claimed).await
        }
        StartOutcome::Started | StartOutcome::AlreadyStarted { ended: false } => {
            Resolution::Dispatched
        }
        StartOutcome::AlreadyStarted { ended: true } => resolve_ended(shared, claimed).await,
        StartOutcome::Refused { error } => resolve_refused(shared, claimed, error).await,
        StartOutcome::Unknown { error } => unknown(shared, claimed, error),
        StartOutcome::Unavailable {
            error,
            reached: true,
        } => {
            log::unknown(claimed, &error);
            // Failures in a row, not attempts: after an outage every request has many attempts, and the engine is back.
            let failures = shared.breaker.start_failures(claimed.id).in_a_row;
            Resolution::Release {
                kind: ReleaseKind::Unknown,
                delay: unknown_delay(shared, claimed, failures.saturating_sub(1)),
                error: Some(error),
            }
        }
        StartOutcome::Unavailable {
            error,
            reached: false,
        } => {
            if is_first_failure {
                log::not_started(shared.engine.name(), claimed, &error);
            } else {
                log::not_started_during_outage(claimed, &error);
            }
            not_sent(shared, claimed, error)
        }
    }
}

/// Loads the version to start, or returns how the claim resolves without it.
async fn load_version(
    shared: &Shared,
    claimed: &ClaimedRequest,
) -> Result<Arc<Version>, Resolution> {
    let found = shared
        .store
        .version_get(claimed.workspace, claimed.version)
        .await;
    let error = match found {
        Ok(Some(version)) => return Ok(version),
        Ok(None) if claimed.origin == ExecutionOrigin::Kept => {
            let error = "version not found".to_owned();
            return Err(unknown(shared, claimed, error));
        }
        Ok(None) => {
            let error = "version not found; it was deleted".to_owned();
            return Err(Resolution::Fail(FailureReason::VersionNotFound, error));
        }
        Err(error) => error,
    };
    let text = format!("failed to read the version: {error}");
    if error.is_retryable() {
        return Err(not_sent(shared, claimed, text));
    }
    log::version_unreadable(claimed, &error);
    let delay = delay(shared.options.backoff, claimed.attempt_count);
    Err(release_unsent(claimed, delay, Some(text)))
}

/// Terminates the execution of a cancelled unknown start. Starting it first made the outcome known; terminating it ensures that no late start
/// runs it.
async fn terminate_cancelled(shared: &Shared, claimed: &ClaimedRequest) -> Resolution {
    let reason = "cancelled through Leasehold before its start was certain";
    if let Err(error) = shared.engine.terminate(claimed.execution, reason).await {
        return unknown(shared, claimed, error.to_string());
    }
    resolve_ended(shared, claimed).await
}

/// Resolves a request whose params cannot be read. An earlier start had readable ones, so its execution runs on if it was started.
async fn resolve_unreadable(
    shared: &Shared,
    claimed: &ClaimedRequest,
    error: String,
) -> Resolution {
    if claimed.origin == ExecutionOrigin::Kept && !claimed.cancel_requested {
        match shared.engine.describe(claimed.execution).await {
            Ok(Description::Open) => return Resolution::Dispatched,
            Ok(Description::Ended { end, error, .. }) => return finished(claimed, end, error),
            Ok(Description::NotFound) => {}
            Err(unsure) => return unknown(shared, claimed, unsure.to_string()),
        }
    }
    give_up(shared, claimed, FailureReason::DispatchExhausted, error).await
}

/// Fails a request without computing its input. An unknown start is made definite first.
async fn give_up(
    shared: &Shared,
    claimed: &ClaimedRequest,
    reason: FailureReason,
    error: String,
) -> Resolution {
    let prevented = match claimed.origin {
        ExecutionOrigin::Created | ExecutionOrigin::Replaced => Ok(StartPrevented::NotStarted),
        ExecutionOrigin::Kept => {
            let (execution, request) = (claimed.execution, claimed.id);
            let call = shared.engine.prevent_start(execution, request, &error);
            call.await
        }
    };
    let described = match prevented {
        Ok(StartPrevented::NotStarted) => {
            return Resolution::Fail(reason, error);
        }
        Ok(StartPrevented::Ended) => shared.engine.describe(claimed.execution).await,
        Err(failure) => Err(failure),
    };
    match described {
        Ok(Description::Ended {
            end: ExecutionEnd::Terminated,
            ..
        }) => finished(claimed, ExecutionEnd::Terminated, Some(error)),
        Ok(Description::Ended { end, error, .. }) => finished(claimed, end, error),
        Ok(Description::Open | Description::NotFound) => {
            let error = "the engine does not report the end of the terminated execution yet";
            unknown(shared, claimed, error.to_owned())
        }
        Err(failure) => unknown(shared, claimed, failure.to_string()),
    }
}

/// Resolves a start whose execution has already ended; describing it tells how.
async fn resolve_ended(shared: &Shared, claimed: &ClaimedRequest) -> Resolution {
    match shared.engine.describe(claimed.execution).await {
        Ok(Description::Ended { end, error, .. }) => finished(claimed, end, error),
        // The reconciler finds its end, or the full sweep finds it lost.
        Ok(Description::Open | Description::NotFound) | Err(_) => Resolution::Dispatched,
    }
}

/// Resolves a rejected start. If an earlier start may have been sent, only describing the execution tells whether that one runs.
async fn resolve_refused(shared: &Shared, claimed: &ClaimedRequest, error: String) -> Resolution {
    if claimed.origin == ExecutionOrigin::Kept {
        match shared.engine.describe(claimed.execution).await {
            Ok(Description::Open) => return Resolution::Dispatched,
            Ok(Description::Ended { end, error, .. }) => return finished(claimed, end, error),
            Ok(Description::NotFound) => {}
            Err(unsure) => return unknown(shared, claimed, unsure.to_string()),
        }
    }
    log::not_started(shared.engine.name(), claimed, &error);
    Resolution::Release {
        kind: ReleaseKind::Refused {
            max_attempts: shared.options.max_attempts,
        },
        delay: delay(shared.options.backoff, claimed.dispatch_failures),
        error: Some(error),
    }
}

fn finished(claimed: &ClaimedRequest, end: ExecutionEnd, error: Option<String>) -> Resolution {
    Resolution::Ended(ExecutionFinish {
        execution: claimed.execution,
        end,
        error,
    })
}

/// Releases a request that was not sent. The request is not the cause, so no dispatch failure is counted.
fn not_sent(shared: &Shared, claimed: &ClaimedRequest, error: String) -> Resolution {
    release_unsent(claimed, delay(shared.options.backoff, 0), Some(error))
}

fn unknown(shared: &Shared, claimed: &ClaimedRequest, error: String) -> Resolution {
    log::unknown(claimed, &error);
    release_unknown(shared, claimed, error)
}

/// Releases an unknown start: the execution may run, so it keeps its slot, and the start is repeated.
fn release_unknown(shared: &Shared, claimed: &ClaimedRequest, error: String) -> Resolution {
    Resolution::Release {
        kind: ReleaseKind::Unknown,
        delay: unknown_delay(shared, claimed, claimed.attempt_count),
        error: Some(error),
    }
}

/// Returns the delay before an unknown start is repeated after so many earlier failures.
fn unknown_delay(shared: &Shared, claimed: &ClaimedRequest, failures: u32) -> Duration {
    let backoff = delay(shared.options.backoff, failures);
    let failed = shared.breaker.start_failures(claimed.id);
    if failed.while_others_succeed >= FAILURES_BESIDE_SUCCESSES {
        backoff
    } else {
        backoff.min(UNKNOWN_MAX_DELAY)
    }
}

/// Tells the circuit breaker how a start ended. Returns whether it is the first failure since the engine last answered one.
fn record(shared: &Shared, claimed: &ClaimedRequest, outcome: &StartOutcome) -> bool {
    shared
        .breaker
        .record_start(claimed.id, claimed.workspace, outcome)
}

/// Releases a claim that this dispatcher did not send. An earlier start may have been sent; then the start stays unknown.
pub(super) fn release_unsent(
    claimed: &ClaimedRequest,
    delay: Duration,
    error: Option<String>,
) -> Resolution {
    Resolution::Release {
        kind: match claimed.origin {
            ExecutionOrigin::Kept => ReleaseKind::Unknown,
            ExecutionOrigin::Created | ExecutionOrigin::Replaced => ReleaseKind::NotStarted,
        },
        delay,
        error,
    }
}

fn delay(backoff: Backoff, failures: u32) -> Duration {
    backoff.delay(failures.saturating_add(1), fastrand::f64())
}

//! One claimed request: the engine is asked to start it, and the answer decides what becomes of the claim. See ADR 3.

use super::held::Watch;
use super::settle::Settlement;
use super::trace::{self, Item};
use super::{Shared, log};
use futures::FutureExt;
use leasehold_core::retry::Backoff;
use leasehold_core::{ExecutionEnd, FailureReason, JsonText, Version};
use leasehold_engine::{Description, Start, StartOutcome};
use leasehold_store::execution::ExecutionFinish;
use leasehold_store::request::{ClaimedRequest, ExecutionOrigin, ReleaseKind};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

/// The longest wait of an unknown start.
const UNKNOWN_WAITS_AT_MOST: Duration = Duration::from_secs(30);

/// A claim that is to be started.
pub(super) struct Admitted {
    pub(super) claimed: ClaimedRequest,
    pub(super) watch: Watch,
    pub(super) item: Item,
}

impl Admitted {
    pub(super) fn settled_as(self, resolution: Resolution) -> Settlement {
        Settlement {
            claimed: self.claimed,
            resolution,
            item: self.item,
        }
    }
}

/// What becomes of a claim.
#[derive(Debug)]
pub(super) enum Resolution {
    /// The engine has it.
    Dispatched,
    /// The engine has it no more: it has ended.
    Ended(ExecutionFinish),
    /// Back to PENDING, or further if its kind says so.
    Release {
        kind: ReleaseKind,
        delay: Duration,
        error: Option<String>,
    },
    /// It cannot be started at all.
    Fail(FailureReason, String),
    /// The claim is not ours any more; whoever has it decides.
    Lost,
}

/// Resolves one claim. Whatever goes wrong in here concerns this claim alone.
pub(super) async fn resolve(shared: &Shared, admitted: &mut Admitted) -> Resolution {
    let params = std::mem::take(&mut admitted.claimed.params);
    let admitted = &*admitted;
    let claimed = &admitted.claimed;
    let attempt = AssertUnwindSafe(attempt(shared, admitted, params)).catch_unwind();
    match tokio::time::timeout(shared.options.start_timeout, attempt).await {
        Ok(Ok(resolution)) => resolution,
        Ok(Err(_panic)) => {
            let error = "starting it panicked";
            log::broken(claimed, error);
            kept(shared, claimed, error.to_owned())
        }
        Err(_elapsed) => {
            let error = format!("no answer within {:?}", shared.options.start_timeout);
            shared.gate.started(&StartOutcome::Unknown {
                error: error.clone(),
            });
            unknown(shared, claimed, error)
        }
    }
}

async fn attempt(shared: &Shared, admitted: &Admitted, params: JsonText) -> Resolution {
    let Admitted {
        claimed,
        watch,
        item,
    } = admitted;
    let version = match version(shared, claimed).await {
        Ok(version) => version,
        Err(resolution) => return resolution,
    };
    if !watch.holds() {
        return Resolution::Lost;
    }
    log::dispatching(claimed);
    let call = item.asks(shared.engine.name());
    let start = Start {
        execution: claimed.execution,
        request: claimed.id,
        workspace: claimed.workspace,
        definition: claimed.definition,
        version,
        priority: claimed.priority,
        params,
        trace: trace::handed_on(&call, claimed),
        trace_context: claimed.trace_context.clone(),
    };
    let outcome = shared.engine.start(&start).await;
    log::answered(claimed, &outcome);
    trace::answered(call, &outcome);
    let news = shared.gate.started(&outcome);
    let given_up = claimed.cancel_requested && claimed.origin == ExecutionOrigin::Kept;
    match outcome {
        StartOutcome::Started | StartOutcome::AlreadyStarted { .. } if given_up => {
            give_up(shared, claimed).await
        }
        StartOutcome::Started | StartOutcome::AlreadyStarted { ended: false } => {
            Resolution::Dispatched
        }
        StartOutcome::AlreadyStarted { ended: true } => ended(shared, claimed).await,
        StartOutcome::Refused { error } => refused(shared, claimed, error).await,
        StartOutcome::Unknown { error } => unknown(shared, claimed, error),
        StartOutcome::Unavailable {
            error,
            reached: true,
        } => {
            log::unknown(claimed, &error);
            // The breaker is the brake; once the engine is back this one need not wait.
            Resolution::Release {
                kind: ReleaseKind::Unknown,
                delay: delay(shared.options.backoff, 0),
                error: Some(error),
            }
        }
        StartOutcome::Unavailable {
            error,
            reached: false,
        } => {
            if news {
                log::not_started(shared.engine.name(), claimed, &error);
            } else {
                log::not_started_either(claimed, &error);
            }
            not_sent(shared, claimed, error)
        }
    }
}

/// What to start, or what becomes of the claim without it.
async fn version(shared: &Shared, claimed: &ClaimedRequest) -> Result<Arc<Version>, Resolution> {
    let found = shared
        .store
        .version_get(claimed.workspace, claimed.version)
        .await;
    let error = match found {
        Ok(Some(version)) => return Ok(version),
        Ok(None) if claimed.origin == ExecutionOrigin::Kept => {
            let error = "its version cannot be found".to_owned();
            return Err(unknown(shared, claimed, error));
        }
        Ok(None) => {
            let error = "its version is gone".to_owned();
            return Err(Resolution::Fail(FailureReason::VersionNotFound, error));
        }
        Err(error) => error,
    };
    let text = format!("its version cannot be read: {error}");
    if error.is_retryable() {
        return Err(not_sent(shared, claimed, text));
    }
    log::unreadable(claimed, &error);
    let delay = delay(shared.options.backoff, claimed.attempt_count);
    Err(unsent(claimed, delay, Some(text)))
}

/// An unknown start that nobody wants any more was made definite by starting it; now it is ended, so that no late start can be.
async fn give_up(shared: &Shared, claimed: &ClaimedRequest) -> Resolution {
    let reason = "cancelled through Leasehold before its start was certain";
    if let Err(error) = shared.engine.terminate(claimed.execution, reason).await {
        return unknown(shared, claimed, error.to_string());
    }
    ended(shared, claimed).await
}

/// The engine said that it has ended; how, only describing tells.
async fn ended(shared: &Shared, claimed: &ClaimedRequest) -> Resolution {
    match shared.engine.describe(claimed.execution).await {
        Ok(Description::Ended { end, error, .. }) => finished(claimed, end, error),
        // Following will find it, or find that it is lost.
        Ok(Description::Open | Description::NotFound) | Err(_) => Resolution::Dispatched,
    }
}

/// A refusal of a start that may have been sent before says nothing about the earlier one.
async fn refused(shared: &Shared, claimed: &ClaimedRequest, error: String) -> Resolution {
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

/// This call sent nothing, and not for any fault of the request.
fn not_sent(shared: &Shared, claimed: &ClaimedRequest, error: String) -> Resolution {
    unsent(claimed, delay(shared.options.backoff, 0), Some(error))
}

fn unknown(shared: &Shared, claimed: &ClaimedRequest, error: String) -> Resolution {
    log::unknown(claimed, &error);
    kept(shared, claimed, error)
}

/// It may run: execution and slot stay, and the start is repeated.
fn kept(shared: &Shared, claimed: &ClaimedRequest, error: String) -> Resolution {
    Resolution::Release {
        kind: ReleaseKind::Unknown,
        // It holds a slot meanwhile, so it does not wait for long.
        delay: delay(shared.options.backoff, claimed.attempt_count).min(UNKNOWN_WAITS_AT_MOST),
        error: Some(error),
    }
}

/// What becomes of a claim that was not sent now. An earlier one may have been.
pub(super) fn unsent(
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

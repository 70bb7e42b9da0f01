//! The log events of dispatch, with the levels and fields the design documents give them. Never a payload.

use super::full::{Full, Line};
use leasehold_core::{FailureReason, RequestId, TraceContext, WorkspaceId};
use leasehold_engine::StartOutcome;
use leasehold_store::request::{Claimed, ClaimedRequest, Orphaned};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

pub(super) fn claimed(count: usize) {
    tracing::debug!(count, "Processing {count} queue items");
}

/// What a claim tells besides the requests it brought.
pub(super) fn told(claimed: &Claimed, full: &Mutex<Full>) {
    for at_capacity in &claimed.at_capacity {
        let mut full = full.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(line) = full.seen(*at_capacity, Instant::now()) {
            say_full(line);
        }
    }
    sum_up(full);
    for rejected in &claimed.rejected {
        self::rejected(rejected.request, rejected.workspace, rejected.reason);
    }
    claimed.orphaned.iter().for_each(orphaned);
}

/// Says how often workspaces were full that were so again and again.
pub(super) fn sum_up(full: &Mutex<Full>) {
    let mut full = full.lock().unwrap_or_else(PoisonError::into_inner);
    full.due(Instant::now()).into_iter().for_each(say_full);
}

fn say_full(line: Line) {
    match line {
        Line::Began(full) => {
            tracing::info!(workspace = %full.workspace, active = full.active, limit = full.limit, "Workspace at capacity");
        }
        Line::SumUp {
            last,
            times,
            seconds,
        } => {
            tracing::info!(workspace = %last.workspace, active = last.active, limit = last.limit, times, seconds,
                "Workspace at capacity again and again");
        }
    }
}

pub(super) fn rejected(request: RequestId, workspace: WorkspaceId, reason: FailureReason) {
    match reason {
        FailureReason::WorkspaceNotFound => {
            tracing::warn!(%workspace, %request, %reason, "Workspace not found");
        }
        FailureReason::DefinitionNotFound => {
            tracing::warn!(%workspace, %request, %reason, "Definition not found");
        }
        FailureReason::VersionNotFound => {
            tracing::warn!(%workspace, %request, %reason, "Version not found");
        }
        _ => {
            tracing::warn!(%workspace, %request, %reason, "request failed before its start");
        }
    }
}

fn orphaned(orphaned: &Orphaned) {
    tracing::warn!(execution = %orphaned.execution, request = %orphaned.request, workspace = %orphaned.workspace,
        "Execution not found for retry");
}

pub(super) fn dispatching(claimed: &ClaimedRequest) {
    tracing::info!(request = %claimed.id, definition = %claimed.definition, workspace = %claimed.workspace,
        trace_id = trace(claimed), "Dispatching queue item");
}

pub(super) fn answered(claimed: &ClaimedRequest, outcome: &StartOutcome) {
    tracing::debug!(execution = %claimed.execution, request = %claimed.id, ?outcome, "start answered");
}

pub(super) fn dispatched(claimed: &ClaimedRequest) {
    tracing::info!(execution = %claimed.execution, request = %claimed.id, trace_id = trace(claimed), "Dispatched execution");
}

/// A start that certainly did not happen.
pub(super) fn not_started(engine: &str, claimed: &ClaimedRequest, error: &str) {
    let (request, execution, attempt_count) =
        (claimed.id, claimed.execution, claimed.attempt_count);
    let trace_id = trace(claimed);
    if engine == "temporal" {
        tracing::error!(%request, %execution, attempt_count, error, trace_id, "Failed to start Temporal workflow");
    } else {
        tracing::error!(%request, %execution, attempt_count, error, trace_id, "Failed to start workflow");
    }
}

/// The same during an outage, of which something else tells.
pub(super) fn not_started_either(claimed: &ClaimedRequest, error: &str) {
    tracing::debug!(request = %claimed.id, execution = %claimed.execution, attempt_count = claimed.attempt_count,
        error, "the workflow was not started either");
}

pub(super) fn unreadable(claimed: &ClaimedRequest, error: &leasehold_store::Error) {
    tracing::error!(request = %claimed.id, version = %claimed.version, attempt_count = claimed.attempt_count, %error,
        "Error processing queue item: its version cannot be read by this program; was it published by a newer one?");
}

pub(super) fn exhausted(claimed: &ClaimedRequest, max_attempts: u32) {
    tracing::warn!(request = %claimed.id, workspace = %claimed.workspace, max_attempts,
        "request failed: the engine refused it as often as is tried");
}

pub(super) fn unknown(claimed: &ClaimedRequest, error: &str) {
    tracing::warn!(request = %claimed.id, execution = %claimed.execution, attempt_count = claimed.attempt_count,
        error, "nobody knows whether the workflow was started; it keeps its slot and the start is repeated");
}

pub(super) fn broken(claimed: &ClaimedRequest, error: &str) {
    tracing::error!(request = %claimed.id, attempt_count = claimed.attempt_count, error, "Error processing queue item");
}

pub(super) fn unwritable(claimed: &ClaimedRequest, error: &leasehold_store::Error) {
    tracing::error!(request = %claimed.id, attempt_count = claimed.attempt_count, %error,
        "Error processing queue item: what became of it cannot be written; it is tried again when its claim ends");
}

pub(super) fn lease_lost(claimed: &ClaimedRequest) {
    tracing::warn!(request = %claimed.id, execution = %claimed.execution, "claim lost; whoever has it now resolves it");
}

pub(super) fn leases_lost(count: usize) {
    tracing::warn!(count, "claims lost; another dispatcher resolves them");
}

fn trace(claimed: &ClaimedRequest) -> Option<String> {
    TraceContext::trace_id_of(claimed.trace_context.as_deref())
}

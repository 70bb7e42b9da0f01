//! The log events of dispatch, with the messages, levels and fields that docs/operations/logs.md lists. Never a payload.

use super::capacity_log::{CapacityEvent, CapacityLog};
use leasehold_core::{FailureReason, RequestId, TraceContext, WorkspaceId};
use leasehold_engine::StartOutcome;
use leasehold_service::Panicked;
use leasehold_store::request::{Claimed, ClaimedRequest, Orphaned};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

pub(super) fn claimed(count: usize) {
    tracing::debug!(count, "Processing {count} queue items");
}

/// Logs what a claim reports besides the claimed requests.
pub(super) fn claim_report(claimed: &Claimed, capacity_log: &Mutex<CapacityLog>) {
    for workspace in &claimed.at_capacity {
        let mut log = capacity_log.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(event) = log.record(*workspace, Instant::now()) {
            at_capacity(event);
        }
    }
    capacity_summaries(capacity_log);
    for rejected in &claimed.rejected {
        self::rejected(rejected.request, rejected.workspace, rejected.reason);
    }
    claimed.orphaned.iter().for_each(orphaned);
}

/// Logs the due summaries of workspaces that reached capacity repeatedly.
pub(super) fn capacity_summaries(capacity_log: &Mutex<CapacityLog>) {
    let mut log = capacity_log.lock().unwrap_or_else(PoisonError::into_inner);
    let events = log.take_summaries(Instant::now());
    events.into_iter().for_each(at_capacity);
}

fn at_capacity(event: CapacityEvent) {
    match event {
        CapacityEvent::Began(full) => {
            tracing::info!(workspace = %full.workspace, active = full.active, limit = full.limit, "Workspace at capacity");
        }
        CapacityEvent::Repeated {
            last,
            times,
            seconds,
        } => {
            tracing::info!(workspace = %last.workspace, active = last.active, limit = last.limit, times, seconds,
                "workspace repeatedly at capacity");
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
            tracing::warn!(%workspace, %request, %reason, "request failed before start");
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

/// Logs a start that certainly did not happen.
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

/// The same during an outage, which has its own events.
pub(super) fn not_started_during_outage(claimed: &ClaimedRequest, error: &str) {
    tracing::debug!(request = %claimed.id, execution = %claimed.execution, attempt_count = claimed.attempt_count,
        error, "failed to start workflow during the outage");
}

pub(super) fn version_unreadable(claimed: &ClaimedRequest, error: &leasehold_store::Error) {
    tracing::error!(request = %claimed.id, version = %claimed.version, attempt_count = claimed.attempt_count, %error,
        "Error processing queue item: version cannot be read; was it published by a newer release?");
}

pub(super) fn exhausted(claimed: &ClaimedRequest, max_attempts: u32) {
    tracing::warn!(request = %claimed.id, workspace = %claimed.workspace, max_attempts,
        "request failed: engine rejected the start; max_attempts reached");
}

pub(super) fn unknown(claimed: &ClaimedRequest, error: &str) {
    tracing::warn!(request = %claimed.id, execution = %claimed.execution, attempt_count = claimed.attempt_count,
        error, "outcome of the start unknown; slot kept, start will be repeated");
}

pub(super) fn start_panicked(claimed: &ClaimedRequest, error: &str) {
    tracing::error!(request = %claimed.id, attempt_count = claimed.attempt_count, error, "Error processing queue item");
}

pub(super) fn task_panicked(task: &str, error: &Panicked) {
    tracing::error!(task, %error, "task of the dispatcher panicked; its step failed");
}

pub(super) fn outcome_unwritable(claimed: &ClaimedRequest, error: &leasehold_store::Error) {
    tracing::error!(request = %claimed.id, attempt_count = claimed.attempt_count, %error,
        "Error processing queue item: outcome could not be written; retried when the claim expires");
}

pub(super) fn lease_lost(claimed: &ClaimedRequest) {
    tracing::warn!(request = %claimed.id, execution = %claimed.execution, "claim lost; its new owner resolves the request");
}

pub(super) fn leases_lost(count: usize) {
    tracing::warn!(count, "claims lost; another dispatcher resolves them");
}

fn trace(claimed: &ClaimedRequest) -> Option<String> {
    TraceContext::trace_id_of(claimed.trace_context.as_deref())
}

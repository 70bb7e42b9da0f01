//! The log events of dispatch, with the levels and fields the design documents give them. Never a payload.

use leasehold_core::{FailureReason, RequestId};
use leasehold_engine::StartOutcome;
use leasehold_store::request::{AtCapacity, ClaimedRequest};

pub(super) fn claimed(count: usize) {
    tracing::debug!(count, "Processing {count} queue items");
}

pub(super) fn at_capacity(full: &AtCapacity) {
    tracing::info!(workspace = %full.workspace, active = full.active, limit = full.limit, "Workspace at capacity");
}

pub(super) fn rejected(request: RequestId, reason: FailureReason) {
    tracing::warn!(%request, %reason, "request failed: it cannot be started");
}

pub(super) fn dispatching(claimed: &ClaimedRequest) {
    tracing::info!(request = %claimed.id, definition = %claimed.definition, workspace = %claimed.workspace,
        "Dispatching queue item");
}

pub(super) fn answered(claimed: &ClaimedRequest, outcome: &StartOutcome) {
    tracing::debug!(execution = %claimed.execution, request = %claimed.id, ?outcome, "start answered");
}

pub(super) fn dispatched(claimed: &ClaimedRequest) {
    tracing::info!(execution = %claimed.execution, request = %claimed.id, "Dispatched execution");
}

pub(super) fn refused(claimed: &ClaimedRequest, error: &str) {
    tracing::error!(request = %claimed.id, execution = %claimed.execution, attempt_count = claimed.attempt_count,
        error, "Failed to start workflow: the engine refuses it");
}

pub(super) fn unreadable(claimed: &ClaimedRequest, error: &leasehold_store::Error) {
    tracing::error!(request = %claimed.id, version = %claimed.version, attempt_count = claimed.attempt_count, %error,
        "Error processing queue item: its version cannot be read by this program; was it published by a newer one?");
}

pub(super) fn exhausted(claimed: &ClaimedRequest, max_attempts: u32) {
    tracing::warn!(request = %claimed.id, max_attempts, "request failed: the engine refused it as often as is tried");
}

pub(super) fn unknown(claimed: &ClaimedRequest, error: &str) {
    tracing::warn!(request = %claimed.id, execution = %claimed.execution, attempt_count = claimed.attempt_count,
        error, "nobody knows whether the workflow was started; it keeps its slot and the start is repeated");
}

pub(super) fn broken(claimed: &ClaimedRequest) {
    tracing::error!(request = %claimed.id, attempt_count = claimed.attempt_count, "Error processing queue item");
}

pub(super) fn unwritable(claimed: &ClaimedRequest, error: &leasehold_store::Error) {
    tracing::error!(request = %claimed.id, attempt_count = claimed.attempt_count, %error,
        "Error processing queue item: what became of it cannot be written; it is tried again when its claim ends");
}

pub(super) fn lease_lost(claimed: &ClaimedRequest) {
    tracing::warn!(request = %claimed.id, execution = %claimed.execution, "claim lost; whoever has it now resolves it");
}

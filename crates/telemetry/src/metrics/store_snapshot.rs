//! Sets the gauges that are read from the store and the circuit breaker on each scrape. Queries nothing itself.

use super::Metrics;
use super::bounded_series::OTHER;
use super::labels::{QueueName, QueueStatus, Status, WorkspaceName, WorkspaceStatus};
use leasehold_core::breaker::BreakerState;
use leasehold_core::limits::PAGE_MAX;
use leasehold_core::{RequestStatus, Timestamp};
use leasehold_store::queue::QueueUse;
use leasehold_store::request::{Counts, Oldest};
use leasehold_store::workspace::WorkspaceOverview;
use std::sync::Arc;

/// The values read from the store for one scrape.
pub struct StoreSnapshot {
    /// Workspaces; the busiest ones up to [`Metrics::busiest_limit`].
    pub workspaces: WorkspaceOverview,
    /// Queues.
    pub queues: Vec<QueueUse>,
    /// The oldest requests.
    pub oldest: Oldest,
}

/// The engine as a process that dispatches sees it.
#[derive(Clone, Copy, Debug)]
pub struct EngineSnapshot {
    /// Whether the last health check succeeded.
    pub healthy: bool,
    /// The circuit breaker.
    pub breaker: BreakerState,
    /// Starts allowed in flight at once.
    pub allowance: usize,
    /// Requests that keep failing to start.
    pub start_failing: usize,
}

/// The statuses of the circuit breaker.
const BREAKER: [&str; 3] = ["closed", "open", "recovering"];

/// The statuses of an unfinished request.
const OPEN: [RequestStatus; 3] = [
    RequestStatus::Pending,
    RequestStatus::Claimed,
    RequestStatus::Dispatched,
];

impl Metrics {
    /// Returns how many of the busiest workspaces the store should list.
    pub fn busiest_limit(&self) -> u32 {
        let limit = u32::try_from(self.busiest.candidates()).unwrap_or(PAGE_MAX);
        limit.clamp(1, PAGE_MAX)
    }

    /// Replaces the gauges read from the store with these values.
    pub fn set_store_gauges(&self, snapshot: &StoreSnapshot) {
        self.clear_store_gauges();
        let overview = &snapshot.workspaces;
        self.workspaces.set(Some(number(overview.workspaces)));
        for status in RequestStatus::ALL {
            let count = number(overview.requests.of(status));
            let status = label(status);
            self.requests.get_or_create(&Status { status }).set(count);
        }
        self.set_oldest(&snapshot.oldest);
        self.set_workspaces(overview);
        for queue in &snapshot.queues {
            self.set_queue(queue);
        }
    }

    /// Sets whether the store answers; clears the gauges read from it if not.
    pub fn set_store_up(&self, up: bool) {
        self.store_up.set(if up { 1.0 } else { 0.0 });
        if !up {
            self.clear_store_gauges();
        }
    }

    /// Removes the gauges read from the store.
    pub fn clear_store_gauges(&self) {
        self.workspaces.set(None);
        self.requests.clear();
        self.oldest.clear();
        self.startable.set(None);
        self.workspace_requests.clear();
        self.workspace_slots_in_use.clear();
        self.workspace_slots.clear();
        self.queue_jobs.clear();
        self.queue_limit.clear();
    }

    /// Sets the gauges of the engine and its circuit breaker; removes them if this process does not dispatch.
    pub fn set_engine_gauges(&self, engine: Option<&EngineSnapshot>) {
        let up = engine.map(|engine| if engine.healthy { 1.0 } else { 0.0 });
        self.engine_up.set(up);
        let allowance = engine.map(|engine| number(engine.allowance as u64));
        self.engine_allowance.set(allowance);
        let failing = engine.map(|engine| number(engine.start_failing as u64));
        self.start_failing.set(failing);
        self.engine_breaker.clear();
        let Some(engine) = engine else { return };
        let now = match engine.breaker {
            BreakerState::Closed => "closed",
            BreakerState::Open => "open",
            BreakerState::Recovering { .. } => "recovering",
        };
        for status in BREAKER {
            let is_now = if status == now { 1.0 } else { 0.0 };
            let of = Status { status };
            self.engine_breaker.get_or_create(&of).set(is_now);
        }
    }

    fn set_oldest(&self, oldest: &Oldest) {
        let startable = oldest
            .startable
            .map_or(0.0, |since| seconds(since, oldest.at));
        self.startable.set(Some(startable));
        let since = [oldest.pending, oldest.claimed, oldest.dispatched];
        for (status, since) in OPEN.into_iter().zip(since) {
            let status = label(status);
            let age = since.map_or(0.0, |since| seconds(since, oldest.at));
            self.oldest.get_or_create(&Status { status }).set(age);
        }
    }

    fn set_workspaces(&self, overview: &WorkspaceOverview) {
        let busiest = overview.busiest.iter().map(|one| &one.workspace);
        let busiest: Vec<_> = busiest.map(|one| (one.id, one.name.as_str())).collect();
        self.name_workspaces(&busiest);
        let mut others = overview.requests;
        for one in &overview.busiest {
            let Some(name) = self.busiest.name(one.workspace.id) else {
                continue;
            };
            others = subtract(others, one.requests);
            self.set_requests(&name, one.requests);
            let of = WorkspaceName { workspace: name };
            let (in_use, limit) = (&self.workspace_slots_in_use, &self.workspace_slots);
            in_use.get_or_create(&of).set(f64::from(one.slots.in_use));
            limit.get_or_create(&of).set(f64::from(one.slots.limit));
        }
        self.set_requests(&OTHER.into(), others);
    }

    fn set_requests(&self, workspace: &Arc<str>, counts: Counts) {
        for status in OPEN {
            let of = WorkspaceStatus {
                workspace: workspace.clone(),
                status: label(status),
            };
            let count = number(counts.of(status));
            self.workspace_requests.get_or_create(&of).set(count);
        }
    }

    fn set_queue(&self, usage: &QueueUse) {
        let queue: Arc<str> = usage.queue.name.as_str().into();
        for (status, count) in [("waiting", usage.waiting), ("running", usage.running)] {
            let of = QueueStatus {
                queue: queue.clone(),
                status,
            };
            self.queue_jobs.get_or_create(&of).set(number(count));
        }
        if let Some(limit) = usage.queue.settings.limit {
            let of = QueueName { queue };
            self.queue_limit.get_or_create(&of).set(f64::from(limit));
        }
    }
}

const fn label(status: RequestStatus) -> &'static str {
    match status {
        RequestStatus::Pending => "pending",
        RequestStatus::Claimed => "claimed",
        RequestStatus::Dispatched => "dispatched",
        RequestStatus::Completed => "completed",
        RequestStatus::Failed => "failed",
    }
}

fn subtract(all: Counts, some: Counts) -> Counts {
    Counts {
        pending: all.pending.saturating_sub(some.pending),
        claimed: all.claimed.saturating_sub(some.claimed),
        dispatched: all.dispatched.saturating_sub(some.dispatched),
        completed: all.completed.saturating_sub(some.completed),
        failed: all.failed.saturating_sub(some.failed),
    }
}

/// Returns the seconds between two times, at least 0, since the clocks may disagree.
fn seconds(from: Timestamp, to: Timestamp) -> f64 {
    to.duration_since(from).as_secs_f64().max(0.0)
}

#[expect(
    clippy::cast_precision_loss,
    reason = "counts are far below the integers a float can represent exactly"
)]
fn number(count: u64) -> f64 {
    count as f64
}

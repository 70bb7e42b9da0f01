//! What the store and the engine said when somebody came to scrape, as gauges. Asks nobody.

use super::Metrics;
use super::few::OTHER;
use super::labels::{QueueName, QueueStatus, Status, WorkspaceName, WorkspaceStatus};
use leasehold_core::limits::PAGE_MAX;
use leasehold_core::{RequestStatus, Timestamp};
use leasehold_store::queue::QueueUse;
use leasehold_store::request::{Counts, Oldest};
use leasehold_store::workspace::WorkspaceOverview;
use std::sync::Arc;

/// What the store said.
pub struct Sight {
    /// Of workspaces; the busiest as many as [`Metrics::workspaces_wanted`] says.
    pub workspaces: WorkspaceOverview,
    /// Of queues.
    pub queues: Vec<QueueUse>,
    /// Of the oldest requests.
    pub oldest: Oldest,
}

/// The statuses of a request that has not ended.
const OPEN: [RequestStatus; 3] = [
    RequestStatus::Pending,
    RequestStatus::Claimed,
    RequestStatus::Dispatched,
];

impl Metrics {
    /// How many of the busiest workspaces the store should tell of.
    pub fn workspaces_wanted(&self) -> u32 {
        let wanted = u32::try_from(self.top.wanted()).unwrap_or(PAGE_MAX);
        wanted.clamp(1, PAGE_MAX)
    }

    /// Shows what the store said, and nothing of what it said before.
    pub fn store_seen(&self, sight: &Sight) {
        self.store_unseen();
        let seen = &sight.workspaces;
        self.workspaces.set(Some(number(seen.workspaces)));
        for status in RequestStatus::ALL {
            let count = number(seen.requests.of(status));
            let status = label(status);
            self.requests.get_or_create(&Status { status }).set(count);
        }
        self.show_oldest(&sight.oldest);
        self.show_workspaces(seen);
        for queue in &sight.queues {
            self.show_queue(queue);
        }
    }

    /// Whether the store answers; what one that does not said before is not true any more.
    pub fn store_answers(&self, answers: bool) {
        self.store_up.set(if answers { 1.0 } else { 0.0 });
        if !answers {
            self.store_unseen();
        }
    }

    /// Nobody knows what the store would say.
    pub fn store_unseen(&self) {
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

    /// Whether starts go to the engine, and how many at once; none where that is not known here.
    pub fn engine_seen(&self, up: Option<bool>, allowance: Option<usize>) {
        self.engine_up.set(up.map(|up| if up { 1.0 } else { 0.0 }));
        let allowance = allowance.map(|allowance| number(allowance as u64));
        self.engine_allowance.set(allowance);
    }

    fn show_oldest(&self, oldest: &Oldest) {
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

    fn show_workspaces(&self, seen: &WorkspaceOverview) {
        let busiest = seen.busiest.iter().map(|one| &one.workspace);
        let busiest: Vec<_> = busiest.map(|one| (one.id, one.name.as_str())).collect();
        self.name_workspaces(&busiest);
        let mut others = seen.requests;
        for one in &seen.busiest {
            let Some(name) = self.top.name(one.workspace.id) else {
                continue;
            };
            others = less(others, one.requests);
            self.show_requests(&name, one.requests);
            let of = WorkspaceName { workspace: name };
            let (used, there) = (&self.workspace_slots_in_use, &self.workspace_slots);
            used.get_or_create(&of).set(f64::from(one.slots.in_use));
            there.get_or_create(&of).set(f64::from(one.slots.limit));
        }
        self.show_requests(&OTHER.into(), others);
    }

    fn show_requests(&self, workspace: &Arc<str>, counts: Counts) {
        for status in OPEN {
            let of = WorkspaceStatus {
                workspace: workspace.clone(),
                status: label(status),
            };
            let count = number(counts.of(status));
            self.workspace_requests.get_or_create(&of).set(count);
        }
    }

    fn show_queue(&self, seen: &QueueUse) {
        let queue: Arc<str> = seen.queue.name.as_str().into();
        for (status, count) in [("waiting", seen.waiting), ("running", seen.running)] {
            let of = QueueStatus {
                queue: queue.clone(),
                status,
            };
            self.queue_jobs.get_or_create(&of).set(number(count));
        }
        if let Some(limit) = seen.queue.settings.limit {
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

fn less(all: Counts, some: Counts) -> Counts {
    Counts {
        pending: all.pending.saturating_sub(some.pending),
        claimed: all.claimed.saturating_sub(some.claimed),
        dispatched: all.dispatched.saturating_sub(some.dispatched),
        completed: all.completed.saturating_sub(some.completed),
        failed: all.failed.saturating_sub(some.failed),
    }
}

/// From one moment to the next; two clocks that disagree make no negative age.
fn seconds(from: Timestamp, to: Timestamp) -> f64 {
    to.duration_since(from).as_secs_f64().max(0.0)
}

#[expect(
    clippy::cast_precision_loss,
    reason = "no count comes near to where a float has gaps"
)]
fn number(count: u64) -> f64 {
    count as f64
}

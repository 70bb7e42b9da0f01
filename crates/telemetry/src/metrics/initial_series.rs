//! Creates series with known labels at 0 at the start, so that their first increase is visible.

use super::bounded_series::OTHER;
use super::labels::{Kind, Outcome, Reason, Status, TaskName, WorkspaceName};
use super::{Metrics, drift};
use leasehold_core::FailureReason;

/// What a lease is held on.
const KINDS: [&str; 2] = ["request", "job"];
/// The final statuses of a request.
const FINAL_STATUSES: [&str; 2] = ["completed", "failed"];
/// The outcomes of a claimed job.
const JOB_OUTCOMES: [&str; 4] = ["completed", "failed", "queued", "lease_lost"];
const DISPATCH_FAILURES: [&str; 3] = ["refused", "unknown", "not_sent"];
/// The steps of the dispatcher. Services are added when one panics.
const TASKS: [&str; 6] = ["claim", "start", "flush", "renew", "arm", "extend_lock"];
const EXPORT_OUTCOMES: [&str; 2] = ["exported", "failed"];

impl Metrics {
    pub(super) fn create_known_series(&self) {
        for reason in FailureReason::ALL {
            let reason = reason.as_str();
            drop(self.failed.get_or_create(&Reason { reason }));
        }
        for reason in DISPATCH_FAILURES {
            drop(self.dispatch_failures.get_or_create(&Reason { reason }));
        }
        for task in TASKS {
            drop(self.task_panics.get_or_create(&TaskName { task }));
        }
        for status in FINAL_STATUSES {
            drop(self.finished.get_or_create(&Status { status }));
        }
        for kind in KINDS {
            for leases in [&self.renewed, &self.lost, &self.expired] {
                drop(leases.get_or_create(&Kind { kind }));
            }
        }
        for outcome in JOB_OUTCOMES {
            drop(self.jobs_finished.get_or_create(&Outcome { outcome }));
        }
        for outcome in EXPORT_OUTCOMES {
            drop(self.spans.get_or_create(&Outcome { outcome }));
        }
        let others = WorkspaceName {
            workspace: OTHER.into(),
        };
        drop(self.workspace_wait.get_or_create(&others));
        drift::create_series(&self.drift, &self.drift_repaired);
    }
}

//! Series whose labels are known beforehand begin at 0, so that their first rise is seen as one.

use super::few::OTHER;
use super::labels::{Kind, Outcome, Reason, Status, WorkspaceName};
use super::{Metrics, drift};
use leasehold_core::FailureReason;

/// What holds leases.
const KINDS: [&str; 2] = ["request", "job"];
/// How a request ends.
const ENDS: [&str; 2] = ["completed", "failed"];
/// What becomes of a job that a worker had.
const JOB_ENDS: [&str; 4] = ["completed", "failed", "queued", "lease_lost"];
const DISPATCH_FAILURES: [&str; 3] = ["refused", "unknown", "not_sent"];
const EXPORTS: [&str; 2] = ["exported", "failed"];

impl Metrics {
    pub(super) fn begin(&self) {
        for reason in FailureReason::ALL {
            let reason = reason.as_str();
            drop(self.failed.get_or_create(&Reason { reason }));
        }
        for reason in DISPATCH_FAILURES {
            drop(self.dispatch_failures.get_or_create(&Reason { reason }));
        }
        for status in ENDS {
            drop(self.finished.get_or_create(&Status { status }));
        }
        for kind in KINDS {
            for leases in [&self.renewed, &self.lost, &self.expired] {
                drop(leases.get_or_create(&Kind { kind }));
            }
        }
        for outcome in JOB_ENDS {
            drop(self.jobs_finished.get_or_create(&Outcome { outcome }));
        }
        for outcome in EXPORTS {
            drop(self.spans.get_or_create(&Outcome { outcome }));
        }
        let others = WorkspaceName {
            workspace: OTHER.into(),
        };
        drop(self.workspace_wait.get_or_create(&others));
        drift::begin(&self.drift, &self.drift_repaired);
    }
}

//! The model's claim of jobs: takes back expired leases, then claims the first jobs in line within the limits.

use super::{Jobs, Lease, later};
use leasehold_core::graph::NodeReference;
use leasehold_core::job::{ClaimedJob, JobClaim, JobEvent, JobsClaimed};
use leasehold_core::lease::bounded;
use leasehold_core::limits::{CLAIM_MAX_BYTES, JOB_MAX_BATCH};
use leasehold_core::{JobId, JobStatus, Timestamp};
use std::cmp::Reverse;

impl Jobs {
    /// Claims jobs after taking back the expired leases that the claim may need.
    pub(in crate::model) fn claim_first(
        &mut self,
        claim: &JobClaim,
        now: Timestamp,
    ) -> JobsClaimed {
        let expired = self.expired_for(claim, now);
        let mut token = self.last_token;
        let claimed = self.claim(claim, now, &expired, &mut |_| {
            token += 1;
            token
        });
        self.last_token = token;
        claimed
    }

    /// Expired leases that a claim may need to take back: of its queue, or of all queues under a global limit.
    pub(in crate::model) fn expired_for(&self, claim: &JobClaim, now: Timestamp) -> Vec<JobId> {
        let mut expired = self.expired(now);
        expired.retain(|id| self.limit.is_some() || self.rows[id].new.queue == claim.queue);
        expired
    }

    /// Due jobs of a queue in claim order.
    pub(in crate::model) fn due(&self, queue: &str, now: Timestamp) -> Vec<JobId> {
        let all = self.rows.iter().filter(|(_, row)| row.new.queue == queue);
        let queued = all.filter(|(_, row)| row.status == JobStatus::Queued && row.run_at <= now);
        let mut due: Vec<_> = queued
            .map(|(id, row)| (Reverse(row.new.priority), row.created_at, *id))
            .collect();
        due.sort_unstable();
        due.into_iter().map(|(_, _, id)| id).collect()
    }

    /// Claims jobs after taking back `expired`; `token` chooses the token of each.
    pub(in crate::model) fn claim(
        &mut self,
        claim: &JobClaim,
        now: Timestamp,
        expired: &[JobId],
        token: &mut dyn FnMut(JobId) -> i64,
    ) -> JobsClaimed {
        let open = self.queues.get(&claim.queue);
        if open.is_none_or(|queue| queue.settings.paused) {
            return JobsClaimed::default();
        }
        self.requeue_expired_jobs(expired, now);
        if claim.max > 0 {
            self.make_ready(&claim.queue, now);
        }
        let requested = (claim.max as usize).min(JOB_MAX_BATCH);
        let capacity = self.capacity(&claim.queue);
        // One more than the limit allows tells whether it was reached.
        let mut due = self.in_turn(&claim.queue, requested.min(capacity.saturating_add(1)), now);
        let at_limit = due.len() > capacity;
        due.truncate(capacity);
        let n = self.fitting(&due);
        let jobs = due[..n].iter();
        let jobs: Vec<ClaimedJob> = jobs
            .map(|id| self.take(*id, claim, now, token(*id)))
            .collect();
        self.move_groups(&claim.queue, &due[..n], now);
        let next = || self.next_due_in(&claim.queue, now);
        JobsClaimed {
            jobs,
            at_limit,
            next_due_in: (n < requested).then(next).flatten(),
        }
    }

    /// Returns how many of the jobs fit into one claim, at least one.
    fn fitting(&self, due: &[JobId]) -> usize {
        let mut bytes = 0;
        let fits = |id: &&JobId| {
            let row = &self.rows[*id];
            let progress = row.progress.as_ref().map_or(0, |json| json.as_str().len());
            let error = row.last_error.as_ref().map_or(0, String::len);
            let reference = row
                .claim_payload
                .as_ref()
                .and_then(|_| NodeReference::read(&row.new.payload));
            let payload = row.new.payload.as_str().len();
            bytes += reference.map_or(payload, |reference| reference.bytes) + progress + error;
            bytes <= CLAIM_MAX_BYTES
        };
        due.iter().take_while(fits).count().max(1).min(due.len())
    }

    fn take(&mut self, id: JobId, claim: &JobClaim, now: Timestamp, token: i64) -> ClaimedJob {
        let queue = self.settings(&claim.queue);
        let lease = bounded(claim.lease.unwrap_or(queue.lease));
        let expires_at = later(now, lease);
        let row = self.step(id, JobEvent::Claim, now);
        assert!(row.token < token, "the token of job {id} must rise");
        row.token = token;
        row.attempts += 1;
        row.lease = Some(Lease {
            worker: claim.worker.clone(),
            claimed_at: now,
            expires_at,
        });
        ClaimedJob {
            id,
            token,
            kind: row.new.kind.clone(),
            group: row.new.group.clone(),
            payload: row
                .claim_payload
                .as_ref()
                .unwrap_or(&row.new.payload)
                .clone(),
            priority: row.new.priority,
            attempt: row.attempts,
            retry: queue.retry_of(row.new.max_attempts, row.new.backoff),
            timeout: row.new.timeout.or(queue.timeout),
            progress: row.progress.clone(),
            last_error: row.last_error.clone(),
            trace_context: row.new.trace_context.clone(),
            created_at: row.created_at,
            lease,
            lease_expires_at: expires_at,
        }
    }
}

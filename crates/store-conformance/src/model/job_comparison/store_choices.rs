//! Operations where a store may choose: the model adopts ids, tokens and which expired leases were taken back, and checks
//! whether the choice is valid. Everything else about them is determined.

use super::JobComparison;
use crate::factory::ok;
use crate::model::comparison::{Mismatch, answer, same};
use leasehold_core::job::{JobClaim, JobsClaimed};
use leasehold_core::{JobId, JobStatus};
use leasehold_store::job::NewJob;
use std::collections::BTreeMap;

impl JobComparison {
    /// The store chooses the ids, which must rise.
    pub(super) async fn enqueue(&self, new: &[NewJob]) -> Result<(), Mismatch> {
        let real = answer("job_enqueue", self.real.store.job_enqueue(new).await)?;
        let mut too_low = None;
        let model = self.inner.jobs(|jobs, now| {
            jobs.enqueue(new, now, &mut |next, index| {
                let chosen = real.get(index).map_or(next, |real| real.id);
                if chosen < next {
                    too_low = Some(chosen);
                }
                chosen.max(next)
            })
        });
        match too_low {
            Some(id) => Err(format!("id {id} is not higher than earlier ids")),
            None => same("job_enqueue", &real, &model),
        }
    }

    /// The store chooses the tokens, which must rise with each claim of a job.
    pub(super) async fn claim(&self, claim: &JobClaim) -> Result<(), Mismatch> {
        let expired = self.inner.jobs(|jobs, now| jobs.expired(now));
        let real = answer("job_claim", self.real.store.job_claim(claim).await)?;
        let (taken, left) = self.requeued(&expired, &real).await;
        let tokens: BTreeMap<JobId, i64> = real.jobs.iter().map(|j| (j.id, j.token)).collect();
        self.inner.jobs(|jobs, now| {
            for (id, token) in &tokens {
                let before = jobs.rows.get(id).map_or(0, |row| row.token);
                if *token <= before {
                    return Err(format!(
                        "token {token} of job {id} is not higher than {before}"
                    ));
                }
            }
            let mut next = tokens
                .values()
                .max()
                .copied()
                .unwrap_or(0)
                .max(jobs.last_token);
            let mut model = jobs.claim(claim, now, &taken, &mut |id| {
                next += 1;
                tokens.get(&id).copied().unwrap_or(next)
            });
            jobs.last_token = next;
            let due = jobs.due(&claim.queue, now).len();
            let all = claim.max == 0 || (model.jobs.len() < claim.max as usize && due == 0);
            if all && jobs.capacity(&claim.queue) == 0 {
                // No further job was requested or due, so whether the limit is reported is the store's choice.
                model.at_limit = real.at_limit;
            }
            same("job_claim", &real, &model)?;
            let open = jobs.queues.get(&claim.queue);
            let open = open.is_some_and(|queue| !queue.settings.paused);
            if !open || model.jobs.len() == claim.max as usize {
                return Ok(());
            }
            let global = due > 0 && jobs.limit.is_some();
            let owed = |id: &&JobId| global || jobs.rows[*id].new.queue == claim.queue;
            match left.iter().find(owed) {
                Some(id) => Err(format!(
                    "a partial claim did not take back the lease of job {id}"
                )),
                None => Ok(()),
            }
        })
    }

    /// Which of the expired leases a claim took back, and which not.
    async fn requeued(&self, expired: &[JobId], claimed: &JobsClaimed) -> (Vec<JobId>, Vec<JobId>) {
        let (mut taken, mut left) = (Vec::new(), Vec::new());
        for id in expired {
            let reclaimed = claimed.jobs.iter().any(|job| job.id == *id);
            let job = ok(self.real.store.job_get(*id).await);
            let runs = job.is_some_and(|job| job.status == JobStatus::Running);
            match runs && !reclaimed {
                true => left.push(*id),
                false => taken.push(*id),
            }
        }
        (taken, left)
    }

    /// The store chooses which expired leases a bounded sweep takes back.
    pub(super) async fn sweep(&self, limit: u32) -> Result<(), Mismatch> {
        let real = self.real.store.job_requeue_expired(limit).await;
        let mut real = answer("job_requeue_expired", real)?;
        real.sort_by_key(|expired| expired.claim.job);
        self.inner.jobs(|jobs, now| {
            let expired = jobs.expired(now);
            let chosen: Vec<JobId> = real.iter().map(|expired| expired.claim.job).collect();
            let n = expired.len().min(limit as usize);
            if chosen.len() != n || chosen.iter().any(|id| !expired.contains(id)) {
                return Err(format!(
                    "swept {chosen:?}, expected at most {limit} of {expired:?}"
                ));
            }
            same(
                "job_requeue_expired",
                &real,
                &jobs.requeue_expired_jobs(&chosen, now),
            )
        })
    }
}

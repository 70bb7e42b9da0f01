//! The ends of requests in the model: cancelled, finished by their execution, pruned.

use super::Model;
use super::state::{KeptKey, RequestRow, State};
use crate::factory::known;
use async_trait::async_trait;
use leasehold_core::limits::SWEEP_MAX_BATCH;
use leasehold_core::{ExecutionStatus, FailureReason, RequestId, RequestStatus, Timestamp};
use leasehold_store::Result;
use leasehold_store::execution::{ExecutionFinish, ExecutionFinished};
use leasehold_store::prune::{Prune, PruneStore, Pruned};
use leasehold_store::request::{Cancel, CancelRequest, Cancelled};

impl State {
    pub(super) fn cancel(&mut self, cancel: &Cancel, now: Timestamp) -> Cancelled {
        let id = cancel.request;
        let Some(row) = self.own(cancel.workspace, id) else {
            return Cancelled::NotFound;
        };
        let (status, execution) = (known(&row.request.status), row.request.execution);
        let outcome = match (status, execution) {
            (RequestStatus::Completed | RequestStatus::Failed, _) => {
                return Cancelled::AlreadyFinished;
            }
            (RequestStatus::Pending | RequestStatus::Claimed, Some(execution)) => {
                Cancelled::Requested(execution)
            }
            (RequestStatus::Dispatched, Some(execution)) => Cancelled::Running(execution),
            (RequestStatus::Pending | RequestStatus::Claimed | RequestStatus::Dispatched, None) => {
                self.fail(id, FailureReason::Cancelled, now, &cancel.by);
                return Cancelled::Cancelled;
            }
        };
        if let Some(row) = self.requests.get_mut(&id) {
            row.request.cancel_requested_at.get_or_insert(now);
            if status == RequestStatus::Pending {
                row.request.run_at = row.request.run_at.min(now);
                row.waits = false;
            }
            row.cancel_force |= cancel.force;
            row.cancel_acknowledged = false;
        }
        outcome
    }

    /// Cancel requests of running requests that the engine has not acknowledged, oldest first.
    pub(super) fn unacknowledged(&self) -> Vec<CancelRequest> {
        let mut unacknowledged: Vec<_> = self
            .requests
            .values()
            .filter(|row| {
                row.request.status == RequestStatus::Dispatched && !row.cancel_acknowledged
            })
            .filter_map(|row| {
                let request = CancelRequest {
                    request: row.request.id,
                    workspace: row.request.workspace,
                    execution: row.request.execution?,
                    force: row.cancel_force,
                };
                Some((row.request.cancel_requested_at?, request))
            })
            .collect();
        unacknowledged.sort_by_key(|(at, request)| (*at, request.request));
        unacknowledged
            .into_iter()
            .map(|(_, request)| request)
            .collect()
    }

    pub(super) fn acknowledge(&mut self, request: &CancelRequest) {
        if self.unacknowledged().contains(request)
            && let Some(row) = self.requests.get_mut(&request.request)
        {
            row.cancel_acknowledged = true;
        }
    }

    /// Lists the acknowledged cancel requests of these requests again.
    pub(super) fn repeat_cancels(&mut self, requests: &[RequestId]) -> u64 {
        let mut repeated = 0;
        for id in requests {
            if let Some(row) = self.requests.get_mut(id)
                && row.request.status == RequestStatus::Dispatched
                && std::mem::take(&mut row.cancel_acknowledged)
            {
                repeated += 1;
            }
        }
        repeated
    }

    pub(super) fn finish(
        &mut self,
        by: &str,
        finish: &ExecutionFinish,
        now: Timestamp,
    ) -> ExecutionFinished {
        let Some(execution) = self.executions.get_mut(&finish.execution) else {
            return ExecutionFinished::NotFound;
        };
        if execution.status != ExecutionStatus::Running {
            return ExecutionFinished::AlreadyFinished;
        }
        execution.status = known(&execution.status).after(finish.end).into();
        execution.finished_at = Some(now);
        execution.error = finish.error.clone();
        let id = execution.request;
        self.pass_through(id, by, now);
        let Some(row) = self.requests.get_mut(&id) else {
            return ExecutionFinished::NotFound;
        };
        if let Some(error) = &finish.error {
            row.request.last_error = Some(error.clone());
        }
        let cancel_requested = row.request.cancel_requested_at.is_some();
        let crashes = row.crashes;
        let reason = finish.end.failure_reason_for(crashes, cancel_requested);
        let status = match reason {
            None => {
                self.step(id, RequestStatus::Completed, now, by, None);
                RequestStatus::Completed
            }
            Some(reason) => {
                row.request.attempt_count += 1;
                self.fail(id, reason, now, by);
                RequestStatus::Failed
            }
        };
        ExecutionFinished::Finished {
            request: id,
            status,
            reason,
        }
    }

    /// Moves a request whose execution has ended through the statuses that it skipped.
    fn pass_through(&mut self, id: RequestId, by: &str, now: Timestamp) {
        let status = self.requests.get(&id).map(|row| known(&row.request.status));
        if status == Some(RequestStatus::Pending) {
            self.step(id, RequestStatus::Claimed, now, by, None);
            if let Some(row) = self.requests.get_mut(&id) {
                row.request.claimed_at = Some(now);
            }
        }
        if status != Some(RequestStatus::Dispatched) {
            self.step(id, RequestStatus::Dispatched, now, by, None);
            if let Some(row) = self.requests.get_mut(&id) {
                row.request.dispatched_at = Some(now);
            }
        }
    }

    pub(super) fn prune(&mut self, prune: &Prune, now: Timestamp) -> Pruned {
        let mut ended: Vec<_> = self
            .requests
            .values()
            .map(|row| &row.request)
            .filter_map(|r| {
                let before = match known(&r.status) {
                    RequestStatus::Completed => prune.completed_before,
                    RequestStatus::Failed => prune.failed_before,
                    RequestStatus::Pending | RequestStatus::Claimed | RequestStatus::Dispatched => {
                        None
                    }
                }?;
                let finished = r.finished_at?;
                (finished < before).then_some((finished, r.id))
            })
            .collect();
        ended.sort_unstable();
        let limit = prune.limit.min(SWEEP_MAX_BATCH);
        ended.truncate(limit as usize);
        for (_, id) in &ended {
            self.drop_execution(*id);
            if let Some(row) = self.requests.remove(id) {
                self.keep_key(row);
            }
            self.events.retain(|_, event| event.request != *id);
        }
        let mut keys = 0;
        for row in self.requests.values_mut() {
            let passed = row.dedupe_until.is_some_and(|until| until <= now);
            if passed && row.request.idempotency_key.is_some() && keys < u64::from(limit) {
                row.request.idempotency_key = None;
                row.dedupe_until = None;
                keys += 1;
            }
        }
        let before = self.kept_keys.len();
        self.kept_keys.retain(|_, kept| kept.dedupe_until > now);
        Pruned {
            requests: ended.len() as u64,
            keys: keys + (before - self.kept_keys.len()) as u64,
        }
    }

    /// Keeps the key of a pruned request until its window ends.
    fn keep_key(&mut self, row: RequestRow) {
        let request = row.request;
        let (Some(key), Some(until)) = (request.idempotency_key, row.dedupe_until) else {
            return;
        };
        let kept = KeptKey {
            request: request.id,
            definition: request.definition,
            params: request.params,
            dedupe_until: until,
        };
        self.kept_keys.insert((request.workspace, key), kept);
    }
}

#[async_trait]
impl PruneStore for Model {
    async fn prune(&self, prune: &Prune) -> Result<Pruned> {
        Ok(self.state().prune(prune, self.now()))
    }
}

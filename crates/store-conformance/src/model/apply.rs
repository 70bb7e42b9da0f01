//! Applies one operation to store and model and compares the results. Where a store may choose, the model adopts its choice.

use super::claim_check::apply_claim;
use super::comparison::{Mismatch, RequestComparison, answer, same};
use super::op::{Kind, Op};
use crate::factory::{LEASE, TestWorkspace, USER, new_request};
use leasehold_core::{FailureReason, RequestId};
use leasehold_store::execution::ExecutionFinish;
use leasehold_store::prune::Prune;
use leasehold_store::request::{
    Cancel, Claim, ClaimOutcome, ClaimRef, Enqueue, Enqueued, Fail, Idempotency, NewRequest,
    Redrive, RedriveMany, Release, ReleaseKind,
};
use leasehold_store::workspace::WorkspaceChange;
use leasehold_store::{Store, fresh_id};
use serde_json::json;
use std::collections::BTreeMap;
use std::time::Duration;

/// The maximum number of workspaces: more make cases slower, not better.
const WORKSPACES_MAX: usize = 5;

/// How many empty claims in a row may report that there is more.
const EMPTY_CLAIMS_MAX: usize = 50;

impl RequestComparison {
    /// Applies `op` to both; does nothing if nothing matches its numbers.
    pub(super) async fn apply(&mut self, op: &Op) -> Result<(), Mismatch> {
        match op {
            Op::CreateWorkspace { .. }
            | Op::SetLimit { .. }
            | Op::SetPlan { .. }
            | Op::SetPaused { .. }
            | Op::DeleteWorkspace { .. }
            | Op::DeleteDefinition { .. }
            | Op::Publish { .. } => self.apply_to_workspace(op).await,
            Op::Enqueue { .. } => self.enqueue(op).await,
            Op::Claim { owner, batch } => self.claim(*owner, *batch).await,
            Op::Renew { .. } | Op::Dispatched { .. } | Op::Release { .. } | Op::Fail { .. } => {
                self.apply_to_claim(op).await
            }
            Op::Recover { limit } => self.recover(*limit).await,
            Op::RedriveMany { workspace } => self.redrive_many(self.workspace(*workspace)).await,
            Op::Advance { seconds } => {
                self.real.advance(u64::from(*seconds));
                Ok(())
            }
            Op::PromoteDue
            | Op::Position { .. }
            | Op::Cancel { .. }
            | Op::AcknowledgeCancels { .. }
            | Op::Finish { .. }
            | Op::Redrive { .. }
            | Op::Prune { .. } => self.apply_to_any(op).await,
        }
    }

    async fn apply_to_workspace(&mut self, op: &Op) -> Result<(), Mismatch> {
        let mut change = WorkspaceChange::default();
        let workspace = match *op {
            Op::CreateWorkspace { limit } if self.workspaces.len() < WORKSPACES_MAX => {
                return self.create_workspace(limit).await;
            }
            Op::SetLimit { workspace, limit } => {
                change.limit_override = Some(limit);
                workspace
            }
            Op::SetPlan { workspace, plan } => {
                change.plan = Some(plan);
                workspace
            }
            Op::SetPaused { workspace, paused } => {
                change.paused = Some(paused);
                workspace
            }
            Op::DeleteWorkspace { workspace } => {
                let id = self.workspace(workspace).workspace;
                let delete = async |store: &dyn Store| {
                    store
                        .workspace_delete(id, &leasehold_store::Actor::Local)
                        .await
                };
                return self.both("workspace_delete", delete).await.map(drop);
            }
            Op::DeleteDefinition { workspace } => return self.delete_definition(workspace).await,
            Op::Publish { workspace } => {
                let t = self.workspace(workspace);
                let existing = self.inner.state().exists(t.workspace);
                return match existing {
                    true => self.publish(t.workspace, t.definition).await.map(drop),
                    false => Ok(()),
                };
            }
            _ => return Ok(()),
        };
        let id = self.workspace(workspace).workspace;
        let update = async |store: &dyn Store| {
            store
                .workspace_update(id, &change, &leasehold_store::Actor::Local)
                .await
        };
        self.both("workspace_update", update).await.map(drop)
    }

    /// Deletes a workspace's definition and creates another, if the workspace exists.
    async fn delete_definition(&mut self, workspace: u8) -> Result<(), Mismatch> {
        let index = self.index_of(workspace);
        let t = self.workspaces[index];
        if !self.inner.state().exists(t.workspace) {
            return Ok(());
        }
        let delete = async |store: &dyn Store| {
            store
                .definition_delete(t.workspace, t.definition, &leasehold_store::Actor::Local)
                .await
        };
        self.both("definition_delete", delete).await?;
        let (definition, version) = self.create_definition(t.workspace).await?;
        self.workspaces[index] = TestWorkspace {
            definition,
            version,
            ..t
        };
        Ok(())
    }

    async fn enqueue(&self, op: &Op) -> Result<(), Mismatch> {
        let Op::Enqueue {
            workspace,
            n,
            priority,
            delay,
            key,
            window,
            other,
        } = *op
        else {
            return Ok(());
        };
        let t = self.workspace(workspace);
        let seconds = |s: u8| Duration::from_secs(u64::from(s));
        let requests = (0..n).map(|i| NewRequest {
            priority,
            run_at: (delay > 0).then(|| self.real.now() + seconds(delay)),
            params: json!({"other": other}).into(),
            idempotency: key.map(|k| Idempotency {
                key: format!("key-{}", (k + i) % 3),
                window: window.map(seconds),
            }),
            ..new_request(&t)
        });
        let enqueue = Enqueue {
            workspace: t.workspace,
            requests: requests.collect(),
            by: USER.into(),
        };
        let call = async |store: &dyn Store| {
            // The store chooses which of several conflicts it reports.
            store
                .request_enqueue(&enqueue)
                .await
                .map(|answer| match answer {
                    Enqueued::KeyConflict { .. } => None,
                    other => Some(other),
                })
        };
        self.both("request_enqueue", call).await.map(drop)
    }

    async fn claim(&mut self, owner: u8, batch: u32) -> Result<(), Mismatch> {
        let claim = Claim {
            owner: format!("dispatcher-{owner}"),
            batch,
            kept_max: None,
            lease: LEASE,
            lock: None,
        };
        for _ in 0..EMPTY_CLAIMS_MAX {
            let real = answer("request_claim", self.real.store.request_claim(&claim).await)?;
            let ClaimOutcome::Claimed(real) = real else {
                return Err("request_claim lost a lock that the claim does not have".into());
            };
            let mut state = self.inner.state();
            apply_claim(&mut state, &mut self.turns, &claim, &real, self.real.now())
                .map_err(|what| format!("{what}\n  claim: {real:?}"))?;
            let empty = real.requests.is_empty() && real.rejected.is_empty();
            if !empty || !real.more {
                return Ok(());
            }
        }
        Err("claims are empty but always report more".into())
    }

    async fn apply_to_claim(&self, op: &Op) -> Result<(), Mismatch> {
        let (Op::Renew { pick }
        | Op::Dispatched { pick }
        | Op::Release { pick, .. }
        | Op::Fail { pick }) = op
        else {
            return Ok(());
        };
        let Some((owner, claim)) = self.claim_of(*pick) else {
            return Ok(());
        };
        match op {
            Op::Renew { .. } => {
                let renew =
                    async |store: &dyn Store| store.request_renew(&owner, &[claim], LEASE).await;
                self.both("request_renew", renew).await.map(drop)
            }
            Op::Dispatched { .. } => {
                let call =
                    async |store: &dyn Store| store.request_dispatched(&owner, &[claim]).await;
                self.both("request_dispatched", call).await.map(drop)
            }
            Op::Release {
                kind, delay, error, ..
            } => {
                let release = release(claim, *kind, *delay, *error);
                let call = async |store: &dyn Store| {
                    store
                        .request_release(&owner, std::slice::from_ref(&release))
                        .await
                };
                self.both("request_release", call).await.map(drop)
            }
            _ => {
                let fail = Fail {
                    claim,
                    reason: FailureReason::VersionNotFound,
                    error: Some("given up".into()),
                };
                let fail_claim = async |store: &dyn Store| store.request_fail(&owner, &fail).await;
                self.both("request_fail", fail_claim).await.map(drop)
            }
        }
    }

    async fn cancel(&self, request: u8, force: bool) -> Result<(), Mismatch> {
        let Some((workspace, request)) = self.any_request(request) else {
            return Ok(());
        };
        let cancel = Cancel {
            workspace,
            request,
            force,
            by: USER.into(),
        };
        let call = async |store: &dyn Store| store.request_cancel(&cancel).await;
        self.both("request_cancel", call).await.map(drop)
    }

    /// Acknowledges the listed cancel requests; `outdated` ones have another `force` than the stored ones.
    async fn acknowledge_cancels(&self, limit: u32, outdated: bool) -> Result<(), Mismatch> {
        let list = async |store: &dyn Store| store.request_cancel_list(limit).await;
        let mut requests = self.both("request_cancel_list", list).await?;
        for request in &mut requests {
            request.force ^= outdated;
        }
        let acknowledge = async |store: &dyn Store| store.request_cancel_ack(&requests).await;
        self.both("request_cancel_ack", acknowledge).await
    }

    /// The store chooses which expired claims a bounded call recovers.
    async fn recover(&self, limit: u32) -> Result<(), Mismatch> {
        let real = self.real.store.request_recover("sweeper", limit).await;
        let mut real = answer("request_recover", real)?;
        real.sort_by_key(|r| r.request);
        let now = self.real.now();
        let mut state = self.inner.state();
        let expired = state.expired(now);
        let chosen: Vec<RequestId> = real.iter().map(|r| r.request).collect();
        let n = expired.len().min(limit as usize);
        if chosen.len() != n || chosen.iter().any(|id| !expired.contains(id)) {
            return Err(format!(
                "recovered {chosen:?}, expected at most {limit} of {expired:?}"
            ));
        }
        same(
            "request_recover",
            &real,
            &state.recover("sweeper", &chosen, now),
        )
    }

    async fn redrive_many(&self, workspace: TestWorkspace) -> Result<(), Mismatch> {
        let redrive = RedriveMany {
            workspace: workspace.workspace,
            reason: None,
            definition: None,
            limit: 1_000,
            max_bytes: 3_000,
            by: USER.into(),
        };
        let real = self.real.store.request_redrive_many(&redrive).await;
        let real: BTreeMap<_, _> = answer("request_redrive_many", real)?.into_iter().collect();
        let mut choose = |failed| real.get(&failed).copied().unwrap_or_else(fresh_id);
        let now = self.real.now();
        let model = self.inner.state().redrive_many(&redrive, now, &mut choose);
        same("request_redrive_many", &real, &model.into_iter().collect())
    }

    async fn apply_to_any(&self, op: &Op) -> Result<(), Mismatch> {
        match *op {
            Op::PromoteDue => {
                let promote =
                    async |store: &dyn Store| Ok(store.request_promote_due().await?.next_due);
                self.both("request_promote_due", promote).await.map(drop)
            }
            Op::Position { request, up_to } => {
                let Some((workspace, id)) = self.any_request(request) else {
                    return Ok(());
                };
                let position =
                    async |store: &dyn Store| store.request_position(workspace, id, up_to).await;
                self.both("request_position", position).await.map(drop)
            }
            Op::Finish { pick, end, error } => {
                let finish = ExecutionFinish {
                    execution: self.execution_of(pick),
                    end,
                    error: error.then(|| "it broke".to_owned()),
                };
                let call = async |store: &dyn Store| {
                    store
                        .execution_finish("engine", std::slice::from_ref(&finish))
                        .await
                };
                self.both("execution_finish", call).await.map(drop)
            }
            Op::Cancel { request, force } => self.cancel(request, force).await,
            Op::AcknowledgeCancels { limit, outdated } => {
                self.acknowledge_cancels(limit, outdated).await
            }
            Op::Redrive { request } => {
                let Some((workspace, failed)) = self.any_request(request) else {
                    return Ok(());
                };
                let redrive = Redrive {
                    workspace,
                    failed,
                    id: fresh_id(),
                    by: USER.into(),
                };
                let call = async |store: &dyn Store| store.request_redrive(&redrive).await;
                self.both("request_redrive", call).await.map(drop)
            }
            Op::Prune { completed, failed } => {
                let before = |age: u8| self.real.now() - Duration::from_secs(u64::from(age));
                let prune = Prune {
                    completed_before: completed.map(before),
                    failed_before: failed.map(before),
                    limit: 1_000,
                };
                let call = async |store: &dyn Store| store.prune(&prune).await;
                self.both("prune", call).await.map(drop)
            }
            _ => Ok(()),
        }
    }
}

fn release(claim: ClaimRef, kind: Kind, delay: u8, error: bool) -> Release {
    Release {
        claim,
        kind: match kind {
            Kind::Refused(max_attempts) => ReleaseKind::Refused { max_attempts },
            Kind::Unknown => ReleaseKind::Unknown,
            Kind::NotStarted => ReleaseKind::NotStarted,
        },
        delay: Duration::from_secs(u64::from(delay)),
        error: error.then(|| "not this time".to_owned()),
    }
}

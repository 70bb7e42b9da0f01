//! One operation on store and model: the same call, the same answer. Where a store may choose, the model follows its choice.

use super::follow::follow;
use super::op::{Kind, Op};
use super::pair::{Disagreement, Pair, answer, same};
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

/// More workspaces than this make cases slow without making them richer.
const TENANTS_MAX: usize = 5;

/// How often a claim may bring nothing and promise more before it counts as one that never ends.
const PATIENCE: usize = 50;

impl Pair {
    /// Does `op` on both; it is nothing where there is nothing it could be about.
    pub(super) async fn apply(&mut self, op: &Op) -> Result<(), Disagreement> {
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
            Op::RedriveMany { site } => self.redrive_many(self.site(*site)).await,
            Op::Advance { seconds } => {
                self.real.advance(u64::from(*seconds));
                Ok(())
            }
            Op::Settle
            | Op::Place { .. }
            | Op::Cancel { .. }
            | Op::TellCancel { .. }
            | Op::Finish { .. }
            | Op::Redrive { .. }
            | Op::Prune { .. } => self.apply_to_any(op).await,
        }
    }

    async fn apply_to_workspace(&mut self, op: &Op) -> Result<(), Disagreement> {
        let mut change = WorkspaceChange::default();
        let site = match *op {
            Op::CreateWorkspace { limit } if self.sites.len() < TENANTS_MAX => {
                return self.create_site(limit).await;
            }
            Op::SetLimit { site, limit } => {
                change.limit_override = Some(limit);
                site
            }
            Op::SetPlan { site, plan } => {
                change.plan = Some(plan);
                site
            }
            Op::SetPaused { site, paused } => {
                change.paused = Some(paused);
                site
            }
            Op::DeleteWorkspace { site } => {
                let id = self.site(site).workspace;
                let delete = async |store: &dyn Store| store.workspace_delete(id).await;
                return self.both("workspace_delete", delete).await.map(drop);
            }
            Op::DeleteDefinition { site } => return self.delete_definition(site).await,
            Op::Publish { site } => {
                let t = self.site(site);
                let living = self.inner.state().lives(t.workspace);
                return match living {
                    true => self.publish(t.workspace, t.definition).await.map(drop),
                    false => Ok(()),
                };
            }
            _ => return Ok(()),
        };
        let id = self.site(site).workspace;
        let update = async |store: &dyn Store| store.workspace_update(id, &change).await;
        self.both("workspace_update", update).await.map(drop)
    }

    /// Deletes a site's definition; a living site goes on with another.
    async fn delete_definition(&mut self, site: u8) -> Result<(), Disagreement> {
        let place = self.place(site);
        let t = self.sites[place];
        if !self.inner.state().lives(t.workspace) {
            return Ok(());
        }
        let delete =
            async |store: &dyn Store| store.definition_delete(t.workspace, t.definition).await;
        self.both("definition_delete", delete).await?;
        let (definition, version) = self.create_definition(t.workspace).await?;
        self.sites[place] = TestWorkspace {
            definition,
            version,
            ..t
        };
        Ok(())
    }

    async fn enqueue(&self, op: &Op) -> Result<(), Disagreement> {
        let Op::Enqueue {
            site,
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
        let t = self.site(site);
        let seconds = |s: u8| Duration::from_secs(u64::from(s));
        let requests = (0..n).map(|i| NewRequest {
            priority,
            run_at: (delay > 0).then(|| self.real.now() + seconds(delay)),
            params: json!({"other": other}),
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
            // Which of several conflicts is named is the store's choice.
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

    async fn claim(&mut self, owner: u8, batch: u32) -> Result<(), Disagreement> {
        let claim = Claim {
            owner: format!("dispatcher-{owner}"),
            batch,
            lease: LEASE,
            lock: None,
        };
        for _ in 0..PATIENCE {
            let real = answer("request_claim", self.real.store.request_claim(&claim).await)?;
            let ClaimOutcome::Claimed(real) = real else {
                return Err("request_claim lost a lock that nobody asked for".into());
            };
            let mut state = self.inner.state();
            follow(&mut state, &mut self.round, &claim, &real, self.real.now())
                .map_err(|what| format!("{what}\n  claim: {real:?}"))?;
            let empty = real.requests.is_empty() && real.rejected.is_empty();
            if !empty || !real.more {
                return Ok(());
            }
        }
        Err("claims bring nothing and promise more for ever".into())
    }

    async fn apply_to_claim(&self, op: &Op) -> Result<(), Disagreement> {
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
                let mark =
                    async |store: &dyn Store| store.request_dispatched(&owner, &[claim]).await;
                self.both("request_dispatched", mark).await.map(drop)
            }
            Op::Release {
                kind, delay, error, ..
            } => {
                let release = release(claim, *kind, *delay, *error);
                let back = async |store: &dyn Store| {
                    store
                        .request_release(&owner, std::slice::from_ref(&release))
                        .await
                };
                self.both("request_release", back).await.map(drop)
            }
            _ => {
                let fail = Fail {
                    claim,
                    reason: FailureReason::VersionNotFound,
                    error: Some("given up".into()),
                };
                let give_up = async |store: &dyn Store| store.request_fail(&owner, &fail).await;
                self.both("request_fail", give_up).await.map(drop)
            }
        }
    }

    async fn cancel(&self, request: u8, force: bool) -> Result<(), Disagreement> {
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

    /// Wishes that are outdated ask for something else than what was wished.
    async fn tell_cancel(&self, limit: u32, outdated: bool) -> Result<(), Disagreement> {
        let list = async |store: &dyn Store| store.request_cancel_list(limit).await;
        let mut wishes = self.both("request_cancel_list", list).await?;
        for wish in &mut wishes {
            wish.force ^= outdated;
        }
        let told = async |store: &dyn Store| store.request_cancel_told(&wishes).await;
        self.both("request_cancel_told", told).await
    }

    /// Which of the expired a bounded sweep takes is the store's choice.
    async fn recover(&self, limit: u32) -> Result<(), Disagreement> {
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
                "recovered {chosen:?}, at most {limit} of {expired:?}"
            ));
        }
        same(
            "request_recover",
            &real,
            &state.recover("sweeper", &chosen, now),
        )
    }

    async fn redrive_many(&self, site: TestWorkspace) -> Result<(), Disagreement> {
        let redrive = RedriveMany {
            workspace: site.workspace,
            reason: None,
            limit: 1_000,
            by: USER.into(),
        };
        let real = self.real.store.request_redrive_many(&redrive).await;
        let real: BTreeMap<_, _> = answer("request_redrive_many", real)?.into_iter().collect();
        let mut choose = |failed| real.get(&failed).copied().unwrap_or_else(fresh_id);
        let now = self.real.now();
        let model = self.inner.state().redrive_many(&redrive, now, &mut choose);
        same("request_redrive_many", &real, &model.into_iter().collect())
    }

    async fn apply_to_any(&self, op: &Op) -> Result<(), Disagreement> {
        match *op {
            Op::Settle => {
                let settle = async |store: &dyn Store| Ok(store.request_settle().await?.next_due);
                self.both("request_settle", settle).await.map(drop)
            }
            Op::Place { request, up_to } => {
                let Some((workspace, id)) = self.any_request(request) else {
                    return Ok(());
                };
                let place =
                    async |store: &dyn Store| store.request_place(workspace, id, up_to).await;
                self.both("request_place", place).await.map(drop)
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
            Op::TellCancel { limit, outdated } => self.tell_cancel(limit, outdated).await,
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

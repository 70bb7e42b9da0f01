//! Checks whether a store's claim is valid. A store may choose the turn of a workspace that becomes ready, and may stop a
//! claim early if it reports that there is more; everything else about a claim is determined.

use super::claim::until;
use super::comparison::{Mismatch, same};
use super::job_comparison::is_same_json;
use super::state::State;
use leasehold_core::{ExecutionId, RequestId, Timestamp, WorkspaceId};
use leasehold_store::request::{Claim, Claimed, ClaimedRequest, ExecutionOrigin, Rejected};
use std::collections::{BTreeMap, BTreeSet};

/// Tracks when each workspace was served and since when it has been ready, in numbered admissions.
#[derive(Default)]
pub(super) struct TurnTracker {
    moment: u64,
    ready_since: BTreeMap<WorkspaceId, u64>,
    served: BTreeMap<WorkspaceId, Span>,
    /// The current claim, if it both admitted and rejected, so that its order of service is unknown.
    mixed: Option<MixedClaim>,
}

/// The range of admissions in which a workspace was served.
#[derive(Clone, Copy)]
struct Span {
    earliest: u64,
    latest: u64,
}

/// A claim that both admitted and rejected: the relative order of the two is unknown.
struct MixedClaim {
    span: Span,
    serves: BTreeSet<WorkspaceId>,
}

impl TurnTracker {
    /// Records which workspaces are ready now; one that was not ready in between starts again.
    pub(super) fn update(&mut self, state: &State, now: Timestamp) {
        for id in state.workspaces.keys() {
            if state.ready(*id, now) {
                self.ready_since.entry(*id).or_insert(self.moment);
            } else {
                self.ready_since.remove(id);
            }
        }
    }

    /// Starts a claim that served the workspaces of its admitted and of its rejected requests, each in this order.
    fn begin(&mut self, admitted: &[WorkspaceId], rejected: &[WorkspaceId]) {
        let ordered = admitted.is_empty() || rejected.is_empty();
        let all = || admitted.iter().chain(rejected).copied();
        self.mixed = (!ordered).then(|| MixedClaim {
            span: Span {
                earliest: self.moment + 1,
                latest: self.moment + all().count() as u64,
            },
            serves: all().collect(),
        });
    }

    /// Records an admission. Fails if the workspace is served twice while another was ready all the time and was not served.
    fn record(&mut self, workspace: WorkspaceId) -> Result<(), Mismatch> {
        let before = self.served.get(&workspace).copied();
        for (other, since) in &self.ready_since {
            let served = self.served.get(other).map(|span| span.latest);
            let here = self.mixed.as_ref();
            // Counts only what is certain: a mixed claim may have served the other workspace first.
            let waited = *other != workspace
                && !here.is_some_and(|claim| claim.serves.contains(other))
                && before.is_some_and(|before| {
                    *since <= before.earliest && served < Some(before.earliest)
                });
            if waited {
                return Err(format!("{workspace} was served twice while {other} waited"));
            }
        }
        self.moment += 1;
        let exact = Span {
            earliest: self.moment,
            latest: self.moment,
        };
        let span = self.mixed.as_ref().map_or(exact, |claim| claim.span);
        self.served.insert(workspace, span);
        Ok(())
    }
}

/// Applies the store's claim to the model, or returns why it is invalid.
pub(super) fn apply_claim(
    state: &mut State,
    turns: &mut TurnTracker,
    claim: &Claim,
    real: &Claimed,
    now: Timestamp,
) -> Result<(), Mismatch> {
    let next_due_in = state.promote_due(now).next_due.map(|at| until(now, at));
    same("next due", &real.next_due_in, &next_due_in)?;
    turns.update(state, now);
    same("orphaned requests", &real.orphaned, &vec![])?;
    let handled = real.requests.len() + real.rejected.len();
    if handled > claim.batch as usize {
        return Err(format!(
            "{handled} were claimed, {} were requested",
            claim.batch
        ));
    }
    let (kept, new): (Vec<_>, Vec<_>) = real
        .requests
        .iter()
        .partition(|r| r.origin == ExecutionOrigin::Kept);
    for claimed in &kept {
        same("kept requests", &Some(claimed.id), &state.next_kept(now))?;
        let model = state.take(claimed.id, claim, now, ExecutionOrigin::Kept);
        same_claimed(claimed, model)?;
    }
    if handled > kept.len() && state.next_kept(now).is_some() {
        return Err("a due unknown start was not claimed".into());
    }
    let in_order = real.requests.iter().skip(kept.len());
    if in_order.clone().any(|r| r.origin == ExecutionOrigin::Kept) {
        return Err("an unknown start was not claimed first".into());
    }
    admissions(state, turns, claim, (&new, &real.rejected), now)?;
    let mut at_capacity = real.at_capacity.clone();
    at_capacity.sort_by_key(|full| full.workspace);
    let filled = state.filled(&real.requests, now);
    same("workspaces at capacity", &at_capacity, &filled)?;
    let left = state.next_kept(now).is_some() || state.next_turn(now).is_some();
    if left && !real.more {
        return Err("there is more, but the claim does not report it".into());
    }
    Ok(())
}

/// Compares two claimed requests; whitespace and field order of the params may differ.
fn same_claimed(real: &ClaimedRequest, model: Option<ClaimedRequest>) -> Result<(), Mismatch> {
    let mut real = real.clone();
    if let Some(model) = &model
        && is_same_json(&real.params, &model.params)
    {
        real.params.clone_from(&model.params);
    }
    same("claimed requests", &Some(real), &model)
}

fn admissions(
    state: &mut State,
    turns: &mut TurnTracker,
    claim: &Claim,
    (admitted, rejected): (&[&ClaimedRequest], &[Rejected]),
    now: Timestamp,
) -> Result<(), Mismatch> {
    let owner = |state: &State, id| state.requests.get(&id).map(|row| row.request.workspace);
    let owners = |ids: &mut dyn Iterator<Item = RequestId>| -> Vec<WorkspaceId> {
        ids.filter_map(|id| owner(state, id)).collect()
    };
    turns.begin(
        &owners(&mut admitted.iter().map(|r| r.id)),
        &owners(&mut rejected.iter().map(|r| r.request)),
    );
    let (mut admitted, mut rejected) = (admitted.iter().peekable(), rejected.iter().peekable());
    while admitted.peek().is_some() || rejected.peek().is_some() {
        // Only the order among admissions and the order among rejections are known.
        let next_up = |state: &State, id: RequestId| {
            owner(state, id).filter(|w| state.ready(*w, now) && state.best(*w, now) == Some(id))
        };
        let admit = admitted.peek().map(|r| r.id);
        let reject = rejected.peek().map(|r| r.request);
        if let Some(workspace) = admit.and_then(|id| next_up(state, id))
            && let Some(real) = admitted.next()
        {
            same(
                "reasons to reject",
                &None,
                &state.missing(workspace, real.id),
            )?;
            turns.record(workspace)?;
            state.admissions += 1;
            let chosen: ExecutionId = real.execution;
            state.admit(real.id, chosen, now);
            let model = state.take(real.id, claim, now, ExecutionOrigin::Created);
            same_claimed(real, model)?;
        } else if let Some(workspace) = reject.and_then(|id| next_up(state, id))
            && let Some(rejected) = rejected.next()
        {
            same("workspaces of rejected", &rejected.workspace, &workspace)?;
            same(
                "reasons to reject",
                &Some(rejected.reason),
                &state.missing(workspace, rejected.request),
            )?;
            turns.record(workspace)?;
            state.reject(rejected.request, rejected.reason, now, &claim.owner);
        } else {
            return Err(format!(
                "neither {admit:?} (admitted) nor {reject:?} (rejected) is the first request of a ready workspace"
            ));
        }
        turns.update(state, now);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns two workspaces that are ready all the time.
    fn two() -> (TurnTracker, WorkspaceId, WorkspaceId) {
        let (one, other) = (leasehold_store::fresh_id(), leasehold_store::fresh_id());
        let turns = TurnTracker {
            ready_since: [(one, 0), (other, 0)].into(),
            ..TurnTracker::default()
        };
        (turns, one, other)
    }

    #[test]
    fn workspace_served_twice_while_another_waits_is_detected() {
        let (mut turns, one, other) = two();
        turns.begin(&[one, one], &[]);
        assert!(turns.record(one).is_ok());
        assert!(turns.record(one).is_err());
        let (mut turns, one, _) = two();
        turns.begin(&[], &[one]);
        assert!(turns.record(one).is_ok());
        turns.begin(&[one, other], &[]);
        assert!(turns.record(one).is_err());
    }

    /// The store rejected, then admitted; that order is unknown, and the check assumes the other one.
    #[test]
    fn unknown_order_of_a_mixed_claim_is_no_violation() {
        let (mut turns, one, other) = two();
        turns.begin(&[other], &[one]);
        assert!(turns.record(other).is_ok());
        assert!(turns.record(one).is_ok());
        turns.begin(&[one, other], &[]);
        assert!(turns.record(one).is_ok());
        assert!(turns.record(other).is_ok());
        turns.begin(&[other], &[]);
        assert!(
            turns.record(other).is_err(),
            "the order is known from here on"
        );
    }

    #[test]
    fn workspace_skipped_by_a_mixed_claim_has_waited() {
        let (mut turns, one, _) = two();
        turns.begin(&[one], &[one]);
        assert!(turns.record(one).is_ok());
        assert!(turns.record(one).is_err());
    }
}

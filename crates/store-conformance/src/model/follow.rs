//! Whether a claim is one a store may make. Whose turn it is when a workspace joins the round is the store's choice, and so
//! is a claim that stops early and says that there is more; everything else about a claim is determined.

use super::claim::until;
use super::job_pair::means_the_same;
use super::pair::{Disagreement, same};
use super::state::State;
use leasehold_core::{ExecutionId, RequestId, Timestamp, WorkspaceId};
use leasehold_store::request::{Claim, Claimed, ClaimedRequest, ExecutionOrigin, Rejected};
use std::collections::{BTreeMap, BTreeSet};

/// Who has been served when, and who has been waiting since when. Moments are counted, not measured.
#[derive(Default)]
pub(super) struct Round {
    moment: u64,
    ready_since: BTreeMap<WorkspaceId, u64>,
    served: BTreeMap<WorkspaceId, Span>,
    /// The claim at hand, if its answer does not say in which order it served.
    unordered: Option<Unordered>,
}

/// When something happened: not before `earliest`, not after `latest`.
#[derive(Clone, Copy)]
struct Span {
    earliest: u64,
    latest: u64,
}

/// A claim that both admitted and rejected: how the two were mixed is not told.
struct Unordered {
    span: Span,
    serves: BTreeSet<WorkspaceId>,
}

impl Round {
    /// Notes which workspaces are ready now; one that was not, even for a moment, has joined anew.
    pub(super) fn look(&mut self, state: &State, now: Timestamp) {
        for id in state.workspaces.keys() {
            if state.ready(*id, now) {
                self.ready_since.entry(*id).or_insert(self.moment);
            } else {
                self.ready_since.remove(id);
            }
        }
    }

    /// Begins a claim that served the owners of what it admitted and of what it rejected, each in this order.
    fn begin(&mut self, admitted: &[WorkspaceId], rejected: &[WorkspaceId]) {
        let told = admitted.is_empty() || rejected.is_empty();
        let all = || admitted.iter().chain(rejected).copied();
        self.unordered = (!told).then(|| Unordered {
            span: Span {
                earliest: self.moment + 1,
                latest: self.moment + all().count() as u64,
            },
            serves: all().collect(),
        });
    }

    /// Notes an admission. Nobody is served twice while another was ready all the time and was not served.
    fn serve(&mut self, workspace: WorkspaceId) -> Result<(), Disagreement> {
        let before = self.served.get(&workspace).copied();
        for (other, since) in &self.ready_since {
            let served = self.served.get(other).map(|span| span.latest);
            let here = self.unordered.as_ref();
            // Only what is certain: the other may have come first in a claim that served it too.
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
        let span = self.unordered.as_ref().map_or(exact, |claim| claim.span);
        self.served.insert(workspace, span);
        Ok(())
    }
}

/// Makes the model do what the store did, if the store may do it.
pub(super) fn follow(
    state: &mut State,
    round: &mut Round,
    claim: &Claim,
    real: &Claimed,
    now: Timestamp,
) -> Result<(), Disagreement> {
    let next_due_in = state.settle(now).next_due.map(|at| until(now, at));
    same("next due", &real.next_due_in, &next_due_in)?;
    round.look(state, now);
    same("orphaned requests", &real.orphaned, &vec![])?;
    let handled = real.requests.len() + real.rejected.len();
    if handled > claim.batch as usize {
        return Err(format!("{handled} were claimed, {} asked for", claim.batch));
    }
    let (kept, new): (Vec<_>, Vec<_>) = real
        .requests
        .iter()
        .partition(|r| r.origin == ExecutionOrigin::Kept);
    for taken in &kept {
        same("kept requests", &Some(taken.id), &state.next_kept(now))?;
        let model = state.take(taken.id, claim, now, ExecutionOrigin::Kept);
        same_claimed(taken, model)?;
    }
    if handled > kept.len() && state.next_kept(now).is_some() {
        return Err("a kept execution was passed over".into());
    }
    let in_order = real.requests.iter().skip(kept.len());
    if in_order.clone().any(|r| r.origin == ExecutionOrigin::Kept) {
        return Err("a kept execution does not come first".into());
    }
    admissions(state, round, claim, (&new, &real.rejected), now)?;
    let mut at_capacity = real.at_capacity.clone();
    at_capacity.sort_by_key(|full| full.workspace);
    let filled = state.filled(&real.requests, now);
    same("workspaces at capacity", &at_capacity, &filled)?;
    let left = state.next_kept(now).is_some() || state.next_turn(now).is_some();
    if left && !real.more {
        return Err("there is more, but the claim denies it".into());
    }
    Ok(())
}

/// A store may space and order the params as it likes.
fn same_claimed(real: &ClaimedRequest, model: Option<ClaimedRequest>) -> Result<(), Disagreement> {
    let mut real = real.clone();
    if let Some(model) = &model
        && means_the_same(&real.params, &model.params)
    {
        real.params.clone_from(&model.params);
    }
    same("claimed requests", &Some(real), &model)
}

fn admissions(
    state: &mut State,
    round: &mut Round,
    claim: &Claim,
    (admitted, rejected): (&[&ClaimedRequest], &[Rejected]),
    now: Timestamp,
) -> Result<(), Disagreement> {
    let owner = |state: &State, id| state.requests.get(&id).map(|row| row.request.workspace);
    let owners = |ids: &mut dyn Iterator<Item = RequestId>| -> Vec<WorkspaceId> {
        ids.filter_map(|id| owner(state, id)).collect()
    };
    round.begin(
        &owners(&mut admitted.iter().map(|r| r.id)),
        &owners(&mut rejected.iter().map(|r| r.request)),
    );
    let (mut admitted, mut rejected) = (admitted.iter().peekable(), rejected.iter().peekable());
    while admitted.peek().is_some() || rejected.peek().is_some() {
        // Only the order of admissions among themselves and of rejections among themselves is told.
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
            round.serve(workspace)?;
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
            round.serve(workspace)?;
            state.reject(rejected.request, rejected.reason, now, &claim.owner);
        } else {
            return Err(format!(
                "neither {admit:?} (admitted) nor {reject:?} (rejected) is the next of a workspace that is ready"
            ));
        }
        round.look(state, now);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two workspaces that are ready all the time.
    fn two() -> (Round, WorkspaceId, WorkspaceId) {
        let (one, other) = (leasehold_store::fresh_id(), leasehold_store::fresh_id());
        let round = Round {
            ready_since: [(one, 0), (other, 0)].into(),
            ..Round::default()
        };
        (round, one, other)
    }

    #[test]
    fn who_is_served_twice_while_another_waits_is_found() {
        let (mut round, one, other) = two();
        round.begin(&[one, one], &[]);
        assert!(round.serve(one).is_ok());
        assert!(round.serve(one).is_err());
        let (mut round, one, _) = two();
        round.begin(&[], &[one]);
        assert!(round.serve(one).is_ok());
        round.begin(&[one, other], &[]);
        assert!(round.serve(one).is_err());
    }

    /// The store rejected, then admitted; that order is not told, and the other one is assumed.
    #[test]
    fn an_order_that_is_not_told_is_not_held_against_a_store_later() {
        let (mut round, one, other) = two();
        round.begin(&[other], &[one]);
        assert!(round.serve(other).is_ok());
        assert!(round.serve(one).is_ok());
        round.begin(&[one, other], &[]);
        assert!(round.serve(one).is_ok());
        assert!(round.serve(other).is_ok());
        round.begin(&[other], &[]);
        assert!(round.serve(other).is_err(), "from here on it is certain");
    }

    #[test]
    fn whom_a_mixed_claim_passed_over_has_waited() {
        let (mut round, one, _) = two();
        round.begin(&[one], &[one]);
        assert!(round.serve(one).is_ok());
        assert!(round.serve(one).is_err());
    }
}

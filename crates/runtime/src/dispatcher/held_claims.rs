//! The claims a dispatcher holds and the deadline of each lease. One statement renews all of them.

use leasehold_core::RequestId;
use leasehold_store::request::{ClaimRef, ClaimedRequest, RequestsRenewed};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The deadline of one claim's lease, by the local clock; shared with the task that starts the execution.
#[derive(Clone)]
pub(super) struct LeaseDeadline(Arc<Mutex<Instant>>);

impl LeaseDeadline {
    /// Returns whether the lease is still valid. A process that was stalled detects it here, before it calls the engine.
    pub(super) fn is_valid(&self) -> bool {
        Instant::now() < *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, deadline: Instant) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = deadline;
    }
}

/// The claims this dispatcher holds.
#[derive(Default)]
pub(super) struct HeldClaims(HashMap<RequestId, HeldClaim>);

struct HeldClaim {
    token: i64,
    deadline: LeaseDeadline,
    /// Whether its outcome is being flushed: the flush may end the claim before a renewal, and the flush reports whether it was lost.
    flushing: bool,
}

impl HeldClaims {
    /// Adds a claim that was requested at `requested`.
    pub(super) fn add(
        &mut self,
        claimed: &ClaimedRequest,
        requested: Instant,
        lease: Duration,
    ) -> LeaseDeadline {
        let deadline = LeaseDeadline(Arc::new(Mutex::new(requested + lease)));
        let held = HeldClaim {
            token: claimed.token,
            deadline: deadline.clone(),
            flushing: false,
        };
        self.0.insert(claimed.id, held);
        deadline
    }

    /// Marks a claim whose outcome is being flushed.
    pub(super) fn mark_flushing(&mut self, claim: ClaimRef) {
        if let Some(held) = self.0.get_mut(&claim.request)
            && held.token == claim.token
        {
            held.flushing = true;
        }
    }

    pub(super) fn remove(&mut self, claim: ClaimRef) {
        if self
            .0
            .get(&claim.request)
            .is_some_and(|held| held.token == claim.token)
        {
            self.0.remove(&claim.request);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn claims(&self) -> Vec<ClaimRef> {
        self.0
            .iter()
            .map(|(request, held)| ClaimRef {
                request: *request,
                token: held.token,
            })
            .collect()
    }

    /// Applies the result of a renewal that was requested at `requested`. Returns the lost claims. A claim whose row is locked keeps its deadline.
    pub(super) fn apply_renewal(
        &mut self,
        claims: &[ClaimRef],
        answer: &RequestsRenewed,
        requested: Instant,
        lease: Duration,
    ) -> Vec<ClaimRef> {
        let renewed: HashSet<RequestId> = answer.renewed.iter().copied().collect();
        let busy: HashSet<RequestId> = answer.busy.iter().copied().collect();
        let mut lost = Vec::new();
        for claim in claims {
            let Some(held) = self.0.get(&claim.request) else {
                continue;
            };
            if held.token != claim.token {
                continue;
            }
            if renewed.contains(&claim.request) {
                held.deadline.set(requested + lease);
            } else if !held.flushing && !busy.contains(&claim.request) {
                held.deadline.set(requested);
                lost.push(*claim);
            }
        }
        lost
    }
}

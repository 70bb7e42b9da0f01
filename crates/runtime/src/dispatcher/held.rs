//! The claims a dispatcher holds, and until when it may believe so. Renewing is one statement for all of them.

use leasehold_core::RequestId;
use leasehold_store::request::{ClaimRef, ClaimedRequest};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Until when one claim is believed to be held; shared with whoever starts it.
#[derive(Clone)]
pub(super) struct Watch(Arc<Mutex<Instant>>);

impl Watch {
    /// Whether the claim can be believed to be held now. A process that stood still finds out here.
    pub(super) fn holds(&self) -> bool {
        Instant::now() < *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn until(&self, until: Instant) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = until;
    }
}

#[derive(Default)]
pub(super) struct Held(HashMap<RequestId, Kept>);

struct Kept {
    token: i64,
    watch: Watch,
    /// Whether it is being written down what became of it: then it may end under a renewal, and writing says if it was lost.
    settling: bool,
}

impl Held {
    /// Takes note of a claim asked for at `asked`.
    pub(super) fn add(
        &mut self,
        claimed: &ClaimedRequest,
        asked: Instant,
        lease: Duration,
    ) -> Watch {
        let watch = Watch(Arc::new(Mutex::new(asked + lease)));
        let kept = Kept {
            token: claimed.token,
            watch: watch.clone(),
            settling: false,
        };
        self.0.insert(claimed.id, kept);
        watch
    }

    /// Takes note that it is being written down what became of a claim.
    pub(super) fn settling(&mut self, claim: ClaimRef) {
        if let Some(kept) = self.0.get_mut(&claim.request)
            && kept.token == claim.token
        {
            kept.settling = true;
        }
    }

    pub(super) fn remove(&mut self, claim: ClaimRef) {
        if self
            .0
            .get(&claim.request)
            .is_some_and(|kept| kept.token == claim.token)
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
            .map(|(request, kept)| ClaimRef {
                request: *request,
                token: kept.token,
            })
            .collect()
    }

    /// Takes note of which of the claims asked for at `asked` were renewed. Returns those that are lost.
    pub(super) fn renewed(
        &mut self,
        claims: &[ClaimRef],
        renewed: &[RequestId],
        asked: Instant,
        lease: Duration,
    ) -> Vec<ClaimRef> {
        let renewed: HashSet<RequestId> = renewed.iter().copied().collect();
        let mut lost = Vec::new();
        for claim in claims {
            let Some(kept) = self.0.get(&claim.request) else {
                continue;
            };
            if kept.token != claim.token {
                continue;
            }
            if renewed.contains(&claim.request) {
                kept.watch.until(asked + lease);
            } else if !kept.settling {
                kept.watch.until(asked);
                lost.push(*claim);
            }
        }
        lost
    }
}

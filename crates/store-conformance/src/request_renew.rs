//! Renewing leases: by owner and token, many in one call.

use crate::Fixture;
use crate::factory::{LEASE, OWNER, claim_refs, ok};
use leasehold_core::ExecutionEnd;
use leasehold_store::request::{ClaimRef, ReleaseKind, RequestsRenewed};
use std::collections::BTreeSet;
use std::time::Duration;

/// A renewal sets the lease's end to `lease` from now and changes nothing else.
pub async fn extends_the_lease_from_now(f: Fixture) {
    let t = f.workspace(1).await;
    let claimed = f.enqueue_claimed(&t).await;
    f.advance(10);
    let mut expected = f.dump().await;
    let lease = Duration::from_secs(40);
    let renewed = ok(f
        .store
        .request_renew(OWNER, &[(&claimed).into()], lease)
        .await);
    assert_eq!(renewed.renewed, [claimed.id]);
    let request = expected
        .requests
        .get_mut(&claimed.id)
        .expect("the row exists");
    request.lease_expires_at = Some(f.now() + lease);
    assert_eq!(f.dump().await, expected);
}

/// A renewed claim is not recovered at its first lease end.
pub async fn renewed_claim_is_not_recovered(f: Fixture) {
    let t = f.workspace(1).await;
    let claimed = f.enqueue_claimed(&t).await;
    for _ in 0..5 {
        f.advance(14);
        let renewed = f.renew(OWNER, &[(&claimed).into()]).await;
        assert_eq!(renewed, [claimed.id]);
        assert_eq!(ok(f.store.request_recover("sweeper", 10).await), []);
    }
    f.advance(15);
    assert_eq!(ok(f.store.request_recover("sweeper", 10).await).len(), 1);
}

/// One call renews many claims and returns those still held by this owner with this token.
pub async fn returns_the_claims_still_held(f: Fixture) {
    let t = f.workspace(9).await;
    f.enqueue(&t, 6).await;
    let mine = f.claim(5).await;
    let theirs = f.claim_as("another", 1).await;
    let claims = [claim_refs(&mine), claim_refs(&theirs)].concat();
    f.dispatch(&mine.requests[0]).await;
    f.release(&mine.requests[1], ReleaseKind::Unknown, 0).await;
    f.finish(mine.requests[2].execution, ExecutionEnd::Completed)
        .await;
    let mut claims: Vec<ClaimRef> = claims;
    claims[3].token += 1;
    let renewed = ok(f.store.request_renew(OWNER, &claims, LEASE).await).renewed;
    assert_eq!(renewed, [mine.requests[4].id]);
    let other = f.request(t.workspace, theirs.requests[0].id).await;
    assert_eq!(other.claimed_by.as_deref(), Some("another"));
    f.advance(1);
    let both = ok(f
        .store
        .request_renew(OWNER, &claim_refs(&mine), LEASE)
        .await);
    assert_eq!(both.busy, []);
    let both: BTreeSet<_> = both.renewed.into_iter().collect();
    let held = [mine.requests[3].id, mine.requests[4].id];
    assert_eq!(both, BTreeSet::from(held));
}

/// An expired claim can be renewed until it is recovered.
pub async fn expired_claim_belongs_to_its_owner_until_recovered(f: Fixture) {
    let t = f.workspace(1).await;
    let claimed = f.enqueue_claimed(&t).await;
    f.advance(3600);
    let renewed = f.renew(OWNER, &[(&claimed).into()]).await;
    assert_eq!(renewed, [claimed.id]);
    f.advance(15);
    assert_eq!(ok(f.store.request_recover("sweeper", 10).await).len(), 1);
    let renewed = f.renew(OWNER, &[(&claimed).into()]).await;
    assert_eq!(renewed, []);
    let again = f.claim_one().await;
    assert_eq!(again.id, claimed.id);
    let stale = f.renew(OWNER, &[(&claimed).into()]).await;
    assert_eq!(stale, [], "the same owner with an old token holds nothing");
}

/// An empty call does nothing.
pub async fn empty_call_does_nothing(f: Fixture) {
    let none = ok(f.store.request_renew(OWNER, &[], LEASE).await);
    assert_eq!(none, RequestsRenewed::default());
}

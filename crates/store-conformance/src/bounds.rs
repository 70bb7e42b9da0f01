//! Store limits on oversized numbers: a call processes at most its maximum, and further calls process the rest.

use crate::Fixture;
use crate::factory::{TestWorkspace, USER, claim_refs, ok};
use leasehold_core::ExecutionEnd;
use leasehold_core::limits::{CLAIM_MAX_BATCH, PAGE_MAX, SWEEP_MAX_BATCH};
use leasehold_store::Page;
use leasehold_store::change::ChangeStart;
use leasehold_store::execution::{ExecutionFilter, ExecutionFinish};
use leasehold_store::prune::Prune;
use leasehold_store::request::{ClaimedRequest, RedriveMany, RequestFilter};
use std::collections::BTreeSet;

/// An oversized number.
const ALL: u32 = u32::MAX;
/// More requests than one claim takes and one page has.
const MANY: usize = 1_100;

/// Creates a workspace with [`MANY`] claimed requests.
async fn many_claimed(f: &Fixture) -> (TestWorkspace, Vec<ClaimedRequest>) {
    let t = f.workspace(2_000).await;
    f.enqueue(&t, MANY).await;
    let claimed = f.drain(ALL).await.requests;
    assert_eq!(claimed.len(), MANY);
    (t, claimed)
}

/// A claim with an oversized batch is capped at the maximum batch and reports that there is more.
pub async fn claim_is_capped_at_the_maximum_batch(f: Fixture) {
    let t = f.workspace(2_000).await;
    f.enqueue(&t, MANY).await;
    let first = f.claim(ALL).await;
    assert!(first.requests.len() <= CLAIM_MAX_BATCH as usize);
    assert!(first.more);
    let rest = f.drain(ALL).await;
    assert_eq!(first.requests.len() + rest.requests.len(), MANY);
    assert_eq!(
        f.renew(crate::OWNER, &claim_refs(&rest)).await.len(),
        rest.requests.len()
    );
}

/// Recovery, bulk redrive and pruning are capped per call; repeated calls process everything.
pub async fn sweeps_are_capped_per_call_and_finish_over_calls(f: Fixture) {
    let most = SWEEP_MAX_BATCH as usize;
    let (t, claimed) = many_claimed(&f).await;
    f.advance(15);
    let mut recovered = 0;
    loop {
        let n = ok(f.store.request_recover("sweeper", ALL).await).len();
        assert!(n <= most);
        recovered += n;
        if n == 0 {
            break;
        }
    }
    assert_eq!(recovered, MANY);
    let ends: Vec<ExecutionFinish> = claimed
        .iter()
        .map(|r| ExecutionFinish {
            execution: r.execution,
            end: ExecutionEnd::Failed,
            error: None,
        })
        .collect();
    ok(f.store.execution_finish("engine", &ends).await);
    let all = RedriveMany {
        workspace: t.workspace,
        reason: None,
        definition: None,
        limit: ALL,
        max_bytes: u64::MAX,
        by: USER.into(),
    };
    let mut redriven = BTreeSet::new();
    loop {
        let some = ok(f.store.request_redrive_many(&all).await);
        assert!(some.len() <= most);
        if some.is_empty() {
            break;
        }
        redriven.extend(some.into_iter().map(|(failed, _)| failed));
    }
    assert_eq!(redriven, claimed.iter().map(|r| r.id).collect());
    f.advance(1);
    let ended = Prune {
        completed_before: Some(f.now()),
        failed_before: Some(f.now()),
        limit: ALL,
    };
    let mut pruned = 0;
    loop {
        let some = ok(f.store.prune(&ended).await).requests;
        assert!(some <= u64::from(SWEEP_MAX_BATCH));
        pruned += some;
        if some == 0 {
            break;
        }
    }
    assert_eq!(pruned, MANY as u64);
    assert_eq!(f.counts(t.workspace).await.failed, 0);
}

/// Pages are capped at the maximum size; a stream of changes read in such pages misses nothing.
pub async fn pages_are_capped_at_the_maximum(f: Fixture) {
    let most = PAGE_MAX as usize;
    let (t, _) = many_claimed(&f).await;
    let filter = RequestFilter::default();
    let requests = ok(f.store.request_list(&filter, Page::first(ALL)).await);
    assert_eq!(requests.len(), most);
    let active = ok(f.store.execution_list_active(Page::first(ALL)).await);
    assert_eq!(active.len(), most);
    let every = ExecutionFilter {
        workspace: t.workspace,
        status: None,
        definition: None,
    };
    let executions = ok(f.store.execution_list(&every, Page::first(ALL)).await);
    assert_eq!(executions.len(), most);
    let workspaces = ok(f.store.workspace_list(Page::first(ALL)).await);
    assert_eq!(workspaces.len(), 1);
    let definitions = ok(f.store.definition_list(t.workspace, Page::first(ALL)).await);
    assert_eq!(definitions.len(), 1);
    let versions = f
        .store
        .version_list(t.workspace, t.definition, Page::first(ALL))
        .await;
    assert_eq!(ok(versions).len(), 1);
    let (mut place, mut events) = (ChangeStart::Oldest, 0);
    loop {
        let page = ok(f.store.change_list(&place, None, ALL).await);
        assert!(page.changes.len() <= most);
        if page.changes.is_empty() {
            break;
        }
        events += page.changes.len();
        place = ChangeStart::After(page.cursor);
    }
    assert_eq!(events, 2 * MANY);
}

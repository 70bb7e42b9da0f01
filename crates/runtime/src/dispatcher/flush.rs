//! Flushes the outcomes of claims to the store, many in a few statements. Returns what a retry must write again.

use super::start::Resolution;
use super::trace::{Period, RequestTrace};
use super::{Shared, log};
use crate::error::Error;
use leasehold_core::RequestStatus;
use leasehold_store::execution::ExecutionFinished;
use leasehold_store::request::{ClaimRef, ClaimedRequest, Dispatched, Fail, Release, Released};
use leasehold_store::{ErrorKind, Result};
use std::time::SystemTime;

/// A claim and its outcome.
pub(super) struct ResolvedClaim {
    pub(super) claimed: ClaimedRequest,
    pub(super) resolution: Resolution,
    pub(super) trace: RequestTrace,
}

impl ResolvedClaim {
    pub(super) fn claim(&self) -> ClaimRef {
        ClaimRef::from(&self.claimed)
    }
}

/// The result of a flush.
#[derive(Default)]
pub(super) struct FlushReport {
    pub(super) done: Vec<ClaimRef>,
    /// Claims to flush again, after `error`.
    pub(super) remaining: Vec<ResolvedClaim>,
    /// Claims to flush again because another transaction has locked their rows.
    pub(super) busy: Vec<ResolvedClaim>,
    pub(super) error: Option<Error>,
    pub(super) counts: ClaimCounts,
}

/// How many claims ended which way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ClaimCounts {
    pub(super) dispatched: u64,
    pub(super) released: u64,
    pub(super) failed: u64,
    pub(super) lost: u64,
}

impl ClaimCounts {
    pub(super) fn add(&mut self, more: ClaimCounts) {
        self.dispatched += more.dispatched;
        self.released += more.released;
        self.failed += more.failed;
        self.lost += more.lost;
    }
}

pub(super) async fn flush(shared: &Shared, batch: Vec<ResolvedClaim>) -> FlushReport {
    let mut report = FlushReport::default();
    let (mut started, mut ended, mut released, mut failed) = (vec![], vec![], vec![], vec![]);
    for mut item in batch {
        match item.resolution {
            Resolution::Dispatched => started.push(item),
            Resolution::Ended(_) => ended.push(item),
            Resolution::Release { .. } => released.push(item),
            Resolution::Fail(..) => failed.push(item),
            Resolution::Lost => {
                log::lease_lost(&item.claimed);
                item.trace.lost();
                report.counts.lost += 1;
                report.done.push(item.claim());
            }
        }
    }
    for items in [started, ended, released] {
        report.write(shared, items).await;
    }
    for item in failed {
        report.write(shared, vec![item]).await;
    }
    report
}

impl FlushReport {
    /// Reports claims whose outcomes are lost.
    pub(super) fn lost(claims: Vec<ClaimRef>, error: Error) -> Self {
        let counts = ClaimCounts {
            lost: claims.len() as u64,
            ..ClaimCounts::default()
        };
        Self {
            done: claims,
            error: Some(error),
            counts,
            ..Self::default()
        }
    }

    /// Writes claims of one outcome in one statement. If the store rejects the statement, each claim is written on its own, so that one bad row
    /// does not block the others.
    async fn write(&mut self, shared: &Shared, mut items: Vec<ResolvedClaim>) {
        match write(shared, &mut items).await {
            Ok(written) => self.add_written(items, &written),
            Err(error) if error.is_retryable() => self.retry_later(items, error),
            Err(_) => {
                for item in items {
                    self.write_single(shared, item).await;
                }
            }
        }
    }

    async fn write_single(&mut self, shared: &Shared, mut item: ResolvedClaim) {
        match write(shared, std::slice::from_mut(&mut item)).await {
            Ok(written) => self.add_written(vec![item], &written),
            Err(error) if error.is_retryable() => self.retry_later(vec![item], error),
            Err(error) => {
                // The lease expires, and the recoverer treats the claim as an unknown start.
                log::outcome_unwritable(&item.claimed, &error);
                item.trace.abandoned("outcome could not be written");
                self.counts.lost += 1;
                self.done.push(item.claim());
            }
        }
    }

    fn add_written(&mut self, items: Vec<ResolvedClaim>, written: &Written) {
        self.counts.add(written.counts);
        for (index, item) in items.into_iter().enumerate() {
            if written.busy.contains(&index) {
                self.busy.push(item);
            } else {
                self.done.push(item.claim());
            }
        }
    }

    fn retry_later(&mut self, items: Vec<ResolvedClaim>, error: leasehold_store::Error) {
        self.error = Some(error.into());
        self.remaining.extend(items);
    }
}

/// What a statement wrote.
#[derive(Default)]
struct Written {
    counts: ClaimCounts,
    /// The indexes of claims that were not written because another transaction has locked their rows.
    busy: Vec<usize>,
}

/// Writes claims that all have the same outcome.
async fn write(shared: &Shared, items: &mut [ResolvedClaim]) -> Result<Written> {
    let Some(first) = items.first_mut() else {
        return Ok(Written::default());
    };
    match first.resolution {
        Resolution::Dispatched => mark_dispatched(shared, items).await,
        Resolution::Ended(_) => finish(shared, items).await,
        Resolution::Release { .. } => release(shared, items).await,
        Resolution::Fail(..) => fail(shared, first).await,
        Resolution::Lost => Ok(Written::default()),
    }
}

async fn mark_dispatched(shared: &Shared, items: &mut [ResolvedClaim]) -> Result<Written> {
    let (mut counts, mut busy) = (ClaimCounts::default(), Vec::new());
    let claims: Vec<ClaimRef> = items.iter().map(ResolvedClaim::claim).collect();
    let begun = SystemTime::now();
    let answers = shared
        .store
        .request_dispatched(&shared.options.owner, &claims)
        .await?;
    let writing = Period::since(begun);
    for (index, (item, answer)) in items.iter_mut().zip(answers).enumerate() {
        match answer {
            Dispatched::Dispatched | Dispatched::Cancelling | Dispatched::AlreadyFinished => {
                log::dispatched(&item.claimed);
                item.trace
                    .dispatched(&item.claimed, &shared.options, writing);
                counts.dispatched += 1;
            }
            Dispatched::Busy => busy.push(index),
            Dispatched::LeaseLost => {
                log::lease_lost(&item.claimed);
                item.trace.lost();
                counts.lost += 1;
            }
        }
    }
    Ok(Written { counts, busy })
}

async fn finish(shared: &Shared, items: &mut [ResolvedClaim]) -> Result<Written> {
    let (mut counts, mut busy) = (ClaimCounts::default(), Vec::new());
    let ends: Vec<_> = items
        .iter()
        .filter_map(|item| match &item.resolution {
            Resolution::Ended(finish) => Some(finish.clone()),
            _ => None,
        })
        .collect();
    let begun = SystemTime::now();
    let answers = shared
        .store
        .execution_finish(&shared.options.owner, &ends)
        .await?;
    let writing = Period::since(begun);
    for (index, (item, answer)) in items.iter_mut().zip(answers).enumerate() {
        match answer {
            ExecutionFinished::Finished { status, .. } => {
                item.trace
                    .dispatched(&item.claimed, &shared.options, writing);
                match status {
                    RequestStatus::Failed => counts.failed += 1,
                    _ => counts.dispatched += 1,
                }
            }
            ExecutionFinished::Busy => busy.push(index),
            ExecutionFinished::AlreadyFinished | ExecutionFinished::NotFound => {
                item.trace.abandoned("already finished by another process");
                counts.lost += 1;
            }
        }
    }
    Ok(Written { counts, busy })
}

async fn release(shared: &Shared, items: &mut [ResolvedClaim]) -> Result<Written> {
    let (mut counts, mut busy) = (ClaimCounts::default(), Vec::new());
    let releases: Vec<Release> = items
        .iter()
        .filter_map(|item| match &item.resolution {
            Resolution::Release { kind, delay, error } => Some(Release {
                claim: item.claim(),
                kind: *kind,
                delay: *delay,
                error: error.clone(),
            }),
            _ => None,
        })
        .collect();
    let begun = SystemTime::now();
    let answers = shared
        .store
        .request_release(&shared.options.owner, &releases)
        .await?;
    let writing = Period::since(begun);
    for (index, (item, answer)) in items.iter_mut().zip(answers).enumerate() {
        let (kind, error) = match &item.resolution {
            Resolution::Release { kind, error, .. } => (*kind, error.as_deref()),
            _ => continue,
        };
        match answer {
            Released::Pending => {
                item.trace.released(kind, error, writing);
                counts.released += 1;
            }
            Released::Exhausted => {
                log::exhausted(&item.claimed, shared.options.max_attempts);
                item.trace.failed(&item.claimed, error, writing);
                counts.failed += 1;
            }
            Released::Cancelled => {
                item.trace.failed(&item.claimed, None, writing);
                counts.failed += 1;
            }
            Released::Busy => busy.push(index),
            Released::LeaseLost => {
                log::lease_lost(&item.claimed);
                item.trace.lost();
                counts.lost += 1;
            }
        }
    }
    Ok(Written { counts, busy })
}

async fn fail(shared: &Shared, item: &mut ResolvedClaim) -> Result<Written> {
    let Resolution::Fail(reason, error) = &item.resolution else {
        return Ok(Written::default());
    };
    let fail = Fail {
        claim: item.claim(),
        reason: *reason,
        error: Some(error.clone()),
    };
    let begun = SystemTime::now();
    let answer = shared
        .store
        .request_fail(&shared.options.owner, &fail)
        .await;
    let is_held = match answer {
        Err(error) if matches!(error.kind, ErrorKind::Contended(_)) => {
            return Ok(Written {
                busy: vec![0],
                ..Written::default()
            });
        }
        answer => answer?,
    };
    if is_held {
        let writing = Period::since(begun);
        item.trace.failed(&item.claimed, Some(error), writing);
        log::rejected(item.claimed.id, item.claimed.workspace, *reason);
    } else {
        item.trace.lost();
    }
    let counts = ClaimCounts {
        failed: u64::from(is_held),
        lost: u64::from(!is_held),
        ..ClaimCounts::default()
    };
    Ok(Written {
        counts,
        busy: Vec::new(),
    })
}

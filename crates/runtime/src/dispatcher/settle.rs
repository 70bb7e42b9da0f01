//! Writes down what became of claims, many in a few statements. What the store did not take is kept for another try.

use super::start::Resolution;
use super::trace::{Item, Period};
use super::{Shared, log};
use leasehold_core::RequestStatus;
use leasehold_store::Result;
use leasehold_store::execution::ExecutionFinished;
use leasehold_store::request::{ClaimRef, ClaimedRequest, Dispatched, Fail, Release, Released};
use std::time::SystemTime;

/// A claim and what became of it.
pub(super) struct Settlement {
    pub(super) claimed: ClaimedRequest,
    pub(super) resolution: Resolution,
    pub(super) item: Item,
}

impl Settlement {
    pub(super) fn claim(&self) -> ClaimRef {
        ClaimRef::from(&self.claimed)
    }
}

/// What writing down brought.
#[derive(Default)]
pub(super) struct Settled {
    pub(super) done: Vec<ClaimRef>,
    pub(super) left: Vec<Settlement>,
    pub(super) error: Option<leasehold_store::Error>,
    pub(super) tally: Tally,
}

/// How claims ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    pub(super) dispatched: u64,
    pub(super) released: u64,
    pub(super) failed: u64,
    pub(super) lost: u64,
}

impl Tally {
    pub(super) fn add(&mut self, more: Tally) {
        self.dispatched += more.dispatched;
        self.released += more.released;
        self.failed += more.failed;
        self.lost += more.lost;
    }
}

pub(super) async fn settle(shared: &Shared, batch: Vec<Settlement>) -> Settled {
    let mut settled = Settled::default();
    let (mut started, mut ended, mut released, mut failed) = (vec![], vec![], vec![], vec![]);
    for mut item in batch {
        match item.resolution {
            Resolution::Dispatched => started.push(item),
            Resolution::Ended(_) => ended.push(item),
            Resolution::Release { .. } => released.push(item),
            Resolution::Fail(..) => failed.push(item),
            Resolution::Lost => {
                log::lease_lost(&item.claimed);
                item.item.lost();
                settled.tally.lost += 1;
                settled.done.push(item.claim());
            }
        }
    }
    for items in [started, ended, released] {
        settled.write(shared, items).await;
    }
    for item in failed {
        settled.write(shared, vec![item]).await;
    }
    settled
}

impl Settled {
    /// Writes settlements of one kind in one statement. If the store will never take it, each is written alone: one that cannot be
    /// written must not keep the others from it.
    async fn write(&mut self, shared: &Shared, mut items: Vec<Settlement>) {
        match write(shared, &mut items).await {
            Ok(tally) => self.note(&items, tally),
            Err(error) if error.is_retryable() => self.keep(items, error),
            Err(_) => {
                for item in items {
                    self.write_alone(shared, item).await;
                }
            }
        }
    }

    async fn write_alone(&mut self, shared: &Shared, mut item: Settlement) {
        match write(shared, std::slice::from_mut(&mut item)).await {
            Ok(tally) => self.note(&[item], tally),
            Err(error) if error.is_retryable() => self.keep(vec![item], error),
            Err(error) => {
                // Its lease runs out, and recovery takes it for what it is: a start that nobody knows of.
                log::unwritable(&item.claimed, &error);
                item.item.left("what became of it cannot be written");
                self.tally.lost += 1;
                self.done.push(item.claim());
            }
        }
    }

    fn note(&mut self, items: &[Settlement], tally: Tally) {
        self.tally.add(tally);
        self.done.extend(items.iter().map(Settlement::claim));
    }

    fn keep(&mut self, items: Vec<Settlement>, error: leasehold_store::Error) {
        self.error = Some(error);
        self.left.extend(items);
    }
}

/// Writes settlements that are all of one kind.
async fn write(shared: &Shared, items: &mut [Settlement]) -> Result<Tally> {
    let Some(first) = items.first_mut() else {
        return Ok(Tally::default());
    };
    match first.resolution {
        Resolution::Dispatched => mark_dispatched(shared, items).await,
        Resolution::Ended(_) => finish(shared, items).await,
        Resolution::Release { .. } => release(shared, items).await,
        Resolution::Fail(..) => fail(shared, first).await,
        Resolution::Lost => Ok(Tally::default()),
    }
}

async fn mark_dispatched(shared: &Shared, items: &mut [Settlement]) -> Result<Tally> {
    let mut tally = Tally::default();
    let claims: Vec<ClaimRef> = items.iter().map(Settlement::claim).collect();
    let begun = SystemTime::now();
    let answers = shared
        .store
        .request_dispatched(&shared.options.owner, &claims)
        .await?;
    let writing = Period::since(begun);
    for (item, answer) in items.iter_mut().zip(answers) {
        match answer {
            Dispatched::Dispatched | Dispatched::Cancelling | Dispatched::AlreadyFinished => {
                log::dispatched(&item.claimed);
                item.item
                    .dispatched(&item.claimed, &shared.options, writing);
                tally.dispatched += 1;
            }
            Dispatched::LeaseLost => {
                log::lease_lost(&item.claimed);
                item.item.lost();
                tally.lost += 1;
            }
        }
    }
    Ok(tally)
}

async fn finish(shared: &Shared, items: &mut [Settlement]) -> Result<Tally> {
    let mut tally = Tally::default();
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
    for (item, answer) in items.iter_mut().zip(answers) {
        match answer {
            ExecutionFinished::Finished { status, .. } => {
                item.item
                    .dispatched(&item.claimed, &shared.options, writing);
                match status {
                    RequestStatus::Failed => tally.failed += 1,
                    _ => tally.dispatched += 1,
                }
            }
            ExecutionFinished::AlreadyFinished | ExecutionFinished::NotFound => {
                item.item.left("somebody else has ended it");
                tally.lost += 1;
            }
        }
    }
    Ok(tally)
}

async fn release(shared: &Shared, items: &mut [Settlement]) -> Result<Tally> {
    let mut tally = Tally::default();
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
    for (item, answer) in items.iter_mut().zip(answers) {
        let (kind, error) = match &item.resolution {
            Resolution::Release { kind, error, .. } => (*kind, error.as_deref()),
            _ => continue,
        };
        match answer {
            Released::Pending => {
                item.item.released(kind, error, writing);
                tally.released += 1;
            }
            Released::Exhausted => {
                log::exhausted(&item.claimed, shared.options.max_attempts);
                item.item.failed(&item.claimed, error, writing);
                tally.failed += 1;
            }
            Released::Cancelled => {
                item.item.failed(&item.claimed, None, writing);
                tally.failed += 1;
            }
            Released::LeaseLost => {
                log::lease_lost(&item.claimed);
                item.item.lost();
                tally.lost += 1;
            }
        }
    }
    Ok(tally)
}

async fn fail(shared: &Shared, item: &mut Settlement) -> Result<Tally> {
    let Resolution::Fail(reason, error) = &item.resolution else {
        return Ok(Tally::default());
    };
    let fail = Fail {
        claim: item.claim(),
        reason: *reason,
        error: Some(error.clone()),
    };
    let begun = SystemTime::now();
    let held = shared
        .store
        .request_fail(&shared.options.owner, &fail)
        .await?;
    if held {
        let writing = Period::since(begun);
        item.item.failed(&item.claimed, Some(error), writing);
        log::rejected(item.claimed.id, item.claimed.workspace, *reason);
    } else {
        item.item.lost();
    }
    Ok(Tally {
        failed: u64::from(held),
        lost: u64::from(!held),
        ..Tally::default()
    })
}

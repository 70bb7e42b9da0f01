//! The recorded history of leases and limits, commit by commit, and the invariants checked after each. Makes no queries.
//!
//! Commits are ordered by timestamp, then by transaction id. That order is correct for these checks. A claim holds its queue's lock (and,
//! under the global limit, the global lock) until it commits, and a limit change holds the same lock, so their timestamps are in lock order.
//! All other changes of a page only free capacity: a claim that used the capacity saw the change committed, so it has the later timestamp.

use leasehold_core::{JobId, Timestamp};
use std::collections::{BTreeMap, HashMap, HashSet};
use tokio_postgres::Row;

/// The changes of one transaction, in order.
type Commit = Vec<Change>;

#[derive(Clone, Debug)]
enum Change {
    Page(Claim),
    /// Some jobs ended, or leases were renewed.
    PageChanged {
        queue: i32,
        token: i64,
        jobs: Vec<JobId>,
        expires_at: Timestamp,
    },
    PageDeleted {
        queue: i32,
        token: i64,
    },
    QueueLimit {
        queue: i32,
        limit: Option<usize>,
    },
    Limit(Option<usize>),
}

/// A page as it was claimed.
#[derive(Clone, Debug)]
pub(crate) struct Claim {
    pub(crate) queue: i32,
    pub(crate) token: i64,
    pub(crate) worker: String,
    pub(crate) at: Timestamp,
    pub(crate) jobs: Vec<JobId>,
    expires_at: Timestamp,
}

#[derive(Default)]
pub(crate) struct History {
    commits: BTreeMap<(Timestamp, i64), Commit>,
}

/// How often claims reached a limit.
#[derive(Debug, Default)]
pub(crate) struct Summary {
    /// Commits of claims.
    pub(crate) claims: usize,
    /// Number of claims that filled a limit exactly, by limit.
    pub(crate) full: BTreeMap<usize, usize>,
    /// Commits after which more jobs were running than a limit that was lowered meanwhile.
    pub(crate) over_lowered_limit: usize,
}

/// The leases and limits at one moment.
#[derive(Default)]
struct Snapshot {
    pages: HashMap<(i32, i64), Vec<JobId>>,
    leased: HashSet<JobId>,
    queue_limits: HashMap<i32, usize>,
    limit: Option<usize>,
}

impl History {
    pub(crate) fn of(rows: &[Row]) -> Self {
        let mut history = Self::default();
        for row in rows {
            let key = (row.get("committed_at"), row.get("xid"));
            history.commits.entry(key).or_default().push(change(row));
        }
        history
    }

    fn changes(&self) -> impl Iterator<Item = &Change> {
        self.commits.values().flatten()
    }

    /// Returns every claim of a job, oldest first.
    pub(crate) fn claims_of(&self, job: JobId) -> Vec<Claim> {
        let claims = self.changes().filter_map(|change| match change {
            Change::Page(claim) if claim.jobs.contains(&job) => Some(claim.clone()),
            _ => None,
        });
        claims.collect()
    }

    /// Returns when the first lease of a page ends after its last renewal, and how often the page was changed.
    pub(crate) fn lease_end(&self, page: &Claim) -> (Timestamp, usize) {
        let mut end = (page.expires_at, 0);
        for change in self.changes() {
            if let Change::PageChanged {
                token, expires_at, ..
            } = change
                && *token == page.token
            {
                end = (*expires_at, end.1 + 1);
            }
        }
        end
    }

    /// Replays all commits. Asserts that after each claim no limit in force is exceeded and no job is in two pages.
    pub(crate) fn check(&self) -> Summary {
        let mut snapshot = Snapshot::default();
        let mut summary = Summary::default();
        for (at, commit) in &self.commits {
            for change in commit {
                snapshot.apply(change);
            }
            let claimed = commit.iter().find_map(|change| match change {
                Change::Page(claim) => Some(claim.queue),
                _ => None,
            });
            let Some(queue) = claimed else {
                summary.over_lowered_limit += usize::from(snapshot.is_over());
                continue;
            };
            summary.claims += 1;
            let of_queue = snapshot.queue_limits.get(&queue).copied();
            for (limit, running) in [
                (of_queue, snapshot.running(Some(queue))),
                (snapshot.limit, snapshot.running(None)),
            ] {
                let Some(limit) = limit else { continue };
                assert!(
                    running <= limit,
                    "{running} running, limit {limit}, after commit {at:?}: {commit:#?}"
                );
                if running == limit {
                    *summary.full.entry(limit).or_default() += 1;
                }
            }
        }
        assert!(
            snapshot.pages.is_empty(),
            "leases are left: {:?}",
            snapshot.pages
        );
        summary
    }
}

impl Snapshot {
    fn apply(&mut self, change: &Change) {
        match change {
            Change::Page(claim) => {
                for job in &claim.jobs {
                    assert!(self.leased.insert(*job), "{job} is in two pages: {claim:?}");
                }
                let page = (claim.queue, claim.token);
                self.pages.insert(page, claim.jobs.clone());
            }
            Change::PageChanged {
                queue, token, jobs, ..
            } => {
                let page = self.pages.insert((*queue, *token), jobs.clone());
                self.leased
                    .retain(|job| jobs.contains(job) || !page.as_ref().unwrap().contains(job));
            }
            Change::PageDeleted { queue, token } => {
                for job in self.pages.remove(&(*queue, *token)).unwrap() {
                    self.leased.remove(&job);
                }
            }
            Change::QueueLimit { queue, limit } => {
                match limit {
                    Some(limit) => self.queue_limits.insert(*queue, *limit),
                    None => self.queue_limits.remove(queue),
                };
            }
            Change::Limit(limit) => self.limit = *limit,
        }
    }

    /// Returns the number of running jobs of a queue, or of all.
    fn running(&self, queue: Option<i32>) -> usize {
        let pages = self.pages.iter();
        let pages = pages.filter(|((of, _), _)| queue.is_none_or(|queue| queue == *of));
        pages.map(|(_, jobs)| jobs.len()).sum()
    }

    fn is_over(&self) -> bool {
        let over = |limit: Option<usize>, queue| limit.is_some_and(|l| self.running(queue) > l);
        let mut queues = self.queue_limits.iter();
        over(self.limit, None) || queues.any(|(queue, limit)| over(Some(*limit), Some(*queue)))
    }
}

fn change(row: &Row) -> Change {
    let jobs = || {
        let ids: Vec<i64> = row.get("ids");
        ids.into_iter().map(JobId).collect()
    };
    let limit = || {
        let limit: Option<i32> = row.get("max_running");
        limit.map(|limit| limit.unsigned_abs() as usize)
    };
    match row.get("what") {
        "claimed" => Change::Page(Claim {
            queue: row.get("queue_id"),
            token: row.get("token"),
            worker: row.get("worker"),
            at: row.get("claimed_at"),
            jobs: jobs(),
            expires_at: row.get("expires_at"),
        }),
        "changed" => Change::PageChanged {
            queue: row.get("queue_id"),
            token: row.get("token"),
            jobs: jobs(),
            expires_at: row.get("expires_at"),
        },
        "deleted" => Change::PageDeleted {
            queue: row.get("queue_id"),
            token: row.get("token"),
        },
        "queue_limit" => Change::QueueLimit {
            queue: row.get("queue_id"),
            limit: limit(),
        },
        "limit" => Change::Limit(limit()),
        other => panic!("unknown change {other}"),
    }
}

//! What the database noted of leases and limits, commit by commit, and what must hold after each. Asks no database itself.
//!
//! Commits are in the order of their timestamps, and of their numbers where those are equal. That order is right for what is asked here. A claim
//! holds its queue's lock (and, under the limit of all, the lock of all) until it has committed, and whoever changes the limit holds
//! the same one, so each of them gets its timestamp after the one before it. Whatever else changes a page only makes room: a claim that
//! counted on that room saw it committed, and so has the later timestamp.

use leasehold_core::{JobId, Timestamp};
use std::collections::{BTreeMap, HashMap, HashSet};
use tokio_postgres::Row;

/// What one transaction did, in order.
type Commit = Vec<Change>;

#[derive(Clone, Debug)]
enum Change {
    Page(Claim),
    /// Some entries ended, or leases were renewed.
    PageChanged {
        queue: i32,
        token: i64,
        jobs: Vec<JobId>,
        expires_at: Timestamp,
    },
    PageGone {
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

/// How often limits were met.
#[derive(Debug, Default)]
pub(crate) struct Summary {
    /// Commits of claims.
    pub(crate) claims: usize,
    /// Of those, how many left exactly so many running as the limit allows, by limit.
    pub(crate) full: BTreeMap<usize, usize>,
    /// Commits after which more were running than a limit that had been lowered meanwhile.
    pub(crate) over_a_lowered: usize,
}

/// What runs at one moment.
#[derive(Default)]
struct Now {
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

    /// Every claim of a job, first to last.
    pub(crate) fn claims_of(&self, job: JobId) -> Vec<Claim> {
        let claims = self.changes().filter_map(|change| match change {
            Change::Page(claim) if claim.jobs.contains(&job) => Some(claim.clone()),
            _ => None,
        });
        claims.collect()
    }

    /// When the first lease of a page ends, as last renewed, and how often the page was changed.
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

    /// Goes through all commits. After each that claims, no more are running than the limits in force allow, and no job is in two pages.
    pub(crate) fn check(&self) -> Summary {
        let mut now = Now::default();
        let mut summary = Summary::default();
        for (at, commit) in &self.commits {
            for change in commit {
                now.apply(change);
            }
            let claimed = commit.iter().find_map(|change| match change {
                Change::Page(claim) => Some(claim.queue),
                _ => None,
            });
            let Some(queue) = claimed else {
                summary.over_a_lowered += usize::from(now.is_over());
                continue;
            };
            summary.claims += 1;
            let of_queue = now.queue_limits.get(&queue).copied();
            for (limit, running) in [
                (of_queue, now.running(Some(queue))),
                (now.limit, now.running(None)),
            ] {
                let Some(limit) = limit else { continue };
                assert!(
                    running <= limit,
                    "{running} running where {limit} may after commit {at:?}: {commit:#?}"
                );
                if running == limit {
                    *summary.full.entry(limit).or_default() += 1;
                }
            }
        }
        assert!(now.pages.is_empty(), "leases are left: {:?}", now.pages);
        summary
    }
}

impl Now {
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
            Change::PageGone { queue, token } => {
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

    /// How many jobs run, of a queue or of all.
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
        "gone" => Change::PageGone {
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

//! Finishes jobs that are nodes of graphs, each in its own transaction. Claims that share a graph or a page of leases run one after the
//! other, others in parallel on a few connections. `graph::finish` writes the transaction.

use super::finish::FinishDecision;
use crate::error::{self, is_lock_timeout};
use crate::graph::{self, NodeFinished};
use crate::lock_wait::{LOCK_TIMEOUT, SHORT_LOCK_TIMEOUT};
use crate::pool::{self, Connection};
use crate::session::Session;
use crate::store::{PostgresStore, sql};
use futures::future::{join, join_all};
use leasehold_core::job::{JobFinish, JobFinished};
use leasehold_store::{ErrorKind, Result};
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use uuid::Uuid;

const CONTEXT: &str = "job_finish";
/// Connections of the pool that one call uses at most; not the pool size. All but the first must be idle.
const MAX_CONNECTIONS: usize = 4;

/// Claims of nodes that are finished one after the other.
type Sequence<'a> = Vec<&'a FinishDecision<'a>>;

/// Finishes the claims of nodes of one call.
pub(super) struct NodeFinisher<'a> {
    pub(super) store: &'a PostgresStore,
    pub(super) worker: &'a str,
    pub(super) finishes: &'a [JobFinish],
}

/// The outcome of a claim of a node; none if it was not tried because the database became unavailable.
pub(super) type NodeResult<'a> = (&'a FinishDecision<'a>, Option<Result<NodeFinished>>);

impl<'a> NodeFinisher<'a> {
    /// Finishes these claims, given in the order of the call. A failed claim does not stop the others, unless the database is unavailable.
    pub(super) async fn finish(
        &self,
        client: &mut Connection,
        nodes: Sequence<'a>,
    ) -> Vec<NodeResult<'a>> {
        let sequences = match self.sequences(client.session(), &nodes).await {
            Ok(sequences) => sequences,
            // As one sequence, whose first claim fails in the same way.
            Err(_) => VecDeque::from([nodes]),
        };
        let extra = sequences.len().clamp(1, MAX_CONNECTIONS) - 1;
        let work = WorkList {
            nodes: self,
            sequences: Mutex::new(sequences),
            results: Mutex::default(),
            is_unavailable: AtomicBool::new(false),
            has_waited: AtomicBool::new(false),
        };
        join(
            work.run(client),
            join_all((0..extra).map(|_| work.run_if_free())),
        )
        .await;
        let results = work.results.into_inner();
        results.unwrap_or_else(PoisonError::into_inner)
    }

    async fn sequences(
        &self,
        session: Session<'_>,
        nodes: &[&'a FinishDecision<'a>],
    ) -> Result<VecDeque<Sequence<'a>>> {
        let page = |decision: &&FinishDecision<'_>| decision.claim.token;
        if nodes.windows(2).all(|two| page(&two[0]) == page(&two[1])) {
            return Ok(VecDeque::from([nodes.to_vec()]));
        }
        let jobs: Vec<i64> = nodes.iter().map(|decision| decision.claim.job.0).collect();
        let rows = session.many(sql!("job/executions"), &[&jobs]).await?;
        let executions: HashMap<i64, Uuid> = rows
            .iter()
            .map(|row| (row.get("id"), row.get("execution_id")))
            .collect();
        Ok(split_independent(nodes, &executions))
    }
}

/// Splits claims into sequences: two claims that share a page or an execution, directly or through others, are in the same one.
/// Sequences keep the order of the claims.
fn split_independent<'a>(
    nodes: &[&'a FinishDecision<'a>],
    executions: &HashMap<i64, Uuid>,
) -> VecDeque<Sequence<'a>> {
    let mut joined: Vec<usize> = (0..nodes.len()).collect();
    fn first(joined: &mut [usize], mut at: usize) -> usize {
        while joined[at] != at {
            joined[at] = joined[joined[at]];
            at = joined[at];
        }
        at
    }
    let (mut by_page, mut by_execution) = (HashMap::new(), HashMap::new());
    for (at, decision) in nodes.iter().enumerate() {
        let execution = executions.get(&decision.claim.job.0);
        let same_page = *by_page.entry(decision.claim.token).or_insert(at);
        let same_execution = execution.map_or(at, |id| *by_execution.entry(*id).or_insert(at));
        for other in [same_page, same_execution] {
            let (one, other) = (first(&mut joined, at), first(&mut joined, other));
            joined[one.max(other)] = one.min(other);
        }
    }
    let mut sequences: Vec<Sequence<'a>> = vec![Vec::new(); nodes.len()];
    for (at, decision) in nodes.iter().enumerate() {
        sequences[first(&mut joined, at)].push(decision);
    }
    sequences.retain(|sequence| !sequence.is_empty());
    sequences.into()
}

/// Sequences that several connections share.
struct WorkList<'w, 'a> {
    nodes: &'w NodeFinisher<'a>,
    sequences: Mutex<VecDeque<Sequence<'a>>>,
    results: Mutex<Vec<NodeResult<'a>>>,
    is_unavailable: AtomicBool,
    /// Whether a claim gave up waiting for a lock. The others must not wait as long, one after the other.
    has_waited: AtomicBool,
}

impl<'a> WorkList<'_, 'a> {
    async fn run_if_free(&self) {
        if let Some(mut client) = pool::take_if_free(&self.nodes.store.pool, CONTEXT).await {
            self.run(&mut client).await;
        }
    }

    async fn run(&self, client: &mut Connection) {
        loop {
            let Some(sequence) = lock(&self.sequences).pop_front() else {
                return;
            };
            let mut sequence: VecDeque<_> = sequence.into();
            let mut is_checked = false;
            while let Some(decision) = sequence.pop_front() {
                let result = match self.is_unavailable.load(Ordering::Relaxed) {
                    true => None,
                    false => Some(self.end(client, decision).await),
                };
                let gave_up = matches!(&result, Some(Err(error)) if is_lock_timeout(error));
                lock(&self.results).push((decision, result));
                if gave_up && !std::mem::replace(&mut is_checked, true) {
                    self.has_waited.store(true, Ordering::Relaxed);
                    self.set_aside_locked(client.session(), &mut sequence).await;
                }
            }
        }
    }

    /// Sets aside the claims with locked rows, because one statement may have locked all rows of a tenant: those of the rest of this sequence and of the
    /// sequences that are not begun. If they cannot be found, each waits shortly.
    async fn set_aside_locked(
        &self,
        session: Session<'_>,
        rest: &mut VecDeque<&'a FinishDecision<'a>>,
    ) {
        let mut waiting = std::mem::take(&mut *lock(&self.sequences));
        let all = rest.iter().chain(waiting.iter().flatten());
        let jobs: Vec<i64> = all.map(|decision| decision.claim.job.0).collect();
        let locked = locked_nodes(session, &jobs).await.unwrap_or_default();
        let mut set_aside = Vec::new();
        let mut is_free = |decision: &&'a FinishDecision<'a>| {
            let is_locked = locked.contains(&decision.claim.job.0);
            if is_locked {
                set_aside.push((*decision, Some(Err(error::busy(CONTEXT)))));
            }
            !is_locked
        };
        rest.retain(&mut is_free);
        for sequence in &mut waiting {
            sequence.retain(&mut is_free);
        }
        lock(&self.results).extend(set_aside);
        lock(&self.sequences).append(&mut waiting);
    }

    async fn end(
        &self,
        client: &mut Connection,
        decision: &FinishDecision<'_>,
    ) -> Result<NodeFinished> {
        let NodeFinisher {
            store,
            worker,
            finishes,
        } = *self.nodes;
        let end = &finishes[decision.index].end;
        let wait = match self.has_waited.load(Ordering::Relaxed) {
            true => SHORT_LOCK_TIMEOUT,
            false => LOCK_TIMEOUT,
        };
        let finished = graph::finish_node(store, client, (worker, wait), decision, end).await;
        match &finished {
            Ok(node) => {
                let queued = matches!(node.job, Some((_, Some(JobFinished::Queued { .. }))));
                store.job_notifier.finished(queued);
            }
            Err(error) => {
                let unavailable = matches!(error.kind, ErrorKind::Unavailable(_));
                self.is_unavailable.fetch_or(unavailable, Ordering::Relaxed);
            }
        }
        finished
    }
}

/// Returns those of the jobs that have locked rows.
async fn locked_nodes(session: Session<'_>, jobs: &[i64]) -> Result<HashSet<i64>> {
    let rows = session.many(sql!("job/locked_nodes"), &[&jobs]).await?;
    Ok(rows.iter().map(|row| row.get("id")).collect())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use leasehold_core::JobId;
    use leasehold_core::job::{JobEnd, JobRef};
    use leasehold_store::fresh_id;

    #[test]
    fn claims_of_one_page_or_one_execution_stay_in_one_sequence() {
        let executions: Vec<Uuid> = (0..5).map(|_| fresh_id()).collect();
        // Page and execution of each claim.
        let claims = [
            (1, 0),
            (2, 1),
            (1, 2),
            (3, 3),
            (2, 1),
            (4, 2),
            (5, 4),
            (5, 3),
        ];
        let finishes: Vec<JobFinish> = (0..)
            .zip(claims)
            .map(|(job, (token, _))| JobFinish {
                claim: JobRef {
                    job: JobId(job),
                    token,
                },
                end: JobEnd::Returned,
            })
            .collect();
        let of = (0..)
            .zip(claims)
            .map(|(job, (_, of))| (job, executions[of]));
        let of: HashMap<i64, Uuid> = of.collect();
        let none = HashMap::new();
        let decisions: Vec<FinishDecision<'_>> = finishes
            .iter()
            .enumerate()
            .map(|(index, finish)| FinishDecision::new(index, finish, &none))
            .collect();
        let nodes: Vec<&FinishDecision<'_>> = decisions.iter().collect();
        let sequences = split_independent(&nodes, &of);
        let indexes =
            |sequence: &Sequence<'_>| sequence.iter().map(|d| d.index).collect::<Vec<_>>();
        let sequences: Vec<Vec<usize>> = sequences.iter().map(indexes).collect();
        assert_eq!(sequences, [vec![0, 2, 5], vec![1, 4], vec![3, 6, 7]]);
    }
}

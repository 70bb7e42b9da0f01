//! Ends the claims of nodes, each in a transaction of its own: those that share a graph or a page of leases one after the other, others over a few
//! connections at once. What a transaction writes is in `graph::finish`.

use super::finish::Verdict;
use crate::error::postgres;
use crate::graph::{self, NodeFinished};
use crate::pool;
use crate::store::{PostgresStore, sql};
use deadpool_postgres::Object;
use futures::future::{join, join_all};
use leasehold_core::job::{JobFinish, JobFinished};
use leasehold_store::{ErrorKind, Result};
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use uuid::Uuid;

const CONTEXT: &str = "job_finish";
/// Connections that one call uses at most. All but the first are used only while they are free.
const CONNECTIONS: usize = 4;

/// Claims of nodes that end one after the other.
type Line<'a> = Vec<&'a Verdict<'a>>;

/// The claims of nodes that a call ends.
pub(super) struct Nodes<'a> {
    pub(super) store: &'a PostgresStore,
    pub(super) worker: &'a str,
    pub(super) finishes: &'a [JobFinish],
}

/// What became of the claim of a node; none if another failed before and the database has gone away.
pub(super) type NodeAnswer<'a> = (&'a Verdict<'a>, Option<Result<NodeFinished>>);

impl<'a> Nodes<'a> {
    /// Ends these claims, which are in the order asked. One that fails does not keep the others from their end, unless the database has gone
    /// away.
    pub(super) async fn finish(&self, client: &mut Object, nodes: Line<'a>) -> Vec<NodeAnswer<'a>> {
        let lines = match self.lines(client, &nodes).await {
            Ok(lines) => lines,
            // As one line, whose first end meets the same failure.
            Err(_) => VecDeque::from([nodes]),
        };
        let spare = lines.len().clamp(1, CONNECTIONS) - 1;
        let work = Work {
            nodes: self,
            lines: Mutex::new(lines),
            answers: Mutex::default(),
            gone: AtomicBool::new(false),
        };
        join(
            work.run(client),
            join_all((0..spare).map(|_| work.run_if_free())),
        )
        .await;
        let answers = work.answers.into_inner();
        answers.unwrap_or_else(PoisonError::into_inner)
    }

    async fn lines(
        &self,
        client: &Object,
        nodes: &[&'a Verdict<'a>],
    ) -> Result<VecDeque<Line<'a>>> {
        let page = |verdict: &&Verdict<'_>| verdict.claim.token;
        if nodes.windows(2).all(|two| page(&two[0]) == page(&two[1])) {
            return Ok(VecDeque::from([nodes.to_vec()]));
        }
        let jobs: Vec<i64> = nodes.iter().map(|verdict| verdict.claim.job.0).collect();
        let statement = client.prepare_cached(sql!("job/executions")).await;
        let statement = statement.map_err(postgres(CONTEXT))?;
        let rows = client.query(&statement, &[&jobs]).await;
        let rows = rows.map_err(postgres(CONTEXT))?;
        let executions: HashMap<i64, Uuid> = rows
            .iter()
            .map(|row| (row.get("id"), row.get("execution_id")))
            .collect();
        Ok(apart(nodes, &executions))
    }
}

/// Claims that share neither a page nor an execution, directly or by others, are in different lines. A line keeps their order.
fn apart<'a>(nodes: &[&'a Verdict<'a>], executions: &HashMap<i64, Uuid>) -> VecDeque<Line<'a>> {
    let mut joined: Vec<usize> = (0..nodes.len()).collect();
    fn first(joined: &mut [usize], mut at: usize) -> usize {
        while joined[at] != at {
            joined[at] = joined[joined[at]];
            at = joined[at];
        }
        at
    }
    let (mut by_page, mut by_execution) = (HashMap::new(), HashMap::new());
    for (at, verdict) in nodes.iter().enumerate() {
        let execution = executions.get(&verdict.claim.job.0);
        let same_page = *by_page.entry(verdict.claim.token).or_insert(at);
        let same_execution = execution.map_or(at, |id| *by_execution.entry(*id).or_insert(at));
        for other in [same_page, same_execution] {
            let (one, other) = (first(&mut joined, at), first(&mut joined, other));
            joined[one.max(other)] = one.min(other);
        }
    }
    let mut lines: Vec<Line<'a>> = vec![Vec::new(); nodes.len()];
    for (at, verdict) in nodes.iter().enumerate() {
        lines[first(&mut joined, at)].push(verdict);
    }
    lines.retain(|line| !line.is_empty());
    lines.into()
}

/// Lines that are worked off by several connections.
struct Work<'w, 'a> {
    nodes: &'w Nodes<'a>,
    lines: Mutex<VecDeque<Line<'a>>>,
    answers: Mutex<Vec<NodeAnswer<'a>>>,
    gone: AtomicBool,
}

impl Work<'_, '_> {
    async fn run_if_free(&self) {
        if let Some(mut client) = pool::take_if_free(&self.nodes.store.pool).await {
            self.run(&mut client).await;
        }
    }

    async fn run(&self, client: &mut Object) {
        loop {
            let Some(line) = lock(&self.lines).pop_front() else {
                return;
            };
            for verdict in line {
                let answer = match self.gone.load(Ordering::Relaxed) {
                    true => None,
                    false => Some(self.end(client, verdict).await),
                };
                lock(&self.answers).push((verdict, answer));
            }
        }
    }

    async fn end(&self, client: &mut Object, verdict: &Verdict<'_>) -> Result<NodeFinished> {
        let Nodes {
            store,
            worker,
            finishes,
        } = *self.nodes;
        let end = &finishes[verdict.asked].end;
        let finished = graph::finish_node(store, client, worker, verdict, end).await;
        match &finished {
            Ok(node) => {
                let queued = matches!(node.job, Some((_, Some(JobFinished::Queued { .. }))));
                store.job_wakes.finished(queued);
            }
            Err(error) => {
                let gone = matches!(error.kind, ErrorKind::Unavailable(_));
                self.gone.fetch_or(gone, Ordering::Relaxed);
            }
        }
        finished
    }
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
    fn claims_of_one_page_or_one_execution_stay_in_one_line() {
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
                end: JobEnd::GivenBack,
            })
            .collect();
        let of = (0..)
            .zip(claims)
            .map(|(job, (_, of))| (job, executions[of]));
        let of: HashMap<i64, Uuid> = of.collect();
        let none = HashMap::new();
        let verdicts: Vec<Verdict<'_>> = finishes
            .iter()
            .enumerate()
            .map(|(asked, finish)| Verdict::new(asked, finish, &none))
            .collect();
        let nodes: Vec<&Verdict<'_>> = verdicts.iter().collect();
        let lines = apart(&nodes, &of);
        let asked = |line: &Line<'_>| line.iter().map(|v| v.asked).collect::<Vec<_>>();
        let lines: Vec<Vec<usize>> = lines.iter().map(asked).collect();
        assert_eq!(lines, [vec![0, 2, 5], vec![1, 4], vec![3, 6, 7]]);
    }
}

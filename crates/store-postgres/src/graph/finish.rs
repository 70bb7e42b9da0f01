//! Ending claims of nodes: the job's end, the node's output, the nodes that follow and the execution's end, in one transaction.

use super::change::{Foresight, NodeEnd, Outcome, Source};
use super::hold::{self, Graphs, Leases, OpenNodes};
use super::{given, write};
use crate::job::finish::{self as jobs, Verdict};
use crate::store::PostgresStore;
use crate::transaction::{Open, connection};
use deadpool_postgres::Object;
use leasehold_core::graph::GraphEvent;
use leasehold_core::{ExecutionId, JobStatus};
use leasehold_store::failpoint::reach;
use leasehold_store::graph::{EndedExecution, NodesFinished};
use leasehold_store::job::{JobEnd, JobFinish, JobFinished, JobRef};
use leasehold_store::{Error, ErrorKind, Result};
use std::collections::{HashMap, HashSet};

const CONTEXT: &str = "node_finish";

/// A call, with what shall become of each claim.
struct Call<'a> {
    worker: &'a str,
    finishes: &'a [JobFinish],
    /// Sorted by page.
    verdicts: Vec<Verdict<'a>>,
}

/// What an attempt wrote.
struct Written {
    jobs: Vec<(JobRef, JobFinished)>,
    begun: bool,
    ended: Vec<EndedExecution>,
}

/// Which nodes' jobs an attempt makes sure of before it holds any page.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reach {
    /// Of graphs that will end, as far as that can be foreseen.
    Foreseen,
    /// Of all graphs of the call.
    All,
}

pub(crate) async fn finish(
    store: &PostgresStore,
    worker: &str,
    finishes: &[JobFinish],
) -> Result<NodesFinished> {
    if finishes.is_empty() {
        return Ok(NodesFinished::default());
    }
    let mut client = connection(store, CONTEXT).await?;
    let call = Call {
        worker,
        finishes,
        verdicts: jobs::verdicts(&client, finishes).await?,
    };
    let mut written = attempt(store, &mut client, &call, Reach::Foreseen).await?;
    if written.is_none() {
        written = attempt(store, &mut client, &call, Reach::All).await?;
    }
    let Some(written) = written else {
        let text = "nodes are to be given up whose jobs were not held";
        return Err(Error::new(CONTEXT, ErrorKind::Broken(text.to_owned())));
    };
    drop(client);
    reach("node_finish/committed");
    if written.begun {
        store.job_wakes.ring();
    }
    store.wakes.ring_for_work(!written.ended.is_empty());
    Ok(NodesFinished {
        jobs: jobs::answers(store, finishes.len(), &call.verdicts, written.jobs),
        ended: written.ended,
    })
}

/// None, and nothing was written, if nodes have to be given up whose jobs are not held.
async fn attempt(
    store: &PostgresStore,
    client: &mut Object,
    call: &Call<'_>,
    reaching: Reach,
) -> Result<Option<Written>> {
    let transaction = Open::begin(client, CONTEXT).await?;
    let mut held = hold(store, &transaction, call, reaching).await?;
    reach("node_finish/begun");
    let mut sources = given::sources(&transaction, &held.foreseen).await?;
    let kept = call.decide(&mut held.graphs, &held.leases, &mut sources)?;
    let changes = &mut held.graphs.all;
    let beyond = |execution: ExecutionId| !held.reached.contains(&execution);
    if changes
        .iter()
        .any(|change| !change.abandon.is_empty() && beyond(change.execution))
    {
        return Ok(None);
    }
    let moment = held.leases.moment;
    let jobs = jobs::end(&transaction.inner, Some(moment), call.worker, &kept, true).await?;
    if jobs.len() != kept.len() {
        let text = "leases that were held were not there";
        return Err(Error::new(CONTEXT, ErrorKind::Broken(text.to_owned())));
    }
    write::abandon(&transaction, moment, changes, &held.open).await?;
    reach("node_finish/ended");
    write::record(&transaction, moment, changes).await?;
    reach("node_finish/recorded");
    let begun = write::begin(&transaction, moment, changes).await?;
    reach("node_finish/enqueued");
    let ended = write::end(&transaction, moment, call.worker, changes).await?;
    reach("node_finish/finished");
    transaction.commit().await?;
    Ok(Some(Written { jobs, begun, ended }))
}

/// What an attempt holds.
struct Held {
    graphs: Graphs,
    leases: Leases,
    open: OpenNodes,
    /// Executions whose open nodes' jobs are held.
    reached: HashSet<ExecutionId>,
    /// What the claims that are held lead to.
    foreseen: Vec<(ExecutionId, Foresight)>,
}

async fn hold(
    store: &PostgresStore,
    transaction: &Open<'_>,
    call: &Call<'_>,
    reaching: Reach,
) -> Result<Held> {
    let ids: Vec<i64> = call.verdicts.iter().map(|v| v.claim.job.0).collect();
    let mut tokens: Vec<i64> = call.verdicts.iter().map(|v| v.claim.token).collect();
    tokens.dedup();
    if reaching == Reach::Foreseen && !call.may_fail() {
        let (graphs, leases) = hold::graphs_and_leases(store, transaction, &ids, &tokens).await?;
        return Ok(Held {
            foreseen: call.foresee(&graphs, |claim| {
                leases.attempt(call.worker, claim).is_some()
            }),
            graphs,
            leases,
            open: OpenNodes::default(),
            reached: HashSet::new(),
        });
    }
    let graphs = hold::graphs_of(store, transaction, &ids).await?;
    // Which leases are held is not known before their pages are, and those come after the queues.
    let if_all_are_held = call.foresee(&graphs, |_| true);
    let reached = if_all_are_held
        .iter()
        .filter(|(_, foresight)| reaching == Reach::All || foresight.abandons);
    let reached: Vec<ExecutionId> = reached.map(|(execution, _)| *execution).collect();
    let open = hold::open_nodes(transaction, &reached).await?;
    let leases = hold::leases(store, transaction, &tokens, &open).await?;
    Ok(Held {
        foreseen: call.foresee(&graphs, |claim| {
            leases.attempt(call.worker, claim).is_some()
        }),
        graphs,
        leases,
        open,
        reached: reached.into_iter().collect(),
    })
}

impl<'a> Call<'a> {
    fn may_fail(&self) -> bool {
        let fails = |v: &Verdict<'_>| v.becomes == JobStatus::Failed;
        self.verdicts.iter().any(fails)
    }

    fn in_order(&self) -> Vec<&Verdict<'a>> {
        let mut verdicts: Vec<&Verdict<'a>> = self.verdicts.iter().collect();
        verdicts.sort_unstable_by_key(|v| v.asked);
        verdicts
    }

    /// What each graph comes to by those claims that are held.
    fn foresee(
        &self,
        graphs: &Graphs,
        is_held: impl Fn(JobRef) -> bool,
    ) -> Vec<(ExecutionId, Foresight)> {
        let mut events: Vec<Vec<GraphEvent>> = Vec::new();
        events.resize_with(graphs.all.len(), Vec::new);
        for verdict in self.in_order() {
            if let Some((at, node)) = graphs.place(verdict.claim.job)
                && is_held(verdict.claim)
            {
                let event = match verdict.becomes {
                    JobStatus::Completed => GraphEvent::Completed(node),
                    JobStatus::Failed => GraphEvent::Failed(node),
                    JobStatus::Queued | JobStatus::Running => continue,
                };
                events[at].push(event);
            }
        }
        let graphs = graphs.all.iter().zip(events);
        graphs
            .map(|(graph, events)| (graph.execution, graph.foresee(events.into_iter())))
            .collect()
    }

    /// Brings the graphs on in the order asked. Returns which claims end as they shall; the others are lost.
    fn decide(
        &self,
        graphs: &mut Graphs,
        leases: &Leases,
        sources: &mut HashMap<ExecutionId, Source>,
    ) -> Result<Vec<Verdict<'a>>> {
        let foreseen: HashSet<ExecutionId> = sources.keys().copied().collect();
        let mut kept = Vec::with_capacity(self.verdicts.len());
        for verdict in self.in_order() {
            let Some(attempts) = leases.attempt(self.worker, verdict.claim) else {
                continue;
            };
            let mut verdict = verdict.clone();
            if let Some((at, node)) = graphs.place(verdict.claim.job) {
                let graph = &mut graphs.all[at];
                // What ended in this call has lost its leases.
                if graph.has_ended() {
                    continue;
                }
                // An output is kept with its node and nowhere else.
                verdict.result = None;
                if let Some(outcome) = self.outcome(&verdict) {
                    let known = foreseen.contains(&graph.execution);
                    let source = sources.entry(graph.execution).or_default();
                    let end = NodeEnd {
                        node,
                        attempts,
                        outcome,
                    };
                    graph.node_ended(end, source);
                    if !known && !graph.begin.is_empty() {
                        let text = "nodes begin of which it was not foreseen";
                        return Err(Error::new(CONTEXT, ErrorKind::Broken(text.to_owned())));
                    }
                }
            }
            kept.push(verdict);
        }
        kept.sort_unstable_by_key(|v| (v.claim.token, v.claim.job));
        Ok(kept)
    }

    /// How a node ends with its claim; none if it does not.
    fn outcome(&self, verdict: &Verdict<'_>) -> Option<Outcome> {
        match (verdict.becomes, &self.finishes[verdict.asked].end) {
            (JobStatus::Completed, JobEnd::Completed { result }) => {
                Some(Outcome::Completed(result.clone().unwrap_or_default()))
            }
            (JobStatus::Failed, _) => {
                Some(Outcome::Failed(verdict.error.clone().unwrap_or_default()))
            }
            (_, _) => None,
        }
    }
}

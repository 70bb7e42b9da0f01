//! Finishes the job of a node: writes the job's end, the node's output, the nodes that follow and the execution's end in one transaction.

use super::lock::{self, Leases, OpenNodes};
use super::refusal::RefusedQueues;
use super::write::NodesBegun;
use super::{input, write};
use crate::job::finish::{self as jobs, FinishDecision, FinishResult};
use crate::pool::Connection;
use crate::store::PostgresStore;
use crate::transaction::OpenTransaction;
use leasehold_core::graph::{EndPreview, GraphChange, NodeEnd, NodeOutcome, NodeSource};
use leasehold_core::job::JobEnd;
use leasehold_core::{JobStatus, WorkspaceId};
use leasehold_store::failpoint::reach;
use leasehold_store::graph::{EndedExecution, node_outcome};
use leasehold_store::{Error, ErrorKind, Result};
use std::collections::HashSet;

const CONTEXT: &str = "job_finish";

/// The outcome of finishing a node's job.
#[derive(Default)]
pub(crate) struct NodeFinished {
    /// None if the lease is lost.
    pub(crate) job: Option<FinishResult>,
    /// The execution, if it ended with the node.
    pub(crate) ended: Option<EndedExecution>,
}

/// A claimed job of a node, and how it ends.
struct NodeFinish<'a> {
    worker: &'a str,
    /// How long to wait for a lock.
    wait: &'a str,
    decision: &'a FinishDecision<'a>,
    /// How the node ends; none if it does not end, for example on a retry.
    outcome: Option<NodeOutcome>,
    /// Queues in which no next node may start.
    refused: RefusedQueues,
}

/// The outcome of an attempt.
enum Attempt {
    /// It is written; whether nodes started.
    Written(NodeFinished, bool),
    /// Nothing is written: nodes have to be abandoned whose jobs are not locked.
    Unlocked,
    /// Nothing is written: the workspace may not use one of these queues.
    Refused(WorkspaceId, HashSet<String>),
}

impl Attempt {
    fn lease_lost() -> Self {
        Self::Written(NodeFinished::default(), false)
    }
}

/// Which jobs of other nodes an attempt locks before it locks any page of leases.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LockScope {
    /// Those of a graph that is expected to end.
    Expected,
    /// All of the graph.
    All,
}

/// Finishes the job of a node as `decision` says. Waits for each lock at most `wait`.
pub(crate) async fn finish(
    store: &PostgresStore,
    client: &mut Connection,
    (worker, wait): (&str, &str),
    decision: &FinishDecision<'_>,
    end: &JobEnd,
) -> Result<NodeFinished> {
    let mut call = NodeFinish {
        worker,
        wait,
        decision,
        outcome: node_outcome(end, decision.becomes),
        refused: RefusedQueues::default(),
    };
    let mut scope = LockScope::Expected;
    let (node, started) = loop {
        match attempt(store, client, &call, scope).await? {
            Attempt::Written(node, started) => break (node, started),
            Attempt::Unlocked if scope == LockScope::Expected => scope = LockScope::All,
            Attempt::Unlocked => {
                return Err(broken(
                    "nodes have to be abandoned whose jobs are not locked",
                ));
            }
            Attempt::Refused(workspace, queues) => {
                let refused = &mut call.refused;
                refused.add(client.session(), workspace, &queues).await?;
            }
        }
    };
    reach("job_finish/committed");
    if started {
        store.job_notifier.wake();
    }
    store.notifier.wake_for_work(node.ended.is_some());
    Ok(node)
}

fn broken(text: &str) -> Error {
    Error::new(CONTEXT, ErrorKind::Broken(text.to_owned()))
}

async fn attempt(
    store: &PostgresStore,
    client: &mut Connection,
    call: &NodeFinish<'_>,
    scope: LockScope,
) -> Result<Attempt> {
    let transaction = OpenTransaction::begin(client).await?;
    let locked = lock(store, &transaction, call, scope).await?;
    reach("job_finish/begun");
    let moment = locked.leases.moment;
    let Some(attempts) = locked.leases.attempt(call.worker, call.decision.claim) else {
        return Ok(Attempt::lease_lost());
    };
    let mut decision = call.decision.clone();
    let mut changes = Vec::new();
    let mut is_suspect = false;
    if let Some((mut change, node)) = locked.graph {
        if change.has_ended() {
            return Ok(Attempt::lease_lost());
        }
        // An output is stored with its node only.
        decision.result = None;
        if let Some(outcome) = call.outcome.clone() {
            let source = input::source(&transaction, change.execution(), &locked.preview).await?;
            let end = NodeEnd {
                node,
                attempts,
                outcome,
            };
            let begins = locked.preview.begins;
            (change, is_suspect) = call.end_node(store, change, end, source, begins).await?;
        }
        changes.push(change);
    }
    let abandons = |change: &GraphChange| !change.abandoned().is_empty();
    if locked.open.is_none() && changes.iter().any(abandons) {
        return Ok(Attempt::Unlocked);
    }
    let session = transaction.session();
    let offset = transaction.job_xid_offset;
    let jobs = jobs::end(
        session,
        Some(moment),
        call.worker,
        &[decision],
        true,
        offset,
    )
    .await?;
    let open = locked.open.unwrap_or_default();
    write::abandon(&transaction, moment, &mut changes, &open).await?;
    reach("job_finish/ended");
    write::record(&transaction, moment, &changes).await?;
    reach("job_finish/recorded");
    let started = match write::begin(store, &transaction, moment, &mut changes).await? {
        NodesBegun::None => false,
        NodesBegun::All => true,
        NodesBegun::Refused(workspace, queues) => return Ok(Attempt::Refused(workspace, queues)),
    };
    reach("job_finish/enqueued");
    if is_suspect {
        write::reset_crashes(&transaction, &changes).await?;
    }
    let ended = write::end(&transaction, moment, call.worker, &changes).await?;
    reach("job_finish/finished");
    let Some(&job) = jobs.first() else {
        return Err(broken("a locked lease is missing"));
    };
    transaction.commit().await?;
    let finished = NodeFinished {
        job: Some(job),
        ended: ended.into_iter().next(),
    };
    Ok(Attempt::Written(finished, started))
}

/// The rows that an attempt locked.
struct LockedGraph {
    /// The graph and the node's index; none if the graph was deleted.
    graph: Option<(GraphChange, usize)>,
    /// What the end of the node will change.
    preview: EndPreview,
    leases: Leases,
    /// The jobs of open nodes, if they are locked.
    open: Option<OpenNodes>,
}

async fn lock(
    store: &PostgresStore,
    transaction: &OpenTransaction<'_>,
    call: &NodeFinish<'_>,
    scope: LockScope,
) -> Result<LockedGraph> {
    let claim = call.decision.claim;
    if scope == LockScope::Expected && call.decision.becomes != JobStatus::Failed {
        let (graph, leases) = lock::graph_and_lease(store, transaction, claim, call.wait).await?;
        return Ok(LockedGraph {
            preview: call.preview_end(graph.as_ref()),
            graph,
            leases,
            open: None,
        });
    }
    let graph = lock::graph_of(store, transaction, claim.job, call.wait).await?;
    let preview = call.preview_end(graph.as_ref());
    let mut open = None;
    if let Some((change, _)) = &graph
        && (scope == LockScope::All || preview.abandons)
    {
        open = Some(lock::open_nodes(transaction, &[change.execution()]).await?);
    }
    let nodes = open.as_ref();
    let leases = lock::leases(store, transaction, &[claim.token], nodes).await?;
    Ok(LockedGraph {
        graph,
        preview,
        leases,
        open,
    })
}

impl NodeFinish<'_> {
    /// Ends the node in its graph, with a crash marker if the inputs of further nodes are computed. Also returns whether they were computed for a request
    /// that is suspected to crash the process.
    async fn end_node(
        &self,
        store: &PostgresStore,
        mut change: GraphChange,
        end: NodeEnd,
        source: NodeSource,
        begins: bool,
    ) -> Result<(GraphChange, bool)> {
        if begins {
            change = input::compute(&store.crash_markers, change, end, source).await?;
        } else {
            change.node_ended(end, source);
        }
        self.refused.apply(&mut change);
        let is_suspect = begins && change.origin().crashed;
        Ok((change, is_suspect))
    }

    fn preview_end(&self, graph: Option<&(GraphChange, usize)>) -> EndPreview {
        match (graph, &self.outcome) {
            (Some((change, node)), Some(outcome)) => change.preview_end(*node, outcome),
            (_, _) => EndPreview::default(),
        }
    }
}

//! Ending the claim of a node: the job's end, the node's output, the nodes that follow and the execution's end, in one transaction.

use super::hold::{self, Leases, OpenNodes};
use super::{given, write};
use crate::job::finish::{self as jobs, Answer, Verdict};
use crate::store::PostgresStore;
use crate::transaction::Open;
use deadpool_postgres::Object;
use leasehold_core::JobStatus;
use leasehold_core::graph::{Foresight, GraphChange, NodeEnd, NodeOutcome};
use leasehold_core::job::JobEnd;
use leasehold_store::failpoint::reach;
use leasehold_store::graph::{EndedExecution, node_outcome};
use leasehold_store::{Error, ErrorKind, Result};

const CONTEXT: &str = "job_finish";

/// What became of a claim.
#[derive(Default)]
pub(crate) struct NodeFinished {
    /// None if the lease is lost.
    pub(crate) job: Option<Answer>,
    /// The execution, if it ended with the node.
    pub(crate) ended: Option<EndedExecution>,
}

/// A claim of a node, and how it shall end.
struct Call<'a> {
    worker: &'a str,
    verdict: &'a Verdict<'a>,
    /// How the node ends with it; none if it does not.
    outcome: Option<NodeOutcome>,
}

/// Which nodes' jobs an attempt makes sure of before it holds any page.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reach {
    /// Of a graph that will end, as far as that can be foreseen.
    Foreseen,
    /// Of the graph, however it goes on.
    All,
}

/// Ends the claim of a node as `verdict` says.
pub(crate) async fn finish(
    store: &PostgresStore,
    client: &mut Object,
    worker: &str,
    verdict: &Verdict<'_>,
    end: &JobEnd,
) -> Result<NodeFinished> {
    let call = Call {
        worker,
        verdict,
        outcome: node_outcome(end, verdict.becomes),
    };
    let mut written = attempt(store, client, &call, Reach::Foreseen).await?;
    if written.is_none() {
        written = attempt(store, client, &call, Reach::All).await?;
    }
    let Some((node, begun)) = written else {
        return Err(broken("nodes are to be given up whose jobs were not held"));
    };
    reach("job_finish/committed");
    if begun {
        store.job_wakes.ring();
    }
    store.wakes.ring_for_work(node.ended.is_some());
    Ok(node)
}

fn broken(text: &str) -> Error {
    Error::new(CONTEXT, ErrorKind::Broken(text.to_owned()))
}

/// What became of the claim, and whether nodes began. None, and nothing was written, if nodes have to be given up whose jobs are not held.
async fn attempt(
    store: &PostgresStore,
    client: &mut Object,
    call: &Call<'_>,
    reaching: Reach,
) -> Result<Option<(NodeFinished, bool)>> {
    let transaction = Open::begin(client, CONTEXT).await?;
    let held = hold(store, &transaction, call, reaching).await?;
    reach("job_finish/begun");
    let moment = held.leases.moment;
    let Some(attempts) = held.leases.attempt(call.worker, call.verdict.claim) else {
        return Ok(Some(Default::default()));
    };
    let mut verdict = call.verdict.clone();
    let mut changes = Vec::new();
    if let Some((mut change, node)) = held.graph {
        if change.has_ended() {
            return Ok(Some(Default::default()));
        }
        // An output is kept with its node and nowhere else.
        verdict.result = None;
        if let Some(outcome) = call.outcome.clone() {
            let source = given::source(&transaction, change.execution(), &held.foresight).await?;
            let end = NodeEnd {
                node,
                attempts,
                outcome,
            };
            change.node_ended(end, source);
        }
        changes.push(change);
    }
    let abandons = |change: &GraphChange| !change.abandoned().is_empty();
    if held.open.is_none() && changes.iter().any(abandons) {
        return Ok(None);
    }
    let jobs = jobs::end(
        &transaction.inner,
        Some(moment),
        call.worker,
        &[verdict],
        true,
    )
    .await?;
    let open = held.open.unwrap_or_default();
    write::abandon(&transaction, moment, &mut changes, &open).await?;
    reach("job_finish/ended");
    write::record(&transaction, moment, &changes).await?;
    reach("job_finish/recorded");
    let begun = write::begin(&transaction, moment, &mut changes).await?;
    reach("job_finish/enqueued");
    let ended = write::end(&transaction, moment, call.worker, &changes).await?;
    reach("job_finish/finished");
    let Some(&job) = jobs.first() else {
        return Err(broken("a lease that was held was not there"));
    };
    transaction.commit().await?;
    let finished = NodeFinished {
        job: Some(job),
        ended: ended.into_iter().next(),
    };
    Ok(Some((finished, begun)))
}

/// What an attempt holds.
struct Held {
    /// The graph, and which node of it the job does; none if its record is gone.
    graph: Option<(GraphChange, usize)>,
    /// What the end of the node leads to.
    foresight: Foresight,
    leases: Leases,
    /// The jobs of open nodes, if those are held.
    open: Option<OpenNodes>,
}

async fn hold(
    store: &PostgresStore,
    transaction: &Open<'_>,
    call: &Call<'_>,
    reaching: Reach,
) -> Result<Held> {
    let claim = call.verdict.claim;
    if reaching == Reach::Foreseen && call.verdict.becomes != JobStatus::Failed {
        let (graph, leases) = hold::graph_and_lease(store, transaction, claim).await?;
        return Ok(Held {
            foresight: call.foresee(graph.as_ref()),
            graph,
            leases,
            open: None,
        });
    }
    let graph = hold::graph_of(store, transaction, claim.job).await?;
    let foresight = call.foresee(graph.as_ref());
    let mut open = None;
    if let Some((change, _)) = &graph
        && (reaching == Reach::All || foresight.abandons)
    {
        open = Some(hold::open_nodes(transaction, &[change.execution()]).await?);
    }
    let nodes = open.as_ref();
    let leases = hold::leases(store, transaction, &[claim.token], nodes).await?;
    Ok(Held {
        graph,
        foresight,
        leases,
        open,
    })
}

impl Call<'_> {
    fn foresee(&self, graph: Option<&(GraphChange, usize)>) -> Foresight {
        match (graph, &self.outcome) {
            (Some((change, node)), Some(outcome)) => change.foresee(*node, outcome),
            (_, _) => Foresight::default(),
        }
    }
}

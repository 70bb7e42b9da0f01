//! Short words for what cases about graphs need again and again: a graph, a started execution, the end of a node. Panics where a store
//! fails; judges nothing.

use crate::Fixture;
use crate::factory::{TestWorkspace, new_request, ok};
use crate::job_factory::QUEUE;
use leasehold_core::graph::{
    Edge, Graph, GraphStop, Node, NodeKind, NodeRetry, NodeRun, NodeState,
};
use leasehold_core::job::{ClaimedJob, JobEnd, JobFinished};
use leasehold_core::{ExecutionId, JsonText, RequestId, VersionBody, WorkspaceId};
use leasehold_store::graph::{EndedExecution, GraphRun, GraphStarted, GraphStopped};
use leasehold_store::request::{ClaimedRequest, NewRequest};
use leasehold_testbed::WorkspaceOptions;
use serde_json::Value;
use std::time::Duration;

/// Who ends graphs because of the time or of a wish.
pub const SETTLER: &str = "settler-1";

/// A node that is a job in [`QUEUE`], whose kind is the node's id.
pub fn task(id: &str) -> Node {
    task_in(QUEUE, id)
}

/// A node that is a job in another queue.
pub fn task_in(queue: &str, id: &str) -> Node {
    let kind = NodeKind::Task {
        queue: queue.into(),
        kind: None,
    };
    Node::new(id, kind)
}

/// A node that is tried so often, without a wait between.
pub fn tried_task(id: &str, max_attempts: u32) -> Node {
    Node {
        retry: Some(NodeRetry {
            max_attempts: Some(max_attempts),
            base_ms: Some(0),
            ..NodeRetry::default()
        }),
        ..task(id)
    }
}

/// A graph of these nodes.
pub fn graph_of(nodes: Vec<Node>, edges: &[(&str, &str)]) -> Graph {
    let edge = |(from, to): &(&str, &str)| Edge {
        from: (*from).into(),
        to: (*to).into(),
    };
    Graph {
        nodes,
        edges: edges.iter().map(edge).collect(),
    }
}

/// A graph of plain tasks.
pub fn graph(nodes: &[&str], edges: &[(&str, &str)]) -> Graph {
    graph_of(nodes.iter().map(|id| task(id)).collect(), edges)
}

/// a → {b, c} → d
pub fn diamond() -> Graph {
    graph(
        &["a", "b", "c", "d"],
        &[("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")],
    )
}

/// A node's end with something that it came to.
pub fn came_to(output: Value) -> JobEnd {
    JobEnd::Completed {
        result: Some(JsonText::from(&output)),
    }
}

/// An execution whose graph was started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Started {
    /// Where it belongs.
    pub workspace: WorkspaceId,
    /// Its request.
    pub request: RequestId,
    /// The execution.
    pub execution: ExecutionId,
}

impl Started {
    /// The execution of a claimed request.
    pub fn of(site: &TestWorkspace, claimed: &ClaimedRequest) -> Self {
        Self {
            workspace: site.workspace,
            request: claimed.id,
            execution: claimed.execution,
        }
    }
}

impl Fixture {
    /// A workspace with `limit` slots and a definition that runs this graph.
    pub async fn graph_site(&self, limit: u32, graph: Graph) -> TestWorkspace {
        self.timed_graph_site(limit, graph, None).await
    }

    /// The same, with a timeout for each execution.
    pub async fn timed_graph_site(
        &self,
        limit: u32,
        graph: Graph,
        execution_timeout: Option<Duration>,
    ) -> TestWorkspace {
        let options = WorkspaceOptions {
            limit: Some(limit),
            body: VersionBody::Graph(graph),
            execution_timeout,
            ..WorkspaceOptions::default()
        };
        TestWorkspace::with(&*self.store, options).await
    }

    /// A DISPATCHED execution whose graph was started.
    pub async fn started(&self, site: &TestWorkspace) -> Started {
        self.started_with(site, new_request(site)).await
    }

    /// The same, of a request of the case's own.
    pub async fn started_with(&self, site: &TestWorkspace, request: NewRequest) -> Started {
        let id = self.enqueue_one(site, request).await;
        let claimed = self.claim_one().await;
        assert_eq!(claimed.id, id, "nothing else waits");
        self.start_graph(&claimed).await;
        self.dispatch(&claimed).await;
        Started::of(site, &claimed)
    }

    /// `n` DISPATCHED executions whose graphs were started.
    pub async fn started_many(&self, site: &TestWorkspace, n: usize) -> Vec<Started> {
        self.enqueue(site, n).await;
        let claimed = self.drain(u32::try_from(n).unwrap_or(u32::MAX)).await;
        assert_eq!(claimed.requests.len(), n, "there is a slot for each");
        let mut all = Vec::with_capacity(n);
        for claimed in &claimed.requests {
            self.start_graph(claimed).await;
            self.dispatch(claimed).await;
            all.push(Started::of(site, claimed));
        }
        all
    }

    /// Starts a graph for the first time.
    pub async fn start_graph(&self, claimed: &ClaimedRequest) {
        let started = ok(self.store.graph_start(&claimed.into()).await);
        assert_eq!(started, GraphStarted::Started);
    }

    /// Claims the job of each of these nodes from [`QUEUE`], in this order; there must be no other.
    pub async fn take_nodes(&self, ids: &[&str]) -> Vec<ClaimedJob> {
        let jobs = self.take(100).await;
        let found: Vec<&str> = jobs.iter().map(|job| job.kind.as_str()).collect();
        assert_eq!(found, ids, "the nodes that can be claimed");
        jobs
    }

    /// Claims the job of one node, which completes with this output.
    pub async fn complete_node(&self, id: &str, output: Value) {
        let jobs = self.take_nodes(&[id]).await;
        let answer = self.end(&jobs[0], came_to(output)).await;
        assert_eq!(answer, JobFinished::Completed);
    }

    /// Stops a graph as [`SETTLER`].
    pub async fn stop_graph(&self, execution: ExecutionId, stop: GraphStop) -> GraphStopped {
        let stopped = self.store.graph_stop(execution, stop, SETTLER, "enough");
        ok(stopped.await)
    }

    /// Ends what time has ended, by execution.
    pub async fn settle_graphs(&self) -> Vec<EndedExecution> {
        let mut settled = ok(self.store.graph_settle(SETTLER, 1_000).await);
        settled.sort_by_key(|settled| settled.execution);
        settled
    }

    /// The graph of an execution.
    pub async fn graph_run(&self, execution: ExecutionId) -> GraphRun {
        ok(self.store.graph_get(execution).await).expect("it was started")
    }

    /// One letter a node.
    pub async fn letters(&self, execution: ExecutionId) -> String {
        self.graph_run(execution).await.state.letters()
    }

    /// The nodes of an execution.
    pub async fn nodes(&self, execution: ExecutionId) -> Vec<NodeRun> {
        ok(self.store.graph_nodes(execution).await).expect("it was started")
    }

    /// One node of an execution.
    pub async fn node(&self, execution: ExecutionId, id: &str) -> NodeRun {
        let nodes = self.nodes(execution).await;
        let found = nodes.into_iter().find(|node| node.id == id);
        found.expect("the graph has such a node")
    }

    /// Where the nodes of an execution are.
    pub async fn node_states(&self, execution: ExecutionId) -> Vec<NodeState> {
        let nodes = self.nodes(execution).await;
        nodes.into_iter().map(|node| node.state).collect()
    }
}

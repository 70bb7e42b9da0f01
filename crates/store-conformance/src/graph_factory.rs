//! Helpers of the cases for graphs, started executions and nodes. They panic if the store fails, and check nothing else.

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

/// The name under which graphs are stopped and expired.
pub const TIMEOUT_SWEEPER: &str = "timeout-sweeper-1";

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

/// A task node with this maximum of attempts and no backoff.
pub fn task_with_max_attempts(id: &str, max_attempts: u32) -> Node {
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

/// The end of a completed job with this output.
pub fn completed_with(output: Value) -> JobEnd {
    JobEnd::Completed {
        result: Some(JsonText::from(&output)),
    }
}

/// An execution whose graph was started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StartedGraph {
    /// Its workspace.
    pub workspace: WorkspaceId,
    /// Its request.
    pub request: RequestId,
    /// The execution.
    pub execution: ExecutionId,
}

impl StartedGraph {
    /// The execution of a claimed request.
    pub fn of(workspace: &TestWorkspace, claimed: &ClaimedRequest) -> Self {
        Self {
            workspace: workspace.workspace,
            request: claimed.id,
            execution: claimed.execution,
        }
    }
}

impl Fixture {
    /// Creates a workspace with `limit` slots and a definition of this graph.
    pub async fn graph_workspace(&self, limit: u32, graph: Graph) -> TestWorkspace {
        self.graph_workspace_with_timeout(limit, graph, None).await
    }

    /// Creates the same with a timeout for each execution.
    pub async fn graph_workspace_with_timeout(
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

    /// Enqueues a request, starts its graph and marks it dispatched.
    pub async fn enqueue_started(&self, workspace: &TestWorkspace) -> StartedGraph {
        self.enqueue_started_with(workspace, new_request(workspace))
            .await
    }

    /// Does the same with this request.
    pub async fn enqueue_started_with(
        &self,
        workspace: &TestWorkspace,
        request: NewRequest,
    ) -> StartedGraph {
        let id = self.enqueue_one(workspace, request).await;
        let claimed = self.claim_one().await;
        assert_eq!(claimed.id, id, "nothing else is queued");
        self.start_graph(&claimed).await;
        self.dispatch(&claimed).await;
        StartedGraph::of(workspace, &claimed)
    }

    /// Enqueues `n` requests, starts their graphs and marks them dispatched.
    pub async fn enqueue_started_many(
        &self,
        workspace: &TestWorkspace,
        n: usize,
    ) -> Vec<StartedGraph> {
        self.enqueue(workspace, n).await;
        let claimed = self.drain(u32::try_from(n).unwrap_or(u32::MAX)).await;
        assert_eq!(claimed.requests.len(), n, "every request is admitted");
        let mut all = Vec::with_capacity(n);
        for claimed in &claimed.requests {
            self.start_graph(claimed).await;
            self.dispatch(claimed).await;
            all.push(StartedGraph::of(workspace, claimed));
        }
        all
    }

    /// Starts a graph for the first time.
    pub async fn start_graph(&self, claimed: &ClaimedRequest) {
        let started = ok(self.store.graph_start(&claimed.into()).await);
        assert_eq!(started, GraphStarted::Started);
    }

    /// Claims the jobs of exactly these nodes from [`QUEUE`], in this order.
    pub async fn claim_nodes(&self, ids: &[&str]) -> Vec<ClaimedJob> {
        let jobs = self.claim_jobs(100).await;
        let found: Vec<&str> = jobs.iter().map(|job| job.kind.as_str()).collect();
        assert_eq!(found, ids, "claimed nodes");
        jobs
    }

    /// Claims the job of one node and completes it with this output.
    pub async fn complete_node(&self, id: &str, output: Value) {
        let jobs = self.claim_nodes(&[id]).await;
        let answer = self.finish_job(&jobs[0], completed_with(output)).await;
        assert_eq!(answer, JobFinished::Completed);
    }

    /// Stops a graph as [`TIMEOUT_SWEEPER`].
    pub async fn stop_graph(&self, execution: ExecutionId, stop: GraphStop) -> GraphStopped {
        let stopped = self
            .store
            .graph_stop(execution, stop, TIMEOUT_SWEEPER, "enough");
        ok(stopped.await)
    }

    /// Ends timed-out graphs; returns them ordered by execution.
    pub async fn expire_graphs(&self) -> Vec<EndedExecution> {
        let mut ended = ok(self.store.graph_expire(TIMEOUT_SWEEPER, 1_000).await);
        ended.sort_by_key(|ended| ended.execution);
        ended
    }

    /// Reads the graph of an execution.
    pub async fn graph_run(&self, execution: ExecutionId) -> GraphRun {
        ok(self.store.graph_get(execution).await).expect("the graph was started")
    }

    /// The states of the nodes, one letter each.
    pub async fn node_letters(&self, execution: ExecutionId) -> String {
        self.graph_run(execution).await.state.letters()
    }

    /// Reads the nodes of an execution.
    pub async fn nodes(&self, execution: ExecutionId) -> Vec<NodeRun> {
        ok(self.store.graph_nodes(execution).await).expect("the graph was started")
    }

    /// Reads one node of an execution.
    pub async fn node(&self, execution: ExecutionId, id: &str) -> NodeRun {
        let nodes = self.nodes(execution).await;
        let found = nodes.into_iter().find(|node| node.id == id);
        found.expect("the graph has this node")
    }

    /// The states of the nodes of an execution.
    pub async fn node_states(&self, execution: ExecutionId) -> Vec<NodeState> {
        let nodes = self.nodes(execution).await;
        nodes.into_iter().map(|node| node.state).collect()
    }
}

//! The fixture that an engine's tests create for each case, with helpers to admit, start and await executions. Panics if the store fails.

use leasehold_core::graph::{Graph, Machine, NodeRun, NodeState};
use leasehold_core::{DefinitionId, ExecutionEnd, VersionBody, WorkspaceId};
use leasehold_engine::{Description, Engine, Start, StartOutcome};
use leasehold_store::request::{
    Claim, ClaimOutcome, ClaimRef, ClaimedRequest, Dispatched, Enqueue, Enqueued, NewRequest,
};
use leasehold_store::{Store, fresh_id};
use leasehold_testbed::{TestWorkspace, WorkspaceOptions};
use leasehold_testkit::eventually;
use serde_json::Value;
use std::any::Any;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;

/// The trace context of every request.
pub(crate) const TRACE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const OWNER: &str = "conformance";
/// Longer than any case takes.
const LEASE: Duration = Duration::from_secs(600);
/// Claims cover the whole store, so only one case at a time may have a pending request.
static ADMISSION: Mutex<()> = Mutex::const_new(());

/// An engine and the store whose WorkQueue has the jobs of its `task` nodes.
pub struct EngineFixture {
    /// The engine under test.
    pub engine: Arc<dyn Engine>,
    /// The store with the jobs of `task` nodes.
    pub store: Arc<dyn Store>,
    /// The queue of the case's `task` nodes.
    pub queue: String,
    /// Whether the engine reports a repeated start of a running execution as already started.
    pub reports_repeated_starts: bool,
    /// The timeout of every wait.
    pub timeout: Duration,
    /// Values that must live as long as engine and store.
    pub guard: Box<dyn Any + Send + Sync>,
}

impl EngineFixture {
    /// Creates a fixture with the queue `conformance`.
    pub fn new(engine: Arc<dyn Engine>, store: Arc<dyn Store>) -> Self {
        Self {
            engine,
            store,
            queue: "conformance".to_owned(),
            reports_repeated_starts: true,
            timeout: Duration::from_secs(180),
            guard: Box::new(()),
        }
    }

    /// Adds a value that must live as long as engine and store.
    #[must_use]
    pub fn guarded(mut self, guard: impl Any + Send + Sync) -> Self {
        self.guard = Box::new(guard);
        self
    }

    /// Sets the queue of the tasks.
    #[must_use]
    pub fn on_queue(mut self, queue: impl Into<String>) -> Self {
        self.queue = queue.into();
        self
    }

    /// Admits an execution of this graph without starting it.
    pub async fn admit(&self, graph: Graph, params: Value, timeout: Option<Duration>) -> Start {
        self.admit_claimed(VersionBody::Graph(graph), params, timeout)
            .await
            .0
    }

    /// Admits an execution of any version body.
    pub async fn admit_body(&self, body: VersionBody, params: Value) -> Start {
        self.admit_claimed(body, params, None).await.0
    }

    /// Starts an execution of this graph.
    pub async fn start(&self, graph: Graph, params: Value) -> Start {
        self.start_for(graph, params, None).await
    }

    /// Starts an execution of this graph with a timeout.
    pub async fn start_for(&self, graph: Graph, params: Value, timeout: Option<Duration>) -> Start {
        let body = VersionBody::Graph(graph);
        let (start, claim) = self.admit_claimed(body, params, timeout).await;
        assert_eq!(self.engine.start(&start).await, StartOutcome::Started);
        let marked = self.store.request_dispatched(OWNER, &[claim]).await;
        let marked = marked.expect("failed to mark the request dispatched");
        assert!(
            matches!(
                marked[..],
                [Dispatched::Dispatched | Dispatched::AlreadyFinished]
            ),
            "{marked:?}"
        );
        start
    }

    /// Waits for the end of an execution and returns it with its error.
    pub async fn wait_ended(&self, start: &Start) -> (ExecutionEnd, Option<String>) {
        let ended = eventually(self.timeout, async || {
            let description = self.engine.describe(start.execution).await;
            matches!(description, Ok(Description::Ended { .. }))
        });
        let _ = ended.await;
        match self.engine.describe(start.execution).await {
            Ok(Description::Ended { end, error, .. }) => (end, error),
            other => {
                let nodes = self.engine.nodes(start.execution, &start.version.body);
                let (id, nodes) = (start.execution, nodes.await);
                panic!("{id} has not ended: {other:?}\n{nodes:?}");
            }
        }
    }

    /// Waits for the end of an execution and asserts that it completed.
    pub async fn expect_completed(&self, start: &Start) {
        assert_eq!(
            self.wait_ended(start).await,
            (ExecutionEnd::Completed, None)
        );
    }

    /// Waits for the end of an execution and asserts that it failed with this error.
    pub async fn expect_failed(&self, start: &Start, error: &str) {
        let (end, actual) = self.wait_ended(start).await;
        assert_eq!(
            (end, actual.as_deref()),
            (ExecutionEnd::Failed, Some(error))
        );
    }

    /// Reads the nodes of an execution.
    pub async fn nodes(&self, start: &Start) -> Vec<NodeRun> {
        let nodes = self.engine.nodes(start.execution, &start.version.body);
        let nodes = nodes.await.expect("failed to read the nodes");
        nodes.expect("the engine knows the execution")
    }

    /// Reads the node with this id.
    pub async fn node(&self, start: &Start, id: &str) -> NodeRun {
        let nodes = self.nodes(start).await;
        let node = nodes.into_iter().find(|node| node.id == id);
        node.unwrap_or_else(|| panic!("node {id} not found"))
    }

    /// Reads the output of a completed node.
    pub async fn output(&self, start: &Start, id: &str) -> Value {
        let node = self.node(start, id).await;
        assert_eq!(node.state, NodeState::Completed, "{node:?}");
        output_of(&node)
    }

    /// Reads the state of each node, in the order of the graph.
    pub async fn states(&self, start: &Start) -> Vec<NodeState> {
        let nodes = self.nodes(start).await;
        nodes.into_iter().map(|node| node.state).collect()
    }

    /// Waits until a node has this state.
    pub async fn wait_for_state(&self, start: &Start, id: &str, state: NodeState) {
        let reached = eventually(self.timeout, async || {
            self.node(start, id).await.state == state
        });
        assert!(reached.await, "node {id} did not become {state}");
    }

    /// Waits until the case's queue has a ready or running job.
    pub async fn wait_queued(&self) {
        let queued = eventually(self.timeout, async || {
            let counts = self.store.queue_counts(&self.queue).await;
            counts.is_ok_and(|counts| counts.ready + counts.running > 0)
        });
        assert!(queued.await, "no job in queue {}", self.queue);
    }

    async fn admit_claimed(
        &self,
        body: VersionBody,
        params: Value,
        timeout: Option<Duration>,
    ) -> (Start, ClaimRef) {
        if let VersionBody::Graph(graph) = &body {
            Machine::new(graph.clone()).expect("the graph of the case is valid");
        }
        let options = WorkspaceOptions {
            limit: Some(10),
            body,
            execution_timeout: timeout,
            ..WorkspaceOptions::default()
        };
        let TestWorkspace {
            workspace,
            definition,
            version,
        } = TestWorkspace::with(&*self.store, options).await;
        let claimed = {
            let _guard = ADMISSION.lock().await;
            self.enqueue(workspace, definition, params).await;
            self.claim().await
        };
        assert_eq!(claimed.workspace, workspace, "no other request is pending");
        let claim = ClaimRef::from(&claimed);
        let version = self.store.version_get(workspace, version).await;
        let version = version.ok().flatten().expect("the version was published");
        let start = Start {
            execution: claimed.execution,
            request: claimed.id,
            workspace,
            definition,
            version,
            priority: claimed.priority,
            params: claimed.params,
            crashed: false,
            trace: claimed.trace_context.clone(),
            trace_context: claimed.trace_context,
        };
        (start, claim)
    }

    async fn enqueue(&self, workspace: WorkspaceId, definition: DefinitionId, params: Value) {
        let call = Enqueue {
            workspace,
            requests: vec![NewRequest {
                trace_context: Some(TRACE.to_owned()),
                ..NewRequest::new(fresh_id(), definition, params)
            }],
            by: OWNER.to_owned(),
        };
        let enqueued = self.store.request_enqueue(&call).await;
        assert!(matches!(enqueued, Ok(Enqueued::All(_))));
    }

    async fn claim(&self) -> ClaimedRequest {
        let claim = Claim {
            owner: OWNER.to_owned(),
            batch: 1,
            kept_max: None,
            lease: LEASE,
            lock: None,
        };
        for _ in 0..100 {
            let Ok(ClaimOutcome::Claimed(mut claimed)) = self.store.request_claim(&claim).await
            else {
                panic!("the claim failed");
            };
            if let Some(request) = claimed.requests.pop() {
                return request;
            }
        }
        panic!("no request can be claimed");
    }
}

/// The output of a node; null if it has none.
pub(crate) fn output_of(node: &NodeRun) -> Value {
    let output = node.output.as_ref();
    output.map_or(Value::Null, |text| text.read().expect("the output is JSON"))
}

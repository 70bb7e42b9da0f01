//! What an engine's tests hand to each case, and short words for what cases do with it: admit, start, wait for the end. Panics where a store fails.

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

/// The trace that every request is part of.
pub(crate) const TRACE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const OWNER: &str = "conformance";
/// Longer than any case.
const LEASE: Duration = Duration::from_secs(600);
/// Claims are of the whole store: only one case at a time has something to claim.
static ADMISSION: Mutex<()> = Mutex::const_new(());

/// An engine, and the store whose WorkQueue has the jobs of its `task` nodes.
pub struct EngineFixture {
    /// The engine under test.
    pub engine: Arc<dyn Engine>,
    /// Where workers find the jobs of `task` nodes.
    pub store: Arc<dyn Store>,
    /// The queue of the case's `task` nodes.
    pub queue: String,
    /// Whether the engine's answer to a repeated start of what still runs differs from the first.
    pub tells_repetitions: bool,
    /// How long anything may take.
    pub patience: Duration,
    /// Whatever must live as long as engine and store.
    pub guard: Box<dyn Any + Send + Sync>,
}

impl EngineFixture {
    /// A fixture whose tasks go to the queue `conformance`.
    pub fn new(engine: Arc<dyn Engine>, store: Arc<dyn Store>) -> Self {
        Self {
            engine,
            store,
            queue: "conformance".to_owned(),
            tells_repetitions: true,
            patience: Duration::from_secs(60),
            guard: Box::new(()),
        }
    }

    /// The same, with something that must live as long as engine and store.
    #[must_use]
    pub fn guarded(mut self, guard: impl Any + Send + Sync) -> Self {
        self.guard = Box::new(guard);
        self
    }

    /// The same, with another queue for its tasks.
    #[must_use]
    pub fn on_queue(mut self, queue: impl Into<String>) -> Self {
        self.queue = queue.into();
        self
    }

    /// An execution of this graph that holds a slot and was not started yet.
    pub async fn admit(&self, graph: Graph, params: Value, timeout: Option<Duration>) -> Start {
        self.admit_claimed(VersionBody::Graph(graph), params, timeout)
            .await
            .0
    }

    /// The same for anything that a version can run.
    pub async fn admit_body(&self, body: VersionBody, params: Value) -> Start {
        self.admit_claimed(body, params, None).await.0
    }

    /// Starts an execution of this graph.
    pub async fn start(&self, graph: Graph, params: Value) -> Start {
        self.start_for(graph, params, None).await
    }

    /// Starts an execution of this graph that may take so long.
    pub async fn start_for(&self, graph: Graph, params: Value, timeout: Option<Duration>) -> Start {
        let body = VersionBody::Graph(graph);
        let (start, claim) = self.admit_claimed(body, params, timeout).await;
        assert_eq!(self.engine.start(&start).await, StartOutcome::Started);
        let told = self.store.request_dispatched(OWNER, &[claim]).await;
        let told = told.expect("the store takes note of the start");
        assert!(
            matches!(
                told[..],
                [Dispatched::Dispatched | Dispatched::AlreadyFinished]
            ),
            "{told:?}"
        );
        start
    }

    /// Waits for the end of an execution.
    pub async fn ended(&self, start: &Start) -> (ExecutionEnd, Option<String>) {
        let ended = eventually(self.patience, async || {
            let seen = self.engine.describe(start.execution).await;
            matches!(seen, Ok(Description::Ended { .. }))
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

    /// Waits for the end of an execution, which must be a good one.
    pub async fn completed(&self, start: &Start) {
        assert_eq!(self.ended(start).await, (ExecutionEnd::Completed, None));
    }

    /// Waits for the end of an execution, which must be a failure with this error.
    pub async fn failed(&self, start: &Start, error: &str) {
        let (end, said) = self.ended(start).await;
        assert_eq!((end, said.as_deref()), (ExecutionEnd::Failed, Some(error)));
    }

    /// The nodes of an execution.
    pub async fn nodes(&self, start: &Start) -> Vec<NodeRun> {
        let nodes = self.engine.nodes(start.execution, &start.version.body);
        let nodes = nodes.await.expect("the engine answers");
        nodes.expect("the engine knows the execution")
    }

    /// The node of that id.
    pub async fn node(&self, start: &Start, id: &str) -> NodeRun {
        let nodes = self.nodes(start).await;
        let node = nodes.into_iter().find(|node| node.id == id);
        node.unwrap_or_else(|| panic!("there is no node {id}"))
    }

    /// What a completed node came to.
    pub async fn output(&self, start: &Start, id: &str) -> Value {
        let node = self.node(start, id).await;
        assert_eq!(node.state, NodeState::Completed, "{node:?}");
        output_of(&node)
    }

    /// Where each node is, in the order of the graph's list.
    pub async fn states(&self, start: &Start) -> Vec<NodeState> {
        let nodes = self.nodes(start).await;
        nodes.into_iter().map(|node| node.state).collect()
    }

    /// Waits until that node is there.
    pub async fn in_state(&self, start: &Start, id: &str, state: NodeState) {
        let is_there = eventually(self.patience, async || {
            self.node(start, id).await.state == state
        });
        assert!(is_there.await, "{id} is not {state}");
    }

    /// Waits until a job is in the case's queue, or somebody has it.
    pub async fn queued(&self) {
        let queued = eventually(self.patience, async || {
            let counts = self.store.queue_counts(&self.queue).await;
            counts.is_ok_and(|counts| counts.ready + counts.running > 0)
        });
        assert!(queued.await, "there is no job in {}", self.queue);
    }

    async fn admit_claimed(
        &self,
        body: VersionBody,
        params: Value,
        timeout: Option<Duration>,
    ) -> (Start, ClaimRef) {
        if let VersionBody::Graph(graph) = &body {
            Machine::new(graph.clone()).expect("the case's graph can run");
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
            let _alone = ADMISSION.lock().await;
            self.enqueue(workspace, definition, params).await;
            self.claim().await
        };
        assert_eq!(claimed.workspace, workspace, "nothing else waits");
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
            lease: LEASE,
            lock: None,
        };
        for _ in 0..100 {
            let Ok(ClaimOutcome::Claimed(mut claimed)) = self.store.request_claim(&claim).await
            else {
                panic!("the store does not claim");
            };
            if let Some(request) = claimed.requests.pop() {
                return request;
            }
        }
        panic!("one request can be claimed");
    }
}

/// What a node came to; nothing is null.
pub(crate) fn output_of(node: &NodeRun) -> Value {
    let output = node.output.as_ref();
    output.map_or(Value::Null, |text| text.read().expect("an output is JSON"))
}

//! The environment of a scenario: a real store and a real engine with injectable faults, and helpers to enqueue, read, cancel and wait.

use crate::WAIT_TIMEOUT;
use crate::faulty_engine::FaultyEngine;
use crate::faulty_store::StoreFaults;
use crate::logs;
use crate::temporal::Temporal;
use leasehold_core::breaker::BreakerSettings;
use leasehold_core::{ExecutionId, RequestId, RequestStatus, Timestamp, VersionBody};
use leasehold_engine::Engine;
use leasehold_engine_temporal::{TemporalEngine, TemporalOptions};
use leasehold_runtime::CircuitBreaker;
use leasehold_store::request::{Cancelled, NewRequest, Request};
use leasehold_store::{LayeredStore, ManualClock, Store, fresh_id};
use leasehold_testbed::{
    BackendKind, BackendOptions, TestBackend, TestWorkspace, WorkspaceOptions,
};
use leasehold_testkit::{TestPostgres, TestTemporal, eventually};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

/// Settings of a scenario that differ from the defaults.
#[derive(Default)]
pub(crate) struct Setup {
    /// The store uses a clock that the scenario moves.
    pub(crate) manual_clock: bool,
    /// The address of another Temporal than the shared one, or of a proxy.
    pub(crate) temporal: Option<String>,
    /// The timeout of a call to Temporal, if it matters.
    pub(crate) call_timeout: Option<Duration>,
    /// Host and port of a proxy in front of PostgreSQL.
    pub(crate) postgres: Option<String>,
    /// Disables notifications from other processes.
    pub(crate) no_notifications: bool,
    /// Settings of the circuit breaker.
    pub(crate) breaker: BreakerSettings,
}

/// A store and an engine with injectable faults, and the Temporal server behind the engine.
pub(crate) struct DispatchEnv {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) faults: StoreFaults,
    pub(crate) engine: Arc<FaultyEngine>,
    pub(crate) breaker: Arc<CircuitBreaker>,
    /// The task queue of all definitions of this scenario.
    pub(crate) queue: String,
    pub(crate) temporal: Temporal,
    backend: TestBackend,
}

impl DispatchEnv {
    /// Creates an environment whose store uses the database's clock.
    pub(crate) async fn new(on: BackendKind) -> Self {
        Self::with(on, Setup::default()).await
    }

    /// Creates an environment whose store uses a manual clock.
    pub(crate) async fn with_manual_clock(on: BackendKind) -> Self {
        let setup = Setup {
            manual_clock: true,
            ..Setup::default()
        };
        Self::with(on, setup).await
    }

    pub(crate) async fn with(on: BackendKind, setup: Setup) -> Self {
        logs::capture();
        let options = BackendOptions {
            clock: setup
                .manual_clock
                .then(|| ManualClock::starting_at(Timestamp::now())),
            notify: !setup.no_notifications,
            proxy: setup.postgres,
            readers: 1,
            ..BackendOptions::default()
        };
        let backend = TestBackend::with(on, options).await;
        let address = setup
            .temporal
            .unwrap_or_else(|| TestTemporal::shared().address().to_owned());
        let mut options = TemporalOptions {
            address: address.clone(),
            ..TemporalOptions::default()
        };
        options.call_timeout = setup.call_timeout.unwrap_or(options.call_timeout);
        let queue = format!("queue-{}", fresh_id::<RequestId>());
        let faults = StoreFaults::default();
        Self {
            store: Arc::new(LayeredStore::new(backend.store.clone(), faults.clone())),
            faults,
            engine: Arc::new(FaultyEngine::wrap(Arc::new(
                TemporalEngine::new(options).unwrap(),
            ))),
            breaker: Arc::new(CircuitBreaker::new(setup.breaker)),
            temporal: Temporal::new(address, queue.clone()),
            queue,
            backend,
        }
    }

    /// Connects to another namespace of the shared Temporal.
    pub(crate) fn engine_in(&self, namespace: &str) -> Arc<dyn Engine> {
        let options = TemporalOptions {
            address: TestTemporal::shared().address().to_owned(),
            namespace: namespace.to_owned(),
            ..TemporalOptions::default()
        };
        Arc::new(TemporalEngine::new(options).unwrap())
    }

    /// Creates another store on the same PostgreSQL database, without faults.
    pub(crate) fn second_store(&self) -> Arc<dyn Store> {
        self.backend.second_store()
    }

    /// Moves the store's clock.
    pub(crate) fn advance(&self, by: Duration) {
        self.backend.advance(by);
    }

    /// Moves the store's clock past every backoff and lease, but not past the expiry of locks.
    pub(crate) fn pass_backoffs(&self) {
        self.advance(Duration::from_secs(600));
    }

    /// Creates a workspace with `limit` slots and a definition bound to the scenario's task queue.
    pub(crate) async fn workspace(&self, limit: u32) -> TestWorkspace {
        let options = WorkspaceOptions {
            limit: Some(limit),
            body: self.body(),
            ..WorkspaceOptions::default()
        };
        TestWorkspace::with(&*self.store, options).await
    }

    /// Returns the version body of every definition of the scenario.
    pub(crate) fn body(&self) -> VersionBody {
        VersionBody::Binding {
            workflow_type: "Order".to_owned(),
            task_queue: self.queue.clone(),
        }
    }

    /// Enqueues `n` requests, oldest first.
    pub(crate) async fn enqueue(&self, workspace: &TestWorkspace, n: usize) -> Vec<RequestId> {
        self.enqueue_with(workspace, n, |_| {}).await
    }

    pub(crate) async fn enqueue_one(&self, workspace: &TestWorkspace) -> RequestId {
        self.enqueue(workspace, 1).await[0]
    }

    /// Enqueues `n` requests after applying `change` to each.
    pub(crate) async fn enqueue_with(
        &self,
        workspace: &TestWorkspace,
        n: usize,
        change: impl Fn(&mut NewRequest),
    ) -> Vec<RequestId> {
        enqueue(&*self.store, workspace, n, change).await
    }

    pub(crate) async fn get(&self, workspace: &TestWorkspace, id: RequestId) -> Request {
        workspace.get(&*self.store, id).await
    }

    pub(crate) async fn status(&self, workspace: &TestWorkspace, id: RequestId) -> RequestStatus {
        self.get(workspace, id).await.status.known().unwrap()
    }

    /// Returns the current execution of a request.
    pub(crate) async fn execution(&self, workspace: &TestWorkspace, id: RequestId) -> ExecutionId {
        self.get(workspace, id).await.execution.unwrap()
    }

    /// Returns how many slots of the workspace are in use.
    pub(crate) async fn in_use(&self, workspace: &TestWorkspace) -> u32 {
        workspace.slots(&*self.store).await.in_use
    }

    /// Returns the statuses a request went through.
    pub(crate) async fn path(
        &self,
        workspace: &TestWorkspace,
        id: RequestId,
    ) -> Vec<RequestStatus> {
        let events = workspace.timeline(&*self.store, id).await;
        let statuses = events.iter().map(|event| event.to.known());
        statuses.map(Option::unwrap).collect()
    }

    pub(crate) async fn set_limit(&self, workspace: &TestWorkspace, limit: u32) {
        workspace.set_limit(&*self.store, limit).await;
    }

    pub(crate) async fn cancel(
        &self,
        workspace: &TestWorkspace,
        request: RequestId,
        force: bool,
    ) -> Cancelled {
        workspace.cancel(&*self.store, request, force).await
    }

    /// Waits until all these requests are in that status.
    pub(crate) async fn until_all(
        &self,
        workspace: &TestWorkspace,
        ids: &[RequestId],
        status: RequestStatus,
    ) {
        let all = async || {
            for id in ids {
                if self.status(workspace, *id).await != status {
                    return false;
                }
            }
            true
        };
        until(&format!("all are {status}"), all).await;
    }

    /// Asserts that Temporal ran each of these executions exactly once, and nothing else from this scenario.
    pub(crate) async fn assert_one_run_each(&self, mut executions: Vec<ExecutionId>) {
        let listed = async || self.temporal.runs().await.len() >= executions.len();
        until("Temporal lists what was started", listed).await;
        let runs = self.temporal.runs().await;
        for run in &runs {
            let latest = self.temporal.latest_run(&run.workflow_id).await;
            assert_eq!(latest, run.run_id, "{} ran again", run.workflow_id);
        }
        let mut seen: Vec<String> = runs.into_iter().map(|run| run.workflow_id).collect();
        seen.sort();
        executions.sort();
        let ids = executions.iter().map(|id| format!("execution-{id}"));
        assert_eq!(seen, ids.collect::<Vec<_>>());
    }

    /// Creates another store on the same database, as another process has it.
    pub(crate) fn other_process(&self) -> Arc<dyn Store> {
        leasehold_testbed::postgres::store(self.backend.database().url())
    }

    /// Returns the path of the SQLite file, for a second connection.
    pub(crate) fn file(&self) -> std::path::PathBuf {
        self.backend.file()
    }

    /// Opens a plain connection to the database.
    pub(crate) async fn sql_client(&self) -> tokio_postgres::Client {
        let url = self.backend.database().url_in("leasehold");
        let connected = tokio_postgres::connect(&url, tokio_postgres::NoTls).await;
        let (client, connection) = connected.unwrap();
        tokio::spawn(connection);
        client
    }
}

/// Enqueues through any store.
pub(crate) async fn enqueue(
    store: &dyn Store,
    workspace: &TestWorkspace,
    n: usize,
    change: impl Fn(&mut NewRequest),
) -> Vec<RequestId> {
    let new = |number| {
        let mut new = workspace.request_with(json!({"number": number}));
        change(&mut new);
        new
    };
    workspace.enqueue(store, (0..n).map(new).collect()).await
}

/// Waits until `check` returns true.
pub(crate) async fn until(what: &str, check: impl AsyncFn() -> bool) {
    let seen = eventually(WAIT_TIMEOUT, || check()).await;
    assert!(
        seen,
        "timed out waiting until {what}; logged:\n{}",
        logs::all()
    );
}

/// Returns `host:port` of the PostgreSQL server, for a proxy in front of it.
pub(crate) fn postgres_address() -> String {
    leasehold_testbed::postgres::server_of(TestPostgres::shared().url()).to_owned()
}

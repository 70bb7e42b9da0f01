//! A real store and a real engine with faults in front of them, and what scenarios do with them: enqueue, read, cancel, wait.

use crate::PATIENCE;
use crate::faulty_engine::FaultyEngine;
use crate::faulty_store::StoreFaults;
use crate::logs;
use crate::temporal::Temporal;
use leasehold_core::breaker::BreakerSettings;
use leasehold_core::{ExecutionId, RequestId, RequestStatus, Timestamp, VersionBody};
use leasehold_engine_temporal::{TemporalEngine, TemporalOptions};
use leasehold_runtime::Gate;
use leasehold_store::request::{Cancelled, NewRequest, Request};
use leasehold_store::{LayeredStore, ManualClock, Store, fresh_id};
use leasehold_testbed::{
    BackendKind, BackendOptions, TestBackend, TestWorkspace, WorkspaceOptions,
};
use leasehold_testkit::{TestPostgres, TestTemporal, eventually};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

/// What a scenario wants otherwise than usual.
#[derive(Default)]
pub(crate) struct Setup {
    /// The store judges by a clock that the scenario moves.
    pub(crate) own_clock: bool,
    /// Another Temporal than the one all share, or a proxy before it.
    pub(crate) temporal: Option<String>,
    /// How long a call to Temporal may take, if it matters.
    pub(crate) call_timeout: Option<Duration>,
    /// PostgreSQL's host and port, if there is a proxy before it.
    pub(crate) postgres: Option<String>,
    /// No listening for what other processes do.
    pub(crate) deaf: bool,
    /// When the engine counts as down.
    pub(crate) breaker: BreakerSettings,
}

/// A store and an engine with faults in front of them, and Temporal as the engine sees it.
pub(crate) struct DispatchEnv {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) faults: StoreFaults,
    pub(crate) engine: Arc<FaultyEngine>,
    pub(crate) gate: Arc<Gate>,
    /// The task queue of all its definitions; no other scenario's.
    pub(crate) queue: String,
    pub(crate) temporal: Temporal,
    backend: TestBackend,
}

impl DispatchEnv {
    /// With a store that judges by the database's clock.
    pub(crate) async fn new(on: BackendKind) -> Self {
        Self::with(on, Setup::default()).await
    }

    /// With a store whose clock stands still until it is moved.
    pub(crate) async fn still(on: BackendKind) -> Self {
        let setup = Setup {
            own_clock: true,
            ..Setup::default()
        };
        Self::with(on, setup).await
    }

    pub(crate) async fn with(on: BackendKind, setup: Setup) -> Self {
        logs::keep();
        let options = BackendOptions {
            clock: setup
                .own_clock
                .then(|| ManualClock::starting_at(Timestamp::now())),
            connect_timeout: Duration::from_secs(2),
            notify: !setup.deaf,
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
            engine: Arc::new(FaultyEngine::before(Arc::new(
                TemporalEngine::new(options).unwrap(),
            ))),
            gate: Arc::new(Gate::new(setup.breaker)),
            temporal: Temporal::new(address, queue.clone()),
            queue,
            backend,
        }
    }

    /// Another store on the same PostgreSQL database, without faults.
    pub(crate) fn another_store(&self) -> Arc<dyn Store> {
        self.backend.another_store()
    }

    /// Moves the store's clock.
    pub(crate) fn advance(&self, by: Duration) {
        self.backend.advance(by);
    }

    /// Moves the store's clock past every backoff and lease, not past a lock's end.
    pub(crate) fn wait_out(&self) {
        self.advance(Duration::from_secs(600));
    }

    /// A workspace with `limit` slots and a definition bound to the scenario's task queue.
    pub(crate) async fn site(&self, limit: u32) -> TestWorkspace {
        let options = WorkspaceOptions {
            limit: Some(limit),
            body: self.body(),
            ..WorkspaceOptions::default()
        };
        TestWorkspace::with(&*self.store, options).await
    }

    /// What every definition of the scenario runs.
    pub(crate) fn body(&self) -> VersionBody {
        VersionBody::Binding {
            workflow_type: "Order".to_owned(),
            task_queue: self.queue.clone(),
        }
    }

    /// Enqueues `n` requests, oldest first.
    pub(crate) async fn enqueue(&self, site: &TestWorkspace, n: usize) -> Vec<RequestId> {
        self.enqueue_with(site, n, |_| {}).await
    }

    pub(crate) async fn enqueue_one(&self, site: &TestWorkspace) -> RequestId {
        self.enqueue(site, 1).await[0]
    }

    /// Enqueues `n` requests that are changed first.
    pub(crate) async fn enqueue_with(
        &self,
        site: &TestWorkspace,
        n: usize,
        change: impl Fn(&mut NewRequest),
    ) -> Vec<RequestId> {
        enqueue(&*self.store, site, n, change).await
    }

    pub(crate) async fn get(&self, site: &TestWorkspace, id: RequestId) -> Request {
        site.get(&*self.store, id).await
    }

    pub(crate) async fn status(&self, site: &TestWorkspace, id: RequestId) -> RequestStatus {
        self.get(site, id).await.status
    }

    /// The execution that a request has now.
    pub(crate) async fn execution(&self, site: &TestWorkspace, id: RequestId) -> ExecutionId {
        self.get(site, id).await.execution.unwrap()
    }

    /// How many slots of the workspace are in use.
    pub(crate) async fn in_use(&self, site: &TestWorkspace) -> u32 {
        site.slots(&*self.store).await.in_use
    }

    /// The statuses a request went through.
    pub(crate) async fn path(&self, site: &TestWorkspace, id: RequestId) -> Vec<RequestStatus> {
        let events = site.timeline(&*self.store, id).await;
        events.iter().map(|event| event.to).collect()
    }

    pub(crate) async fn set_limit(&self, site: &TestWorkspace, limit: u32) {
        site.set_limit(&*self.store, limit).await;
    }

    pub(crate) async fn cancel(
        &self,
        site: &TestWorkspace,
        request: RequestId,
        force: bool,
    ) -> Cancelled {
        site.cancel(&*self.store, request, force).await
    }

    /// Waits until all these requests are in that status.
    pub(crate) async fn until_all(
        &self,
        site: &TestWorkspace,
        ids: &[RequestId],
        status: RequestStatus,
    ) {
        let all = async || {
            for id in ids {
                if self.status(site, *id).await != status {
                    return false;
                }
            }
            true
        };
        until(&format!("all are {status}"), all).await;
    }

    /// Asserts that Temporal has had exactly one run for each of these executions, and nothing else from this scenario.
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

    /// Another store on the same database, as another process has it.
    pub(crate) fn other_process(&self) -> Arc<dyn Store> {
        leasehold_testbed::postgres::store(self.backend.database().url())
    }

    /// The SQLite file, for a second connection to it.
    pub(crate) fn file(&self) -> std::path::PathBuf {
        self.backend.file()
    }

    /// Does something by hand in the database.
    pub(crate) async fn by_hand(&self) -> tokio_postgres::Client {
        let url = self.backend.database().url();
        let connected = tokio_postgres::connect(url, tokio_postgres::NoTls).await;
        let (client, connection) = connected.unwrap();
        tokio::spawn(connection);
        client
    }
}

/// Enqueues through any store.
pub(crate) async fn enqueue(
    store: &dyn Store,
    site: &TestWorkspace,
    n: usize,
    change: impl Fn(&mut NewRequest),
) -> Vec<RequestId> {
    let new = |number| {
        let mut new = site.request_with(json!({"number": number}));
        change(&mut new);
        new
    };
    site.enqueue(store, (0..n).map(new).collect()).await
}

/// Waits until it is so.
pub(crate) async fn until(what: &str, check: impl AsyncFn() -> bool) {
    let seen = eventually(PATIENCE, || check()).await;
    assert!(
        seen,
        "in vain waited until {what}; logged:\n{}",
        logs::all()
    );
}

/// `host:port` of the PostgreSQL server, for a proxy in front of it.
pub(crate) fn postgres_address() -> String {
    leasehold_testbed::postgres::server_of(TestPostgres::shared().url()).to_owned()
}

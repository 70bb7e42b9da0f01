//! What every scenario has: a real store and a real engine with faults before them, and short words for what is done with them.

use crate::PATIENCE;
use crate::faulty_engine::FaultyEngine;
use crate::faulty_store::FaultyStore;
use crate::logs;
use crate::temporal::Temporal;
use leasehold_core::breaker::BreakerSettings;
use leasehold_core::{
    DefinitionId, ExecutionId, Plan, RequestId, RequestStatus, Timestamp, VersionBody, VersionId,
    WorkspaceId,
};
use leasehold_engine_temporal::{TemporalEngine, TemporalOptions};
use leasehold_runtime::Gate;
use leasehold_store::definition::{NewDefinition, NewVersion};
use leasehold_store::request::{Cancel, Cancelled, Enqueue, Enqueued, NewRequest, Request};
use leasehold_store::workspace::{NewWorkspace, WorkspaceChange};
use leasehold_store::{Clock, ManualClock, Store, fresh_id};
use leasehold_store_postgres::{MIGRATIONS, PostgresOptions, PostgresStore};
use leasehold_store_sqlite::{SqliteOptions, SqliteStore};
use leasehold_testkit::{TempDir, TestDatabase, TestPostgres, TestTemporal, eventually, temp_dir};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

/// Which store a scenario runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum On {
    Postgres,
    Sqlite,
}

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

/// A workspace with one published definition.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Site {
    pub(crate) workspace: WorkspaceId,
    pub(crate) definition: DefinitionId,
    pub(crate) version: VersionId,
}

pub(crate) struct Scene {
    pub(crate) store: Arc<FaultyStore>,
    pub(crate) engine: Arc<FaultyEngine>,
    pub(crate) gate: Arc<Gate>,
    /// The task queue of all its definitions; no other scenario's.
    pub(crate) queue: String,
    pub(crate) temporal: Temporal,
    /// The database, on PostgreSQL.
    pub(crate) database: Option<TestDatabase>,
    clock: Option<ManualClock>,
    folder: Option<TempDir>,
}

impl Scene {
    /// A scene that judges by the database's clock.
    pub(crate) async fn new(on: On) -> Self {
        Self::with(on, Setup::default()).await
    }

    /// A scene whose clock stands still until it is moved.
    pub(crate) async fn still(on: On) -> Self {
        let setup = Setup {
            own_clock: true,
            ..Setup::default()
        };
        Self::with(on, setup).await
    }

    pub(crate) async fn with(on: On, setup: Setup) -> Self {
        logs::keep();
        let clock = setup
            .own_clock
            .then(|| ManualClock::starting_at(Timestamp::now()));
        let judge = clock.clone().map_or(Clock::Database, Clock::Manual);
        let (store, database, folder): (Arc<dyn Store>, _, _) = match on {
            On::Postgres => {
                let database = database().await;
                let store = postgres(&database, &setup, judge);
                (Arc::new(store), Some(database), None)
            }
            On::Sqlite => {
                let folder = temp_dir();
                (Arc::new(sqlite(&folder, judge).await), None, Some(folder))
            }
        };
        let address = setup
            .temporal
            .unwrap_or_else(|| TestTemporal::shared().address().to_owned());
        let mut options = TemporalOptions {
            address: address.clone(),
            ..TemporalOptions::default()
        };
        options.call_timeout = setup.call_timeout.unwrap_or(options.call_timeout);
        let queue = format!("queue-{}", fresh_id::<RequestId>());
        Self {
            store: Arc::new(FaultyStore::before(store)),
            engine: Arc::new(FaultyEngine::before(Arc::new(
                TemporalEngine::new(options).unwrap(),
            ))),
            gate: Arc::new(Gate::new(setup.breaker)),
            temporal: Temporal::new(address, queue.clone()),
            queue,
            database,
            clock,
            folder,
        }
    }

    /// Moves the store's clock.
    pub(crate) fn advance(&self, by: Duration) {
        self.clock.as_ref().unwrap().advance(by);
    }

    /// Moves the store's clock past every backoff and lease, not past a lock's end.
    pub(crate) fn wait_out(&self) {
        self.advance(Duration::from_secs(600));
    }

    /// A workspace with `limit` slots and a definition bound to the scene's task queue.
    pub(crate) async fn site(&self, limit: u32) -> Site {
        let workspace = fresh_id();
        let new = NewWorkspace {
            id: workspace,
            name: format!("workspace {workspace}"),
            plan: Plan::Free,
            limit_override: Some(limit),
        };
        self.store.workspace_create(&new).await.unwrap();
        let definition = fresh_id();
        let new = NewDefinition {
            id: definition,
            workspace,
            name: "order".to_owned(),
        };
        self.store.definition_create(&new).await.unwrap();
        let version = NewVersion {
            id: fresh_id(),
            workspace,
            definition,
            body: self.body(),
            params_schema: None,
            execution_timeout: None,
        };
        let published = self.store.version_publish(&version).await.unwrap();
        Site {
            workspace,
            definition,
            version: published.unwrap().id,
        }
    }

    /// What every definition of the scene runs.
    pub(crate) fn body(&self) -> VersionBody {
        VersionBody::Binding {
            workflow_type: "Order".to_owned(),
            task_queue: self.queue.clone(),
        }
    }

    /// Enqueues `n` requests, oldest first.
    pub(crate) async fn enqueue(&self, site: &Site, n: usize) -> Vec<RequestId> {
        self.enqueue_with(site, n, |_| {}).await
    }

    pub(crate) async fn enqueue_one(&self, site: &Site) -> RequestId {
        self.enqueue(site, 1).await[0]
    }

    /// Enqueues `n` requests that are changed first.
    pub(crate) async fn enqueue_with(
        &self,
        site: &Site,
        n: usize,
        change: impl Fn(&mut NewRequest),
    ) -> Vec<RequestId> {
        enqueue(&*self.store, site, n, change).await
    }

    pub(crate) async fn get(&self, site: &Site, id: RequestId) -> Request {
        let found = self.store.request_get(site.workspace, id).await.unwrap();
        found.unwrap()
    }

    pub(crate) async fn status(&self, site: &Site, id: RequestId) -> RequestStatus {
        self.get(site, id).await.status
    }

    /// The execution that a request has now.
    pub(crate) async fn execution(&self, site: &Site, id: RequestId) -> ExecutionId {
        self.get(site, id).await.execution.unwrap()
    }

    /// How many slots of the workspace are in use.
    pub(crate) async fn in_use(&self, site: &Site) -> u32 {
        let slots = self.store.workspace_slots(site.workspace).await.unwrap();
        slots.unwrap().in_use
    }

    /// The statuses a request went through.
    pub(crate) async fn path(&self, site: &Site, id: RequestId) -> Vec<RequestStatus> {
        let events = self.store.request_timeline(site.workspace, id).await;
        events.unwrap().iter().map(|event| event.to).collect()
    }

    pub(crate) async fn set_limit(&self, site: &Site, limit: u32) {
        let change = WorkspaceChange {
            limit_override: Some(Some(limit)),
            ..WorkspaceChange::default()
        };
        let updated = self.store.workspace_update(site.workspace, &change).await;
        assert!(updated.unwrap().is_some());
    }

    pub(crate) async fn cancel(&self, site: &Site, request: RequestId, force: bool) -> Cancelled {
        let cancel = Cancel {
            workspace: site.workspace,
            request,
            force,
            by: "user".to_owned(),
        };
        self.store.request_cancel(&cancel).await.unwrap()
    }

    /// Waits until all these requests are in that status.
    pub(crate) async fn until_all(&self, site: &Site, ids: &[RequestId], status: RequestStatus) {
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

    /// Asserts that Temporal has had exactly one run for each of these executions, and nothing else from this scene.
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
    pub(crate) fn other_process(&self) -> PostgresStore {
        let database = self.database.as_ref().unwrap();
        postgres(database, &Setup::default(), Clock::Database)
    }

    /// The SQLite file, for a second connection to it.
    pub(crate) fn file(&self) -> std::path::PathBuf {
        self.folder.as_ref().unwrap().path().join("leasehold.db")
    }

    /// Does something by hand in the database.
    pub(crate) async fn by_hand(&self) -> tokio_postgres::Client {
        let url = self.database.as_ref().unwrap().url();
        let connected = tokio_postgres::connect(url, tokio_postgres::NoTls).await;
        let (client, connection) = connected.unwrap();
        tokio::spawn(connection);
        client
    }
}

/// Enqueues through any store.
pub(crate) async fn enqueue(
    store: &dyn Store,
    site: &Site,
    n: usize,
    change: impl Fn(&mut NewRequest),
) -> Vec<RequestId> {
    let new = |number| {
        let mut new = NewRequest::new(fresh_id(), site.definition, json!({"number": number}));
        change(&mut new);
        new
    };
    let call = Enqueue {
        workspace: site.workspace,
        requests: (0..n).map(new).collect(),
        by: "user".to_owned(),
    };
    match store.request_enqueue(&call).await.unwrap() {
        Enqueued::All(all) => all.into_iter().map(|request| request.id).collect(),
        other => panic!("not enqueued: {other:?}"),
    }
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

/// A database made from the migrated template.
async fn database() -> TestDatabase {
    let server = TestPostgres::shared();
    let hash = MIGRATIONS
        .iter()
        .fold(0i64, |hash, m| hash.rotate_left(7) ^ m.checksum());
    let name = format!("leasehold_{:016x}", hash.cast_unsigned());
    let template = server.template_database(&name, |url| async move {
        let store = PostgresStore::new(&PostgresOptions::new(url)).unwrap();
        store.schema_migrate().await.unwrap();
    });
    server.fresh_database(Some(&template.await)).await
}

/// `host:port` of the PostgreSQL server, for a proxy to stand before.
pub(crate) fn postgres_address() -> String {
    let url = TestPostgres::shared().url();
    let authority = url.split("://").nth(1).unwrap();
    let authority = authority.split(['/', '?']).next().unwrap();
    authority.rsplit('@').next().unwrap().to_owned()
}

fn postgres(database: &TestDatabase, setup: &Setup, clock: Clock) -> PostgresStore {
    let url = match &setup.postgres {
        Some(proxy) => database.url().replace(&postgres_address(), proxy),
        None => database.url().to_owned(),
    };
    let options = PostgresOptions {
        clock,
        notify: !setup.deaf,
        max_connections: 6,
        connect_timeout: Duration::from_secs(2),
        ..PostgresOptions::new(url)
    };
    PostgresStore::new(&options).unwrap()
}

async fn sqlite(folder: &TempDir, clock: Clock) -> SqliteStore {
    let options = SqliteOptions {
        clock,
        readers: 1,
        ..SqliteOptions::default()
    };
    let store = SqliteStore::open(folder.path().join("leasehold.db"), &options).unwrap();
    store.schema_migrate().await.unwrap();
    store
}

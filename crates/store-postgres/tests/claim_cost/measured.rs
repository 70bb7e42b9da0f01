//! A database filled for one measurement, and the measurement. Does not compare.

use crate::{explain, support};
use leasehold_core::{ExecutionEnd, ExecutionId};
use leasehold_store::execution::{ExecutionFinish, ExecutionFinished, ExecutionStore};
use leasehold_store::fresh_id;
use leasehold_store::request::{Claim, ClaimOutcome, RequestStore};
use leasehold_store::sql::expand;
use leasehold_store_postgres::INCLUDES;
use leasehold_store_postgres::{PostgresOptions, PostgresStore};
use leasehold_testkit::TestDatabase;
use serde_json::Value;
use std::cell::Cell;
use std::time::Duration;
use tokio_postgres::{Client, NoTls};

const BATCH: usize = 100;
const WARM_UP: usize = 2;
const MEASURED: usize = 5;

const CLAIM: &str = include_str!("../../sql/request/claim.sql");
const CONFIGURE: &str = include_str!("../../sql/session/configure.sql");
const NO_AUTOVACUUM: &str = include_str!("../sql/claim_cost_no_autovacuum.sql");
const FILL_WORKSPACES: &str = include_str!("../sql/claim_cost_fill_workspaces.sql");
const FILL_REQUESTS: &str = include_str!("../sql/claim_cost_fill_requests.sql");
const SETTLE: &str = include_str!("../sql/claim_cost_settle.sql");
const PREPARE: &str = include_str!("../sql/claim_cost_prepare.sql");
const EXPLAIN: &str = include_str!("../sql/claim_cost_explain.sql");
const TOUCHED: &str = include_str!("../sql/claim_cost_touched.sql");
const SNAPSHOT: &str = include_str!("../sql/claim_cost_snapshot.sql");

/// Workspaces to create.
#[derive(Clone, Copy)]
pub(crate) struct WorkspaceSet {
    first: i64,
    count: i64,
    limit: i32,
    paused: bool,
}

impl WorkspaceSet {
    pub(crate) fn new(count: i64, limit: i32) -> Self {
        Self {
            first: 0,
            count,
            limit,
            paused: false,
        }
    }

    /// Skips the first `count` workspaces.
    pub(crate) fn after(self, count: i64) -> Self {
        Self {
            first: count,
            ..self
        }
    }

    pub(crate) fn paused(self) -> Self {
        Self {
            paused: true,
            ..self
        }
    }
}

/// What requests wait for, and in which workspaces.
#[derive(Clone, Copy)]
pub(crate) struct Waiting {
    first: i64,
    workspaces: i64,
    seconds: i64,
    refusals: i32,
}

impl Waiting {
    pub(crate) fn in_line(workspaces: i64) -> Self {
        Self {
            first: 0,
            workspaces,
            seconds: 0,
            refusals: 0,
        }
    }

    pub(crate) fn not_due(workspaces: i64) -> Self {
        Self {
            seconds: 86_400,
            ..Self::in_line(workspaces)
        }
    }

    pub(crate) fn backing_off(workspaces: i64) -> Self {
        Self {
            refusals: 3,
            seconds: 3_600,
            ..Self::in_line(workspaces)
        }
    }

    /// Skips the first `count` workspaces.
    pub(crate) fn after(self, count: i64) -> Self {
        Self {
            first: count,
            ..self
        }
    }
}

/// Buffers per admitted request.
#[derive(Clone, Copy)]
pub(crate) struct Cost {
    /// Of the claim statement itself, according to EXPLAIN.
    pub(crate) statement: f64,
    /// Including triggers, according to the statistics of the tables.
    pub(crate) whole: f64,
    /// Of the most expensive claim, including triggers.
    pub(crate) worst: f64,
}

/// A separate database whose claims are measured.
pub(crate) struct MeasuredDatabase {
    store: PostgresStore,
    client: Client,
    database: TestDatabase,
    /// The number of the next request; ids are derived from it.
    next_number: Cell<i64>,
}

impl MeasuredDatabase {
    pub(crate) async fn new() -> Self {
        let database = support::database().await;
        let store = PostgresStore::new(&PostgresOptions::new(database.url())).unwrap();
        let client = connect(&database).await;
        client.batch_execute(NO_AUTOVACUUM).await.unwrap();
        client.execute(CONFIGURE, &[&false, &"2s"]).await.unwrap();
        client
            .batch_execute(&PREPARE.replace("{claim}", &expand(CLAIM, INCLUDES)))
            .await
            .unwrap();
        Self {
            store,
            client,
            database,
            next_number: Cell::new(0),
        }
    }

    pub(crate) async fn create_workspaces(&self, set: WorkspaceSet) {
        let last = set.first + set.count - 1;
        self.client
            .execute(
                FILL_WORKSPACES,
                &[&set.first, &last, &set.limit, &set.paused],
            )
            .await
            .unwrap();
    }

    /// Inserts requests on two connections: filling takes most of a test's time.
    pub(crate) async fn requests(&self, count: i64, waiting: Waiting) {
        let other = connect(&self.database).await;
        let half = count / 2;
        let first = self.next_number.get();
        self.next_number.set(first + count);
        tokio::join!(
            fill(&self.client, half, first, waiting),
            fill(&other, count - half, first + half, waiting),
        );
    }

    /// Folds and analyzes the inserted rows.
    pub(crate) async fn fold_and_analyze(&self) {
        self.client.batch_execute(SETTLE).await.unwrap();
    }

    /// Returns the median of a few full claims, whose executions finish after each claim or never.
    pub(crate) async fn cost(&self, finishing: bool) -> Cost {
        let (mut statement, mut whole) = (Vec::new(), Vec::new());
        for turn in 0..WARM_UP + MEASURED {
            self.store.request_promote_due().await.unwrap();
            let executions: Vec<ExecutionId> = (0..BATCH).map(|_| fresh_id()).collect();
            self.client.batch_execute("BEGIN").await.unwrap();
            let before = self.touched().await;
            let explained = explain::read(&self.claim(&executions).await);
            let after = self.touched().await;
            self.client.batch_execute("COMMIT").await.unwrap();
            if finishing {
                self.finish(executions).await;
            }
            assert_eq!(
                explained.rows, BATCH as u64,
                "claim {turn} must be full, so that measurements are comparable"
            );
            if turn >= WARM_UP {
                statement.push(explained.buffers as f64 / BATCH as f64);
                whole.push((after - before) as f64 / BATCH as f64);
            }
        }
        statement.sort_by(f64::total_cmp);
        whole.sort_by(f64::total_cmp);
        Cost {
            statement: statement[MEASURED / 2],
            whole: whole[MEASURED / 2],
            worst: whole[MEASURED - 1],
        }
    }

    /// Admits this many requests through the store, and finishes each batch before the next if `finishing`.
    pub(crate) async fn admit(&self, count: usize, finishing: bool) {
        let mut admitted = 0;
        while admitted < count {
            let claim = Claim {
                owner: "claimer".to_owned(),
                batch: u32::try_from(BATCH.min(count - admitted)).unwrap(),
                kept_max: None,
                lease: Duration::from_secs(15),
                lock: None,
            };
            let outcome = self.store.request_claim(&claim).await.unwrap();
            let ClaimOutcome::Claimed(claimed) = outcome else {
                panic!("the claim named no lock");
            };
            assert!(!claimed.requests.is_empty(), "after {admitted}");
            admitted += claimed.requests.len();
            if finishing {
                let executions = claimed.requests.iter().map(|request| request.execution);
                self.finish(executions.collect()).await;
            }
        }
    }

    async fn finish(&self, executions: Vec<ExecutionId>) {
        let finishes: Vec<_> = executions
            .into_iter()
            .map(|execution| ExecutionFinish {
                execution,
                end: ExecutionEnd::Completed,
                error: None,
            })
            .collect();
        let done = self.store.execution_finish("engine", &finishes).await;
        let ended =
            |finished: &ExecutionFinished| matches!(finished, ExecutionFinished::Finished { .. });
        assert!(done.unwrap().iter().all(ended));
    }

    /// Returns a connection that holds a snapshot until it is dropped.
    pub(crate) async fn snapshot(&self) -> Client {
        let client = connect(&self.database).await;
        client.batch_execute(SNAPSHOT).await.unwrap();
        client
    }

    async fn claim(&self, executions: &[ExecutionId]) -> Value {
        let ids: Vec<String> = executions.iter().map(ToString::to_string).collect();
        let statement = EXPLAIN
            .replace("{batch}", &BATCH.to_string())
            .replace("{executions}", &format!("{{{}}}", ids.join(",")));
        self.client.query_one(&statement, &[]).await.unwrap().get(0)
    }

    /// Returns the buffers touched so far, for a difference within one transaction. Reading them is not counted.
    async fn touched(&self) -> i64 {
        self.client.query_one(TOUCHED, &[]).await.unwrap().get(0)
    }
}

async fn fill(client: &Client, count: i64, first: i64, waiting: Waiting) {
    client
        .execute(
            FILL_REQUESTS,
            &[
                &count,
                &first,
                &waiting.first,
                &waiting.workspaces,
                &waiting.seconds,
                &waiting.refusals,
            ],
        )
        .await
        .unwrap();
}

async fn connect(database: &TestDatabase) -> Client {
    let (client, connection) = tokio_postgres::connect(&database.url_in("leasehold"), NoTls)
        .await
        .unwrap();
    tokio::spawn(connection);
    client
}

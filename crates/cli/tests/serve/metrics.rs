//! Metrics change as documented: scrapes before and after each scenario.

use crate::database::{self, server_of};
use crate::order_workspace::OrderWorkspace;
use crate::program::{self, Program};
use crate::scrape::{Scrape, ScrapeTarget, moves};
use crate::temporal::Namespace;
use leasehold_testkit::{FaultProxy, TestDatabase};
use serde_json::json;
use tokio_postgres::NoTls;

const STEAL_LOCK: &str = include_str!("sql/steal_lock.sql");
const RETURN_LOCK: &str = include_str!("sql/return_lock.sql");

/// Metrics of requests, leases and locks. Excludes those that change by themselves: cycles, renewals, calls and durations.
const WATCHED: &[&str] = &[
    "queue_processing_batch_size_count",
    "queue_processing_batch_size_sum",
    "queue_processing_duration_seconds_count",
    "queue_items_dispatched_total",
    "queue_items_at_capacity_total",
    "queue_items_failed_total",
    "queue_stale_recovery_count",
    "leasehold_dispatch_failures_total",
    "leasehold_dispatch_attempts_count",
    "leasehold_dispatch_attempts_sum",
    "leasehold_requests_enqueued_total",
    "leasehold_requests_finished_total",
    "leasehold_request_wait_seconds_count",
    "leasehold_workspace_wait_seconds_count",
    "leasehold_lease_losses_total",
    "leasehold_lease_expiries_total",
    "leasehold_lock_losses_total",
    "leasehold_capacity_drift_repaired_total",
    "capacity_drift",
];

/// A process on PostgreSQL and Temporal.
struct MetricsEnv {
    database: TestDatabase,
    namespace: Namespace<'static>,
    workspace: OrderWorkspace,
    serve: leasehold_testkit::Process,
    scraped: ScrapeTarget,
}

impl MetricsEnv {
    async fn new(limit: u32) -> Self {
        Self::with(limit, |program| program).await
    }

    async fn with(limit: u32, set: impl FnOnce(Program) -> Program) -> Self {
        let database = database::fresh().await;
        let namespace = Namespace::fresh();
        let program = Program::new(database.url(), namespace.address(), &namespace.name).quick();
        let program = set(program.set("sweep.interval", "1h"));
        let serve = program.start();
        let workspace = OrderWorkspace::new(database::store(database.url()), limit).await;
        let scraped = ScrapeTarget::new(&program, &serve);
        scraped
            .until("working", |now| {
                let held = "leasehold_lock_held{lock=\"processExecutionQueue\"}";
                now.value(held) > 0.0
            })
            .await;
        Self {
            database,
            namespace,
            workspace,
            serve,
            scraped,
        }
    }

    /// Enqueues one order per params, in one call.
    async fn enqueue(&self, params: &[serde_json::Value]) {
        let definition = self.workspace.order.definition;
        let requests = params.iter();
        let requests = requests.map(|params| json!({"definition": definition, "params": params}));
        let body = json!({"requests": requests.collect::<Vec<_>>()});
        let path = format!("/v1/workspaces/{}/requests/batch", self.workspace.workspace);
        self.scraped.post(&path, &body).await;
    }

    /// The name of a series of the workspace.
    fn of_workspace(&self, name: &str) -> String {
        format!(
            "{name}{{workspace=\"workspace {}\"}}",
            self.workspace.workspace
        )
    }
}

fn wait() -> serde_json::Value {
    json!({"do": "wait"})
}

/// Asserts the gauges with three running executions.
fn assert_gauges(env: &MetricsEnv, started: &Scrape) {
    assert_eq!(started.of("leasehold_requests{status=\"dispatched\"}"), 3.0);
    assert_eq!(
        started.of(&env.of_workspace("leasehold_workspace_slots_in_use")),
        3.0
    );
    assert_eq!(
        started.of(&env.of_workspace("leasehold_workspace_slots")),
        100.0
    );
    for (series, value) in [
        ("leasehold_store_up", 1.0),
        ("leasehold_engine_up", 1.0),
        ("leasehold_engine_breaker{status=\"closed\"}", 1.0),
        ("leasehold_engine_breaker{status=\"open\"}", 0.0),
        ("leasehold_requests_start_failing", 0.0),
        ("leasehold_engine_allowance", 64.0),
        ("leasehold_workspaces", 1.0),
    ] {
        assert_eq!(started.of(series), value, "{series}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn three_requests_change_the_request_metrics() {
    let mut env = MetricsEnv::new(100).await;
    let before = env.scraped.scrape().await;
    let params = [
        json!({"do": "complete"}),
        json!({"do": "complete"}),
        json!({"do": "fail"}),
    ];
    env.enqueue(&params).await;
    let workspace = &env.workspace;
    workspace
        .until("dispatched", |counts| counts.dispatched == 3)
        .await;
    let waits = env.of_workspace("leasehold_workspace_wait_seconds_count");
    let expected = moves([
        ("leasehold_requests_enqueued_total", 3.0),
        ("queue_processing_batch_size_count", 1.0),
        ("queue_processing_batch_size_sum", 3.0),
        ("queue_processing_duration_seconds_count", 1.0),
        ("queue_items_dispatched_total", 3.0),
        ("leasehold_dispatch_attempts_count", 3.0),
        ("leasehold_dispatch_attempts_sum", 3.0),
        ("leasehold_request_wait_seconds_count", 3.0),
        (waits.as_str(), 3.0),
    ]);
    let started = env.scraped.until("counted", |now| {
        now.since(&before, WATCHED) == expected
            && now.value("leasehold_requests{status=\"dispatched\"}") == 3.0
            && now.value(&env.of_workspace("leasehold_workspace_slots_in_use")) == 3.0
    });
    let started = started.await;
    let starts =
        "leasehold_engine_calls_total{engine=\"temporal\",call=\"start\",outcome=\"started\"}";
    assert_eq!(started.of(starts) - before.of(starts), 3.0);
    assert_gauges(&env, &started);

    let _worker = env.namespace.worker();
    workspace
        .until("ended", |counts| counts.completed + counts.failed == 3)
        .await;
    let expected = moves([
        (
            "leasehold_requests_finished_total{status=\"completed\"}",
            2.0,
        ),
        ("leasehold_requests_finished_total{status=\"failed\"}", 1.0),
        ("queue_items_failed_total{reason=\"execution_failed\"}", 1.0),
    ]);
    env.scraped.until_moved(&started, WATCHED, &expected).await;
    program::stop(&mut env.serve);
}

#[tokio::test(flavor = "multi_thread")]
async fn full_workspace_is_counted_once() {
    let mut env = MetricsEnv::new(2).await;
    let before = env.scraped.scrape().await;
    env.enqueue(&[wait(), wait(), wait(), wait(), wait()]).await;
    let full = |counts: &leasehold_store::request::Counts| counts.dispatched == 2;
    env.workspace.until("full", full).await;
    let waits = env.of_workspace("leasehold_workspace_wait_seconds_count");
    let expected = moves([
        ("leasehold_requests_enqueued_total", 5.0),
        ("queue_processing_batch_size_count", 1.0),
        ("queue_processing_batch_size_sum", 2.0),
        ("queue_processing_duration_seconds_count", 1.0),
        ("queue_items_dispatched_total", 2.0),
        ("queue_items_at_capacity_total", 1.0),
        ("leasehold_dispatch_attempts_count", 2.0),
        ("leasehold_dispatch_attempts_sum", 2.0),
        ("leasehold_request_wait_seconds_count", 2.0),
        (waits.as_str(), 2.0),
    ]);
    let after = env.scraped.until("counted", |now| {
        now.since(&before, WATCHED) == expected
            && now.value("leasehold_requests{status=\"dispatched\"}") == 2.0
            && now.value(&env.of_workspace("leasehold_workspace_slots_in_use")) == 2.0
    });
    let after = after.await;
    assert_eq!(
        after.of(&env.of_workspace("leasehold_workspace_slots")),
        2.0
    );
    assert_eq!(
        after.of(&env.of_workspace("leasehold_workspace_slots_in_use")),
        2.0
    );
    assert_eq!(after.of("leasehold_requests{status=\"pending\"}"), 3.0);
    let older = env.scraped.until("older", |now| {
        now.value("leasehold_requests_oldest_seconds{status=\"pending\"}")
            > after.of("leasehold_requests_oldest_seconds{status=\"pending\"}")
    });
    older.await;
    program::stop(&mut env.serve);
}

#[tokio::test(flavor = "multi_thread")]
async fn rejected_start_is_counted_as_retry_and_then_as_failure() {
    // Orders are bindings, so the embedded engine rejects them.
    let mut env = MetricsEnv::with(2, |program| {
        program
            .set("engine.kind", "embedded")
            .set("dispatch.max_attempts", "2")
            .set("dispatch.backoff_base", "100ms")
    })
    .await;
    let before = env.scraped.scrape().await;
    env.enqueue(&[wait()]).await;
    env.workspace
        .until("failed", |counts| counts.failed == 1)
        .await;
    let expected = moves([
        ("leasehold_requests_enqueued_total", 1.0),
        ("queue_processing_batch_size_count", 2.0),
        ("queue_processing_batch_size_sum", 2.0),
        ("queue_processing_duration_seconds_count", 2.0),
        ("leasehold_dispatch_failures_total{reason=\"refused\"}", 1.0),
        ("leasehold_dispatch_attempts_count", 1.0),
        ("leasehold_dispatch_attempts_sum", 2.0),
        (
            "queue_items_failed_total{reason=\"dispatch_exhausted\"}",
            1.0,
        ),
        ("leasehold_requests_finished_total{status=\"failed\"}", 1.0),
    ]);
    let after = env.scraped.until_moved(&before, WATCHED, &expected).await;
    let refused =
        "leasehold_engine_calls_total{engine=\"embedded\",call=\"start\",outcome=\"refused\"}";
    assert_eq!(after.of(refused), 2.0);
    let open = env.scraped.open_metrics().await;
    assert!(open.contains("# TYPE queue_stale_recovery_count unknown\n"));
    assert!(open.ends_with("# EOF\n"));
    program::stop(&mut env.serve);
}

#[tokio::test(flavor = "multi_thread")]
async fn engine_outage_costs_attempts_but_no_request() {
    let namespace = Namespace::fresh();
    let proxy = FaultProxy::to(namespace.address()).await;
    let mut env = MetricsEnv::with(100, |program| {
        program
            .set("temporal.address", &proxy.address())
            .set("temporal.namespace", &namespace.name)
            .set("engine.breaker_threshold", "1")
            .set("engine.probe_interval_when_open", "100ms")
            .set("dispatch.backoff_base", "100ms")
            .set("dispatch.backoff_max", "200ms")
            .set("log.level", program::VERBOSE)
    })
    .await;
    program::wait_for_lines(&env.serve, program::CONNECTED, 1).await;
    let before = env.scraped.scrape().await;
    assert_eq!(before.of("leasehold_engine_up"), 1.0);
    proxy.refuse();
    proxy.cut();
    env.enqueue(&[wait()]).await;
    let failures = |now: &Scrape, reason: &str| {
        let series = format!("leasehold_dispatch_failures_total{{reason=\"{reason}\"}}");
        now.of(&series) - before.of(&series)
    };
    // A scrape may see a batch before the failures of its starts.
    let down = env.scraped.until("down", |now| {
        let batches = now.of("queue_processing_batch_size_count")
            - before.of("queue_processing_batch_size_count");
        now.value("leasehold_engine_up") == 0.0
            && now.value("leasehold_requests{status=\"pending\"}") > 0.0
            && now.of("queue_processing_duration_seconds_count")
                > before.of("queue_processing_duration_seconds_count")
            && failures(now, "unknown") + failures(now, "not_sent") == batches
    });
    let down = down.await;
    assert_eq!(down.of("leasehold_engine_allowance"), 0.0);
    assert_eq!(down.of("leasehold_engine_breaker{status=\"open\"}"), 1.0);
    assert_eq!(failures(&down, "refused"), 0.0);
    let untouched = [
        "queue_items_dispatched_total",
        "queue_items_failed_total",
        "queue_stale_recovery_count",
        "leasehold_requests_finished_total",
        "leasehold_lease_losses_total",
        "leasehold_lock_losses_total",
    ];
    assert_eq!(down.since(&before, &untouched), moves([]));

    proxy.accept_again();
    proxy.pass();
    let counted = [
        "queue_items_dispatched_total",
        "queue_items_failed_total",
        "leasehold_dispatch_attempts_count",
    ];
    let expected = moves([
        ("queue_items_dispatched_total", 1.0),
        ("leasehold_dispatch_attempts_count", 1.0),
    ]);
    let back = env.scraped.until("back", |now| {
        now.value("leasehold_engine_up") > 0.0
            && now.value("leasehold_requests{status=\"dispatched\"}") > 0.0
            && now.since(&down, &counted) == expected
    });
    back.await;
    program::stop(&mut env.serve);
}

#[tokio::test(flavor = "multi_thread")]
async fn recovered_claims_are_counted_by_the_recovering_process() {
    let database = database::fresh().await;
    let namespace = Namespace::fresh();
    let proxy = FaultProxy::to(namespace.address()).await;
    let dead = Program::new(database.url(), &proxy.address(), &namespace.name)
        .quick()
        .patient()
        .set("log.level", program::VERBOSE);
    let mut killed = dead.start();
    program::wait_for_lines(&killed, program::LOCK_ACQUIRED, 1).await;
    program::wait_for_lines(&killed, program::CONNECTED, 1).await;
    let workspace = OrderWorkspace::new(database::store(database.url()), 2).await;
    proxy.hold_requests();
    workspace.enqueue_many(2, &wait()).await;
    workspace
        .until("claimed", |counts| counts.claimed == 2)
        .await;
    program::wait_for_lines(&killed, "Dispatching queue item", 2).await;
    killed.kill();

    // The same directory, so the same key.
    let program = dead
        .set("temporal.address", namespace.address())
        .set("log.level", "info");
    let mut serve = program.start();
    let scraped = ScrapeTarget::new(&program, &serve);
    workspace
        .until("dispatched", |counts| counts.dispatched == 2)
        .await;
    let after = scraped.until("counted", |now| {
        now.of("queue_items_dispatched_total") > 1.0
            && now.of("leasehold_dispatch_attempts_count") > 1.0
    });
    let after = after.await;
    assert_eq!(after.of("queue_stale_recovery_count"), 2.0);
    assert_eq!(
        after.of("leasehold_lease_expiries_total{kind=\"request\"}"),
        2.0
    );
    assert_eq!(
        after.of("leasehold_lease_losses_total{kind=\"request\"}"),
        0.0
    );
    // A recovery counts as an attempt.
    assert_eq!(after.of("leasehold_dispatch_attempts_count"), 2.0);
    assert_eq!(after.of("leasehold_dispatch_attempts_sum"), 4.0);
    assert_eq!(
        after.of("leasehold_requests_enqueued_total"),
        0.0,
        "SQL enqueued them"
    );
    program::stop(&mut serve);
}

#[tokio::test(flavor = "multi_thread")]
async fn stolen_lock_is_counted_as_lost() {
    let mut env = MetricsEnv::new(2).await;
    let held = "leasehold_lock_held{lock=\"processExecutionQueue\"}";
    let lost = "leasehold_lock_losses_total{lock=\"processExecutionQueue\"}";
    let refused = "shedlock_acquisition_failures{lock=\"processExecutionQueue\"}";
    let before = env.scraped.scrape().await;
    assert_eq!((before.of(held), before.of(lost)), (1.0, 0.0));

    let (client, connection) = tokio_postgres::connect(&env.database.url_in("leasehold"), NoTls)
        .await
        .unwrap();
    tokio::spawn(connection);
    assert_eq!(client.execute(STEAL_LOCK, &[]).await.unwrap(), 1);
    let expected = moves([(lost, 1.0)]);
    let stolen = env.scraped.until("stolen", |now| {
        now.of(refused) > before.of(refused) && now.since(&before, WATCHED) == expected
    });
    assert_eq!(stolen.await.of(held), 0.0);

    assert_eq!(client.execute(RETURN_LOCK, &[]).await.unwrap(), 1);
    let back = env.scraped.until("back", |now| now.of(held) > 0.0).await;
    assert_eq!(back.since(&before, WATCHED), expected);
    env.enqueue(&[wait()]).await;
    let dispatched = env.scraped.until("working again", |now| {
        now.of("queue_items_dispatched_total") > 0.0
    });
    dispatched.await;
    program::stop(&mut env.serve);
}

#[tokio::test(flavor = "multi_thread")]
async fn store_outage_omits_only_store_metrics() {
    let database = database::fresh().await;
    let namespace = Namespace::fresh();
    let server = server_of(database.url());
    let proxy = FaultProxy::to(server).await;
    let url = database.url().replace(server, &proxy.address());
    let program = Program::new(&url, namespace.address(), &namespace.name);
    let mut serve = program.start();
    let scraped = ScrapeTarget::new(&program, &serve);
    scraped
        .until("up", |now| {
            now.of("leasehold_store_up") > 0.0 && now.has("leasehold_workspaces")
        })
        .await;
    proxy.hold_requests();
    let away = scraped
        .until("down", |now| now.of("leasehold_store_up") == 0.0)
        .await;
    for gone in [
        "leasehold_workspaces",
        "leasehold_requests{status=\"pending\"}",
    ] {
        assert!(!away.has(gone), "{gone} is shown");
    }
    assert!(away.has("queue_items_dispatched_total"));
    proxy.pass();
    scraped
        .until("up again", |now| {
            now.of("leasehold_store_up") > 0.0 && now.has("leasehold_workspaces")
        })
        .await;
    program::stop(&mut serve);
}

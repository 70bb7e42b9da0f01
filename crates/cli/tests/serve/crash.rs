//! The process is killed at critical moments of a start. Checks Temporal's histories.

use crate::TIMEOUT;
use crate::database::{self, server_of};
use crate::order_workspace::OrderWorkspace;
use crate::program::{self, Program};
use crate::temporal::{self, Namespace};
use leasehold_core::{ExecutionId, RequestStatus};
use leasehold_testkit::{FaultProxy, Process, TestDatabase, eventually};
use serde_json::json;

/// Concurrent executions; fewer than requests.
const LIMIT: u32 = 2;
const REQUESTS: usize = 6;

/// A process behind two fault proxies, and one workspace.
struct CrashEnv {
    database: TestDatabase,
    namespace: Namespace<'static>,
    to_temporal: FaultProxy,
    to_postgres: FaultProxy,
    workspace: OrderWorkspace,
    serve: Process,
}

impl CrashEnv {
    async fn new() -> Self {
        let database = database::fresh().await;
        let namespace = Namespace::fresh();
        let to_temporal = FaultProxy::to(namespace.address()).await;
        let server = server_of(database.url());
        let to_postgres = FaultProxy::to(server).await;
        let url = database.url().replace(server, &to_postgres.address());
        let serve = Program::new(&url, &to_temporal.address(), &namespace.name)
            .quick()
            .patient()
            .set("log.level", program::VERBOSE)
            .start();
        let workspace = OrderWorkspace::new(database::store(database.url()), LIMIT).await;
        // The process holds the dispatch lock and is connected to Temporal.
        program::wait_for_lines(&serve, program::LOCK_ACQUIRED, 1).await;
        program::wait_for_lines(&serve, program::CONNECTED, 1).await;
        Self {
            database,
            namespace,
            to_temporal,
            to_postgres,
            workspace,
            serve,
        }
    }

    async fn enqueue(&self) {
        self.workspace
            .enqueue_many(REQUESTS, &json!({"do": "nap", "seconds": 0.2}))
            .await;
    }

    /// The executions of the claimed requests, once the process is about to start them.
    async fn sending(&self) -> Vec<ExecutionId> {
        self.workspace
            .until("claimed", |counts| counts.claimed == u64::from(LIMIT))
            .await;
        program::wait_for_lines(&self.serve, "Dispatching queue item", LIMIT as usize).await;
        let requests = self.workspace.all().await.into_iter();
        requests.filter_map(|request| request.execution).collect()
    }

    async fn known_to_temporal(&self, executions: &[ExecutionId]) {
        let known = eventually(TIMEOUT, async || {
            executions.iter().all(|id| self.namespace.knows(*id))
        });
        assert!(known.await, "Temporal does not know {executions:?}");
    }

    /// Kills the process; asserts that no result was written.
    async fn kill(&mut self) {
        self.serve.kill();
        let counts = self.workspace.counts().await;
        assert_eq!(counts.claimed, u64::from(LIMIT), "{counts:?}");
        assert_eq!(counts.dispatched, 0, "{counts:?}");
    }

    /// Starts another process and asserts that everything completes.
    async fn restart_and_check(&self, claimed: &[ExecutionId]) {
        let mut serve = Program::new(
            self.database.url(),
            self.namespace.address(),
            &self.namespace.name,
        )
        .quick()
        .start();
        self.workspace
            .until("dispatched again", |counts| {
                counts.dispatched == u64::from(LIMIT)
            })
            .await;
        // Delivers what the dead process had sent.
        self.to_temporal.pass();
        self.known_to_temporal(claimed).await;
        let _worker = self.namespace.worker();
        self.workspace
            .until("all completed", |counts| {
                counts.completed == REQUESTS as u64
            })
            .await;

        let requests = self.workspace.all().await;
        assert_eq!(requests.len(), REQUESTS);
        for request in &requests {
            assert_eq!(request.status, RequestStatus::Completed, "{request:?}");
            assert_eq!(request.dispatch_failures, 0, "{request:?}");
        }
        let runs = self.namespace.closed_runs(REQUESTS).await;
        temporal::assert_one_run_each(&runs, requests.iter().map(|request| request.execution));
        let open = temporal::max_open(&runs, self.workspace.workspace);
        assert_eq!(open, LIMIT as usize, "{runs:?}");
        let kept = requests.iter().filter_map(|request| request.execution);
        assert_eq!(
            kept.filter(|id| claimed.contains(id)).count(),
            claimed.len()
        );
        assert_eq!(self.workspace.slots().await.in_use, 0);
        program::stop(&mut serve);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_between_claim_and_start() {
    let mut env = CrashEnv::new().await;
    env.to_temporal.hold_requests();
    env.enqueue().await;
    let claimed = env.sending().await;
    env.to_temporal.wait_for_held_requests(1).await;
    env.kill().await;
    assert!(!claimed.iter().any(|id| env.namespace.knows(*id)));
    env.restart_and_check(&claimed).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_between_start_and_its_answer() {
    let mut env = CrashEnv::new().await;
    env.to_temporal.hold_responses();
    env.enqueue().await;
    let claimed = env.sending().await;
    env.known_to_temporal(&claimed).await;
    env.to_temporal.wait_for_held_responses(1).await;
    env.kill().await;
    env.restart_and_check(&claimed).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_between_answer_and_commit() {
    let mut env = CrashEnv::new().await;
    env.to_temporal.hold_responses();
    env.enqueue().await;
    let claimed = env.sending().await;
    env.known_to_temporal(&claimed).await;
    env.to_postgres.hold_requests();
    env.to_temporal.pass();
    program::wait_for_lines(&env.serve, "start answered", LIMIT as usize).await;
    env.to_postgres.wait_for_held_requests(1).await;
    env.kill().await;
    // Its pending writes are lost.
    env.to_postgres.cut();
    env.restart_and_check(&claimed).await;
}

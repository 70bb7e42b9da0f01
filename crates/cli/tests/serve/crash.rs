//! The process is killed at the worst moments of a start. Judged by Temporal's own histories, not by our tables.

use crate::PATIENCE;
use crate::database::{self, server_of};
use crate::order_workspace::OrderWorkspace;
use crate::program::{self, Program};
use crate::temporal::{self, Namespace};
use leasehold_core::{ExecutionId, RequestStatus};
use leasehold_testkit::{FaultProxy, Process, TestDatabase, eventually};
use serde_json::json;

/// Executions at once; fewer than there are requests.
const LIMIT: u32 = 2;
const REQUESTS: usize = 6;

/// A process between two proxies, and one workspace.
struct CrashEnv {
    database: TestDatabase,
    namespace: Namespace<'static>,
    to_temporal: FaultProxy,
    to_postgres: FaultProxy,
    site: OrderWorkspace,
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
            .set("log.level", program::TELLING)
            .start();
        let site = OrderWorkspace::new(database::store(database.url()), LIMIT).await;
        // It has taken its lock and found its way to Temporal.
        program::said(&serve, program::WORKS, 1).await;
        program::said(&serve, program::CONNECTED, 1).await;
        Self {
            database,
            namespace,
            to_temporal,
            to_postgres,
            site,
            serve,
        }
    }

    async fn enqueue(&self) {
        self.site
            .enqueue_many(REQUESTS, &json!({"do": "nap", "seconds": 0.2}))
            .await;
    }

    /// The executions of what is claimed, once the process is about to send their starts.
    async fn sending(&self) -> Vec<ExecutionId> {
        self.site
            .until("claimed", |counts| counts.claimed == u64::from(LIMIT))
            .await;
        program::said(&self.serve, "Dispatching queue item", LIMIT as usize).await;
        let requests = self.site.all().await.into_iter();
        requests.filter_map(|request| request.execution).collect()
    }

    async fn known_to_temporal(&self, executions: &[ExecutionId]) {
        let known = eventually(PATIENCE, async || {
            executions.iter().all(|id| self.namespace.knows(*id))
        });
        assert!(known.await, "Temporal has not heard of {executions:?}");
    }

    /// Whatever is under way stays as it is, and nothing was written down.
    async fn kill(&mut self) {
        self.serve.kill();
        let counts = self.site.counts().await;
        assert_eq!(counts.claimed, u64::from(LIMIT), "{counts:?}");
        assert_eq!(counts.dispatched, 0, "{counts:?}");
    }

    /// Another process goes on, and everything ends well.
    async fn restart_and_check(&self, claimed: &[ExecutionId]) {
        let mut serve = Program::new(
            self.database.url(),
            self.namespace.address(),
            &self.namespace.name,
        )
        .quick()
        .start();
        self.site
            .until("dispatched again", |counts| {
                counts.dispatched == u64::from(LIMIT)
            })
            .await;
        // What the dead process had sent and the network has kept arrives now.
        self.to_temporal.pass();
        self.known_to_temporal(claimed).await;
        let _worker = self.namespace.worker();
        self.site
            .until("all completed", |counts| {
                counts.completed == REQUESTS as u64
            })
            .await;

        let requests = self.site.all().await;
        assert_eq!(requests.len(), REQUESTS);
        for request in &requests {
            assert_eq!(request.status, RequestStatus::Completed, "{request:?}");
            assert_eq!(request.dispatch_failures, 0, "{request:?}");
        }
        let runs = self.namespace.closed_runs(REQUESTS).await;
        temporal::assert_one_run_each(&runs, requests.iter().map(|request| request.execution));
        let open = temporal::most_open(&runs, self.site.workspace);
        assert_eq!(open, LIMIT as usize, "{runs:?}");
        let kept = requests.iter().filter_map(|request| request.execution);
        assert_eq!(
            kept.filter(|id| claimed.contains(id)).count(),
            claimed.len()
        );
        assert_eq!(self.site.slots().await.in_use, 0);
        program::stop(&mut serve);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_after_the_claim_and_before_temporal_heard_of_it() {
    let mut env = CrashEnv::new().await;
    env.to_temporal.hold_requests();
    env.enqueue().await;
    let claimed = env.sending().await;
    env.to_temporal.held_requests(1).await;
    env.kill().await;
    assert!(!claimed.iter().any(|id| env.namespace.knows(*id)));
    env.restart_and_check(&claimed).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_after_temporal_accepted_and_before_its_answer_arrived() {
    let mut env = CrashEnv::new().await;
    env.to_temporal.hold_answers();
    env.enqueue().await;
    let claimed = env.sending().await;
    env.known_to_temporal(&claimed).await;
    env.to_temporal.held_answers(1).await;
    env.kill().await;
    env.restart_and_check(&claimed).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_after_the_answer_and_before_it_was_written_down() {
    let mut env = CrashEnv::new().await;
    env.to_temporal.hold_answers();
    env.enqueue().await;
    let claimed = env.sending().await;
    env.known_to_temporal(&claimed).await;
    env.to_postgres.hold_requests();
    env.to_temporal.pass();
    program::said(&env.serve, "start answered", LIMIT as usize).await;
    env.to_postgres.held_requests(1).await;
    env.kill().await;
    // What it wanted to write is lost with it.
    env.to_postgres.cut();
    env.restart_and_check(&claimed).await;
}

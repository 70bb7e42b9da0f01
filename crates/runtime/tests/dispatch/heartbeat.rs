//! The registration of an instance, and the services without an engine.

use crate::dispatch_env::{DispatchEnv, until};
use crate::fixtures::{NEVER, round};
use leasehold_core::RequestStatus;
use leasehold_runtime::{HeartbeatOptions, HeartbeatService, Runtime, RuntimeOptions};
use leasehold_store::instance::Instance;
use leasehold_testbed::BackendKind;
use std::time::Duration;

scenarios! {
    both: instance_is_listed_while_it_runs_and_deregistered_when_it_stops, instance_without_heartbeats_is_removed,
        without_an_engine_the_other_services_run;
}

impl DispatchEnv {
    async fn instances(&self) -> Vec<Instance> {
        self.store.instance_list().await.unwrap()
    }

    fn heartbeat(&self, name: &str) -> HeartbeatService {
        let options = HeartbeatOptions {
            forget_after: Duration::from_secs(60),
            ..HeartbeatOptions::default()
        };
        HeartbeatService::new(self.store.clone(), name, true, options)
    }
}

async fn instance_is_listed_while_it_runs_and_deregistered_when_it_stops(on: BackendKind) {
    let env = DispatchEnv::new(on).await;
    let runtime = env.runtime(|options| {
        options.heartbeat.listens = Some("127.0.0.1:7777".to_owned());
    });
    until("it is listed", async || !env.instances().await.is_empty()).await;
    let listed = env.instances().await.remove(0);
    assert_eq!(listed.id, "instance");
    assert!(listed.dispatches);
    assert_eq!(listed.listens.as_deref(), Some("127.0.0.1:7777"));
    runtime.stop().await;
    assert_eq!(env.instances().await, []);
}

async fn instance_without_heartbeats_is_removed(on: BackendKind) {
    let env = DispatchEnv::with_manual_clock(on).await;
    round(&env.heartbeat("dead")).await;
    round(&env.heartbeat("alive")).await;
    let names = async || -> Vec<String> {
        let all = env.instances().await.into_iter();
        all.map(|instance| instance.id).collect()
    };
    assert_eq!(names().await, ["alive", "dead"]);
    env.advance(Duration::from_secs(61));
    round(&env.heartbeat("alive")).await;
    assert_eq!(names().await, ["alive"]);
}

async fn without_an_engine_the_other_services_run(on: BackendKind) {
    let env = DispatchEnv::new(on).await;
    let workspace = env.workspace(2).await;
    let id = env.enqueue_one(&workspace).await;
    let mut options = RuntimeOptions::new("no engine");
    options.pruner.interval = NEVER;
    let runtime = Runtime::start(env.store.clone(), None, options);
    until("it is listed", async || !env.instances().await.is_empty()).await;
    assert!(!env.instances().await[0].dispatches);
    let recovers = async || {
        let locks = env.store.lock_list().await.unwrap();
        locks
            .iter()
            .any(|lock| lock.name == "recoverStaleQueueItems")
    };
    until("it recovers", recovers).await;
    assert_eq!(env.status(&workspace, id).await, RequestStatus::Pending);
    runtime.stop().await;
    assert_eq!(env.engine.calls().starts.len(), 0);
}

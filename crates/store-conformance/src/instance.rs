//! Heartbeats of instances, and the store's clock.

use crate::Fixture;
use crate::factory::ok;
use leasehold_store::instance::{Instance, InstanceHeartbeat};
use std::time::Duration;

const FORGET: Duration = Duration::from_secs(60);

fn heartbeat_of(id: &str) -> InstanceHeartbeat {
    InstanceHeartbeat {
        id: id.to_owned(),
        version: "0.2.0".to_owned(),
        dispatches: true,
        listens: Some("127.0.0.1:7733".to_owned()),
    }
}

impl Fixture {
    async fn heartbeat(&self, id: &str) {
        ok(self
            .store
            .instance_heartbeat(&heartbeat_of(id), FORGET)
            .await);
    }

    async fn instances(&self) -> Vec<String> {
        let all = ok(self.store.instance_list().await);
        all.into_iter().map(|instance| instance.id).collect()
    }
}

/// An instance is read back as of its last heartbeat; later heartbeats do not change its start time.
pub async fn is_read_back_as_of_its_last_heartbeat(f: Fixture) {
    assert_eq!(ok(f.store.instance_list().await), []);
    let started_at = f.now();
    f.heartbeat("a").await;
    f.advance(7);
    let later = InstanceHeartbeat {
        id: "a".to_owned(),
        version: "0.3.0".to_owned(),
        dispatches: false,
        listens: None,
    };
    ok(f.store.instance_heartbeat(&later, FORGET).await);
    let seen = Instance {
        id: later.id,
        version: later.version,
        dispatches: false,
        listens: None,
        started_at,
        seen_at: f.now(),
    };
    assert_eq!(ok(f.store.instance_list().await), [seen]);
}

/// A heartbeat removes instances that have been silent for longer than the given time, and not earlier.
pub async fn stale_instance_is_removed_by_another_heartbeat(f: Fixture) {
    f.heartbeat("b").await;
    f.heartbeat("a").await;
    f.advance(30);
    f.heartbeat("c").await;
    f.advance(30);
    f.heartbeat("a").await;
    assert_eq!(f.instances().await, ["a", "b", "c"]);
    f.advance(1);
    f.heartbeat("a").await;
    assert_eq!(f.instances().await, ["a", "c"]);
}

/// An instance is listed after its heartbeat, however long it was silent.
pub async fn heartbeat_keeps_its_own_instance(f: Fixture) {
    f.heartbeat("a").await;
    f.heartbeat("b").await;
    f.advance(3_600);
    ok(f.store
        .instance_heartbeat(&heartbeat_of("a"), Duration::ZERO)
        .await);
    assert_eq!(f.instances().await, ["a"]);
    ok(f.store
        .instance_heartbeat(&heartbeat_of("b"), Duration::MAX)
        .await);
    assert_eq!(f.instances().await, ["a", "b"]);
}

/// A deregistered instance is removed at once, others stay; a second deregistration does nothing.
pub async fn deregistered_instance_is_removed(f: Fixture) {
    f.heartbeat("a").await;
    f.heartbeat("b").await;
    for _ in 0..2 {
        ok(f.store.instance_deregister("a").await);
        assert_eq!(f.instances().await, ["b"]);
    }
}

/// Concurrent heartbeats of many instances are all recorded.
pub async fn concurrent_heartbeats_are_all_recorded(f: Fixture) {
    let heartbeats = (0..20).map(|n| {
        let store = f.store.clone();
        tokio::spawn(async move {
            for _ in 0..5 {
                ok(store
                    .instance_heartbeat(&heartbeat_of(&format!("{n:02}")), FORGET)
                    .await);
            }
        })
    });
    for ended in futures::future::join_all(heartbeats.collect::<Vec<_>>()).await {
        ended.expect("the task did not panic");
    }
    let all: Vec<String> = (0..20).map(|n| format!("{n:02}")).collect();
    assert_eq!(f.instances().await, all);
}

/// The time is that of the store's clock.
pub async fn time_is_the_store_clock(f: Fixture) {
    assert_eq!(ok(f.store.now().await), f.now());
    f.advance(5);
    assert_eq!(ok(f.store.now().await), f.now());
}

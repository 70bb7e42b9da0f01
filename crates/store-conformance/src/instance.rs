//! What a store promises about instances and about its clock.

use crate::Fixture;
use crate::factory::ok;
use leasehold_store::instance::{Instance, InstanceBeat};
use std::time::Duration;

const FORGET: Duration = Duration::from_secs(60);

fn beat(id: &str) -> InstanceBeat {
    InstanceBeat {
        id: id.to_owned(),
        version: "0.1.0".to_owned(),
        dispatches: true,
        listens: Some("127.0.0.1:7733".to_owned()),
    }
}

impl Fixture {
    async fn beats(&self, id: &str) {
        ok(self.store.instance_beat(&beat(id), FORGET).await);
    }

    async fn instances(&self) -> Vec<String> {
        let all = ok(self.store.instance_list().await);
        all.into_iter().map(|instance| instance.id).collect()
    }
}

/// What an instance says of itself is read back; later beats change all but when it started.
pub async fn is_as_it_last_said(f: Fixture) {
    assert_eq!(ok(f.store.instance_list().await), []);
    let started_at = f.now();
    f.beats("a").await;
    f.advance(7);
    let later = InstanceBeat {
        id: "a".to_owned(),
        version: "0.2.0".to_owned(),
        dispatches: false,
        listens: None,
    };
    ok(f.store.instance_beat(&later, FORGET).await);
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

/// One that was not seen for so long is forgotten by another's beat, and not a moment before.
pub async fn one_not_seen_for_long_is_forgotten(f: Fixture) {
    f.beats("b").await;
    f.beats("a").await;
    f.advance(30);
    f.beats("c").await;
    f.advance(30);
    f.beats("a").await;
    assert_eq!(f.instances().await, ["a", "b", "c"]);
    f.advance(1);
    f.beats("a").await;
    assert_eq!(f.instances().await, ["a", "c"]);
}

/// One that beats is there afterwards, however long it was silent and however soon others are forgotten.
pub async fn one_that_beats_is_not_forgotten(f: Fixture) {
    f.beats("a").await;
    f.beats("b").await;
    f.advance(3_600);
    ok(f.store.instance_beat(&beat("a"), Duration::ZERO).await);
    assert_eq!(f.instances().await, ["a"]);
    ok(f.store.instance_beat(&beat("b"), Duration::MAX).await);
    assert_eq!(f.instances().await, ["a", "b"]);
}

/// One that leaves is gone at once, others stay; leaving twice is nothing.
pub async fn one_that_leaves_is_gone(f: Fixture) {
    f.beats("a").await;
    f.beats("b").await;
    for _ in 0..2 {
        ok(f.store.instance_leave("a").await);
        assert_eq!(f.instances().await, ["b"]);
    }
}

/// Many that beat at once are all there.
pub async fn many_at_once_are_all_there(f: Fixture) {
    let beats = (0..20).map(|n| {
        let store = f.store.clone();
        tokio::spawn(async move {
            for _ in 0..5 {
                ok(store.instance_beat(&beat(&format!("{n:02}")), FORGET).await);
            }
        })
    });
    for ended in futures::future::join_all(beats.collect::<Vec<_>>()).await {
        ended.expect("it ended");
    }
    let all: Vec<String> = (0..20).map(|n| format!("{n:02}")).collect();
    assert_eq!(f.instances().await, all);
}

/// The time is what the store's clock shows.
pub async fn the_time_is_the_stores(f: Fixture) {
    assert_eq!(ok(f.store.now().await), f.now());
    f.advance(5);
    assert_eq!(ok(f.store.now().await), f.now());
}

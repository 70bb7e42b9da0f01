//! The recorded engine: the first is recorded, and another replaces it only while nothing runs.

use crate::Fixture;
use crate::factory::ok;
use leasehold_core::{EngineIdentity, ExecutionEnd};
use leasehold_store::installation::{ENGINE_REPLACEMENT_GRACE, RecordedEngine};

fn temporal(namespace_id: &str, cluster_id: &str) -> EngineIdentity {
    EngineIdentity {
        kind: "temporal".to_owned(),
        namespace: "orders".to_owned(),
        namespace_id: namespace_id.to_owned(),
        cluster_id: cluster_id.to_owned(),
    }
}

/// The first engine is recorded, and what it reveals about itself is kept current.
pub async fn first_engine_is_recorded(f: Fixture) {
    assert_eq!(ok(f.store.engine_recorded().await), None);
    let first = temporal("one", "");
    let at = f.now();
    let mut expected = RecordedEngine {
        identity: first.clone(),
        recorded_at: at,
        certain_from: at,
    };
    assert_eq!(ok(f.store.engine_record(&first).await), expected);
    f.advance(60);
    let t = f.workspace(1).await;
    f.enqueue_running(&t).await;
    assert_eq!(ok(f.store.engine_record(&first).await), expected);
    expected.identity = temporal("one", "cluster");
    let revealed = ok(f.store.engine_record(&expected.identity).await);
    assert_eq!(revealed, expected);
    assert_eq!(ok(f.store.engine_recorded().await), Some(expected));
}

/// While an execution is RUNNING the recorded engine stays; afterwards another replaces it.
pub async fn engine_is_replaced_only_while_nothing_runs(f: Fixture) {
    let (first, second) = (temporal("one", "a"), temporal("two", "a"));
    let recorded = ok(f.store.engine_record(&first).await);
    let t = f.workspace(2).await;
    let running = f.enqueue_running(&t).await;
    let kept = f.enqueue_unknown(&t).await;
    let embedded = EngineIdentity::of_kind("embedded");
    for other in [&second, &embedded] {
        assert_eq!(ok(f.store.engine_record(other).await), recorded);
    }
    f.finish(running.execution, ExecutionEnd::Completed).await;
    assert_eq!(ok(f.store.engine_record(&second).await), recorded);
    f.finish(kept.execution, ExecutionEnd::Completed).await;
    f.enqueue(&t, 1).await;
    f.advance(60);
    let replaced = ok(f.store.engine_record(&second).await);
    let expected = RecordedEngine {
        identity: second,
        recorded_at: f.now(),
        certain_from: f.now() + ENGINE_REPLACEMENT_GRACE,
    };
    assert_eq!(replaced, expected);
    assert_eq!(ok(f.store.engine_recorded().await), Some(expected));
}

//! Idempotency keys: one request per key and window, exact under races, without deadlocks.

use crate::Fixture;
use crate::factory::{TestWorkspace, new_request, ok};
use leasehold_core::{ExecutionEnd, JsonText, RequestId};
use leasehold_store::fresh_id;
use leasehold_store::prune::Prune;
use leasehold_store::request::{Enqueued, EnqueuedRequest, Idempotency, NewRequest};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

fn request_with_key(workspace: &TestWorkspace, key: &str, window: Option<u64>) -> NewRequest {
    NewRequest {
        idempotency: Some(Idempotency {
            key: key.into(),
            window: window.map(Duration::from_secs),
        }),
        ..new_request(workspace)
    }
}

fn answer(id: RequestId, inserted: bool) -> EnqueuedRequest {
    EnqueuedRequest { id, inserted }
}

fn conflict_key(enqueued: Enqueued) -> (String, RequestId) {
    match enqueued {
        Enqueued::KeyConflict { key, held_by } => (key, held_by),
        other => panic!("expected a conflict, not {other:?}"),
    }
}

/// The same key with the same definition and params returns the first request, at any status.
pub async fn same_key_returns_the_first_request(f: Fixture) {
    let t = f.workspace(1).await;
    let first = request_with_key(&t, "k", None);
    let id = f.enqueue_one(&t, first).await;
    let again = || async {
        let enqueued = f
            .try_enqueue(t.workspace, vec![request_with_key(&t, "k", None)])
            .await;
        assert_eq!(enqueued, Enqueued::All(vec![answer(id, false)]));
    };
    again().await;
    let claimed = f.claim_one().await;
    again().await;
    f.finish(claimed.execution, ExecutionEnd::Failed).await;
    again().await;
    assert_eq!(f.counts(t.workspace).await.failed, 1);
    assert_eq!(f.counts(t.workspace).await.pending, 0);
}

/// Params are compared as JSON: field order and options do not matter.
pub async fn params_are_compared_as_json(f: Fixture) {
    let t = f.workspace(1).await;
    let first = NewRequest {
        params: json!({"a": 1, "b": {"c": [1, 2], "d": null}}).into(),
        ..request_with_key(&t, "k", None)
    };
    let id = f.enqueue_one(&t, first).await;
    let same = NewRequest {
        params: JsonText::trusted(r#"{ "b": {"d": null, "c": [1, 2]}, "a": 1 }"#.to_owned()),
        priority: 5,
        ..request_with_key(&t, "k", None)
    };
    let enqueued = f.try_enqueue(t.workspace, vec![same]).await;
    assert_eq!(enqueued, Enqueued::All(vec![answer(id, false)]));
}

/// The same key with other params or another definition is a conflict, and nothing of the call is inserted.
pub async fn different_params_or_definition_is_a_conflict(f: Fixture) {
    let t = f.workspace(1).await;
    let id = f.enqueue_one(&t, request_with_key(&t, "k", None)).await;
    let definition = f.create_draft(t.workspace).await;
    f.publish(t.workspace, definition).await;
    let before = f.dump().await;
    let params = NewRequest {
        params: json!({"order": 8}).into(),
        ..request_with_key(&t, "k", None)
    };
    let definition = NewRequest {
        definition,
        ..request_with_key(&t, "k", None)
    };
    for other in [params, definition] {
        let requests = vec![new_request(&t), other, request_with_key(&t, "l", None)];
        let enqueued = f.try_enqueue(t.workspace, requests).await;
        assert_eq!(conflict_key(enqueued), ("k".into(), id));
    }
    assert_eq!(f.dump().await, before);
}

/// A key is scoped to its workspace.
pub async fn key_is_scoped_to_its_workspace(f: Fixture) {
    let one = f.workspace(1).await;
    let two = f.workspace(1).await;
    let first = f.enqueue_one(&one, request_with_key(&one, "k", None)).await;
    let second = f.enqueue_one(&two, request_with_key(&two, "k", None)).await;
    assert_ne!(first, second);
    assert_eq!(f.counts(two.workspace).await.pending, 1);
}

/// A key whose window has passed is free, also for other params; the old request loses it.
pub async fn key_is_free_when_its_window_has_passed(f: Fixture) {
    let t = f.workspace(1).await;
    let old = f.enqueue_one(&t, request_with_key(&t, "k", Some(60))).await;
    f.advance(59);
    let within = f
        .try_enqueue(t.workspace, vec![request_with_key(&t, "k", Some(60))])
        .await;
    assert_eq!(within, Enqueued::All(vec![answer(old, false)]));
    f.advance(1);
    let other = NewRequest {
        params: json!({"order": 8}).into(),
        ..request_with_key(&t, "k", Some(60))
    };
    let new = other.id;
    let after = f.try_enqueue(t.workspace, vec![other.clone()]).await;
    assert_eq!(after, Enqueued::All(vec![answer(new, true)]));
    assert_eq!(f.request(t.workspace, old).await.idempotency_key, None);
    let holder = f.request(t.workspace, new).await;
    assert_eq!(holder.idempotency_key.as_deref(), Some("k"));
    let again = NewRequest {
        id: fresh_id(),
        ..other
    };
    let again = f.try_enqueue(t.workspace, vec![again]).await;
    assert_eq!(again, Enqueued::All(vec![answer(new, false)]));
}

/// A key without a window holds until its request is pruned.
pub async fn key_without_a_window_holds_until_its_request_is_pruned(f: Fixture) {
    let t = f.workspace(1).await;
    let old = f.enqueue_one(&t, request_with_key(&t, "k", None)).await;
    let claimed = f.claim_one().await;
    f.finish(claimed.execution, ExecutionEnd::Completed).await;
    f.advance(400 * 24 * 3600);
    let held = f
        .try_enqueue(t.workspace, vec![request_with_key(&t, "k", None)])
        .await;
    assert_eq!(held, Enqueued::All(vec![answer(old, false)]));
    let prune = Prune {
        completed_before: Some(f.now()),
        failed_before: None,
        limit: 10,
    };
    assert_eq!(ok(f.store.prune(&prune).await).requests, 1);
    let new = request_with_key(&t, "k", None);
    let id = new.id;
    let free = f.try_enqueue(t.workspace, vec![new]).await;
    assert_eq!(free, Enqueued::All(vec![answer(id, true)]));
}

/// A key with a window outlives its pruned request: until the window ends, it returns the pruned request or is a conflict.
pub async fn key_with_a_window_outlives_its_pruned_request(f: Fixture) {
    let t = f.workspace(1).await;
    let params = json!({"a": 1, "b": {"c": [1, 2]}});
    let keyed = |params: JsonText| NewRequest {
        params,
        ..request_with_key(&t, "k", Some(1_000))
    };
    let old = f.enqueue_one(&t, keyed(params.clone().into())).await;
    let claimed = f.claim_one().await;
    f.finish(claimed.execution, ExecutionEnd::Completed).await;
    f.advance(10);
    let everything = |f: &Fixture| Prune {
        completed_before: Some(f.now()),
        failed_before: Some(f.now()),
        limit: 10,
    };
    let pruned = ok(f.store.prune(&everything(&f)).await);
    assert_eq!((pruned.requests, pruned.keys), (1, 0));

    let reordered = JsonText::trusted(r#"{ "b": {"c": [1, 2]}, "a": 1 }"#.to_owned());
    for same in [params.clone().into(), reordered] {
        let again = f.try_enqueue(t.workspace, vec![keyed(same)]).await;
        assert_eq!(again, Enqueued::All(vec![answer(old, false)]));
    }
    let definition = f.create_draft(t.workspace).await;
    f.publish(t.workspace, definition).await;
    let elsewhere = NewRequest {
        definition,
        ..keyed(params.clone().into())
    };
    for other in [keyed(json!({"a": 2}).into()), elsewhere] {
        let requests = vec![new_request(&t), other];
        let refused = f.try_enqueue(t.workspace, requests).await;
        assert_eq!(conflict_key(refused), ("k".into(), old));
    }
    let other = f.workspace(1).await;
    f.enqueue_one(&other, request_with_key(&other, "k", Some(1_000)))
        .await;

    f.advance(989);
    let within = f
        .try_enqueue(t.workspace, vec![keyed(params.clone().into())])
        .await;
    assert_eq!(within, Enqueued::All(vec![answer(old, false)]));
    f.advance(1);
    let new = keyed(json!({"a": 2}).into());
    let id = new.id;
    let after = f.try_enqueue(t.workspace, vec![new]).await;
    assert_eq!(after, Enqueued::All(vec![answer(id, true)]));
    assert_eq!(ok(f.store.prune(&everything(&f)).await).keys, 1);
}

/// Within one call the second use of a key returns the first request or is a conflict.
pub async fn same_rules_apply_within_one_call(f: Fixture) {
    let t = f.workspace(1).await;
    let (first, second, plain) = (
        request_with_key(&t, "k", None),
        request_with_key(&t, "k", None),
        new_request(&t),
    );
    let (id, plain_id) = (first.id, plain.id);
    let enqueued = f.try_enqueue(t.workspace, vec![first, plain, second]).await;
    let expected = vec![answer(id, true), answer(plain_id, true), answer(id, false)];
    assert_eq!(enqueued, Enqueued::All(expected));
    let before = f.dump().await;
    let other = NewRequest {
        params: json!({"order": 8}).into(),
        ..request_with_key(&t, "l", None)
    };
    let enqueued = f
        .try_enqueue(t.workspace, vec![request_with_key(&t, "l", None), other])
        .await;
    assert_eq!(conflict_key(enqueued).0, "l");
    assert_eq!(f.dump().await, before);
}

/// A hundred concurrent enqueues with one key insert one request, and all return its id.
pub async fn concurrent_enqueues_with_one_key_insert_one_request(f: Fixture) {
    let t = f.workspace(1).await;
    let calls = (0..100).map(|_| {
        let store = f.store.clone();
        let enqueue = leasehold_store::request::Enqueue {
            workspace: t.workspace,
            requests: vec![request_with_key(&t, "k", None)],
            by: "someone".into(),
        };
        tokio::spawn(async move { ok(store.request_enqueue(&enqueue).await) })
    });
    let mut inserted = 0;
    let mut seen = BTreeSet::new();
    for call in futures::future::join_all(calls).await {
        match call.expect("the call did not panic") {
            Enqueued::All(answers) => {
                assert_eq!(answers.len(), 1);
                inserted += usize::from(answers[0].inserted);
                seen.insert(answers[0].id);
            }
            other => panic!("not enqueued: {other:?}"),
        }
    }
    assert_eq!((inserted, seen.len()), (1, 1));
    assert_eq!(f.counts(t.workspace).await.pending, 1);
}

/// Overlapping calls with keys in opposite orders neither deadlock nor insert a key twice.
pub async fn keys_in_opposite_orders_do_not_deadlock(f: Fixture) {
    let t = f.workspace(1).await;
    let (rounds, keys) = (30, 20);
    for round in 0..rounds {
        let calls = (0..4).map(|call| {
            let mut names: Vec<String> = (0..keys).map(|k| format!("{round}-{k}")).collect();
            if call % 2 == 1 {
                names.reverse();
            }
            let requests = names
                .iter()
                .map(|key| request_with_key(&t, key, None))
                .collect();
            let (store, workspace) = (f.store.clone(), t.workspace);
            let enqueue = leasehold_store::request::Enqueue {
                workspace,
                requests,
                by: "someone".into(),
            };
            tokio::spawn(async move { (names, ok(store.request_enqueue(&enqueue).await)) })
        });
        let mut holders: BTreeMap<String, BTreeSet<RequestId>> = BTreeMap::new();
        for call in futures::future::join_all(calls).await {
            let (names, enqueued) = call.expect("the call did not panic");
            let Enqueued::All(answers) = enqueued else {
                panic!("not enqueued: {enqueued:?}");
            };
            for (name, answer) in names.into_iter().zip(answers) {
                holders.entry(name).or_default().insert(answer.id);
            }
        }
        assert!(holders.values().all(|ids| ids.len() == 1), "{holders:?}");
    }
    let pending = f.counts(t.workspace).await.pending;
    assert_eq!(pending, rounds * keys);
}

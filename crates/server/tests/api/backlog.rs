//! How much may wait in a workspace, and what is answered when that is too much.

use leasehold_server::ServerOptions;
use leasehold_testbed::{KeyedWorkspace, TestServer};
use leasehold_testkit::eventually;
use serde_json::{Value, json};
use std::time::Duration;

async fn ground(backlog_max: u64) -> (TestServer, KeyedWorkspace) {
    let options = ServerOptions {
        backlog_max,
        ..ServerOptions::default()
    };
    let ground = TestServer::with_options(options).await;
    let site = ground.workspace(100).await;
    (ground, site)
}

async fn pending(ground: &TestServer, site: &KeyedWorkspace) -> u64 {
    ground
        .store
        .request_counts(site.workspace)
        .await
        .unwrap()
        .pending
}

#[tokio::test]
async fn beyond_the_backlog_nothing_is_enqueued_and_the_answer_says_when_to_come_again() {
    let (ground, site) = ground(3).await;
    let path = site.path("/requests");
    for _ in 0..3 {
        ground.enqueue(&site).await;
    }
    let full = ground.post(&path, &site.key, site.order()).await;
    assert_eq!(full.status, 429);
    assert_eq!(full.header("retry-after"), "5");
    assert_eq!(full.refused("backlog_full", "")["retry_after"], 5);
    assert_eq!(pending(&ground, &site).await, 3);
    let other = ground.workspace(1).await;
    ground.enqueue(&other).await;
}

#[tokio::test]
async fn a_batch_counts_whole() {
    let (ground, site) = ground(3).await;
    let path = site.path("/requests/batch");
    let batch = |n: usize| json!({"requests": vec![site.order(); n]});
    ground
        .post(&path, &site.key, batch(4))
        .await
        .refused("backlog_full", "");
    ground.post(&path, &site.key, batch(2)).await.expect(200);
    ground
        .post(&path, &site.key, batch(2))
        .await
        .refused("backlog_full", "");
    assert_eq!(pending(&ground, &site).await, 2);
}

#[tokio::test]
async fn there_is_room_again_when_some_were_admitted() {
    let (ground, site) = ground(2).await;
    let path = site.path("/requests");
    ground.enqueue(&site).await;
    ground.enqueue(&site).await;
    ground
        .post(&path, &site.key, site.order())
        .await
        .refused("backlog_full", "");
    ground.claim(1).await;
    let room = eventually(Duration::from_secs(10), || async {
        ground.post(&path, &site.key, site.order()).await.status == 201
    });
    assert!(room.await);
    assert_eq!(pending(&ground, &site).await, 2);
}

#[tokio::test]
async fn repeated_calls_with_a_held_key_do_not_fill_the_backlog() {
    let (ground, site) = ground(2).await;
    let path = site.path("/requests");
    let mut keyed = site.order();
    keyed["idempotency_key"] = json!("k");
    for _ in 0..5 {
        let answer = ground.post(&path, &site.key, keyed.clone()).await;
        assert!(matches!(answer.status, 200 | 201), "{}", answer.text);
    }
    ground.enqueue(&site).await;
    assert_eq!(pending(&ground, &site).await, 2);
}

#[tokio::test]
async fn a_redrive_is_refused_while_the_backlog_is_full() {
    let (ground, site) = ground(1).await;
    let failed = ground
        .ended(&site, leasehold_core::ExecutionEnd::Failed)
        .await;
    ground.enqueue(&site).await;
    let one = site.path(&format!("/requests/{}/redrive", failed.id));
    ground
        .post(&one, &site.key, Value::Null)
        .await
        .refused("backlog_full", "");
    let all = site.path("/dead-letters/redrive");
    ground
        .post(&all, &site.key, Value::Null)
        .await
        .refused("backlog_full", "");
}

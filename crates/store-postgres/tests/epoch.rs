//! Servers that lose the last commits under a process that survives: no number is assigned twice, and fencing tokens rise.
#![allow(clippy::unwrap_used)]

use crate::support;

use crate::failover::{Replicated, Rewindable, assert_higher, causes, draw_numbers, reconnected};
use leasehold_core::job::JobClaim;
use leasehold_core::{JsonText, RequestId};
use leasehold_store::change::{ChangeCursor, ChangeStart, ChangeStore};
use leasehold_store::job::{Dedup, JobStore, NewJob};
use leasehold_store::{ErrorKind, Result};
use leasehold_store_conformance::{Fixture, clock};
use leasehold_store_postgres::{PostgresOptions, PostgresStore};
use std::sync::Arc;
use tokio_postgres::Client;

/// More than PostgreSQL logs of a sequence in advance.
const LOST: usize = 40;

#[tokio::test(flavor = "multi_thread")]
async fn promoted_replica_assigns_no_number_of_lost_commits_again() {
    let mut servers = Replicated::start().await;
    let store = servers.store();
    draw_numbers(&store, 1).await;
    servers.detach_replica().await;
    let lost = draw_numbers(&store, LOST).await;
    let client = servers.fail_over().await;
    reconnected(&store).await;
    let after = draw_numbers(&store, 3).await;
    assert_higher(&lost, &after);
    assert_eq!(causes(&client).await, ["created", "failed_over"]);
    // Numbers that JSON readers hold exactly.
    assert!(
        after
            .tokens
            .iter()
            .chain(&after.locks)
            .all(|n| *n < 1 << 53)
    );
    drop(store);
    // A process that starts later opens no further epoch.
    draw_numbers(&servers.store(), 1).await;
    assert_eq!(causes(&client).await.len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn restored_files_assign_no_number_again_that_the_process_has_seen() {
    let mut server = Rewindable::start().await;
    let store = server.store();
    draw_numbers(&store, 1).await;
    let saved = server.save();
    let lost = draw_numbers(&store, LOST).await;
    server.restore(saved);
    reconnected(&store).await;
    let after = draw_numbers(&store, 3).await;
    assert_higher(&lost, &after);
    let client = server.client().await;
    assert_eq!(causes(&client).await, ["created", "rewound"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn process_that_has_seen_more_finds_a_restart_that_was_a_rewind() {
    let mut server = Rewindable::start().await;
    let store = server.store();
    draw_numbers(&store, 1).await;
    let saved = server.save();
    let lost = draw_numbers(&store, LOST).await;
    server.restore(saved);
    let other = server.store();
    reconnected(&other).await;
    let client = server.client().await;
    assert_eq!(causes(&client).await, ["created", "restarted"]);
    reconnected(&store).await;
    assert_eq!(causes(&client).await, ["created", "rewound"]);
    assert_higher(&lost, &draw_numbers(&store, 2).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn crash_of_the_server_raises_tokens_only() {
    let mut server = Rewindable::start().await;
    let store = server.store();
    let before = draw_numbers(&store, LOST).await;
    server.crash();
    reconnected(&store).await;
    let after = draw_numbers(&store, 2).await;
    assert_higher(&before, &after);
    let client = server.client().await;
    assert_eq!(causes(&client).await, ["created", "restarted"]);
    assert!(after.jobs.iter().all(|id| *id < 1 << 32), "{after:?}");
}

/// Enqueues a job into each of these queues.
async fn enqueue_into(store: &PostgresStore, queues: &[String]) {
    for (n, queue) in queues.iter().enumerate() {
        // One by one, in a batch, and with a deduplication key: each is inserted by another statement.
        let mut jobs = vec![NewJob::new(queue, "own", JsonText::default())];
        match n % 3 {
            0 => {}
            1 => jobs.push(NewJob::new(queue, "own", JsonText::default())),
            _ => {
                jobs[0].dedup = Some(Dedup {
                    key: "key".to_owned(),
                    window: None,
                });
            }
        }
        store.job_enqueue(&jobs).await.unwrap();
    }
}

/// Claims every job of a queue and returns their kinds.
async fn kinds(store: &PostgresStore, queue: &str) -> Vec<String> {
    let claim = JobClaim {
        queue: queue.to_owned(),
        worker: "me".to_owned(),
        max: 100,
        lease: None,
    };
    let claimed = store.job_claim(&claim).await.unwrap();
    claimed.jobs.into_iter().map(|job| job.kind).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn job_reaches_its_queue_although_another_queue_got_the_id_of_a_lost_one() {
    let mut servers = Replicated::start().await;
    let store = servers.store();
    enqueue_into(&store, &["first".to_owned()]).await;
    servers.detach_replica().await;
    // The process knows their ids and lines.
    let queues: Vec<String> = (0..LOST).map(|n| format!("lost {n}")).collect();
    enqueue_into(&store, &queues).await;
    let lost = store_queue_ids(&servers.primary_client().await).await;
    let client = servers.fail_over().await;
    // A SQL caller comes first. PostgreSQL assigns ids of lost queues again.
    let count = i32::try_from(LOST).unwrap();
    let create = include_str!("sql/queue_create_many.sql");
    client.query(create, &[&count, &"other "]).await.unwrap();
    let shares = include_str!("sql/queue_shares_ids.sql");
    let row = client.query_one(shares, &[&lost, &"other "]).await.unwrap();
    assert!(row.get::<_, i64>("shared") > 0, "no id was assigned twice");

    reconnected(&store).await;
    enqueue_into(&store, &queues).await;
    for (n, queue) in queues.iter().enumerate() {
        let expected = if n % 3 == 1 { 2 } else { 1 };
        assert_eq!(kinds(&store, queue).await, vec!["own"; expected], "{queue}");
    }
    for n in 1..=count {
        let queue = format!("other {n}");
        assert_eq!(kinds(&store, &queue).await, ["send"], "{queue}");
    }
}

/// Returns the ids of all queues.
async fn store_queue_ids(client: &Client) -> Vec<i32> {
    let ids = include_str!("sql/queue_ids.sql");
    client.query_one(ids, &[]).await.unwrap().get("ids")
}

/// A restored dump of the data changes ids under open connections, without a new epoch.
#[tokio::test]
async fn job_reaches_its_queue_although_the_queue_got_another_id() {
    let database = support::database().await;
    let store = PostgresStore::new(&PostgresOptions::new(database.url())).unwrap();
    let queues = ["a".to_owned(), "b".to_owned(), "c".to_owned()];
    enqueue_into(&store, &queues).await;
    for queue in &queues {
        assert!(!kinds(&store, queue).await.is_empty());
    }
    let client = support::raw::connect(&database).await;
    let swap = include_str!("sql/queue_swap.sql");
    client.batch_execute(swap).await.unwrap();
    enqueue_into(&store, &queues[..2]).await;
    let another = PostgresStore::new(&PostgresOptions::new(database.url())).unwrap();
    // The one that enqueued and one that never knew the old ids find the same jobs.
    assert_eq!(kinds(&store, "a").await, ["own"]);
    assert_eq!(kinds(&another, "b").await, ["own", "own"]);
}

/// Reads all changes after a cursor.
async fn changes_after(store: &PostgresStore, cursor: ChangeCursor) -> Result<Vec<RequestId>> {
    let (mut start, mut seen) = (ChangeStart::After(cursor), Vec::new());
    loop {
        let page = store.change_list(&start, None, 3).await?;
        seen.extend(page.changes.iter().map(|change| change.event.request));
        if !page.more {
            return Ok(seen);
        }
        start = ChangeStart::After(page.cursor);
    }
}

/// Returns the cursors of the changes after `from`, and at the end.
async fn cursors_after(store: &PostgresStore, from: ChangeStart) -> Vec<ChangeCursor> {
    let page = store.change_list(&from, None, 1_000).await.unwrap();
    let each = page.changes.into_iter().map(|change| change.cursor);
    each.chain([page.cursor]).collect()
}

/// A store with a workspace whose requests are enqueued one by one.
fn fixture(store: &PostgresStore) -> Fixture {
    Fixture::new(Arc::new(store.clone()), clock())
}

async fn assert_gone(store: &PostgresStore, cursors: Vec<ChangeCursor>) {
    for cursor in cursors {
        let error = changes_after(store, cursor).await.unwrap_err();
        assert!(matches!(error.kind, ErrorKind::Gone(_)), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn cursors_are_refused_after_a_failover_that_lost_what_they_passed() {
    let mut servers = Replicated::start().await;
    let store = servers.store();
    let f = fixture(&store);
    let workspace = f.workspace(1).await;
    f.enqueue(&workspace, 2).await;
    let kept = cursors_after(&store, ChangeStart::Oldest).await;
    servers.detach_replica().await;
    f.enqueue(&workspace, 5).await;
    let lost = cursors_after(&store, ChangeStart::Now).await;
    servers.fail_over().await;
    reconnected(&store).await;
    // The new history passes the numbers of the lost one.
    for _ in 0..20 {
        f.enqueue(&workspace, 1).await;
    }
    assert_gone(&store, kept).await;
    assert_gone(&store, lost).await;
    let all = cursors_after(&store, ChangeStart::Oldest).await;
    assert_eq!(all.len(), 2 + 20 + 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn cursors_of_restored_files_are_exact_or_refused() {
    let mut server = Rewindable::start().await;
    let store = server.store();
    let f = fixture(&store);
    let workspace = f.workspace(1).await;
    let first = f.enqueue(&workspace, 3).await;
    let exact = cursors_after(&store, ChangeStart::Oldest).await;
    let saved = server.save();
    let end = exact.last().unwrap().clone();
    f.enqueue(&workspace, 3).await;
    let lost = cursors_after(&store, ChangeStart::After(end)).await;
    server.restore(saved);
    reconnected(&store).await;
    let mut expected = first;
    for _ in 0..10 {
        expected.extend(f.enqueue(&workspace, 1).await);
    }
    for (passed, cursor) in exact.into_iter().enumerate() {
        let rest = changes_after(&store, cursor).await.unwrap();
        let passed = (passed + 1).min(3);
        assert_eq!(rest, expected[passed..], "after {passed}");
    }
    assert_gone(&store, lost).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn cursors_continue_after_a_crash() {
    let mut server = Rewindable::start().await;
    let store = server.store();
    let f = fixture(&store);
    let workspace = f.workspace(1).await;
    let mut expected = f.enqueue(&workspace, 3).await;
    let cursors = cursors_after(&store, ChangeStart::Oldest).await;
    server.crash();
    reconnected(&store).await;
    expected.extend(f.enqueue(&workspace, 2).await);
    for (passed, cursor) in cursors.into_iter().enumerate() {
        let rest = changes_after(&store, cursor).await.unwrap();
        assert_eq!(rest, expected[(passed + 1).min(3)..]);
    }
}

//! A server behind PgBouncer that loses the last commits: the connections of the process survive, and what it knew is used by no transaction.
#![allow(clippy::unwrap_used)]

use crate::failover::{LOST, Rewindable, assert_higher, causes, draw_numbers};
use leasehold_core::JsonText;
use leasehold_core::job::{JobClaim, JobEnd, JobFinished};
use leasehold_store::DatabaseStore;
use leasehold_store::job::{JobStore, NewJob};
use leasehold_store_conformance::graph_factory::{graph_of, task_in};
use leasehold_store_conformance::{Fixture, clock};
use leasehold_store_postgres::{Pooler, PostgresOptions, PostgresStore};
use leasehold_testkit::PgBouncer;
use std::sync::Arc;
use tokio::task::block_in_place;

const LINE_REMOVE: &str = include_str!("sql/job_line_remove.sql");

/// A store of a process behind this pooler, with several connections to it.
async fn store(bouncer: &PgBouncer) -> PostgresStore {
    let options = PostgresOptions {
        // Debian's PgBouncer knows no prepared statements.
        pooler: Pooler::Transaction {
            prepared_statements: false,
        },
        ..PostgresOptions::new(format!(
            "postgres://postgres@{}/postgres",
            bouncer.address()
        ))
    };
    let store = PostgresStore::new(&options).unwrap();
    let calls = (0..4).map(|_| store.now());
    futures::future::try_join_all(calls).await.unwrap();
    store
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
async fn first_calls_through_pgbouncer_after_a_restore_use_nothing_of_the_lost_history() {
    let mut server = Rewindable::start().await;
    let bouncer = block_in_place(|| PgBouncer::start(&server.address(), &[]));
    let store = store(&bouncer).await;
    let f = Fixture::new(Arc::new(store.clone()), clock());
    let graph = graph_of(vec![task_in("lost 1", "node")], &[]);
    let t = f.graph_workspace(10, graph).await;
    f.enqueue(&t, 2).await;
    draw_numbers(&store, 1).await;

    let saved = server.save();
    let lost = draw_numbers(&store, LOST).await;
    // The process knows ids and lines that will be lost, and has tokens of the request that it will claim again.
    let queues: Vec<String> = (0..LOST).map(|n| format!("lost {n}")).collect();
    for queue in &queues {
        let job = [NewJob::new(queue, "lost", JsonText::default())];
        store.job_enqueue(&job).await.unwrap();
    }
    let claimed = f.claim(1).await.requests;
    f.start_graph(&claimed[0]).await;
    let lost_token = claimed[0].token;
    server.restore(saved);
    // A SQL caller comes first and gets ids of the lost queues.
    let client = server.client().await;
    let create = include_str!("sql/queue_create_many.sql");
    let count = i32::try_from(LOST).unwrap();
    client.query(create, &[&count, &"other "]).await.unwrap();

    // At once, and at the same time.
    let enqueue = futures::future::join_all(queues.iter().map(|queue| {
        let job = NewJob::new(queue, "own", JsonText::default());
        let store = &store;
        async move { store.job_enqueue(&[job]).await.unwrap() }
    }));
    let start = async {
        let again = f.claim(2).await.requests;
        assert_eq!(again.len(), 2);
        for request in &again {
            assert!(request.token > lost_token, "{} again", request.token);
            f.start_graph(request).await;
        }
    };
    tokio::join!(enqueue, start);
    assert_higher(&lost, &draw_numbers(&store, 3).await);
    assert_eq!(causes(&client).await, ["created", "rewound"]);
    for (n, queue) in queues.iter().enumerate() {
        let mut found = kinds(&store, queue).await;
        found.sort_unstable();
        match n {
            1 => assert_eq!(found, ["node", "node", "own"], "{queue}"),
            _ => assert_eq!(found, ["own"], "{queue}"),
        }
        let other = format!("other {}", n + 1);
        assert_eq!(kinds(&store, &other).await, ["send"], "{other}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn node_whose_line_is_missing_creates_it() {
    let server = Rewindable::start().await;
    let store = server.store();
    let f = Fixture::new(Arc::new(store.clone()), clock());
    let nodes = vec![task_in("first", "a"), task_in("second", "b")];
    let t = f.graph_workspace(10, graph_of(nodes, &[("a", "b")])).await;
    f.enqueue(&t, 1).await;
    let claimed = f.claim(1).await.requests;
    f.start_graph(&claimed[0]).await;
    let client = server.client().await;
    client.execute(LINE_REMOVE, &[&"second"]).await.unwrap();
    let first = f.claim_jobs_from("first", 1).await.jobs;
    let finished = f.finish_job(&first[0], JobEnd::Completed { result: None });
    assert_eq!(finished.await, JobFinished::Completed);
    assert_eq!(kinds(&store, "second").await, ["b"]);
}

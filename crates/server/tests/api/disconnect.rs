//! Callers that disconnect while the store works for them. It goes on with what it has begun, so the places of such calls must stay taken: otherwise a caller that
//! opens and cancels calls again and again would fill the store.

use crate::fairness::{TIMEOUT, list_in_time};
use crate::fixtures::one_task;
use crate::hanging_calls::{hanging, paused};
use axum::body::Body;
use axum::http::{Request, StatusCode, header};
use axum::response::Response;
use http_body_util::BodyExt;
use leasehold_core::key::KeyScope;
use leasehold_server::ServerOptions;
use leasehold_testbed::{BackendKind, KeyedWorkspace, ServerSetup, TestBackend, TestServer};
use leasehold_testkit::eventually;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tower::ServiceExt;

/// Calls of the tenant that disconnects, in each round.
const MANY: usize = 60;
/// Calls that a server of these tests allows at once: one tenant may have six.
const CALLS_MAX: usize = 8;
const CALLS_OF_ONE: usize = 6;

fn options() -> ServerOptions {
    ServerOptions {
        calls_max: CALLS_MAX,
        streams_max: CALLS_MAX,
        // The lookup of a key needs a connection of its owner, too.
        key_fresh_for: Duration::from_secs(3_600),
        ..ServerOptions::default()
    }
}

/// Starts a server with few places on this backend.
async fn server(backend: TestBackend) -> Arc<TestServer> {
    let setup = ServerSetup {
        options: options(),
        ..ServerSetup::default()
    };
    Arc::new(TestServer::over(backend, setup).await)
}

/// Returns how many of its calls the store runs at once for one tenant of these servers: three quarters of the connections that calls of the API may use.
fn store_calls_of_one(backend: &TestBackend) -> usize {
    let all = backend.store.capabilities().connections;
    let of_api = all - all / 5;
    (of_api - of_api.div_ceil(4)).clamp(1, CALLS_OF_ONE)
}

/// Lets the calls that were spawned begin, and waits until so many in all hang in the store.
async fn wait_for(hanging: &watch::Receiver<usize>, calls: usize) {
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    let reached = eventually(TIMEOUT, || async { *hanging.borrow() == calls });
    assert!(reached.await, "{} calls hang", *hanging.borrow());
}

/// Fails unless a further call of this tenant is refused, because its calls that hang have all of its places.
async fn expect_no_place(server: &TestServer, tenant: &KeyedWorkspace) {
    let refused = server.get(&tenant.path("/definitions"), &tenant.key).await;
    let problem = refused.expect_problem("overloaded", "");
    let detail = problem["detail"].as_str().unwrap();
    assert!(
        detail.starts_with("too many concurrent calls: 6 of this workspace"),
        "{detail}"
    );
}

#[tokio::test]
async fn lists_whose_callers_disconnect_keep_their_places() {
    for on in [BackendKind::Sqlite, BackendKind::Postgres] {
        let mut backend = TestBackend::new(on).await;
        let (switch, hanging) = hanging(&mut backend, "request_list", true);
        let server = Arc::new(TestServer::over(backend, ServerSetup::default()).await);
        let (busy, other) = (server.workspace(1).await, server.workspace(1).await);
        for _ in 0..3 {
            let mut calls = JoinSet::new();
            for _ in 0..MANY {
                let (server, busy) = (server.clone(), busy.clone());
                calls.spawn(async move { server.get(&busy.path("/requests"), &busy.key).await });
            }
            // Three of four lists are read at once for one tenant, also if they were begun by callers that are gone.
            wait_for(&hanging, 3).await;
            calls.shutdown().await;
        }
        switch.send_replace(false);
        list_in_time(&server, &other, 20).await;
        assert_eq!(*hanging.borrow(), 3);
    }
}

#[tokio::test]
async fn pages_of_changes_whose_callers_disconnect_keep_their_places() {
    for on in [BackendKind::Sqlite, BackendKind::Postgres] {
        let mut backend = TestBackend::new(on).await;
        let (switch, hanging) = hanging(&mut backend, "change_list", true);
        let most = store_calls_of_one(&backend);
        let server = server(backend).await;
        let (busy, other) = (server.workspace(1).await, server.workspace(1).await);
        for _ in 0..3 {
            let mut calls = JoinSet::new();
            for _ in 0..MANY {
                let (server, busy) = (server.clone(), busy.clone());
                calls.spawn(async move { server.get(&busy.path("/changes"), &busy.key).await });
            }
            wait_for(&hanging, most).await;
            calls.shutdown().await;
            expect_no_place(&server, &busy).await;
        }
        switch.send_replace(false);
        list_in_time(&server, &other, 20).await;
        assert_eq!(*hanging.borrow(), most);
    }
}

/// The response that tells a caller of the deadline does not end the read.
#[tokio::test]
async fn pages_of_changes_over_their_deadline_keep_their_places() {
    let mut backend = TestBackend::new(BackendKind::Sqlite).await;
    let (_switch, hanging) = hanging(&mut backend, "change_list", true);
    let most = store_calls_of_one(&backend);
    let setup = ServerSetup {
        options: ServerOptions {
            request_timeout: Duration::from_millis(200),
            ..options()
        },
        ..ServerSetup::default()
    };
    let server = TestServer::over(backend, setup).await;
    let tenant = server.workspace(1).await;
    for _ in 0..CALLS_OF_ONE {
        let page = server.get(&tenant.path("/changes"), &tenant.key).await;
        page.expect_problem("deadline_exceeded", "");
    }
    expect_no_place(&server, &tenant).await;
    assert_eq!(*hanging.borrow(), most);
}

/// Opens a change stream of a tenant without a socket.
async fn open_stream(server: &TestServer, tenant: &KeyedWorkspace) -> Response {
    let request = Request::get(tenant.path("/changes"))
        .header(header::ACCEPT, "text/event-stream")
        .header(header::AUTHORIZATION, format!("Bearer {}", tenant.key))
        .body(Body::empty())
        .unwrap();
    server.app.clone().oneshot(request).await.unwrap()
}

#[tokio::test]
async fn change_streams_whose_callers_disconnect_keep_their_places() {
    for on in [BackendKind::Sqlite, BackendKind::Postgres] {
        let mut backend = TestBackend::new(on).await;
        let (switch, hanging) = hanging(&mut backend, "change_list", false);
        // The server itself polls for changes while a stream is open.
        let most = store_calls_of_one(&backend) + 1;
        let server = server(backend).await;
        let (busy, other) = (server.workspace(1).await, server.workspace(1).await);
        let mut streams = JoinSet::new();
        for _ in 0..CALLS_OF_ONE {
            let stream = open_stream(&server, &busy).await;
            assert_eq!(stream.status(), StatusCode::OK);
            let mut body = stream.into_body();
            let ready = body.frame().await.unwrap().unwrap();
            assert!(ready.is_data());
            streams.spawn(async move { body.frame().await });
        }
        // Each polls the store at the latest after its interval.
        switch.send_replace(true);
        wait_for(&hanging, most).await;
        switch.send_replace(false);
        streams.shutdown().await;
        let stream = open_stream(&server, &other).await;
        assert_eq!(stream.status(), StatusCode::OK);
        // Those that wait for the store, and the other tenant's; further ones may have been idle.
        let metrics = server.get("/metrics", &server.admin).await.text;
        let (_, open) = metrics
            .split_once("\nleasehold_http_open_streams ")
            .unwrap();
        let (open, _) = open.split_once(".0\n").unwrap();
        let open: usize = open.parse().unwrap();
        assert!(open >= most, "{open} streams have places");
        list_in_time(&server, &other, 20).await;
        assert_eq!(*hanging.borrow(), most);
    }
}

/// Calls with a valid key that is looked up again and again. The lookup comes before the place of a call.
#[tokio::test]
async fn lookups_of_keys_whose_callers_disconnect_keep_their_places() {
    for on in [BackendKind::Sqlite, BackendKind::Postgres] {
        let mut backend = TestBackend::new(on).await;
        let (switch, hanging) = hanging(&mut backend, "key_find", false);
        let most = store_calls_of_one(&backend).min(4);
        let setup = ServerSetup {
            options: ServerOptions {
                key_fresh_for: Duration::ZERO,
                ..options()
            },
            ..ServerSetup::default()
        };
        let server = Arc::new(TestServer::over(backend, setup).await);
        let queues = vec!["busy".to_owned()];
        let busy = server.key(KeyScope::Worker { queues }).await;
        let claim = json!({ "worker": "w", "max": 1 });
        let path = "/v1/queues/busy/claim";
        let claimed = server.post(path, &busy, claim.clone()).await;
        claimed.expect(200);
        switch.send_replace(true);
        for _ in 0..3 {
            let mut calls = JoinSet::new();
            for _ in 0..MANY {
                let (server, busy, claim) = (server.clone(), busy.clone(), claim.clone());
                calls.spawn(async move { server.post(path, &busy, claim).await });
            }
            wait_for(&hanging, most).await;
            calls.shutdown().await;
        }
        switch.send_replace(false);
        let other = server.workspace(1).await;
        list_in_time(&server, &other, 5).await;
        assert_eq!(*hanging.borrow(), most);
    }
}

/// The server gives the engine up after five seconds. It may read from the store, which goes on.
#[tokio::test]
async fn reads_of_an_engine_that_was_given_up_keep_their_places() {
    let server = server(TestBackend::new(BackendKind::Sqlite).await).await;
    let tenant = server.workspace(1).await;
    server.publish_graph(&tenant, one_task()).await;
    let execution = server.enqueue_running(&tenant).await.execution;
    server.engine.set_hanging(true);
    let mut calls = JoinSet::new();
    for _ in 0..CALLS_OF_ONE {
        let (server, key) = (server.clone(), tenant.key.clone());
        let graph = tenant.path(&format!("/executions/{execution}/graph"));
        calls.spawn(async move { server.get(&graph, &key).await });
    }
    for shown in calls.join_all().await {
        shown.expect_problem("engine_unavailable", "");
    }
    assert_eq!(server.engine.hanging(), CALLS_OF_ONE);
    expect_no_place(&server, &tenant).await;
}

/// Thousands of claims are cancelled while the store works on them.
#[tokio::test]
async fn claims_whose_callers_disconnect_keep_their_places() {
    for on in [BackendKind::Sqlite, BackendKind::Postgres] {
        let mut backend = TestBackend::new(on).await;
        let (_switch, hanging) = hanging(&mut backend, "job_claim", true);
        // On SQLite a claim takes no connection from the pool, but a place in the line of the writer.
        let most = if backend.store.capabilities().changes_use_connections {
            store_calls_of_one(&backend)
        } else {
            CALLS_OF_ONE
        };
        let server = server(backend).await;
        let tenant = server.workspace(1).await;
        let queues = vec!["busy".to_owned()];
        let busy = server.key(KeyScope::Worker { queues }).await;
        let claim = json!({ "worker": "w", "max": 1, "wait_ms": 60_000 });
        for round in 0..50 {
            let mut calls = JoinSet::new();
            for _ in 0..MANY {
                let (server, busy, claim) = (server.clone(), busy.clone(), claim.clone());
                calls
                    .spawn(async move { server.post("/v1/queues/busy/claim", &busy, claim).await });
            }
            if round == 0 {
                wait_for(&hanging, most).await;
                for _ in CALLS_OF_ONE..MANY {
                    let refused = calls.join_next().await.unwrap().unwrap();
                    refused.expect_problem("overloaded", "");
                }
            } else {
                // Every place is taken, so all end at once.
                while let Some(refused) = calls.join_next().await {
                    refused.unwrap().expect_problem("overloaded", "");
                }
            }
            calls.shutdown().await;
        }
        assert_eq!(*hanging.borrow(), most);
        list_in_time(&server, &tenant, 20).await;
    }
}

/// What a disconnected caller has claimed is returned like any other large change of its owner: in turns, and as a part of its call.
#[tokio::test]
async fn jobs_of_disconnected_claims_are_returned_in_turns() {
    const JOBS: usize = 150;
    let mut backend = TestBackend::new(BackendKind::Sqlite).await;
    let (claims, claiming) = paused(&mut backend, "job_claim");
    let (_switch, returning) = hanging(&mut backend, "job_finish", true);
    let server = server(backend).await;
    let tenant = server.workspace(1).await;
    let queues = vec!["busy".to_owned()];
    let busy = server.key(KeyScope::Worker { queues }).await;
    let jobs = json!({ "jobs": vec![json!({ "kind": "a" }); JOBS * CALLS_OF_ONE] });
    let enqueued = server.post("/v1/queues/busy/jobs/batch", &server.admin, jobs);
    enqueued.await.expect(201);
    let claim = json!({ "worker": "w", "max": JOBS });
    let mut calls = JoinSet::new();
    for _ in 0..CALLS_OF_ONE {
        let (server, busy, claim) = (server.clone(), busy.clone(), claim.clone());
        calls.spawn(async move { server.post("/v1/queues/busy/claim", &busy, claim).await });
    }
    wait_for(&claiming, CALLS_OF_ONE).await;
    calls.shutdown().await;
    claims.send_replace(false);
    wait_for(&returning, 1).await;
    let running = "/v1/jobs?status=running&limit=1000";
    let all_claimed = eventually(TIMEOUT, || async {
        let jobs = server.get(running, &server.admin).await.expect(200);
        jobs["items"].as_array().unwrap().len() == JOBS * CALLS_OF_ONE
    });
    assert!(all_claimed.await);
    for _ in 0..3 {
        let refused = server.post("/v1/queues/busy/claim", &busy, claim.clone());
        refused.await.expect_problem("overloaded", "");
        list_in_time(&server, &tenant, 5).await;
    }
    assert_eq!(*returning.borrow(), 1, "one return of an owner at a time");
}

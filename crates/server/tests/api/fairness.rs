//! One tenant's calls fill every pool of the server, or hang in it; another tenant's calls are served all the while.

use crate::fixtures::one_task;
use crate::hanging_calls::hanging;
use crate::sse::{Stream, request_stream, serve};
use leasehold_core::key::{KeyScope, Secret};
use leasehold_core::limits::KEY_LOOKUPS_WAITING_MAX;
use leasehold_server::ServerOptions;
use leasehold_testbed::{BackendKind, KeyedWorkspace, ServerSetup, TestBackend, TestServer};
use leasehold_testkit::eventually;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;
use tokio::time::timeout;

/// How long a call of the other tenant may take on a slow machine; a call that has to wait for a hanging one never ends.
const GOOD_CALL: Duration = Duration::from_secs(30);
pub(crate) const TIMEOUT: Duration = Duration::from_secs(120);
/// Calls of the tenant that fills the pools.
const MANY: usize = 60;

/// Lists requests of a tenant again and again; each call must succeed in time. Returns the longest time.
pub(crate) async fn list_in_time(
    server: &TestServer,
    tenant: &KeyedWorkspace,
    times: usize,
) -> Duration {
    let mut longest = Duration::ZERO;
    for _ in 0..times {
        let begun = Instant::now();
        let path = tenant.path("/requests");
        let listed = timeout(GOOD_CALL, server.get(&path, &tenant.key)).await;
        listed
            .expect("the other tenant's list is served")
            .expect(200);
        longest = longest.max(begun.elapsed());
    }
    longest
}

#[tokio::test]
async fn hanging_lists_of_one_tenant_keep_no_other_from_listing() {
    for on in [BackendKind::Sqlite, BackendKind::Postgres] {
        let mut backend = TestBackend::new(on).await;
        let (switch, hanging) = hanging(&mut backend, "request_list", true);
        let server = Arc::new(TestServer::over(backend, ServerSetup::default()).await);
        let (busy, other) = (server.workspace(1).await, server.workspace(1).await);
        let mut calls = JoinSet::new();
        for _ in 0..MANY {
            let (server, busy) = (server.clone(), busy.clone());
            calls.spawn(async move { server.get(&busy.path("/requests"), &busy.key).await });
        }
        // Three of four lists are read at once for one tenant.
        let full = eventually(TIMEOUT, || async { *hanging.borrow() == 3 });
        assert!(full.await, "{} lists hang", *hanging.borrow());
        switch.send_replace(false);
        list_in_time(&server, &other, 20).await;
        assert_eq!(*hanging.borrow(), 3);
        assert!(calls.try_join_next().is_none());
    }
}

/// The route of a page of changes is also that of the stream, whose body has no deadline; the page had none either.
#[tokio::test]
async fn hanging_page_of_changes_ends_at_the_deadline() {
    let mut backend = TestBackend::new(BackendKind::Sqlite).await;
    let _hanging = hanging(&mut backend, "change_list", true);
    let options = ServerOptions {
        request_timeout: Duration::from_millis(200),
        ..ServerOptions::default()
    };
    let setup = ServerSetup {
        options,
        ..ServerSetup::default()
    };
    let server = TestServer::over(backend, setup).await;
    let tenant = server.workspace(1).await;
    let path = tenant.path("/changes");
    let page = server.get(&path, &tenant.key);
    let page = timeout(TIMEOUT, page).await.expect("it has a deadline");
    page.expect_problem("deadline_exceeded", "");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_lists_of_one_tenant_delay_no_other() {
    for on in [BackendKind::Sqlite, BackendKind::Postgres] {
        let server = Arc::new(TestServer::on(on).await);
        let (busy, other) = (server.workspace(1).await, server.workspace(1).await);
        let params = json!({ "text": "x".repeat(10_000) });
        let requests: Vec<Value> = (0..100)
            .map(|_| json!({ "definition": busy.definition, "params": params }))
            .collect();
        let batch = busy.path("/requests/batch");
        let enqueued = server.post(&batch, &busy.key, json!({ "requests": requests }));
        enqueued.await.expect(200);
        server.enqueue(&other).await;
        let quiet = list_in_time(&server, &other, 5).await;
        let mut calls = JoinSet::new();
        for _ in 0..MANY {
            let (server, busy) = (server.clone(), busy.clone());
            calls.spawn(async move {
                loop {
                    let listed = server.get(&busy.path("/requests"), &busy.key).await;
                    listed.expect(200);
                }
            });
        }
        let longest = list_in_time(&server, &other, 20).await;
        println!("{on:?}: longest list {quiet:?} quiet, {longest:?} beside {MANY} lists");
        calls.shutdown().await;
    }
}

#[tokio::test]
async fn hanging_engine_delays_no_lists_and_is_given_up() {
    for on in [BackendKind::Sqlite, BackendKind::Postgres] {
        let server = Arc::new(TestServer::on(on).await);
        let (busy, other) = (server.workspace(5).await, server.workspace(5).await);
        let mut executions = Vec::new();
        for tenant in [&busy, &other] {
            server.publish_graph(tenant, one_task()).await;
            executions.push(server.enqueue_running(tenant).await.execution);
        }
        server.engine.set_hanging(true);
        let graph = busy.path(&format!("/executions/{}/graph", executions[0]));
        let mut calls = JoinSet::new();
        for _ in 0..MANY {
            let (server, key, graph) = (server.clone(), busy.key.clone(), graph.clone());
            calls.spawn(async move { server.get(&graph, &key).await });
        }
        // Six of eight calls wait for the engine for one tenant.
        let full = eventually(TIMEOUT, || async { server.engine.hanging() == 6 });
        assert!(full.await, "{} calls hang", server.engine.hanging());
        list_in_time(&server, &other, 20).await;
        server.engine.set_hanging(false);
        let graph = other.path(&format!("/executions/{}/graph", executions[1]));
        let shown = timeout(GOOD_CALL, server.get(&graph, &other.key)).await;
        shown
            .expect("the other tenant's graph is shown")
            .expect(200);
        if on == BackendKind::Sqlite {
            let first = timeout(TIMEOUT, calls.join_next()).await;
            let first = first.expect("the engine is given up").unwrap().unwrap();
            let problem = first.expect_problem("engine_unavailable", "");
            assert_eq!(problem["detail"], "the engine did not answer within 5 s");
        }
    }
}

#[tokio::test]
async fn long_polls_of_one_key_keep_no_other_from_waiting_or_listing() {
    let options = ServerOptions {
        calls_max: 80,
        ..ServerOptions::default()
    };
    for on in [BackendKind::Sqlite, BackendKind::Postgres] {
        let server = Arc::new(TestServer::on_with_options(on, options.clone()).await);
        let tenant = server.workspace(1).await;
        let key = |queue: &str| KeyScope::Worker {
            queues: vec![queue.to_owned()],
        };
        let (busy, other) = (
            server.key(key("busy")).await,
            server.key(key("other")).await,
        );
        let claim = json!({ "worker": "w", "max": 1, "wait_ms": 60_000 });
        let mut calls = JoinSet::new();
        for _ in 0..MANY {
            let (server, busy, claim) = (server.clone(), busy.clone(), claim.clone());
            calls.spawn(async move { server.post("/v1/queues/busy/claim", &busy, claim).await });
        }
        // Half of the calls may wait, three quarters of them for one key.
        for _ in 30..MANY {
            let refused = timeout(TIMEOUT, calls.join_next()).await.unwrap();
            let problem = refused.unwrap().unwrap().expect_problem("overloaded", "");
            let detail = problem["detail"].as_str().unwrap();
            assert!(
                detail.starts_with("too many claims that wait for jobs: 30 of this key"),
                "{detail}"
            );
            assert!(detail.contains("server.calls_max"), "{detail}");
        }
        let full = eventually(TIMEOUT, || async { server.state.waiting_claims() == 30 });
        assert!(full.await);
        let waiting = tokio::spawn({
            let (server, claim) = (server.clone(), claim.clone());
            async move { server.post("/v1/queues/other/claim", &other, claim).await }
        });
        let waits = eventually(TIMEOUT, || async { server.state.waiting_claims() == 31 });
        assert!(waits.await);
        list_in_time(&server, &tenant, 20).await;
        let job = json!({ "kind": "a" });
        server
            .post("/v1/queues/other/jobs", &server.admin, job)
            .await
            .expect(201);
        let claimed = timeout(TIMEOUT, waiting)
            .await
            .unwrap()
            .unwrap()
            .expect(200);
        assert_eq!(claimed["jobs"].as_array().unwrap().len(), 1);
    }
}

/// A claim needs memory for its response. The first waiter of a queue polls for all, and must not wait for memory that its own key uses up.
#[tokio::test]
async fn waiting_claim_without_memory_keeps_no_other_from_the_jobs() {
    for on in [BackendKind::Sqlite, BackendKind::Postgres] {
        let mut backend = TestBackend::new(on).await;
        let (_switch, hanging) = hanging(&mut backend, "job_list", true);
        let options = ServerOptions {
            responses_max_bytes: 40 * 1024 * 1024,
            ..ServerOptions::default()
        };
        let setup = ServerSetup {
            options,
            ..ServerSetup::default()
        };
        let server = Arc::new(TestServer::over(backend, setup).await);
        let key = KeyScope::Worker {
            queues: vec!["shared".to_owned()],
        };
        let (busy, other) = (server.key(key.clone()).await, server.key(key).await);
        let claim = |key: &String| {
            let (server, key) = (server.clone(), key.clone());
            let body = json!({ "worker": "w", "max": 1_000, "wait_ms": 60_000 });
            tokio::spawn(async move { server.post("/v1/queues/shared/claim", &key, body).await })
        };
        let until_waiting = async |count: usize| {
            let wait = || async { server.state.waiting_claims() == count };
            assert!(eventually(TIMEOUT, wait).await);
        };
        let leader = claim(&busy);
        until_waiting(1).await;
        // A list that hangs holds nearly a quarter of the memory for its response.
        let list = tokio::spawn({
            let (server, busy) = (server.clone(), busy.clone());
            async move { server.get("/v1/queues/shared/jobs", &busy).await }
        });
        let hangs = eventually(TIMEOUT, || async { *hanging.borrow() == 1 });
        assert!(hangs.await);
        let waiting = claim(&other);
        until_waiting(2).await;
        let job = json!({ "kind": "a" });
        server
            .post("/v1/queues/shared/jobs", &server.admin, job)
            .await
            .expect(201);
        let claimed = timeout(TIMEOUT, waiting).await.unwrap().unwrap();
        let claimed = claimed.expect(200);
        assert_eq!(claimed["jobs"].as_array().unwrap().len(), 1);
        assert!(!leader.is_finished(), "it waits for memory");
        list.abort();
        leader.abort();
    }
}

#[tokio::test]
async fn streams_of_one_workspace_keep_no_other_from_streaming_or_listing() {
    let options = ServerOptions {
        streams_max: 8,
        streams_per_key: 4,
        ..ServerOptions::default()
    };
    for on in [BackendKind::Sqlite, BackendKind::Postgres] {
        let server = TestServer::on_with_options(on, options.clone()).await;
        let (busy, other) = (server.workspace(1).await, server.workspace(1).await);
        let base = serve(&server).await;
        let url = format!("{base}{}", busy.path("/changes"));
        // Several keys of the workspace share its part.
        let scope = KeyScope::Workspace(busy.workspace);
        let keys = [busy.key.clone(), server.key(scope).await];
        let (mut open, mut refusals) = (Vec::new(), Vec::new());
        for number in 0..12 {
            let response = request_stream(&url, &keys[number % 2], None).await;
            match response.status().as_u16() {
                200 => open.push(response),
                429 => refusals.push(response.json::<Value>().await.unwrap()),
                status => panic!("{status}"),
            }
        }
        assert_eq!((open.len(), refusals.len()), (6, 6));
        for problem in refusals {
            assert_eq!(problem["code"], "too_many_streams");
            let detail = problem["detail"].as_str().unwrap();
            assert!(detail.contains("6 of this workspace"), "{detail}");
            assert!(detail.contains("8 (server.streams_max)"), "{detail}");
        }
        let theirs = format!("{base}{}", other.path("/changes"));
        let mut stream = Stream::open(&theirs, &other.key, None).await;
        list_in_time(&server, &other, 5).await;
        let id = server.enqueue(&other).await;
        assert_eq!(stream.change().await.data["request"], id);
    }
}

#[tokio::test]
async fn calls_of_one_workspace_leave_a_quarter_for_others() {
    let options = ServerOptions {
        calls_max: 8,
        ..ServerOptions::default()
    };
    let server = Arc::new(TestServer::with_options(options).await);
    let (busy, other) = (server.workspace(5).await, server.workspace(1).await);
    server.publish_graph(&busy, one_task()).await;
    let execution = server.enqueue_running(&busy).await.execution;
    server.engine.set_hanging(true);
    let graph = busy.path(&format!("/executions/{execution}/graph"));
    let mut calls = JoinSet::new();
    for _ in 0..MANY {
        let (server, key, graph) = (server.clone(), busy.key.clone(), graph.clone());
        calls.spawn(async move { server.get(&graph, &key).await });
    }
    for _ in 6..MANY {
        let refused = timeout(TIMEOUT, calls.join_next()).await.unwrap();
        let refused = refused.unwrap().unwrap();
        assert_eq!(refused.header("retry-after"), "1");
        let problem = refused.expect_problem("overloaded", "");
        let detail = problem["detail"].as_str().unwrap();
        assert!(
            detail.contains("6 of this workspace, 6 in all; the limit is 8 (server.calls_max)"),
            "{detail}"
        );
    }
    list_in_time(&server, &other, 20).await;
}

/// Callers without a valid key can make only so many calls wait for a lookup. Keys that are known are not looked up behind them.
#[tokio::test]
async fn lookups_of_unknown_keys_do_not_pile_up() {
    let mut backend = TestBackend::new(BackendKind::Sqlite).await;
    let (switch, hanging) = hanging(&mut backend, "key_find", false);
    let options = ServerOptions {
        key_fresh_for: Duration::from_secs(3_600),
        ..ServerOptions::default()
    };
    let setup = ServerSetup {
        options,
        ..ServerSetup::default()
    };
    let server = Arc::new(TestServer::over(backend, setup).await);
    let tenant = server.workspace(1).await;
    server.get("/v1/me", &tenant.key).await.expect(200);
    switch.send_replace(true);
    let unknown = |number: u16| {
        let mut random = [9; 32];
        random[..2].copy_from_slice(&number.to_be_bytes());
        let secret = Secret::new(&KeyScope::Admin, &random);
        secret.reveal().to_owned()
    };
    let mut calls = JoinSet::new();
    for number in 0..2_000 {
        let (server, key) = (server.clone(), unknown(number));
        calls.spawn(async move { server.get("/v1/me", &key).await });
    }
    // All but those that wait or run are refused.
    let held = KEY_LOOKUPS_WAITING_MAX + 4;
    for _ in held..2_000 {
        let refused = timeout(TIMEOUT, calls.join_next()).await.unwrap();
        let refused = refused.unwrap().unwrap();
        assert_eq!(refused.header("retry-after"), "1");
        let problem = refused.expect_problem("overloaded", "");
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.contains("API key"), "{detail}");
    }
    assert!(*hanging.borrow() <= 4);
    assert!(calls.try_join_next().is_none());
    server.get("/v1/me", &tenant.key).await.expect(200);
    calls.shutdown().await;
}

/// A bulk redrive of any size takes its turn: its requests can be large.
#[tokio::test]
async fn bulk_redrives_of_one_workspace_take_turns() {
    let mut backend = TestBackend::new(BackendKind::Sqlite).await;
    let (_switch, hanging) = hanging(&mut backend, "request_redrive_many", true);
    let server = Arc::new(TestServer::over(backend, ServerSetup::default()).await);
    let (busy, other) = (server.workspace(1).await, server.workspace(1).await);
    let mut calls = JoinSet::new();
    for _ in 0..10 {
        let (server, busy) = (server.clone(), busy.clone());
        calls.spawn(async move {
            let path = busy.path("/dead-letters/redrive");
            server.post(&path, &busy.key, json!({ "limit": 1 })).await
        });
    }
    let begun = eventually(TIMEOUT, || async { *hanging.borrow() == 1 });
    assert!(begun.await, "{} redrives hang", *hanging.borrow());
    list_in_time(&server, &busy, 20).await;
    assert_eq!(*hanging.borrow(), 1);
    let path = other.path("/dead-letters/redrive");
    let call = tokio::spawn({
        let (server, key) = (server.clone(), other.key.clone());
        async move { server.post(&path, &key, json!({ "limit": 1 })).await }
    });
    let begun = eventually(TIMEOUT, || async { *hanging.borrow() == 2 });
    assert!(begun.await, "another workspace has its own turn");
    call.abort();
}

//! The change stream: its start, its events, its limits and its end.

use crate::sse::{Stream, TIMEOUT, parse_event, request_stream, serve};
use axum::body::Body;
use axum::http::{Method, Request};
use http_body_util::BodyExt;
use leasehold_core::ExecutionEnd;
use leasehold_core::key::KeyScope;
use leasehold_ops::key::KeySpec;
use leasehold_server::ServerOptions;
use leasehold_store::Actor;
use leasehold_testbed::{BackendKind, TestServer};
use leasehold_testkit::eventually;
use rusqlite::Connection;
use serde_json::Value;
use std::time::Duration;
use tower::ServiceExt;
use uuid::Uuid;

#[tokio::test]
async fn stream_starts_now_and_has_later_changes() {
    for on in [BackendKind::Sqlite, BackendKind::Postgres] {
        let server = TestServer::on(on).await;
        let workspace = server.workspace(5).await;
        let url = format!("{}{}", serve(&server).await, workspace.path("/changes"));
        server.enqueue(&workspace).await;
        let mut stream = Stream::open(&url, &workspace.key, None).await;
        let ready = stream.next().await.unwrap();
        assert_eq!(ready.event, "ready");
        assert!(ready.id.is_some());
        let id = server.enqueue(&workspace).await;
        let change = stream.change().await;
        assert_eq!(change.data["request"], id);
        assert_eq!(change.data["workspace"], workspace.workspace.to_string());
        assert_eq!(change.data["to"], "PENDING");
        assert_eq!(change.data.get("from"), None);
        let claimed = server.claim(9).await;
        assert_eq!(claimed.len(), 2);
        for _ in 0..2 {
            let change = stream.change().await;
            assert_eq!(change.data["from"], "PENDING");
            assert_eq!(change.data["to"], "CLAIMED");
        }
    }
}

#[tokio::test]
async fn stream_from_oldest_has_all_changes_and_after_an_id_the_later_ones() {
    for on in [BackendKind::Sqlite, BackendKind::Postgres] {
        let server = TestServer::on(on).await;
        let (workspace, other) = (server.workspace(5).await, server.workspace(5).await);
        let mut own = Vec::new();
        for _ in 0..3 {
            server.enqueue(&other).await;
            own.push(server.enqueue(&workspace).await);
        }
        let base = serve(&server).await;
        let url = format!("{base}{}", workspace.path("/changes"));
        let mut stream = Stream::open(&format!("{url}?from=oldest"), &workspace.key, None).await;
        let mut ids = Vec::new();
        for expected in &own {
            let change = stream.change().await;
            assert_eq!(change.data["request"], *expected);
            ids.push(change.id.unwrap());
        }
        let mut resumed = Stream::open(&url, &workspace.key, Some(&ids[0])).await;
        let ready = resumed.next().await.unwrap();
        assert_eq!(
            ready.id.as_deref(),
            Some(&*ids[0]),
            "a client that disconnects here resumes here"
        );
        assert_eq!(resumed.change().await.data["request"], own[1]);
        let encoded = ids[1].replace('/', "%2F");
        let by_query = format!("{url}?after={encoded}&from=oldest");
        let mut resumed = Stream::open(&by_query, &workspace.key, None).await;
        assert_eq!(resumed.change().await.data["request"], own[2]);
        let mut both = Stream::open(&by_query, &workspace.key, Some(&ids[0])).await;
        assert_eq!(
            both.change().await.data["request"],
            own[1],
            "the header takes precedence"
        );
        let all = format!("{base}/v1/changes?from=oldest");
        let mut all = Stream::open(&all, &server.admin, None).await;
        for _ in 0..6 {
            all.change().await;
        }
    }
}

#[tokio::test]
async fn invalid_cursor_is_rejected() {
    for on in [BackendKind::Sqlite, BackendKind::Postgres] {
        let server = TestServer::on(on).await;
        let workspace = server.workspace(1).await;
        let path = workspace.path("/changes");
        for cursor in ["x", "999999999", "-1", "oldest/1:1/0", "1/2/3/4"] {
            let headers = [("last-event-id", cursor)];
            let answer =
                server.call_with(Method::GET, &path, &workspace.key, &headers, Value::Null);
            answer
                .await
                .expect_problem("invalid_parameter", "Last-Event-ID");
            let answer = server
                .get(&format!("{path}?after={cursor}"), &workspace.key)
                .await;
            answer.expect_problem("invalid_parameter", "after");
        }
        let answer = server
            .get(&format!("{path}?from=yesterday"), &workspace.key)
            .await;
        answer.expect_problem("invalid_parameter", "query");
        let nowhere = format!("/v1/workspaces/{}/changes", Uuid::nil());
        server
            .get(&nowhere, &server.admin)
            .await
            .expect_problem("not_found", "");
    }
}

#[tokio::test]
async fn cursor_of_a_lost_history_is_gone_and_its_stream_ends() {
    let server = TestServer::new().await;
    let workspace = server.workspace(1).await;
    server.enqueue_ended(&workspace, ExecutionEnd::Failed).await;
    let path = workspace.path("/changes");
    let oldest = format!("{path}?from=oldest");
    let page = server.get(&oldest, &workspace.key).await.expect(200);
    let next = page["next"].as_str().unwrap().to_owned();
    let url = format!("{}{path}", serve(&server).await);
    let mut stream = Stream::open(&url, &workspace.key, Some(&next)).await;
    assert_eq!(stream.next().await.unwrap().event, "ready");

    let file = Connection::open(server.backend.file()).unwrap();
    file.execute(include_str!("sql/epoch_change.sql"), [])
        .unwrap();
    let last = stream.next().await.unwrap();
    assert!(last.comment.contains("cursor_gone"), "{last:?}");
    assert_eq!(stream.next().await, None);
    let after = format!("{path}?after={next}");
    let gone = server.get(&after, &workspace.key).await;
    gone.expect_problem("cursor_gone", "");
    let refused = request_stream(&url, &workspace.key, Some(&next)).await;
    assert_eq!(refused.status(), 410);
    // Without a cursor the stream starts again.
    let mut stream = Stream::open(&url, &workspace.key, None).await;
    assert_eq!(stream.next().await.unwrap().event, "ready");
}

#[tokio::test]
async fn streams_of_a_key_are_limited_until_one_closes() {
    let options = ServerOptions {
        streams_per_key: 2,
        streams_max: 4,
        ..ServerOptions::default()
    };
    let server = TestServer::with_options(options).await;
    let (workspace, other) = (server.workspace(1).await, server.workspace(1).await);
    let base = serve(&server).await;
    let url = format!("{base}{}", workspace.path("/changes"));
    let first = Stream::open(&url, &workspace.key, None).await;
    let _second = Stream::open(&url, &workspace.key, None).await;
    let refused = request_stream(&url, &workspace.key, None).await;
    assert_eq!(refused.status(), 429);
    assert_eq!(refused.headers()["retry-after"], "5");
    let problem: Value = refused.json().await.unwrap();
    assert_eq!(problem["code"], "too_many_streams");
    let theirs = format!("{base}{}", other.path("/changes"));
    let _third = Stream::open(&theirs, &other.key, None).await;
    assert_eq!(
        request_stream(&theirs, &other.key, None).await.status(),
        429,
        "the last place is for others"
    );
    drop(first);
    let free = eventually(TIMEOUT, || async {
        request_stream(&url, &workspace.key, None).await.status() == 200
    });
    assert!(free.await);
}

#[tokio::test]
async fn stream_ends_with_a_comment_when_the_server_stops() {
    let server = TestServer::new().await;
    let workspace = server.workspace(1).await;
    let url = format!("{}{}", serve(&server).await, workspace.path("/changes"));
    let mut stream = Stream::open(&url, &workspace.key, None).await;
    assert_eq!(stream.next().await.unwrap().event, "ready");
    server.stop.cancel();
    let last = stream.next().await.unwrap();
    assert!(last.comment.contains("the server is stopping"), "{last:?}");
    assert_eq!(stream.next().await, None);
}

#[tokio::test]
async fn stream_ends_when_its_key_is_revoked_or_its_workspace_deleted() {
    let server = TestServer::new().await;
    let workspace = server.workspace(1).await;
    let url = format!("{}{}", serve(&server).await, workspace.path("/changes"));
    let scope = KeyScope::Workspace(workspace.workspace);
    let spec = KeySpec::full("passing", scope);
    let key = leasehold_ops::key::create(&*server.store, &spec, &Actor::Local).await;
    let (key, secret) = key.unwrap();
    let mut stream = Stream::open(&url, secret.reveal(), None).await;
    let mut other = Stream::open(&url, &workspace.key, None).await;
    for stream in [&mut stream, &mut other] {
        assert_eq!(stream.next().await.unwrap().event, "ready");
    }
    let path = format!("/v1/keys/{}", key.id);
    server
        .call(Method::DELETE, &path, &server.admin, Value::Null)
        .await
        .expect(200);
    assert_eq!(stream.next().await.unwrap().comment, "the key was revoked");
    assert_eq!(stream.next().await, None);
    let path = workspace.path("");
    server
        .call(Method::DELETE, &path, &server.admin, Value::Null)
        .await
        .expect(204);
    assert_eq!(
        other.next().await.unwrap().comment,
        "the workspace was deleted"
    );
    assert_eq!(other.next().await, None);
}

#[tokio::test]
async fn idle_stream_sends_keep_alive_with_its_cursor() {
    let server = TestServer::new().await;
    let (workspace, other) = (server.workspace(1).await, server.workspace(1).await);
    let request = Request::get(workspace.path("/changes"))
        .header("accept", "text/event-stream")
        .header("authorization", format!("Bearer {}", workspace.key))
        .body(Body::empty())
        .unwrap();
    let begun = tokio::time::Instant::now();
    let response = server.app.clone().oneshot(request).await.unwrap();
    let mut body = response.into_body();
    let mut next = async || {
        let frame = tokio::time::timeout(TIMEOUT, body.frame()).await;
        let frame = frame.unwrap().unwrap().unwrap();
        parse_event(
            std::str::from_utf8(frame.data_ref().unwrap())
                .unwrap()
                .trim(),
        )
    };
    let ready = next().await;
    server.enqueue(&other).await;
    // Not paused for longer: tokio would advance the clock while it waits for the threads of the store.
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(13)).await;
    tokio::time::resume();
    let alive = next().await;
    assert!(
        begun.elapsed() >= Duration::from_secs(14),
        "{:?}",
        begun.elapsed()
    );
    assert_eq!(
        (alive.event.as_str(), &alive.data),
        ("", &Value::Null),
        "no event"
    );
    assert!(alive.id.is_some() && alive.id != ready.id, "{alive:?}");
}

#[tokio::test]
async fn without_event_stream_a_page_with_next_is_returned() {
    let server = TestServer::new().await;
    let workspace = server.workspace(1).await;
    for _ in 0..3 {
        let path = workspace.path("/requests");
        let made = server.post(&path, &workspace.key, workspace.order()).await;
        made.expect(201);
    }
    let page = async |query: &str| {
        let path = workspace.path(&format!("/changes{query}"));
        server.get(&path, &workspace.key).await.expect(200)
    };
    let first = page("?from=oldest&limit=2").await;
    assert_eq!(first["changes"].as_array().unwrap().len(), 2);
    assert_eq!(first["changes"][1]["cursor"], first["next"]);
    let second = page(&format!("?after={}", first["next"].as_str().unwrap())).await;
    assert_eq!(second["changes"].as_array().unwrap().len(), 1);
    assert_eq!(second["changes"][0]["event"]["to"], "PENDING");
    let last = page(&format!("?after={}", second["next"].as_str().unwrap())).await;
    assert_eq!(last["changes"], serde_json::json!([]));
    assert_eq!(page("").await["changes"], serde_json::json!([]));
}

//! The stream of changes: where it begins, what is on it, who may listen and when it ends.

use crate::sse::{PATIENCE, Stream, ask, parsed, serve};
use axum::body::Body;
use axum::http::{Method, Request};
use http_body_util::BodyExt;
use leasehold_core::key::KeyScope;
use leasehold_server::ServerOptions;
use leasehold_testbed::{BackendKind, TestServer};
use leasehold_testkit::eventually;
use serde_json::Value;
use std::time::Duration;
use tower::ServiceExt;
use uuid::Uuid;

#[tokio::test]
async fn a_stream_begins_now_and_has_what_happens_from_then_on() {
    for on in [BackendKind::Sqlite, BackendKind::Postgres] {
        let ground = TestServer::on(on).await;
        let site = ground.workspace(5).await;
        let url = format!("{}{}", serve(&ground).await, site.path("/changes"));
        ground.enqueue(&site).await;
        let mut stream = Stream::open(&url, &site.key, None).await;
        let ready = stream.next().await.unwrap();
        assert_eq!(ready.event, "ready");
        assert!(ready.id.is_some());
        let id = ground.enqueue(&site).await;
        let change = stream.change().await;
        assert_eq!(change.data["request"], id);
        assert_eq!(change.data["workspace"], site.workspace.to_string());
        assert_eq!(change.data["to"], "PENDING");
        assert_eq!(change.data.get("from"), None);
        let claimed = ground.claim(9).await;
        assert_eq!(claimed.len(), 2);
        for _ in 0..2 {
            let change = stream.change().await;
            assert_eq!(change.data["from"], "PENDING");
            assert_eq!(change.data["to"], "CLAIMED");
        }
    }
}

#[tokio::test]
async fn a_stream_from_the_oldest_has_everything_and_one_after_an_id_what_follows_it() {
    for on in [BackendKind::Sqlite, BackendKind::Postgres] {
        let ground = TestServer::on(on).await;
        let (site, other) = (ground.workspace(5).await, ground.workspace(5).await);
        let mut own = Vec::new();
        for _ in 0..3 {
            ground.enqueue(&other).await;
            own.push(ground.enqueue(&site).await);
        }
        let base = serve(&ground).await;
        let url = format!("{base}{}", site.path("/changes"));
        let mut stream = Stream::open(&format!("{url}?from=oldest"), &site.key, None).await;
        let mut ids = Vec::new();
        for expected in &own {
            let change = stream.change().await;
            assert_eq!(change.data["request"], *expected);
            ids.push(change.id.unwrap());
        }
        let mut resumed = Stream::open(&url, &site.key, Some(&ids[0])).await;
        let ready = resumed.next().await.unwrap();
        assert_eq!(
            ready.id.as_deref(),
            Some(&*ids[0]),
            "whoever breaks off here goes on here"
        );
        assert_eq!(resumed.change().await.data["request"], own[1]);
        let encoded = ids[1].replace('/', "%2F");
        let by_query = format!("{url}?after={encoded}&from=oldest");
        let mut resumed = Stream::open(&by_query, &site.key, None).await;
        assert_eq!(resumed.change().await.data["request"], own[2]);
        let mut both = Stream::open(&by_query, &site.key, Some(&ids[0])).await;
        assert_eq!(
            both.change().await.data["request"],
            own[1],
            "the header goes first"
        );
        let all = format!("{base}/v1/changes?from=oldest");
        let mut all = Stream::open(&all, &ground.admin, None).await;
        for _ in 0..6 {
            all.change().await;
        }
    }
}

#[tokio::test]
async fn a_place_that_is_not_one_is_refused() {
    for on in [BackendKind::Sqlite, BackendKind::Postgres] {
        let ground = TestServer::on(on).await;
        let site = ground.workspace(1).await;
        let path = site.path("/changes");
        for cursor in ["x", "999999999", "-1", "oldest/1:1/0", "1/2/3/4"] {
            let headers = [("last-event-id", cursor)];
            let answer = ground.call_with(Method::GET, &path, &site.key, &headers, Value::Null);
            answer.await.refused("invalid_parameter", "Last-Event-ID");
            let answer = ground
                .get(&format!("{path}?after={cursor}"), &site.key)
                .await;
            answer.refused("invalid_parameter", "after");
        }
        let answer = ground
            .get(&format!("{path}?from=yesterday"), &site.key)
            .await;
        answer.refused("invalid_parameter", "query");
        let nowhere = format!("/v1/workspaces/{}/changes", Uuid::nil());
        ground
            .get(&nowhere, &ground.admin)
            .await
            .refused("not_found", "");
    }
}

#[tokio::test]
async fn a_key_has_so_many_streams_and_gets_one_back_when_one_is_broken_off() {
    let options = ServerOptions {
        streams_per_key: 2,
        streams_max: 3,
        ..ServerOptions::default()
    };
    let ground = TestServer::with_options(options).await;
    let (site, other) = (ground.workspace(1).await, ground.workspace(1).await);
    let base = serve(&ground).await;
    let url = format!("{base}{}", site.path("/changes"));
    let first = Stream::open(&url, &site.key, None).await;
    let _second = Stream::open(&url, &site.key, None).await;
    let refused = ask(&url, &site.key, None).await;
    assert_eq!(refused.status(), 429);
    assert_eq!(refused.headers()["retry-after"], "5");
    let problem: Value = refused.json().await.unwrap();
    assert_eq!(problem["code"], "too_many_streams");
    let theirs = format!("{base}{}", other.path("/changes"));
    let _third = Stream::open(&theirs, &other.key, None).await;
    assert_eq!(
        ask(&theirs, &other.key, None).await.status(),
        429,
        "the server is full"
    );
    drop(first);
    let free = eventually(PATIENCE, || async {
        ask(&url, &site.key, None).await.status() == 200
    });
    assert!(free.await);
}

#[tokio::test]
async fn a_stream_ends_with_a_word_when_the_server_stops() {
    let ground = TestServer::new().await;
    let site = ground.workspace(1).await;
    let url = format!("{}{}", serve(&ground).await, site.path("/changes"));
    let mut stream = Stream::open(&url, &site.key, None).await;
    assert_eq!(stream.next().await.unwrap().event, "ready");
    ground.stop.cancel();
    let word = stream.next().await.unwrap();
    assert!(word.comment.contains("the server stops"), "{word:?}");
    assert_eq!(stream.next().await, None);
}

#[tokio::test]
async fn a_stream_ends_when_its_key_is_revoked_or_its_workspace_deleted() {
    let ground = TestServer::new().await;
    let site = ground.workspace(1).await;
    let url = format!("{}{}", serve(&ground).await, site.path("/changes"));
    let scope = KeyScope::Workspace(site.workspace);
    let key = leasehold_ops::key::create(&*ground.store, "passing", scope).await;
    let (key, secret) = key.unwrap();
    let mut stream = Stream::open(&url, secret.reveal(), None).await;
    let mut other = Stream::open(&url, &site.key, None).await;
    for stream in [&mut stream, &mut other] {
        assert_eq!(stream.next().await.unwrap().event, "ready");
    }
    let path = format!("/v1/keys/{}", key.id);
    ground
        .call(Method::DELETE, &path, &ground.admin, Value::Null)
        .await
        .expect(200);
    assert_eq!(stream.next().await.unwrap().comment, "the key is revoked");
    assert_eq!(stream.next().await, None);
    let path = site.path("");
    ground
        .call(Method::DELETE, &path, &ground.admin, Value::Null)
        .await
        .expect(204);
    assert_eq!(
        other.next().await.unwrap().comment,
        "the workspace is deleted"
    );
    assert_eq!(other.next().await, None);
}

#[tokio::test]
async fn a_silent_stream_says_now_and_then_that_it_lives_and_where_it_is() {
    let ground = TestServer::new().await;
    let (site, other) = (ground.workspace(1).await, ground.workspace(1).await);
    let request = Request::get(site.path("/changes"))
        .header("accept", "text/event-stream")
        .header("authorization", format!("Bearer {}", site.key))
        .body(Body::empty())
        .unwrap();
    let response = ground.app.clone().oneshot(request).await.unwrap();
    let mut body = response.into_body();
    let mut next = async || {
        let frame = body.frame().await.unwrap().unwrap();
        parsed(
            std::str::from_utf8(frame.data_ref().unwrap())
                .unwrap()
                .trim(),
        )
    };
    let ready = next().await;
    ground.enqueue(&other).await;
    // From here on the clock runs as fast as nobody is busy.
    tokio::time::pause();
    let begun = tokio::time::Instant::now();
    let alive = next().await;
    assert!(
        begun.elapsed() >= Duration::from_secs(14),
        "{:?}",
        begun.elapsed()
    );
    assert!(
        begun.elapsed() <= Duration::from_secs(20),
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
async fn whoever_asks_for_no_stream_gets_a_page_and_the_place_to_go_on() {
    let ground = TestServer::new().await;
    let site = ground.workspace(1).await;
    for _ in 0..3 {
        let path = site.path("/requests");
        let made = ground.post(&path, &site.key, site.order()).await;
        made.expect(201);
    }
    let page = async |query: &str| {
        let path = site.path(&format!("/changes{query}"));
        ground.get(&path, &site.key).await.expect(200)
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

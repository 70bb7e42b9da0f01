//! What the server says of itself, and the limits that need no socket.

use axum::http::Method;
use leasehold_server::ServerOptions;
use leasehold_testbed::TestServer;
use serde_json::{Value, json};
use std::time::Instant;

#[tokio::test]
async fn a_workspace_that_calls_too_often_is_told_to_wait_whatever_the_key() {
    let options = ServerOptions {
        rate_per_second: 1,
        rate_burst: 2,
        ..ServerOptions::default()
    };
    let ground = TestServer::with_options(options).await;
    let (loud, quiet) = (ground.workspace(1).await, ground.workspace(1).await);
    ground.get(&loud.path(""), &loud.key).await.expect(200);
    ground.get(&loud.path(""), &ground.admin).await.expect(200);
    for key in [&loud.key, &ground.admin] {
        let answer = ground.get(&loud.path(""), key).await;
        assert_eq!((answer.status, answer.header("retry-after")), (429, "1"));
        answer.refused("rate_limited", "");
    }
    ground
        .get("/v1/me", &loud.key)
        .await
        .refused("rate_limited", "");
    ground.get(&quiet.path(""), &quiet.key).await.expect(200);
    ground.get("/v1/me", &ground.admin).await.expect(200);
}

#[tokio::test]
async fn bodies_that_do_not_fit_together_are_refused_and_leave_room_again() {
    let options = ServerOptions {
        bodies_max_bytes: 4096,
        ..ServerOptions::default()
    };
    let ground = TestServer::with_options(options).await;
    for name in ["x".repeat(5000), "y".repeat(5000)] {
        let body = json!({"name": name, "plan": "FREE"});
        let refused = ground.post("/v1/workspaces", &ground.admin, body).await;
        assert_eq!(refused.header("retry-after"), "1");
        refused.refused("overloaded", "");
    }
    let small = json!({"name": "small", "plan": "FREE"});
    ground
        .post("/v1/workspaces", &ground.admin, small)
        .await
        .expect(201);
}

#[tokio::test]
async fn calls_are_counted_by_route_and_never_by_path() {
    let ground = TestServer::new().await;
    let site = ground.workspace(1).await;
    ground.get(&site.path(""), &site.key).await.expect(200);
    ground.get("/some/secret/path", "").await.expect(404);
    ground.get("/v1/workspaces", "").await.expect(401);
    let shown = ground.get("/metrics", &ground.admin).await;
    let kind = shown.header("content-type");
    assert_eq!(kind, "text/plain; version=0.0.4; charset=utf-8");
    leasehold_testkit::check_metrics(&shown.text);
    let counted = |route: &str, status: u16| {
        format!(
            r#"leasehold_http_requests_total{{method="GET",route="{route}",status="{status}"}} 1"#
        )
    };
    for line in [
        counted("/v1/workspaces/{workspace}", 200),
        counted("none", 404),
        counted("/v1/workspaces", 401),
        format!(
            r#"leasehold_build_info{{version="{}"}} 1"#,
            env!("CARGO_PKG_VERSION")
        ),
    ] {
        assert!(
            shown.text.contains(&line),
            "{line} is not in\n{}",
            shown.text
        );
    }
    let calls = shown.text.lines();
    for line in calls.filter(|line| line.starts_with("leasehold_http_")) {
        assert!(!line.contains("secret"), "{line}");
        assert!(!line.contains(&site.workspace.to_string()), "{line}");
    }
}

#[tokio::test]
async fn who_asks_for_open_metrics_gets_it() {
    let ground = TestServer::new().await;
    let accept = ("accept", "application/openmetrics-text;version=1.0.0");
    let headers = [accept];
    let (path, key) = ("/metrics", &ground.admin);
    let asked = ground.call_with(Method::GET, path, key, &headers, Value::Null);
    let shown = asked.await;
    let kind = shown.header("content-type");
    assert_eq!(
        kind,
        "application/openmetrics-text; version=1.0.0; charset=utf-8"
    );
    assert!(
        shown
            .text
            .contains("# TYPE queue_items_dispatched counter\n")
    );
    assert!(shown.text.ends_with("# EOF\n"), "{}", shown.text);
}

#[tokio::test]
async fn the_store_is_asked_once_a_second_however_often_it_is_scraped() {
    let ground = TestServer::new().await;
    let asked = "leasehold_store_calls_total{call=\"workspace_overview\",outcome=\"ok\"} ";
    let begun = Instant::now();
    for _ in 0..20 {
        let shown = ground.get("/metrics", &ground.admin).await.text;
        let times = shown.lines().find_map(|line| line.strip_prefix(asked));
        let times: u64 = times.unwrap().parse().unwrap();
        assert!(
            (1..=1 + begun.elapsed().as_secs()).contains(&times),
            "{times}"
        );
    }
}

#[tokio::test]
async fn every_code_is_explained_by_the_server() {
    let ground = TestServer::new().await;
    let list = ground.get("/errors", "").await;
    assert_eq!(list.status, 200);
    for code in leasehold_api::Code::ALL {
        assert!(list.text.contains(code.as_str()));
        let page = ground.get(&format!("/errors/{}", code.as_str()), "").await;
        assert_eq!(
            (page.status, page.header("content-type")),
            (200, "text/plain; charset=utf-8")
        );
        assert!(page.text.starts_with(&format!("# {}\n", code.as_str())));
    }
    ground
        .get("/errors/nothing", "")
        .await
        .refused("not_found", "");
}

#[tokio::test]
async fn the_page_to_try_the_api_loads_nothing_from_elsewhere() {
    let ground = TestServer::new().await;
    let page = ground.get("/docs/", "").await;
    assert_eq!(page.status, 200);
    let policy = page.header("content-security-policy");
    assert!(policy.contains("default-src 'none'"), "{policy}");
    assert!(!policy.contains("http"), "{policy}");
    assert!(!page.text.contains("://"), "{}", page.text);
}

#[tokio::test]
async fn a_server_that_stops_is_alive_and_not_ready() {
    let ground = TestServer::new().await;
    ground.get("/readyz", "").await.expect(200);
    ground.stop.cancel();
    ground.get("/readyz", "").await.refused("overloaded", "");
    ground.get("/healthz", "").await.expect(200);
}

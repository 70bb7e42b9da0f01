//! Health, metrics and documentation routes, and the limits that need no socket.

use axum::http::Method;
use leasehold_server::ServerOptions;
use leasehold_testbed::TestServer;
use leasehold_testkit::eventually;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// How often a scenario is repeated that a slow machine made meaningless.
const ATTEMPTS: usize = 20;

#[tokio::test]
async fn workspace_over_its_rate_limit_is_rejected_with_any_key() {
    let options = ServerOptions {
        rate_per_second: 1,
        rate_burst: 2,
        ..ServerOptions::default()
    };
    let server = TestServer::with_options(options).await;
    let quiet = server.workspace(1).await;
    for _ in 0..ATTEMPTS {
        let loud = server.workspace(1).await;
        let begun = Instant::now();
        server.get(&loud.path(""), &loud.key).await.expect(200);
        server.get(&loud.path(""), &server.admin).await.expect(200);
        let over = [
            server.get(&loud.path(""), &loud.key).await,
            server.get(&loud.path(""), &server.admin).await,
            server.get("/v1/me", &loud.key).await,
        ];
        if begun.elapsed() >= Duration::from_secs(1) {
            // The machine was too slow: another call was allowed meanwhile.
            continue;
        }
        for answer in over {
            assert_eq!((answer.status, answer.header("retry-after")), (429, "1"));
            answer.expect_problem("rate_limited", "");
        }
        server.get(&quiet.path(""), &quiet.key).await.expect(200);
        server.get("/v1/me", &server.admin).await.expect(200);
        return;
    }
    panic!("five calls took longer than a second {ATTEMPTS} times");
}

#[tokio::test]
async fn bodies_over_the_total_limit_are_rejected_and_released() {
    let options = ServerOptions {
        bodies_max_bytes: 4096,
        ..ServerOptions::default()
    };
    let server = TestServer::with_options(options).await;
    for name in ["x".repeat(5000), "y".repeat(5000)] {
        let body = json!({"name": name, "plan": "FREE"});
        let refused = server.post("/v1/workspaces", &server.admin, body).await;
        assert_eq!(refused.header("retry-after"), "1");
        refused.expect_problem("overloaded", "");
    }
    let small = json!({"name": "small", "plan": "FREE"});
    server
        .post("/v1/workspaces", &server.admin, small)
        .await
        .expect(201);
}

#[tokio::test]
async fn calls_are_counted_by_route_not_by_path() {
    let server = TestServer::new().await;
    let workspace = server.workspace(1).await;
    server
        .get(&workspace.path(""), &workspace.key)
        .await
        .expect(200);
    server.get("/some/secret/path", "").await.expect(404);
    server.get("/v1/workspaces", "").await.expect(401);
    let shown = server.get("/metrics", &server.admin).await;
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
        assert!(!line.contains(&workspace.workspace.to_string()), "{line}");
    }
}

#[tokio::test]
async fn metrics_are_sent_as_openmetrics_if_accepted() {
    let server = TestServer::new().await;
    let accept = ("accept", "application/openmetrics-text;version=1.0.0");
    let headers = [accept];
    let (path, key) = ("/metrics", &server.admin);
    let asked = server.call_with(Method::GET, path, key, &headers, Value::Null);
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
async fn scrapes_read_the_store_at_most_once_a_second() {
    let server = TestServer::new().await;
    let asked = "leasehold_store_calls_total{call=\"workspace_overview\",outcome=\"ok\"} ";
    let begun = Instant::now();
    let times = async || {
        let shown = server.get("/metrics", &server.admin).await.text;
        let times = shown.lines().find_map(|line| line.strip_prefix(asked));
        let times: u64 = times.map_or(0, |times| times.parse().unwrap());
        assert!(times <= 1 + begun.elapsed().as_secs(), "{times}");
        times
    };
    for _ in 0..20 {
        times().await;
    }
    // A slow machine may read the store after a scrape has been answered.
    let read = eventually(Duration::from_secs(60), async || times().await >= 1);
    assert!(read.await, "the store is not read");
}

#[tokio::test]
async fn every_problem_code_has_a_page() {
    let server = TestServer::new().await;
    let list = server.get("/errors", "").await;
    assert_eq!(list.status, 200);
    for code in leasehold_api::Code::ALL {
        assert!(list.text.contains(code.as_str()));
        let page = server.get(&format!("/errors/{}", code.as_str()), "").await;
        assert_eq!(
            (page.status, page.header("content-type")),
            (200, "text/plain; charset=utf-8")
        );
        assert!(page.text.starts_with(&format!("# {}\n", code.as_str())));
    }
    server
        .get("/errors/nothing", "")
        .await
        .expect_problem("not_found", "");
}

#[tokio::test]
async fn docs_page_loads_nothing_from_other_hosts() {
    let server = TestServer::new().await;
    let page = server.get("/docs/", "").await;
    assert_eq!(page.status, 200);
    let policy = page.header("content-security-policy");
    assert!(policy.contains("default-src 'none'"), "{policy}");
    assert!(!policy.contains("http"), "{policy}");
    assert!(!page.text.contains("://"), "{}", page.text);
}

#[tokio::test]
async fn stopping_server_is_alive_but_not_ready() {
    let server = TestServer::new().await;
    server.get("/readyz", "").await.expect(200);
    server.stop.cancel();
    server
        .get("/readyz", "")
        .await
        .expect_problem("overloaded", "");
    server.get("/healthz", "").await.expect(200);
}

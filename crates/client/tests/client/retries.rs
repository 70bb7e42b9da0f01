//! What is tried again and what is not, how long that takes at most, and what is said of it.

use crate::counting_server::{CountingServer, QUEUE};
use axum::Router;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use leasehold_client::api::job::{Claim, NewJob};
use leasehold_client::api::{Code, Problem};
use leasehold_client::{Client, ClientError, ClientOptions};
use leasehold_core::JsonText;
use leasehold_testbed::BackendKind;
use leasehold_testkit::FaultProxy;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::net::TcpListener;

/// A server in front of nothing: it answers the first calls with this, and counts.
async fn answering(status: u16, body: String) -> (String, Arc<AtomicUsize>) {
    let calls = Arc::new(AtomicUsize::new(0));
    let count = calls.clone();
    let app = Router::new().fallback(async move || {
        count.fetch_add(1, Ordering::SeqCst);
        let headers = [(header::CONTENT_TYPE, "application/problem+json")];
        let status = StatusCode::from_u16(status).unwrap();
        (status, headers, body).into_response()
    });
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
    (address, calls)
}

fn problem(code: Code) -> (u16, String) {
    let problem = Problem::new(code, "so it is");
    (problem.status, serde_json::to_string(&problem).unwrap())
}

#[tokio::test]
async fn what_only_reads_is_tried_again_and_what_changes_something_is_not() {
    let (status, body) = problem(Code::StoreUnavailable);
    let (address, calls) = answering(status, body).await;
    let client = Client::new(&address, "key").unwrap();
    let error = client.key_me().await.unwrap_err();
    assert_eq!(
        (error.code(), error.is_retryable()),
        (Some(Code::StoreUnavailable), true)
    );
    assert_eq!(calls.swap(0, Ordering::SeqCst), 4);
    let job = NewJob::new("a", JsonText::default());
    client.job_enqueue(QUEUE, &job).await.unwrap_err();
    let claim = Claim {
        worker: "w".to_owned(),
        max: 1,
        lease_ms: None,
        wait_ms: 0,
    };
    client.job_claim(QUEUE, &claim).await.unwrap_err();
    assert_eq!(calls.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn what_no_repetition_helps_is_not_tried_again() {
    let (status, body) = problem(Code::Unauthenticated);
    let (address, calls) = answering(status, body).await;
    let client = Client::new(&address, "key").unwrap();
    let error = client.key_me().await.unwrap_err();
    assert!(!error.is_retryable());
    assert_eq!(calls.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn the_wait_that_the_server_asks_for_is_kept() {
    let problem = Problem::new(Code::RateLimited, "slower").retry_after(1);
    let body = serde_json::to_string(&problem).unwrap();
    let (address, calls) = answering(429, body).await;
    let options = ClientOptions {
        tries: 2,
        ..ClientOptions::default()
    };
    let client = Client::with(&address, "key", options).unwrap();
    let begun = std::time::Instant::now();
    let error = client.key_me().await.unwrap_err();
    assert_eq!(error.retry_after(), Some(Duration::from_secs(1)));
    assert!(begun.elapsed() >= Duration::from_secs(1));
    assert_eq!(calls.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn what_is_no_leasehold_is_said_to_be_none() {
    let (address, _) = answering(200, "<html>hello</html>".to_owned()).await;
    let client = Client::new(&address, "key").unwrap();
    let error = client.key_me().await.unwrap_err();
    assert!(matches!(error, ClientError::Unexpected(_)), "{error:?}");
    let (address, _) = answering(418, "teapot".to_owned()).await;
    let client = Client::new(&address, "key").unwrap();
    let error = client.key_me().await.unwrap_err();
    assert!(error.to_string().contains("teapot"), "{error}");
}

#[tokio::test]
async fn addresses_and_keys_that_cannot_be_used_are_refused_at_once() {
    for (address, key) in [
        ("localhost:1", "key"),
        ("ftp://localhost", "key"),
        ("http://", "key"),
        ("http://localhost", "a\nb"),
    ] {
        let refused = Client::new(address, key).unwrap_err();
        assert!(matches!(refused, ClientError::Setup(_)), "{refused:?}");
    }
    let options = ClientOptions {
        ca_pem: Some(b"-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----".to_vec()),
        ..ClientOptions::default()
    };
    let refused = Client::with("https://localhost", "key", options).unwrap_err();
    assert!(matches!(refused, ClientError::Setup(_)), "{refused:?}");
}

#[tokio::test]
async fn a_server_that_does_not_answer_is_not_waited_for_for_ever() {
    let ground = CountingServer::new(BackendKind::Sqlite).await;
    let proxy = FaultProxy::to(&ground.address.to_string()).await;
    proxy.hold_answers();
    let options = ClientOptions {
        timeout: Duration::from_millis(200),
        tries: 1,
        ..ClientOptions::default()
    };
    let address = format!("http://{}", proxy.address());
    let client = Client::with(&address, &ground.admin, options).unwrap();
    let error = client.key_me().await.unwrap_err();
    assert!(matches!(error, ClientError::Unreachable(_)), "{error:?}");
    assert!(error.is_retryable());
    assert!(!error.to_string().contains(&ground.admin));
}

#[tokio::test]
async fn what_reads_survives_a_connection_that_breaks() {
    let ground = CountingServer::new(BackendKind::Sqlite).await;
    let proxy = FaultProxy::to(&ground.address.to_string()).await;
    let address = format!("http://{}", proxy.address());
    let client = Client::new(&address, &ground.admin).unwrap();
    client.key_me().await.unwrap();
    proxy.cut();
    client.key_me().await.unwrap();
}

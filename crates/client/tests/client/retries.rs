//! Retries, timeouts and error texts of the client.

use crate::counting_server::{CountingServer, QUEUE};
use axum::Router;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use leasehold_client::api::job::{ClaimOptions, NewJob};
use leasehold_client::api::{Code, Problem};
use leasehold_client::{Client, ClientError, ClientOptions};
use leasehold_core::JsonText;
use leasehold_testbed::BackendKind;
use leasehold_testkit::FaultProxy;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::net::TcpListener;

/// A stub server that answers every call with this response, and counts the calls.
async fn stub_server(status: u16, body: String) -> (String, Arc<AtomicUsize>) {
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
    let problem = Problem::new(code, "stub");
    (problem.status, serde_json::to_string(&problem).unwrap())
}

#[tokio::test]
async fn only_idempotent_calls_are_retried() {
    let (status, body) = problem(Code::StoreUnavailable);
    let (address, calls) = stub_server(status, body).await;
    let client = Client::new(&address, "key").unwrap();
    let error = client.key_me().await.unwrap_err();
    assert_eq!(
        (error.code(), error.is_retryable()),
        (Some(Code::StoreUnavailable), true)
    );
    assert_eq!(calls.swap(0, Ordering::SeqCst), 4);
    let job = NewJob::new("a", JsonText::default());
    client.job_enqueue(QUEUE, &job).await.unwrap_err();
    let claim = ClaimOptions {
        worker: "w".to_owned(),
        max: 1,
        lease_ms: None,
        wait_ms: 0,
    };
    client.job_claim(QUEUE, &claim).await.unwrap_err();
    assert_eq!(calls.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn permanent_errors_are_not_retried() {
    let (status, body) = problem(Code::Unauthenticated);
    let (address, calls) = stub_server(status, body).await;
    let client = Client::new(&address, "key").unwrap();
    let error = client.key_me().await.unwrap_err();
    assert!(!error.is_retryable());
    assert_eq!(calls.load(Ordering::SeqCst), 1);
}

/// Publishing over the quota was repeated four times, although only a raised limit helps.
#[tokio::test]
async fn quota_is_retried_only_if_the_server_says_when() {
    for code in [Code::QuotaExceeded, Code::BacklogFull] {
        let problem = Problem::new(code, "full");
        for (problem, tries) in [(problem.clone(), 1), (problem.retry_after(0), 4)] {
            let body = serde_json::to_string(&problem).unwrap();
            let (address, calls) = stub_server(429, body).await;
            let client = Client::new(&address, "key").unwrap();
            let error = client.key_me().await.unwrap_err();
            assert_eq!(error.is_retryable(), tries > 1, "{problem:?}");
            assert_eq!(calls.load(Ordering::SeqCst), tries, "{problem:?}");
        }
    }
}

#[tokio::test]
async fn retry_after_is_honoured() {
    let problem = Problem::new(Code::RateLimited, "slower").retry_after(1);
    let body = serde_json::to_string(&problem).unwrap();
    let (address, calls) = stub_server(429, body).await;
    let options = ClientOptions {
        max_attempts: 2,
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
async fn response_of_another_server_is_unexpected() {
    let (address, _) = stub_server(200, "<html>hello</html>".to_owned()).await;
    let client = Client::new(&address, "key").unwrap();
    let error = client.key_me().await.unwrap_err();
    assert!(matches!(error, ClientError::Unexpected(_)), "{error:?}");
    let (address, _) = stub_server(418, "teapot".to_owned()).await;
    let client = Client::new(&address, "key").unwrap();
    let error = client.key_me().await.unwrap_err();
    assert!(error.to_string().contains("teapot"), "{error}");
}

#[tokio::test]
async fn invalid_addresses_and_keys_are_rejected() {
    for (address, key) in [
        ("localhost:1", "key"),
        ("ftp://localhost", "key"),
        ("http://", "key"),
        ("http://localhost", "a\nb"),
    ] {
        let error = Client::new(address, key).unwrap_err();
        assert!(matches!(error, ClientError::Setup(_)), "{error:?}");
    }
    let options = ClientOptions {
        ca_pem: Some(b"-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----".to_vec()),
        ..ClientOptions::default()
    };
    let error = Client::with("https://localhost", "key", options).unwrap_err();
    assert!(matches!(error, ClientError::Setup(_)), "{error:?}");
}

#[tokio::test]
async fn call_times_out_without_an_answer() {
    let server = CountingServer::new(BackendKind::Sqlite).await;
    let proxy = FaultProxy::to(&server.address.to_string()).await;
    proxy.hold_responses();
    let options = ClientOptions {
        timeout: Duration::from_millis(200),
        max_attempts: 1,
        ..ClientOptions::default()
    };
    let address = format!("http://{}", proxy.address());
    let client = Client::with(&address, &server.admin, options).unwrap();
    let error = client.key_me().await.unwrap_err();
    assert!(matches!(error, ClientError::Unreachable(_)), "{error:?}");
    assert!(error.is_retryable());
    assert!(!error.to_string().contains(&server.admin));
}

#[tokio::test]
async fn read_call_survives_a_broken_connection() {
    let server = CountingServer::new(BackendKind::Sqlite).await;
    let proxy = FaultProxy::to(&server.address.to_string()).await;
    let address = format!("http://{}", proxy.address());
    let client = Client::new(&address, &server.admin).unwrap();
    client.key_me().await.unwrap();
    proxy.cut();
    client.key_me().await.unwrap();
}

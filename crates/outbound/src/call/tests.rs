//! Calls to a test server on loopback: blocked addresses, outputs, errors and redirects.

#![allow(clippy::unwrap_used)]

use super::*;
use http_server::{TestHttpServer, answer};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::net::{TcpListener, TcpSocket};

mod denied;
mod http_server;

const SOON: Duration = Duration::from_secs(60);

fn get(url: impl Into<String>) -> HttpCall {
    HttpCall {
        method: "GET".into(),
        url: url.into(),
        headers: BTreeMap::new(),
        body: None,
        idempotency_key: "e/0".into(),
    }
}

fn guard(allow: &[&str], lookup: impl Fn(&str) -> Vec<IpAddr> + Send + Sync + 'static) -> Outbound {
    guard_with(allow, &[], lookup)
}

fn guard_with(
    allow: &[&str],
    deny: &[&str],
    lookup: impl Fn(&str) -> Vec<IpAddr> + Send + Sync + 'static,
) -> Outbound {
    let rules = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect();
    let lookup = DnsLookup::Fixed(Box::new(lookup));
    Outbound::with(AddressGuard::new(rules(allow), rules(deny), lookup)).unwrap()
}

fn names(name: &str) -> Vec<IpAddr> {
    let addresses: &[&str] = match name {
        "localhost" | "localhost." => &["127.0.0.1", "::1"],
        "loopback.test" => &["127.0.0.1"],
        "ten.test" => &["10.0.0.1"],
        "metadata.test" => &["169.254.169.254"],
        "azure.test" => &["168.63.129.16"],
        "alibaba.test" => &["100.100.100.200"],
        "oracle.test" => &["192.0.0.192"],
        "multicast.test" => &["239.0.0.1"],
        "reserved.test" => &["240.0.0.1"],
        "documentation.test" => &["203.0.113.1"],
        "teredo.test" => &["2001:0:7f00:1::1"],
        "six.test" => &["::1"],
        "mapped.test" => &["::ffff:127.0.0.1"],
        "unique.test" => &["fd00:ec2::254"],
        "link.test" => &["fe80::1"],
        "nat64.test" => &["64:ff9b::7f00:1"],
        "six-to-four.test" => &["2002:7f00:1::"],
        _ => &[],
    };
    addresses.iter().map(|text| text.parse().unwrap()).collect()
}

/// Hosts that must be blocked, in every form that a URL allows.
const BLOCKED: &[&str] = &[
    "127.0.0.1",
    "127.0.0.1.",
    "127.1",
    "127.0.1",
    "127.255.255.254",
    "2130706433",
    "0x7f000001",
    "0x7f.1",
    "0x7F.0x0.0x0.0x1",
    "0177.0.0.1",
    "0177.1",
    "017700000001",
    "0",
    "0.0.0.0",
    "00.00.00.00",
    "%31%32%37.0.0.1",
    "１２７.0.0.1",
    "127。0。0。1",
    "10.0.0.1",
    "0xa.0.0.1",
    "167772161",
    "012.0.0.1",
    "100.64.0.1",
    "100.100.100.200",
    "168.63.129.16",
    "2822734096",
    "0xa83f8110",
    "169.254.169.254",
    "2852039166",
    "0xa9fea9fe",
    "0251.0376.0251.0376",
    "172.16.0.1",
    "172.31.255.255",
    "192.0.0.1",
    "192.0.0.192",
    "192.0.2.1",
    "192.168.0.1",
    "3232235521",
    "198.18.0.1",
    "198.51.100.1",
    "203.0.113.1",
    "224.0.0.1",
    "240.0.0.1",
    "255.255.255.255",
    "[::1]",
    "[::]",
    "[0:0:0:0:0:0:0:1]",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[0:0:0:0:0:ffff:7f00:0001]",
    "[::127.0.0.1]",
    "[::ffff:169.254.169.254]",
    "[64:ff9b::127.0.0.1]",
    "[64:ff9b::a9fe:a9fe]",
    "[64:ff9b::168.63.129.16]",
    "[::ffff:168.63.129.16]",
    "[64:ff9b:1::1]",
    "[fe80::1]",
    "[fc00::1]",
    "[fd00:ec2::254]",
    "[fd20:ce::254]",
    "[ff02::1]",
    "[2001:db8::1]",
    "[2001::1]",
    "[2002:7f00:1::]",
    "localhost",
    "LOCALHOST",
    "localhost.",
    "loopback.test",
    "ten.test",
    "metadata.test",
    "azure.test",
    "alibaba.test",
    "oracle.test",
    "multicast.test",
    "reserved.test",
    "documentation.test",
    "teredo.test",
    "six.test",
    "mapped.test",
    "unique.test",
    "link.test",
    "nat64.test",
    "six-to-four.test",
];

#[tokio::test]
async fn every_form_of_a_private_address_is_blocked() {
    let server = TestHttpServer::on("127.0.0.1", |_| answer("200 OK", &[], "reached")).await;
    let outbound = guard(&[], names);
    for host in BLOCKED {
        let url = format!("http://{host}:{}/", server.address.port());
        let error = outbound.call(&get(&url), SOON).await.expect_err(&url);
        assert!(error.message.contains("blocked"), "{url}: {error}");
        assert!(!error.is_retryable, "{url}");
    }
    assert!(server.requests().is_empty(), "{:?}", server.requests());
}

#[tokio::test]
async fn redirects_to_private_addresses_are_blocked() {
    let hosts: Vec<String> = BLOCKED.iter().map(|host| host.to_string()).collect();
    let port = Arc::new(Mutex::new(0));
    let own = Arc::clone(&port);
    let server = TestHttpServer::on("127.0.0.9", move |path| {
        let at: usize = path.trim_start_matches('/').parse().unwrap();
        let location = format!("http://{}:{}/reached", hosts[at], own.lock().unwrap());
        answer("307 Temporary Redirect", &[("location", &location)], "")
    })
    .await;
    let inner = TestHttpServer::on("127.0.0.1", |_| answer("200 OK", &[], "reached")).await;
    *port.lock().unwrap() = inner.address.port();
    let outbound = guard(&["127.0.0.9"], names);
    for (at, host) in BLOCKED.iter().enumerate() {
        // A server cannot send a host that is not a valid header value.
        if !host.is_ascii() {
            continue;
        }
        let error = outbound
            .call(&get(server.url(&format!("/{at}"))), SOON)
            .await
            .expect_err(host);
        assert!(error.message.contains("blocked"), "{host}: {error}");
    }
    assert!(inner.requests().is_empty(), "{:?}", inner.requests());
}

#[tokio::test]
async fn other_schemes_are_rejected_in_urls_and_redirects() {
    let server = TestHttpServer::on("127.0.0.1", |path| {
        answer("302 Found", &[("location", &path[1..])], "")
    })
    .await;
    let outbound = guard(&["127.0.0.1"], names);
    for url in [
        "file:///etc/passwd",
        "gopher://127.0.0.1/x",
        "ftp://127.0.0.1/",
        "data:text/plain,x",
        "unix:/run/x.sock",
    ] {
        for url in [url.to_owned(), server.url(&format!("/{url}"))] {
            let error = outbound.call(&get(&url), SOON).await.expect_err(&url);
            assert!(
                error.message.contains("only http and https"),
                "{url}: {error}"
            );
        }
    }
}

#[tokio::test]
async fn dns_rebinding_is_blocked() {
    let server = TestHttpServer::on("127.0.0.1", |_| answer("200 OK", &[], "")).await;
    let other = TestHttpServer::on("127.0.0.2", |_| answer("200 OK", &[], "")).await;
    let lookups = Arc::new(AtomicUsize::new(0));
    let times = Arc::clone(&lookups);
    let outbound = guard(&["127.0.0.1"], move |_| {
        match times.fetch_add(1, Ordering::SeqCst) {
            0 => vec!["127.0.0.1".parse().unwrap()],
            _ => vec!["127.0.0.2".parse().unwrap()],
        }
    });
    let url = |server: &TestHttpServer| format!("http://rebind.test:{}/", server.address.port());
    outbound.call(&get(url(&server)), SOON).await.unwrap();
    let error = outbound.call(&get(url(&other)), SOON).await.unwrap_err();
    assert!(
        error.message.contains("resolves to no public address"),
        "{error}"
    );
    assert_eq!(lookups.load(Ordering::SeqCst), 2);
    assert!(other.requests().is_empty());
}

#[tokio::test]
async fn only_allowed_addresses_of_a_name_are_used() {
    let server = TestHttpServer::on("127.0.0.1", |_| answer("200 OK", &[], "")).await;
    let outbound = guard(&["127.0.0.1"], |_| {
        ["127.0.0.2", "10.0.0.1", "127.0.0.1"]
            .map(|text| text.parse().unwrap())
            .to_vec()
    });
    outbound
        .call(
            &get(format!("http://mixed.test:{}/", server.address.port())),
            SOON,
        )
        .await
        .unwrap();
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn allowed_name_may_resolve_to_any_address() {
    let server = TestHttpServer::on("127.0.0.1", |_| answer("200 OK", &[], "")).await;
    let outbound = guard(&["*.internal.test"], |_| vec!["127.0.0.1".parse().unwrap()]);
    let call = |name: &str| get(format!("http://{name}:{}/", server.address.port()));
    outbound
        .call(&call("db.internal.test"), SOON)
        .await
        .unwrap();
    outbound.call(&call("evil.test"), SOON).await.unwrap_err();
    outbound
        .call(&get(server.url("/")), SOON)
        .await
        .unwrap_err();
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn response_becomes_the_output() {
    let server = TestHttpServer::on("127.0.0.1", |path| match path {
        "/json" => answer(
            "201 Created",
            &[
                ("content-type", "application/json; charset=utf-8"),
                ("set-cookie", "a=b"),
                ("x-a", "1"),
                ("x-a", "2"),
            ],
            r#"{"a":1.50}"#,
        ),
        "/text" => answer("200 OK", &[("content-type", "text/plain")], "hällo"),
        _ => answer("204 No Content", &[], ""),
    })
    .await;
    let outbound = guard(&["127.0.0.1"], names);
    let json = outbound
        .call(&get(server.url("/json")), SOON)
        .await
        .unwrap();
    assert!(
        json.as_str().contains(r#""body":{"a":1.50}"#),
        "{}",
        json.as_str()
    );
    let json: Value = json.read().unwrap();
    assert_eq!(
        (
            &json["status"],
            &json["headers"]["x-a"],
            &json["headers"]["set-cookie"]
        ),
        (&json!(201), &json!("1, 2"), &Value::Null)
    );
    let text: Value = outbound
        .call(&get(server.url("/text")), SOON)
        .await
        .unwrap()
        .read()
        .unwrap();
    assert_eq!(text["body"], "hällo");
    let empty: Value = outbound
        .call(&get(server.url("/empty")), SOON)
        .await
        .unwrap()
        .read()
        .unwrap();
    assert_eq!(empty["body"], Value::Null);
}

/// The path, the error, whether it is retryable, and the retry delay.
const FAILED: [(&str, &str, bool, Option<u64>); 12] = [
    ("/404", "response 404 Not Found: no such order", false, None),
    ("/408", "response 408 Request Timeout", true, None),
    ("/429", "response 429 Too Many Requests", true, Some(7)),
    ("/500", "response 500 Internal Server Error", true, None),
    ("/501", "response 501 Not Implemented", false, None),
    ("/304", "response 304 Not Modified", false, None),
    (
        "/302",
        "redirect 302 Found has no valid Location header",
        false,
        None,
    ),
    (
        "/large",
        "response 200 OK has more than 262144 bytes",
        false,
        None,
    ),
    (
        "/bad-json",
        "response 200 OK has an invalid JSON body",
        false,
        None,
    ),
    ("/deep", "response 200 OK cannot be stored", false, None),
    ("/cut", "connection lost", true, None),
    ("/nothing", "connection lost", true, None),
];

#[tokio::test]
async fn errors_say_whether_they_are_retryable() {
    let large = "x".repeat(300_000);
    let server = TestHttpServer::on("127.0.0.1", move |path| match path {
        "/404" => answer("404 Not Found", &[], "no such order\u{7}"),
        "/408" => answer("408 Request Timeout", &[], ""),
        "/429" => answer("429 Too Many Requests", &[("retry-after", "7")], ""),
        "/500" => answer(
            "500 Internal Server Error",
            &[("retry-after", "Wed, 21 Oct 2026 07:28:00 GMT")],
            "",
        ),
        "/501" => answer("501 Not Implemented", &[], ""),
        "/304" => answer("304 Not Modified", &[], ""),
        "/302" => answer("302 Found", &[], ""),
        "/large" => answer("200 OK", &[], &large),
        "/bad-json" => answer("200 OK", &[("content-type", "application/json")], "{"),
        "/deep" => answer(
            "200 OK",
            &[("content-type", "application/json")],
            &("[".repeat(70) + &"]".repeat(70)),
        ),
        "/cut" => "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf".to_owned(),
        _ => String::new(),
    })
    .await;
    let outbound = guard(&["127.0.0.1"], names);
    for (path, message, is_retryable, after) in FAILED {
        let error = outbound
            .call(&get(server.url(path)), SOON)
            .await
            .expect_err(path);
        assert!(error.message.starts_with(message), "{path}: {error}");
        assert_eq!(
            (error.is_retryable, error.retry_after),
            (is_retryable, after.map(Duration::from_secs)),
            "{path}"
        );
    }
}

#[tokio::test]
async fn connection_errors_and_timeouts_are_retryable() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let outbound = guard(&["127.0.0.1"], names);
    let late = outbound
        .call(&get(&url), Duration::from_millis(50))
        .await
        .unwrap_err();
    assert_eq!(
        (late.message.as_str(), late.is_retryable),
        ("no response within 0.05 s", true)
    );
    // A bound socket that does not listen: its port refuses connections and stays reserved.
    let closed = TcpSocket::new_v4().unwrap();
    closed.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let url = format!("http://{}/", closed.local_addr().unwrap());
    let gone = outbound.call(&get(&url), SOON).await.unwrap_err();
    assert!(
        gone.message.starts_with("failed to connect") && gone.is_retryable,
        "{gone}"
    );
    let unknown = Outbound::new(OutboundOptions::default()).unwrap();
    let unknown = unknown
        .call(&get("http://no-such-name.invalid/"), SOON)
        .await
        .unwrap_err();
    assert!(unknown.is_retryable, "{unknown}");
}

#[tokio::test]
async fn redirect_keeps_or_drops_method_body_and_headers() {
    let other = TestHttpServer::on("127.0.0.2", |_| answer("200 OK", &[], "")).await;
    let elsewhere = other.url("/end");
    let server = TestHttpServer::on("127.0.0.1", move |path| match path {
        "/found" => answer("302 Found", &[("location", "/end")], ""),
        "/kept" => answer("308 Permanent Redirect", &[("location", "/end")], ""),
        "/away" => answer("307 Temporary Redirect", &[("location", &elsewhere)], ""),
        "/round" => answer("307 Temporary Redirect", &[("location", "/round")], ""),
        _ => answer("200 OK", &[], ""),
    })
    .await;
    let outbound = guard(&["127.0.0.0/8"], names);
    let post = |path: &str| HttpCall {
        method: "POST".into(),
        headers: BTreeMap::from([("X-Secret".to_owned(), "s".to_owned())]),
        body: Some(JsonText::parse("[1]").unwrap()),
        ..get(server.url(path))
    };
    outbound.call(&post("/found"), SOON).await.unwrap();
    outbound.call(&post("/kept"), SOON).await.unwrap();
    outbound.call(&post("/away"), SOON).await.unwrap();
    let error = outbound.call(&post("/round"), SOON).await.unwrap_err();
    assert_eq!(
        (error.message.as_str(), error.is_retryable),
        ("more than 5 redirects", false)
    );
    let sent = server.requests();
    let has = |request: &String, text: &str| request.to_ascii_lowercase().contains(text);
    assert!(
        has(&sent[0], "post /found")
            && has(&sent[0], "idempotency-key: e/0")
            && has(&sent[0], "content-type: application/json")
    );
    assert!(
        has(&sent[1], "get /end")
            && has(&sent[1], "x-secret")
            && !has(&sent[1], "[1]")
            && !has(&sent[1], "idempotency-key")
    );
    assert!(has(&sent[3], "post /end") && has(&sent[3], "x-secret: s") && sent[3].ends_with("[1]"));
    let away = &other.requests()[0];
    assert!(
        has(away, "post /end") && away.ends_with("[1]") && !has(away, "x-secret"),
        "{away}"
    );
}

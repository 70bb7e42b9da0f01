//! Calls against a server of our own on loopback: what is never dialled, and what becomes of what is.

#![allow(clippy::unwrap_used)]

use super::*;
use http_server::{TestHttpServer, answer};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::net::TcpListener;

mod http_server;

const SOON: Duration = Duration::from_secs(10);

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
    let allow = allow.iter().map(|text| text.parse().unwrap()).collect();
    Outbound::with(Guard::new(allow, Lookup::Fixed(Box::new(lookup)))).unwrap()
}

fn names(name: &str) -> Vec<IpAddr> {
    let addresses: &[&str] = match name {
        "localhost" | "localhost." => &["127.0.0.1", "::1"],
        "loopback.test" => &["127.0.0.1"],
        "ten.test" => &["10.0.0.1"],
        "metadata.test" => &["169.254.169.254"],
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

/// Hosts that must never be dialled, in every form that a URL can give them.
const REFUSED: &[&str] = &[
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
    "169.254.169.254",
    "2852039166",
    "0xa9fea9fe",
    "0251.0376.0251.0376",
    "172.16.0.1",
    "172.31.255.255",
    "192.0.0.1",
    "192.168.0.1",
    "3232235521",
    "198.18.0.1",
    "224.0.0.1",
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
    "[64:ff9b:1::1]",
    "[fe80::1]",
    "[fc00::1]",
    "[fd00:ec2::254]",
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
    "six.test",
    "mapped.test",
    "unique.test",
    "link.test",
    "nat64.test",
    "six-to-four.test",
];

#[tokio::test]
async fn no_form_of_an_address_that_is_not_public_is_dialled() {
    let server = TestHttpServer::on("127.0.0.1", |_| answer("200 OK", &[], "reached")).await;
    let outbound = guard(&[], names);
    for host in REFUSED {
        let url = format!("http://{host}:{}/", server.address.port());
        let error = outbound.call(&get(&url), SOON).await.expect_err(&url);
        assert!(error.message.contains("is not called"), "{url}: {error}");
        assert!(!error.again, "{url}");
    }
    assert!(server.seen().is_empty(), "{:?}", server.seen());
}

#[tokio::test]
async fn no_redirect_leads_to_an_address_that_is_not_public() {
    let hosts: Vec<String> = REFUSED.iter().map(|host| host.to_string()).collect();
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
    for (at, host) in REFUSED.iter().enumerate() {
        // A host that no header can carry is not sent by a server either.
        if !host.is_ascii() {
            continue;
        }
        let error = outbound
            .call(&get(server.url(&format!("/{at}"))), SOON)
            .await
            .expect_err(host);
        assert!(error.message.contains("is not called"), "{host}: {error}");
    }
    assert!(inner.seen().is_empty(), "{:?}", inner.seen());
}

#[tokio::test]
async fn other_schemes_are_not_called_by_url_or_by_redirect() {
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
async fn a_name_that_leads_elsewhere_a_moment_later_is_not_followed_there() {
    let server = TestHttpServer::on("127.0.0.1", |_| answer("200 OK", &[], "")).await;
    let other = TestHttpServer::on("127.0.0.2", |_| answer("200 OK", &[], "")).await;
    let asked = Arc::new(AtomicUsize::new(0));
    let times = Arc::clone(&asked);
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
        error.message.contains("leads to no public address"),
        "{error}"
    );
    assert_eq!(asked.load(Ordering::SeqCst), 2);
    assert!(other.seen().is_empty());
}

#[tokio::test]
async fn of_several_addresses_only_those_that_may_be_are_dialled() {
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
    assert_eq!(server.seen().len(), 1);
}

#[tokio::test]
async fn what_is_allowed_by_name_may_lead_anywhere() {
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
    assert_eq!(server.seen().len(), 1);
}

#[tokio::test]
async fn an_answer_becomes_an_output() {
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

/// What is answered, what is said of it, whether and when another try may help.
const FAILED: [(&str, &str, bool, Option<u64>); 12] = [
    ("/404", "answered 404 Not Found: no such order", false, None),
    ("/408", "answered 408 Request Timeout", true, None),
    ("/429", "answered 429 Too Many Requests", true, Some(7)),
    ("/500", "answered 500 Internal Server Error", true, None),
    ("/501", "answered 501 Not Implemented", false, None),
    ("/304", "answered 304 Not Modified", false, None),
    (
        "/302",
        "answered 302 Found without a place to go on to",
        false,
        None,
    ),
    (
        "/large",
        "answered 200 OK with more than 262144 bytes",
        false,
        None,
    ),
    (
        "/bad-json",
        "answered 200 OK with JSON that is none",
        false,
        None,
    ),
    (
        "/deep",
        "answered 200 OK with what is not kept",
        false,
        None,
    ),
    ("/cut", "broke off", true, None),
    ("/nothing", "broke off", true, None),
];

#[tokio::test]
async fn what_failed_says_whether_another_try_may_help() {
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
    for (path, message, again, after) in FAILED {
        let error = outbound
            .call(&get(server.url(path)), SOON)
            .await
            .expect_err(path);
        assert!(error.message.starts_with(message), "{path}: {error}");
        assert_eq!(
            (error.again, error.after),
            (again, after.map(Duration::from_secs)),
            "{path}"
        );
    }
}

#[tokio::test]
async fn nobody_there_and_nobody_in_time_are_worth_another_try() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let outbound = guard(&["127.0.0.1"], names);
    let late = outbound
        .call(&get(&url), Duration::from_millis(50))
        .await
        .unwrap_err();
    assert_eq!(
        (late.message.as_str(), late.again),
        ("no answer within 0.05 s", true)
    );
    drop(listener);
    let gone = outbound.call(&get(&url), SOON).await.unwrap_err();
    assert!(
        gone.message.starts_with("cannot be reached") && gone.again,
        "{gone}"
    );
    let unknown = Outbound::new(OutboundOptions::default()).unwrap();
    let unknown = unknown
        .call(&get("http://no-such-name.invalid/"), SOON)
        .await
        .unwrap_err();
    assert!(unknown.again, "{unknown}");
}

#[tokio::test]
async fn a_redirect_keeps_or_drops_method_body_and_headers_as_it_should() {
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
        (error.message.as_str(), error.again),
        ("was redirected more than 5 times", false)
    );
    let seen = server.seen();
    let has = |request: &String, text: &str| request.to_ascii_lowercase().contains(text);
    assert!(
        has(&seen[0], "post /found")
            && has(&seen[0], "idempotency-key: e/0")
            && has(&seen[0], "content-type: application/json")
    );
    assert!(
        has(&seen[1], "get /end")
            && has(&seen[1], "x-secret")
            && !has(&seen[1], "[1]")
            && !has(&seen[1], "idempotency-key")
    );
    assert!(has(&seen[3], "post /end") && has(&seen[3], "x-secret: s") && seen[3].ends_with("[1]"));
    let away = &other.seen()[0];
    assert!(
        has(away, "post /end") && away.ends_with("[1]") && !has(away, "x-secret"),
        "{away}"
    );
}

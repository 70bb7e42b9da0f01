//! Attacks that read: lists, changes, versions and graphs; with forged cursors, and by callers that do not read or disconnect.

use super::worker::WORKER_QUEUE;
use super::{Answer, Attacker, Record};
use crate::tenant::document;
use futures::future::join_all;
use leasehold_testkit::{HttpConnection, UnreadHttp2};
use serde_json::json;
use std::time::Duration;
use tokio::time::timeout;

/// The time in which a peer that does not read is disconnected: `server.write_timeout`, and more on a busy machine.
const CUT_OFF_MAX: Duration = Duration::from_secs(120);
/// A list whose page is cut at 4 MiB.
const LARGE_LIST: &str = "/requests?limit=1000";
/// Bytes of a page, with what is outside the rows.
const PAGE_BYTES: std::ops::Range<usize> = 3 * 1024 * 1024..6 * 1024 * 1024;

/// Opens peers that ask for many large lists, and leaves their responses unread while the attack and those after it run.
pub(super) async fn leave_responses_unread(attacker: &Attacker, record: &mut Record) {
    let tenant = &attacker.tenant;
    let path = format!("/v1/workspaces/{}{LARGE_LIST}", tenant.workspace);
    for wide in [false, true] {
        let mut peer = UnreadHttp2::open(tenant.address, wide).await.unwrap();
        for _ in 0..50 {
            peer.get(&path, &tenant.key).await.unwrap();
            record.count("get without reading", 0);
        }
        record
            .cut_off
            .push(tokio::spawn(peer.is_cut_off(CUT_OFF_MAX)));
    }
}

/// Counts a page. A page of large rows ends before the list does.
fn add_page(record: &mut Record, page: &Answer) {
    if let Some(page) = page.as_ref().ok().filter(|page| page.status == 200) {
        assert!(PAGE_BYTES.contains(&page.body.len()), "{}", page.body.len());
        let next = document(page)["next"].clone();
        assert!(next.is_string(), "the page is the whole list");
    }
    record.add("list that is cut", page);
}

pub(super) async fn list_versions(attacker: &Attacker, record: &mut Record) {
    let tail = format!("/definitions/{}/versions?limit=1000", attacker.definition);
    let lists = (0..3).map(|_| attacker.tenant.call("GET", &tail, None));
    for page in join_all(lists).await {
        add_page(record, &page);
    }
}

pub(super) async fn list_at_once(attacker: &Attacker, record: &mut Record) {
    let lists = (0..20).map(|_| attacker.tenant.call("GET", LARGE_LIST, None));
    for page in join_all(lists).await {
        add_page(record, &page);
    }
}

/// Lists after cursors that no server has given to this list.
pub(super) async fn forge_cursors(attacker: &Attacker, record: &mut Record) {
    let tenant = &attacker.tenant;
    let page = tenant.call("GET", "/requests?limit=1", None).await;
    record.add("list", &page);
    let own = document(&page.unwrap())["next"]
        .as_str()
        .unwrap()
        .to_owned();
    let turned: String = own.chars().rev().collect();
    let eighth = if &own[8..9] == "A" { "B" } else { "A" };
    let forged = [
        attacker.cursor.clone(),
        own[..own.len() / 2].to_owned(),
        format!("{own}AAAA"),
        format!("{}{eighth}{}", &own[..8], &own[9..]),
        turned,
        "A".repeat(4_000),
        format!("{}-{}", u64::MAX, i64::MIN),
    ];
    let mut calls = Vec::new();
    for cursor in &forged {
        calls.push(format!("/requests?after={cursor}"));
    }
    // A cursor of one list is forged for all others.
    for list in ["dead-letters", "executions", "definitions", "changes"] {
        for cursor in forged.iter().chain([&own]) {
            calls.push(format!("/{list}?after={cursor}"));
        }
    }
    let answers = calls.iter().map(|tail| tenant.call("GET", tail, None));
    for answer in join_all(answers).await {
        record.add("list after a forged cursor", &answer);
    }
}

/// Returns a call as it is sent.
fn sent(method: &str, path: &str, key: &str, accept: &str, body: &str) -> String {
    format!(
        "{method} {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {key}\r\naccept: {accept}\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// Lists and enqueues batches, and disconnects.
pub(super) async fn disconnect_calls(attacker: &Attacker, record: &mut Record) {
    let tenant = &attacker.tenant;
    let path = |tail: &str| format!("/v1/workspaces/{}{tail}", tenant.workspace);
    let request = json!({ "definition": attacker.definition, "params": {} });
    let batch = json!({ "requests": vec![request; 500] }).to_string();
    let calls = [
        sent("GET", &path(LARGE_LIST), &tenant.key, "*/*", ""),
        sent("POST", &path("/requests/batch"), &tenant.key, "*/*", &batch),
    ];
    reset(attacker, &calls, 20, record).await;
}

/// Reads pages and streams of thousands of changes, and waits for jobs, and disconnects.
pub(super) async fn disconnect_waits(attacker: &Attacker, record: &mut Record) {
    let tenant = &attacker.tenant;
    let changes = |tail: &str| format!("/v1/workspaces/{}/changes{tail}", tenant.workspace);
    let (page, stream) = (changes("?from=oldest&limit=1000"), changes("?from=oldest"));
    let claim = json!({ "worker": "gone", "max": 100, "wait_ms": 60_000 }).to_string();
    let claims = format!("/v1/queues/{WORKER_QUEUE}/claim");
    let calls = [
        sent("GET", &page, &tenant.key, "*/*", ""),
        sent("GET", &page, &tenant.key, "*/*", ""),
        sent("GET", &stream, &tenant.key, "text/event-stream", ""),
        sent("POST", &claims, &attacker.worker.key, "*/*", &claim),
    ];
    reset(attacker, &calls, 100, record).await;
}

/// Sends so many calls at once and resets their connections some milliseconds later; then lists as usual.
async fn reset(attacker: &Attacker, calls: &[String], count: usize, record: &mut Record) {
    let address = attacker.tenant.address;
    let resets = (0..count).map(async |number: usize| {
        let mut connection = HttpConnection::open(address).await?;
        let call = &calls[number % calls.len()];
        connection.send(call.as_bytes()).await?;
        let wait = Duration::from_millis(number as u64 % 25);
        let _unread = timeout(wait, connection.read_response()).await;
        connection.reset()
    });
    for reset in join_all(resets).await {
        reset.unwrap();
        record.count("disconnect", 0);
    }
    let list = attacker.tenant.call("GET", "/requests?limit=1", None);
    record.add("list", &list.await);
}

/// Reads changes of a workspace that has none. The server stops after it has read some thousands of others.
pub(super) async fn read_old_changes(attacker: &Attacker, record: &mut Record) {
    let tenant = &attacker.tenant;
    let after = format!("/changes?limit=1000&after={}", attacker.cursor);
    let oldest = "/changes?limit=1000&from=oldest";
    let (oldest, first, second) = tokio::join!(
        tenant.call("GET", oldest, None),
        tenant.call("GET", &after, None),
        tenant.call("GET", &after, None)
    );
    record.add("oldest", &oldest);
    assert_eq!(document(&oldest.unwrap())["changes"], json!([]));
    for page in [first, second] {
        record.add("page that ends early", &page);
        let page = document(&page.unwrap());
        assert_eq!(page["changes"], json!([]), "{page}");
        assert_eq!(page["more"], true, "the page read all events: {page}");
    }
}

/// Reads a graph several times at once: all attackers together more often than may wait for the engine.
pub(super) async fn read_graphs(attacker: &Attacker, record: &mut Record) {
    let tail = format!("/executions/{}/graph", attacker.other);
    let graphs = (0..8).map(|_| attacker.tenant.call("GET", &tail, None));
    for graph in join_all(graphs).await {
        record.add("graph", &graph);
    }
}

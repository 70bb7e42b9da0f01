//! The memory of the server process: per byte of body for every form of JSON, and for large responses that are read slowly or not at all.

use crate::server_process::{LoadTarget, ServerProcess};
use futures::future::join_all;
use leasehold_testkit::{TestPostgres, UnreadHttp2, sized, temp_dir};
use serde_json::{Value, json};
use std::time::Duration;

const TIMEOUT: Duration = Duration::from_secs(120);
const MIB: u64 = 1024 * 1024;
/// Most bytes of memory for one byte of body.
const PER_BYTE_MAX: u64 = 10;
/// Memory of a call whatever its body: threads, buffers, statements, and the tree of one request's params for its schema.
const CONSTANT: u64 = 40 * MIB;
/// Bytes of a document: just under the limit of params and payloads.
const DOCUMENT: usize = 250 * 1024;
/// Documents of a batch: in a full run just under the limit of a batch.
fn batch_size() -> usize {
    sized(16, 60)
}
/// Maximum peak memory of a server with large responses, in MiB.
const MEMORY_MAX: u64 = 512;

/// Repeats a text, separated by commas, up to the size of a document.
fn repeat(text: &str) -> String {
    let count = DOCUMENT / (text.len() + 1);
    vec![text; count].join(",")
}

/// Every form of a document of about 250 KiB.
fn documents() -> Vec<(&'static str, String)> {
    let deep = format!("{}1{}", r#"{"a":["#.repeat(30), "]}".repeat(30));
    let fields = (0..DOCUMENT / 12).map(|n| format!("\"{n:06}\":{}", n % 10));
    let fields: Vec<String> = fields.collect();
    vec![
        ("tiny objects", format!("[{}]", repeat(r#"{"a":1}"#))),
        ("empty objects", format!("[{}]", repeat("{}"))),
        ("arrays", format!("[{}]", repeat("[]"))),
        ("numbers", format!("[{}]", repeat("1"))),
        ("fractions", format!("[{}]", repeat("0.5"))),
        ("short strings", format!("[{}]", repeat(r#""""#))),
        ("one string", format!("\"{}\"", "x".repeat(DOCUMENT))),
        ("escapes", format!("\"{}\"", r"\u00e4".repeat(DOCUMENT / 6))),
        ("deep", format!("[{}]", repeat(&deep))),
        ("flat object", format!("{{{}}}", fields.join(","))),
    ]
}

/// A call whose memory is measured.
struct MeasuredCall {
    name: String,
    path: String,
    body: String,
    statuses: &'static [u16],
}

fn batch(list: &str, entry: impl Fn(&str) -> String, document: &str, count: usize) -> String {
    let entry = entry(document);
    format!("{{\"{list}\":[{}]}}", vec![entry; count].join(","))
}

fn calls(target: &LoadTarget) -> Vec<MeasuredCall> {
    let requests = target.requests();
    let request = |params: &str| {
        format!(
            "{{\"definition\":\"{}\",\"params\":{params}}}",
            target.definition
        )
    };
    let job = |payload: &str| format!("{{\"kind\":\"k\",\"payload\":{payload}}}");
    let mut calls = Vec::new();
    for (form, document) in documents() {
        calls.push(MeasuredCall {
            name: format!("batch of requests, {form}"),
            path: format!("{requests}/batch"),
            body: batch("requests", request, &document, batch_size()),
            statuses: &[200],
        });
        if sized(form != "tiny objects", false) {
            continue;
        }
        calls.push(MeasuredCall {
            name: format!("one request, {form}"),
            path: requests.clone(),
            body: request(&document),
            statuses: &[201],
        });
    }
    let objects = &documents()[0].1;
    calls.push(MeasuredCall {
        name: "batch of jobs, tiny objects".to_owned(),
        path: "/v1/queues/memory/jobs/batch".to_owned(),
        body: batch("jobs", job, objects, batch_size()),
        statuses: &[201],
    });
    calls.push(MeasuredCall {
        name: "batch of 10,000 tiny requests".to_owned(),
        path: format!("{requests}/batch"),
        body: batch("requests", request, "1", 10_000),
        statuses: &[200],
    });
    calls.push(MeasuredCall {
        name: "graph of tiny objects".to_owned(),
        path: format!(
            "/v1/workspaces/{}/definitions/{}/versions",
            target.workspace, target.definition
        ),
        body: {
            let inputs = vec![objects.as_str(); batch_size()].join(",");
            let node = format!(r#"{{"id":"a","type":"task","queue":"q","input":[{inputs}]}}"#);
            format!(r#"{{"body":{{"graph":{{"nodes":[{node}]}}}}}}"#)
        },
        statuses: &[422],
    });
    calls
}

/// Sends a call to a new server, and returns by how many bytes its memory grew.
async fn growth(store: &str, pick: impl Fn(&LoadTarget) -> MeasuredCall, schema: bool) -> u64 {
    let dir = temp_dir();
    // A debug build takes long for the largest bodies.
    let settings = [("LEASEHOLD__SERVER__REQUEST_TIMEOUT", "10m")];
    let mut server = ServerProcess::start_with(store, dir.path(), &settings);
    let target = server.target().await;
    if schema {
        publish(
            &server,
            &target,
            json!({"params_schema": {"type": ["array", "object", "string"]}}),
        )
        .await;
    }
    // The first call of each kind allocates what stays.
    let warm = format!(r#"{{"definition":"{}","params":1}}"#, target.definition);
    server.call("POST", &target.requests(), Some(&warm)).await;
    let call = pick(&target);
    let before = server.peak_bytes();
    let answer = server.call("POST", &call.path, Some(&call.body)).await;
    // A slow machine may stop the validation with 422; its memory is measured all the same.
    assert!(
        call.statuses.contains(&answer.status) || (schema && answer.status == 422),
        "{}: {}",
        call.name,
        answer.text()
    );
    let growth = server.peak_bytes() - before;
    assert!(server.is_running(), "{}", server.log());
    server.stop();
    growth
}

async fn publish(server: &ServerProcess, target: &LoadTarget, fields: Value) {
    let mut version = json!({"body": {"binding": {"workflow_type": "w", "task_queue": "t"}}});
    for (name, value) in fields.as_object().unwrap() {
        version[name] = value.clone();
    }
    let versions = format!(
        "/v1/workspaces/{}/definitions/{}/versions",
        target.workspace, target.definition
    );
    server.post(&versions, version).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn memory_per_byte_of_body_is_bounded() {
    let _alone = crate::ALONE.lock().await;
    let count = {
        let target = LoadTarget::nowhere();
        calls(&target).len()
    };
    println!("| call | body | memory | per byte |\n|---|---|---|---|");
    let mut failures = Vec::new();
    let mut measure = async |index: usize, store: &str, note: &str, schema: bool| {
        let pick = |target: &LoadTarget| calls(target).swap_remove(index);
        let call = pick(&LoadTarget::nowhere());
        let bytes = call.body.len() as u64;
        let growth = growth(store, pick, schema).await;
        let name = format!("{}{note}", call.name);
        println!(
            "| {name} | {:.1} MiB | {:.1} MiB | {:.1} |",
            bytes as f64 / MIB as f64,
            growth as f64 / MIB as f64,
            growth as f64 / bytes as f64
        );
        if growth > PER_BYTE_MAX * bytes + CONSTANT {
            failures.push(name);
        }
    };
    for index in 0..count {
        let dir = temp_dir();
        let store = format!("sqlite:{}", dir.path().join("memory.db").display());
        measure(index, &store, "", false).await;
    }
    let last = sized(1, count);
    for index in 0..last {
        let database = TestPostgres::shared().fresh_database(None).await;
        measure(index, database.url(), ", PostgreSQL", false).await;
    }
    let dir = temp_dir();
    let store = format!("sqlite:{}", dir.path().join("memory.db").display());
    measure(0, &store, ", with a schema", true).await;
    assert!(failures.is_empty(), "over the bound: {failures:?}");
}

/// Publishes versions of 0.8 MB.
async fn publish_large_versions(server: &ServerProcess, target: &LoadTarget, count: usize) {
    let versions = format!(
        "/v1/workspaces/{}/definitions/{}/versions",
        target.workspace, target.definition
    );
    let input: Vec<String> = (0..4).map(|_| "x".repeat(200_000)).collect();
    let nodes: Vec<Value> = input
        .iter()
        .enumerate()
        .map(
            |(n, text)| json!({"id": format!("n{n}"), "type": "task", "queue": "q", "input": text}),
        )
        .collect();
    let body = json!({"body": {"graph": {"nodes": nodes}}});
    for _ in 0..count {
        server.post(&versions, body.clone()).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn large_responses_stay_within_the_memory_budget() {
    let _alone = crate::ALONE.lock().await;
    let dir = temp_dir();
    let store = format!("sqlite:{}", dir.path().join("memory.db").display());
    // Read timeouts are not what is measured.
    let settings = [("LEASEHOLD__SERVER__WRITE_TIMEOUT", "10s")];
    let mut server = ServerProcess::start_with(&store, dir.path(), &settings);
    let target = server.target().await;
    publish_large_versions(&server, &target, 40).await;
    let versions = format!(
        "/v1/workspaces/{}/definitions/{}/versions?limit=1000",
        target.workspace, target.definition
    );
    let lists = join_all((0..16).map(|_| server.call("GET", &versions, None))).await;
    for list in lists {
        assert_eq!(list.status, 200, "{}", list.text());
        assert!(list.body.len() < 6 * 1024 * 1024, "{}", list.body.len());
    }
    println!(
        "after 16 lists of 40 versions: {} MiB",
        server.peak_memory()
    );

    let jobs = sized(240, 1_000);
    let payload = "x".repeat(DOCUMENT);
    let entries = vec![json!({"kind": "k", "payload": payload}); batch_size()];
    let batch = json!({ "jobs": entries });
    for _ in 0..jobs / batch_size() {
        server
            .post("/v1/queues/large/jobs/batch", batch.clone())
            .await;
    }
    let claim = json!({"worker": "w", "max": 1000, "lease_ms": 60000, "wait_ms": 0}).to_string();
    let path = "/v1/queues/large/claim";
    let claims = join_all((0..8).map(|_| server.call("POST", path, Some(&claim)))).await;
    for claimed in claims {
        assert_eq!(claimed.status, 200, "{}", claimed.text());
        let claimed: Value = serde_json::from_slice(&claimed.body).unwrap();
        let count = claimed["jobs"].as_array().unwrap().len();
        assert_eq!(count, 4 * 1024 * 1024 / (DOCUMENT + 2));
    }
    println!(
        "after 8 claims of {jobs} jobs: {} MiB",
        server.peak_memory()
    );

    let mut peers = Vec::new();
    for wide in [false, true, true] {
        let mut peer = UnreadHttp2::open(target.address, wide).await.unwrap();
        for _ in 0..100 {
            peer.get(&versions, server.admin_key()).await.unwrap();
        }
        peers.push(peer);
    }
    let cut_off = join_all(peers.into_iter().map(|peer| peer.is_cut_off(TIMEOUT)));
    assert_eq!(cut_off.await, [true; 3], "a peer that does not read stays");
    let memory = server.peak_memory();
    println!("after three HTTP/2 peers that do not read: {memory} MiB");
    assert!(memory <= MEMORY_MAX, "{memory} MiB");
    assert!(server.is_running(), "{}", server.log());
    let answer = server.call("GET", &versions, None).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    server.stop();
}

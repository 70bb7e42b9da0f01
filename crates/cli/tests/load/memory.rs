//! The memory of the server process: per byte of body for every form of JSON, and for large responses that are read slowly or not at all.

use crate::server_process::{LoadTarget, ServerProcess};
use futures::future::join_all;
use futures::{StreamExt, stream};
use leasehold_core::limits::ENQUEUE_MAX_REQUESTS;
use leasehold_testkit::{TestPostgres, UnreadHttp2, sized, temp_dir};
use serde_json::{Value, json};
use std::time::Duration;

const TIMEOUT: Duration = Duration::from_secs(120);
const MIB: u64 = 1024 * 1024;
/// Most bytes of memory for each further byte of body.
const PER_BYTE_MAX: f64 = 10.0;
/// Memory of a call beside [`PER_BYTE_MAX`]: threads, buffers, statements, and the tree of one request's params for its schema.
const CONSTANT: u64 = 40 * MIB;
/// Bytes of memory that each request or job of a batch takes beside [`PER_BYTE_MAX`]. A call has at most [`ENQUEUE_MAX_REQUESTS`]: 15 MiB in all.
const PER_ENTRY_MAX: usize = 1_536;
/// Bytes of a document: just under the limit of params and payloads.
const DOCUMENT: usize = 250 * 1024;
/// Servers that are measured at once.
const AT_ONCE: usize = 3;

/// Documents of the two batches that are compared: in a full run the larger one is just under the limit of a batch.
fn batch_sizes() -> [usize; 2] {
    [2, sized(18, 60)]
}
/// Jobs of a batch that a claim returns.
const JOBS_PER_BATCH: usize = 16;
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

/// A call whose memory is measured, with a smaller and a larger body.
struct MeasuredCall {
    name: String,
    path: String,
    bodies: [String; 2],
    /// The requests or jobs in them.
    entries: [usize; 2],
    /// The status of an accepted call, or of one that is refused after it was parsed.
    status: u16,
    /// Whether the params are validated against a schema.
    schema: bool,
}

fn batch(list: &str, entry: &str, count: usize) -> String {
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
    let batches =
        |params: &str| batch_sizes().map(|count| batch("requests", &request(params), count));
    let mut calls = Vec::new();
    for (form, document) in documents() {
        calls.push(MeasuredCall {
            name: format!("batch of requests, {form}"),
            path: format!("{requests}/batch"),
            bodies: batches(&document),
            entries: batch_sizes(),
            status: 200,
            schema: false,
        });
    }
    let objects = &documents()[0].1;
    calls.push(MeasuredCall {
        name: "batch of requests, tiny objects, with a schema".to_owned(),
        path: format!("{requests}/batch"),
        bodies: batches(objects),
        entries: batch_sizes(),
        status: 200,
        schema: true,
    });
    let job = format!("{{\"kind\":\"k\",\"payload\":{objects}}}");
    calls.push(MeasuredCall {
        name: "batch of jobs, tiny objects".to_owned(),
        path: "/v1/queues/memory/jobs/batch".to_owned(),
        bodies: batch_sizes().map(|count| batch("jobs", &job, count)),
        entries: batch_sizes(),
        status: 201,
        schema: false,
    });
    calls.push(keyed_batch(target, objects));
    calls.push(finished_jobs(objects));
    let tiny = [ENQUEUE_MAX_REQUESTS / 10, ENQUEUE_MAX_REQUESTS];
    calls.push(MeasuredCall {
        name: "batch of tiny requests".to_owned(),
        path: format!("{requests}/batch"),
        bodies: tiny.map(|count| batch("requests", &request("1"), count)),
        entries: tiny,
        status: 200,
        schema: false,
    });
    let inputs = |count: usize| {
        let inputs = vec![objects.as_str(); count].join(",");
        let node = format!(r#"{{"id":"a","type":"task","queue":"q","input":[{inputs}]}}"#);
        format!(r#"{{"body":{{"graph":{{"nodes":[{node}]}}}}}}"#)
    };
    calls.push(MeasuredCall {
        name: "graph of tiny objects".to_owned(),
        path: format!(
            "/v1/workspaces/{}/definitions/{}/versions",
            target.workspace, target.definition
        ),
        bodies: batch_sizes().map(inputs),
        entries: [0, 0],
        status: 422,
        schema: false,
    });
    calls
}

fn keyed_batch(target: &LoadTarget, params: &str) -> MeasuredCall {
    let definition = &target.definition;
    let entry = |number: usize| {
        format!(
            r#"{{"definition":"{definition}","idempotency_key":"k{number}","params":{params}}}"#
        )
    };
    let keyed = |count: usize| {
        let entries: Vec<String> = (0..count).map(entry).collect();
        format!(r#"{{"requests":[{}]}}"#, entries.join(","))
    };
    MeasuredCall {
        name: "batch of requests with keys, tiny objects".to_owned(),
        path: format!("{}/batch", target.requests()),
        bodies: batch_sizes().map(keyed),
        entries: batch_sizes(),
        status: 200,
        schema: false,
    }
}

/// A call whose leases are lost, which is decided after its results were read.
fn finished_jobs(result: &str) -> MeasuredCall {
    let finish = format!(r#"{{"id":1,"token":1,"outcome":"completed","result":{result}}}"#);
    let finishes = |count: usize| {
        let entries = vec![finish.as_str(); count].join(",");
        format!(r#"{{"worker":"w","finishes":[{entries}]}}"#)
    };
    MeasuredCall {
        name: "finished jobs, tiny objects".to_owned(),
        path: "/v1/jobs/finish".to_owned(),
        bodies: batch_sizes().map(finishes),
        entries: batch_sizes(),
        status: 200,
        schema: false,
    }
}

/// The memory of a call.
struct Memory {
    call: String,
    /// The bytes of the two bodies.
    bodies: [u64; 2],
    /// The requests or jobs in them.
    entries: [usize; 2],
    /// By how many bytes the smaller one increased the peak of a new server.
    first: u64,
    /// By how many bytes more the larger one did.
    further: u64,
}

impl Memory {
    /// Bytes of memory for each byte that the larger body has more, without those for each entry.
    fn per_byte(&self) -> f64 {
        let entries = (self.entries[1] - self.entries[0]) * PER_ENTRY_MAX;
        let further = self.further.saturating_sub(entries as u64);
        further as f64 / (self.bodies[1] - self.bodies[0]) as f64
    }

    fn is_bounded(&self) -> bool {
        let first_max = PER_BYTE_MAX * self.bodies[0] as f64 + CONSTANT as f64;
        self.per_byte() <= PER_BYTE_MAX && self.first as f64 <= first_max
    }
}

/// Sends a call with both bodies to a new server.
async fn measure(store: &str, index: usize) -> Memory {
    let dir = temp_dir();
    // A debug build takes long for the largest bodies.
    let settings = [("LEASEHOLD__SERVER__REQUEST_TIMEOUT", "10m")];
    let mut server = ServerProcess::start_with(store, dir.path(), &settings);
    let target = server.target().await;
    let call = calls(&target).swap_remove(index);
    if call.schema {
        let schema = json!({"params_schema": {"type": ["array", "object", "string"]}});
        publish(&server, &target, schema).await;
    }
    let mut peaks = vec![server.peak_bytes()];
    for body in &call.bodies {
        let answer = server.call("POST", &call.path, Some(body)).await;
        // A slow machine may stop the validation with 422; its memory is measured all the same.
        assert!(
            answer.status == call.status || (call.schema && answer.status == 422),
            "{}: {}",
            call.name,
            answer.text()
        );
        peaks.push(server.peak_bytes());
    }
    assert!(server.is_running(), "{}", server.log());
    server.stop();
    Memory {
        call: call.name,
        entries: call.entries,
        bodies: call.bodies.map(|body| body.len() as u64),
        first: peaks[1] - peaks[0],
        further: peaks[2] - peaks[1],
    }
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
async fn memory_per_byte_of_body_is_bounded_on_sqlite() {
    let measured = measure_all(async |index| {
        let dir = temp_dir();
        let store = format!("sqlite:{}", dir.path().join("memory.db").display());
        measure(&store, index).await
    });
    assert_bounded(&measured.await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn memory_per_byte_of_body_is_bounded_on_postgres() {
    let measured = measure_all(async |index| {
        let database = TestPostgres::shared().fresh_database(None).await;
        measure(database.url(), index).await
    });
    assert_bounded(&measured.await);
}

/// Measures every call, some at once: each has a server of its own, and times do not matter.
async fn measure_all(measure: impl AsyncFn(usize) -> Memory) -> Vec<Memory> {
    let _alone = crate::ALONE.lock().await;
    let count = calls(&LoadTarget::nowhere()).len();
    let measured = stream::iter((0..count).map(|index| measure(index)));
    measured.buffered(AT_ONCE).collect().await
}

fn assert_bounded(measured: &[Memory]) {
    let mib = |bytes: u64| bytes as f64 / MIB as f64;
    println!(
        "| call | bodies | memory of the first | of the second | per further byte |\n|---|---|---|---|---|"
    );
    for memory in measured {
        println!(
            "| {} | {:.2} MiB, {:.1} MiB | {:.1} MiB | {:.1} MiB more | {:.1} |",
            memory.call,
            mib(memory.bodies[0]),
            mib(memory.bodies[1]),
            mib(memory.first),
            mib(memory.further),
            memory.per_byte()
        );
    }
    let over = measured.iter().filter(|memory| !memory.is_bounded());
    let over: Vec<&str> = over.map(|memory| memory.call.as_str()).collect();
    assert!(over.is_empty(), "over the bound: {over:?}");
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

    let jobs = sized(240, 960);
    let payload = "x".repeat(DOCUMENT);
    let entries = vec![json!({"kind": "k", "payload": payload}); JOBS_PER_BATCH];
    let batch = json!({ "jobs": entries });
    for _ in 0..jobs / JOBS_PER_BATCH {
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

//! The exported traces: one trace from the caller's span to the engine.

use crate::first_start::{address, key};
use crate::order_workspace::OrderWorkspace;
use crate::program::{self, Program};
use crate::temporal::Namespace;
use crate::{TIMEOUT, blocking, database};
use leasehold_client::Client;
use leasehold_client::api::definition::{NewDefinition, NewVersion};
use leasehold_client::api::workspace::NewWorkspace;
use leasehold_core::{DefinitionId, ExecutionId, Plan, RequestId, VersionBody, WorkspaceId};
use leasehold_testkit::{HttpConnection, OtlpReceiver, Process, ReceivedSpan, eventually};
use serde_json::{Value, json};
use std::net::{SocketAddr, TcpListener};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const SPAN: &str = "00f067aa0ba902b7";
const PAYLOAD: &str = "hush-hush-payload";

fn traceparent(flags: &str) -> String {
    format!("00-{TRACE}-{SPAN}-{flags}")
}

/// Enqueues a request over HTTP with a trace context.
async fn enqueue(
    serve: &Process,
    program: &Program,
    workspace: &OrderWorkspace,
    trace: &str,
) -> RequestId {
    let (workspace, definition) = (workspace.workspace, workspace.order.definition);
    enqueue_in(serve, program, workspace, definition, trace).await
}

async fn enqueue_in(
    serve: &Process,
    program: &Program,
    workspace: WorkspaceId,
    definition: DefinitionId,
    trace: &str,
) -> RequestId {
    let params = json!({"do": "wait", "card": PAYLOAD});
    let body = json!({"definition": definition, "params": params}).to_string();
    let call = format!(
        "POST /v1/workspaces/{workspace}/requests HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {}\r\n\
        traceparent: {trace}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        key(program),
        body.len()
    );
    let mut connection = HttpConnection::open(address(serve)).await.unwrap();
    connection.send(call.as_bytes()).await.unwrap();
    let answer = connection.read_response().await.unwrap();
    assert_eq!(answer.status, 201, "{}", answer.text());
    let created: Value = serde_json::from_slice(&answer.body).unwrap();
    serde_json::from_value(created["id"].clone()).unwrap()
}

async fn metrics(serve: &Process, program: &Program) -> String {
    let mut connection = HttpConnection::open(address(serve)).await.unwrap();
    let key = key(program);
    let answer = connection.call("GET", "/metrics", &key, None).await;
    answer.unwrap().text()
}

/// The span tree below `parent`, sorted by name and indented.
fn tree(spans: &[ReceivedSpan], parent: &str, depth: usize) -> Vec<String> {
    let mut below: Vec<&ReceivedSpan> = spans.iter().filter(|s| s.parent == parent).collect();
    below.sort_by(|one, other| one.name.cmp(&other.name));
    let mut lines = Vec::new();
    for span in below {
        let of = span.attributes.get("db.collection.name");
        let of = of.map(|of| format!(" {of}")).unwrap_or_default();
        let kind = match span.kind {
            "internal" => String::new(),
            kind => format!(" ({kind})"),
        };
        lines.push(format!("{}{}{of}{kind}", "  ".repeat(depth), span.name));
        lines.extend(tree(spans, &span.id, depth + 1));
    }
    lines
}

fn named<'a>(spans: &'a [ReceivedSpan], name: &str) -> &'a ReceivedSpan {
    let found: Vec<_> = spans.iter().filter(|span| span.name == name).collect();
    assert_eq!(found.len(), 1, "{name} in {spans:#?}");
    found[0]
}

/// The trace, once all spans of the request have arrived; they may arrive in several exports.
fn wait_for_trace(receiver: &OtlpReceiver) -> Vec<ReceivedSpan> {
    let count = expected("").len();
    let of_trace = |spans: &[ReceivedSpan]| spans.iter().filter(|s| s.trace == TRACE).count();
    blocking(|| receiver.wait_for(TIMEOUT, |spans| of_trace(spans) >= count));
    receiver.trace(TRACE)
}

fn expected(start: &str) -> Vec<String> {
    let lines = [
        "POST /v1/workspaces/{workspace}/requests (server)",
        "  step:process_item",
        "    step:check_capacity",
        "      db:query execution",
        "      db:query workspace",
        "    step:dispatch_temporal",
        "      db:insert execution",
        "      db:update request",
        "      db:update request",
        start,
        "    step:mark_claimed",
        "      db:update request",
        "    step:mark_dispatched",
        "      db:update request",
    ];
    let mut lines: Vec<String> = lines.into_iter().map(str::to_owned).collect();
    lines.sort();
    lines
}

fn sorted(mut lines: Vec<String>) -> Vec<String> {
    lines.sort();
    lines
}

/// Asserts that spans lie within their parents.
fn assert_nested(spans: &[ReceivedSpan]) {
    for span in spans {
        assert!(span.from <= span.to, "{span:?}");
        let steps = span.name.starts_with("db:") || span.name.starts_with("step:mark");
        if let Some(parent) = spans.iter().find(|parent| parent.id == span.parent)
            && steps
        {
            assert!(
                parent.from <= span.from && span.to <= parent.to,
                "{span:?} in {parent:?}"
            );
        }
    }
}

/// The trace of the batch, which the item span links to.
fn assert_linked(receiver: &OtlpReceiver, item: &ReceivedSpan) -> ReceivedSpan {
    let (trace, id) = item.links[0].clone();
    assert_ne!(trace, TRACE);
    let came = |spans: &[ReceivedSpan]| {
        let query = |span: &ReceivedSpan| span.trace == trace && span.name == "db:query";
        spans.iter().any(|span| span.id == id) && spans.iter().any(query)
    };
    blocking(|| receiver.wait_for(TIMEOUT, came));
    let batch = receiver.trace(&trace);
    let flow = named(&batch, "flow:queue_processing");
    assert_eq!((&flow.id, flow.parent.as_str()), (&id, ""));
    assert_eq!(flow.attributes["leasehold.batch_size"], "1");
    let below = tree(&batch, &flow.id, 0);
    assert_eq!(below, ["step:claim_batch", "  db:query"]);
    let query = named(&batch, "db:query");
    assert_eq!(query.attributes["leasehold.statement"], "request_claim");
    flow.clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn trace_covers_caller_to_workflow() {
    let receiver = OtlpReceiver::start();
    let database = database::fresh().await;
    let namespace = Namespace::fresh();
    let program = Program::new(database.url(), namespace.address(), &namespace.name)
        .set("traces.endpoint", &receiver.endpoint())
        .set("log.level", "debug");
    let mut serve = program.start();
    let workspace = OrderWorkspace::new(database::store(database.url()), 10).await;
    let id = enqueue(&serve, &program, &workspace, &traceparent("01")).await;
    let request = workspace.dispatched(id).await;
    let spans = wait_for_trace(&receiver);

    let actual = tree(&spans, SPAN, 0);
    assert_eq!(
        actual[0],
        "POST /v1/workspaces/{workspace}/requests (server)"
    );
    let start = "      temporal:start_workflow (client)";
    assert_eq!(sorted(actual), expected(start), "{spans:#?}");
    assert_eq!(spans.len(), expected(start).len());
    assert_nested(&spans);
    let call = named(&spans, "POST /v1/workspaces/{workspace}/requests");
    assert_eq!(
        call.attributes["http.route"],
        "/v1/workspaces/{workspace}/requests"
    );
    assert_eq!(call.attributes["http.request.method"], "POST");
    assert_eq!(call.attributes["http.response.status_code"], "201");
    assert_eq!(call.resource["service.name"], "leasehold");
    assert!(program::is_of(
        &serve,
        &call.resource["service.instance.id"]
    ));

    let item = named(&spans, "step:process_item");
    let execution: ExecutionId = request.execution.unwrap();
    for (name, value) in [
        ("leasehold.request", id.to_string()),
        ("leasehold.workspace", workspace.workspace.to_string()),
        (
            "leasehold.definition",
            workspace.order.definition.to_string(),
        ),
        ("leasehold.execution", execution.to_string()),
        ("leasehold.attempt", "1".to_owned()),
        ("leasehold.outcome", "dispatched".to_owned()),
    ] {
        assert_eq!(item.attributes[name], value, "{name}");
    }
    let flow = assert_linked(&receiver, item);

    // The store has the context of the call, Temporal that of the start.
    assert_eq!(request.trace_context, Some(call.traceparent()));
    let start_span = named(&spans, "temporal:start_workflow");
    assert_eq!(
        namespace.trace_context_of(execution),
        start_span.traceparent()
    );

    program::stop(&mut serve);
    let batch = receiver.trace(&flow.trace);
    assert_eq!(named(&batch, "step:release_lock").parent, flow.id);
    let all = format!("{:?}", receiver.spans());
    assert!(!all.contains(PAYLOAD), "a payload was exported");
    assert!(!all.contains(&key(&program)), "a key was exported");
}

#[tokio::test(flavor = "multi_thread")]
async fn embedded_engine_and_its_jobs_continue_the_trace() {
    let receiver = OtlpReceiver::start();
    // On a SQLite file.
    let program = Program::bare().set("traces.endpoint", &receiver.endpoint());
    let mut serve = program.start();
    let url = format!("http://{}", address(&serve));
    let client = Client::new(&url, &key(&program)).unwrap();
    let (workspace, definition) = create_task_definition(&client).await;
    let trace = traceparent("01");
    enqueue_in(&serve, &program, workspace, definition, &trace).await;
    let spans = wait_for_trace(&receiver);
    let start = "      engine:start";
    assert_eq!(sorted(tree(&spans, SPAN, 0)), expected(start), "{spans:#?}");
    assert_linked(&receiver, named(&spans, "step:process_item"));
    let call = named(&spans, "POST /v1/workspaces/{workspace}/requests");

    let claim = json!({"worker": "test", "lease_ms": 30_000, "wait_ms": 20_000}).to_string();
    let mut connection = HttpConnection::open(address(&serve)).await.unwrap();
    let path = "/v1/queues/traced/claim";
    let key = key(&program);
    let claimed = connection.call("POST", path, &key, Some(claim.as_bytes()));
    let claimed = claimed.await.unwrap().text();
    assert!(claimed.contains(&call.traceparent()), "{claimed}");
    program::stop(&mut serve);
    let all = format!("{:?}", receiver.spans());
    assert!(!all.contains(PAYLOAD), "a payload was exported");
    assert!(!all.contains(&key), "a key was exported");
}

/// Creates a workspace and a definition with one task.
async fn create_task_definition(client: &Client) -> (WorkspaceId, DefinitionId) {
    let new = NewWorkspace {
        name: "traced".to_owned(),
        plan: Plan::Pro,
        max_concurrent_executions: None,
    };
    let workspace = client.workspace_create(&new).await.unwrap().id;
    let new = NewDefinition {
        name: "flow".to_owned(),
    };
    let definition = client.definition_create(workspace, &new).await.unwrap().id;
    let graph = json!({"nodes": [{"id": "only", "type": "task", "queue": "traced"}], "edges": []});
    let new = NewVersion {
        body: VersionBody::Graph(serde_json::from_value(graph).unwrap()),
        params_schema: None,
        execution_timeout_ms: None,
    };
    let published = client.version_publish(workspace, definition, &new).await;
    published.unwrap();
    (workspace, definition)
}

#[tokio::test(flavor = "multi_thread")]
async fn unsampled_trace_is_not_recorded() {
    let receiver = OtlpReceiver::start();
    let database = database::fresh().await;
    let namespace = Namespace::fresh();
    let program = Program::new(database.url(), namespace.address(), &namespace.name)
        .set("traces.endpoint", &receiver.endpoint());
    let mut serve = program.start();
    let workspace = OrderWorkspace::new(database::store(database.url()), 10).await;
    let unrecorded = traceparent("00");
    let id = enqueue(&serve, &program, &workspace, &unrecorded).await;
    let request = workspace.dispatched(id).await;
    assert_eq!(request.trace_context.as_deref(), Some(&*unrecorded));
    let propagated = namespace.trace_context_of(request.execution.unwrap());
    assert_eq!(propagated, *unrecorded);
    program::stop(&mut serve);
    // Everything is exported: the batch, and nothing of the caller's trace.
    named(&receiver.spans(), "flow:queue_processing");
    assert!(receiver.trace(TRACE).is_empty(), "{:?}", receiver.spans());
}

#[tokio::test(flavor = "multi_thread")]
async fn disabled_tracing_still_propagates_the_trace_context() {
    let database = database::fresh().await;
    let namespace = Namespace::fresh();
    let program = Program::new(database.url(), namespace.address(), &namespace.name);
    let mut serve = program.start();
    let workspace = OrderWorkspace::new(database::store(database.url()), 10).await;
    let sent = traceparent("01");
    let id = enqueue(&serve, &program, &workspace, &sent).await;
    let request = workspace.dispatched(id).await;
    assert_eq!(request.trace_context.as_deref(), Some(&*sent));
    let propagated = namespace.trace_context_of(request.execution.unwrap());
    assert_eq!(propagated, *sent);
    program::stop(&mut serve);
}

fn free_address() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn collector_outage_is_logged_once_and_drops_only_spans() {
    let collector = free_address();
    let database = database::fresh().await;
    let namespace = Namespace::fresh();
    let program = Program::new(database.url(), namespace.address(), &namespace.name)
        .set("traces.endpoint", &format!("http://{collector}"));
    let mut serve = program.start();
    let workspace = OrderWorkspace::new(database::store(database.url()), 10).await;
    let dropped = |text: &str| {
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix("leasehold_trace_spans_total{outcome=\"failed\"} "));
        line.map_or(0, |count| count.parse::<u64>().unwrap())
    };
    let mut before = 0;
    for _ in 0..2 {
        let id = enqueue(&serve, &program, &workspace, &traceparent("01")).await;
        workspace.dispatched(id).await;
        let more = eventually(TIMEOUT, async || {
            dropped(&metrics(&serve, &program).await) > before + 10
        });
        assert!(more.await, "no spans are counted as failed");
        before = dropped(&metrics(&serve, &program).await);
    }
    assert_eq!(
        program::lines(&serve, "trace export failed"),
        1,
        "{}",
        serve.log()
    );

    let receiver = OtlpReceiver::at(collector);
    let id = enqueue(&serve, &program, &workspace, &traceparent("01")).await;
    workspace.dispatched(id).await;
    let item = |span: &ReceivedSpan| span.trace == TRACE && span.name == "step:process_item";
    blocking(|| receiver.wait_for(TIMEOUT, |spans| spans.iter().any(item)));
    program::wait_for_lines(&serve, "trace export recovered", 1).await;
    program::stop(&mut serve);
}

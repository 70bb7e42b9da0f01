//! The JSON log: every line is an object, and every event matches docs/operations/logs.md.

use crate::first_start::{address, key};
use crate::order_workspace::OrderWorkspace;
use crate::program::{self, Program};
use crate::temporal::Namespace;
use crate::{TIMEOUT, database};
use leasehold_testkit::log_events::{DocumentedEvents, LogLine};
use leasehold_testkit::{HttpConnection, Process, eventually};
use serde_json::{Map, Value, json};

/// Keys of every line.
const ALWAYS: [&str; 4] = ["timestamp", "level", "message", "target"];

/// Events of the requirements that occur without faults; dispatch tests cover the others.
const EVENTS: [&str; 9] = [
    "Enqueueing workflow",
    "Enqueued execution",
    "Enqueued … executions",
    "Processing … queue items",
    "Workspace at capacity",
    "Workspace not found",
    "Dispatching queue item",
    "Dispatched execution",
    "execution ended",
];

fn page() -> DocumentedEvents {
    DocumentedEvents::parse(include_str!("../../../../docs/operations/logs.md"))
}

/// The lines of our own crates.
fn objects(serve: &Process) -> Vec<Map<String, Value>> {
    let lines = serve.lines().into_iter();
    let objects = lines.filter(|line| line.starts_with('{')).map(|line| {
        let Ok(Value::Object(object)) = serde_json::from_str(&line) else {
            panic!("no object: {line}");
        };
        object
    });
    objects.filter(is_ours).collect()
}

fn is_ours(object: &Map<String, Value>) -> bool {
    object["target"].as_str().unwrap().starts_with("leasehold")
}

fn log_line(object: &Map<String, Value>) -> LogLine<'_> {
    let names = object.keys().map(String::as_str);
    LogLine {
        level: object["level"].as_str().unwrap(),
        message: object["message"].as_str().unwrap(),
        fields: names.filter(|name| !ALWAYS.contains(name)).collect(),
    }
}

async fn post(serve: &Process, program: &Program, path: &str, body: &Value) -> u16 {
    let mut connection = HttpConnection::open(address(serve)).await.unwrap();
    let body = body.to_string();
    let answer = connection
        .call("POST", path, &key(program), Some(body.as_bytes()))
        .await;
    answer.unwrap().status
}

#[tokio::test(flavor = "multi_thread")]
async fn events_match_their_documentation() {
    let database = database::fresh().await;
    let namespace = Namespace::fresh();
    let program = Program::new(database.url(), namespace.address(), &namespace.name)
        .set("log.level", "info,leasehold=debug,leasehold_runtime=debug")
        .set("log.format", "json")
        .quick();
    let mut serve = program.start();
    let workspace = OrderWorkspace::new(database::store(database.url()), 2).await;
    let requests = format!("/v1/workspaces/{}/requests", workspace.workspace);
    let one = json!({"definition": workspace.order.definition, "params": {"do": "wait"}});
    assert_eq!(post(&serve, &program, &requests, &one).await, 201);
    workspace
        .until("dispatched", |counts| counts.dispatched == 1)
        .await;
    let first = workspace.all().await[0].clone();
    let more = json!({"requests": [one, one, one]});
    let batch = format!("{requests}/batch");
    assert_eq!(post(&serve, &program, &batch, &more).await, 200);
    program::wait_for_lines(&serve, "\"Workspace at capacity\"", 1).await;
    // The first ends, the next takes its slot, and the last loses its workspace.
    namespace.terminate(first.execution.unwrap(), "enough");
    workspace
        .until("next", |counts| {
            counts.dispatched == 2 && counts.failed == 1
        })
        .await;
    workspace
        .store
        .workspace_delete(workspace.workspace, &leasehold_store::Actor::Local)
        .await
        .unwrap();
    program::wait_for_lines(&serve, "\"Workspace not found\"", 1).await;

    let page = page();
    let all_there = eventually(TIMEOUT, async || {
        let objects = objects(&serve);
        let is_there = |event: &&str| page.contains(objects.iter().map(log_line), event);
        EVENTS.iter().all(is_there)
    });
    assert!(all_there.await, "{}", serve.log());
    program::stop(&mut serve);
    let objects = objects(&serve);
    assert_eq!(page.violations(objects.iter().map(log_line)), [""; 0]);
    assert!(
        page.contains(objects.iter().map(log_line), "stopped"),
        "the last line is missing"
    );

    // The id of a request appears in all its events.
    let id = first.id.to_string();
    let its: Vec<&str> = objects
        .iter()
        .filter(|object| object.get("request").and_then(Value::as_str) == Some(&id))
        .map(|object| object["message"].as_str().unwrap())
        .filter(|message| *message != "start answered")
        .collect();
    let expected = [
        "Enqueued execution",
        "Dispatching queue item",
        "Dispatched execution",
        "execution ended",
    ];
    assert_eq!(its, expected);
}

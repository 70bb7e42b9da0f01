//! What the program logs, as machines read it: every line is an object, and every event is as its page says.

use crate::first_start::{address, key};
use crate::order_workspace::OrderWorkspace;
use crate::program::{self, Program};
use crate::temporal::Namespace;
use crate::{PATIENCE, database};
use leasehold_testkit::log_events::{Documented, Seen};
use leasehold_testkit::{HttpConnection, Process, eventually};
use serde_json::{Map, Value, json};

/// What every line has beside its fields.
const ALWAYS: [&str; 4] = ["timestamp", "level", "message", "target"];

/// The events of the design documents that need no fault; the others are shown by the scenarios of dispatch.
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

fn page() -> Documented {
    Documented::read(include_str!("../../../../docs/operations/logs.md"))
}

/// The program's own lines.
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

fn seen(object: &Map<String, Value>) -> Seen<'_> {
    let names = object.keys().map(String::as_str);
    Seen {
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
async fn every_event_of_a_day_is_one_object_with_the_level_and_fields_of_its_page() {
    let database = database::fresh().await;
    let namespace = Namespace::fresh();
    let program = Program::new(database.url(), namespace.address(), &namespace.name)
        .set("log.level", "info,leasehold=debug,leasehold_runtime=debug")
        .set("log.format", "json")
        .quick();
    let mut serve = program.start();
    let site = OrderWorkspace::new(database::store(database.url()), 2).await;
    let requests = format!("/v1/workspaces/{}/requests", site.workspace);
    let one = json!({"definition": site.order.definition, "params": {"do": "wait"}});
    assert_eq!(post(&serve, &program, &requests, &one).await, 201);
    site.until("dispatched", |counts| counts.dispatched == 1)
        .await;
    let first = site.all().await[0].clone();
    let more = json!({"requests": [one, one, one]});
    let batch = format!("{requests}/batch");
    assert_eq!(post(&serve, &program, &batch, &more).await, 200);
    program::said(&serve, "\"Workspace at capacity\"", 1).await;
    // It ends, the next takes its slot, and the last is left without its workspace.
    namespace.terminate(first.execution.unwrap(), "enough");
    site.until("next", |counts| {
        counts.dispatched == 2 && counts.failed == 1
    })
    .await;
    site.store.workspace_delete(site.workspace).await.unwrap();
    program::said(&serve, "\"Workspace not found\"", 1).await;

    let page = page();
    let all_there = eventually(PATIENCE, async || {
        let objects = objects(&serve);
        let is_there = |event: &&str| page.has(objects.iter().map(seen), event);
        EVENTS.iter().all(is_there)
    });
    assert!(all_there.await, "{}", serve.log());
    program::stop(&mut serve);
    let objects = objects(&serve);
    assert_eq!(page.wrong(objects.iter().map(seen)), [""; 0]);
    assert!(
        page.has(objects.iter().map(seen), "stopped"),
        "the last line is not lost"
    );

    // One request can be followed by its id from the queue to its end.
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

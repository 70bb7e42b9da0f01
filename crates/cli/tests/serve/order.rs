//! The order example of `examples/` on a server that may call the shop.

use crate::TIMEOUT;
use crate::program::{self, Program};
use leasehold_testkit::{HttpConnection, Process, eventually};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

const ORDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/order");

struct Shop {
    address: SocketAddr,
    key: String,
}

impl Shop {
    async fn call(&self, method: &str, path: &str, body: Option<&Value>) -> Value {
        let mut connection = HttpConnection::open(self.address).await.unwrap();
        let body = body.map(Value::to_string);
        let body = body.as_ref().map(String::as_bytes);
        let call = connection.call(method, path, &self.key, body);
        let answer = call.await.unwrap();
        assert!(answer.status < 300, "{method} {path}: {}", answer.text());
        serde_json::from_str(&answer.text()).unwrap()
    }

    async fn create(&self, path: &str, body: Value) -> String {
        let created = self.call("POST", path, Some(&body)).await;
        created["id"].as_str().unwrap().to_owned()
    }
}

/// Starts the shop on a free port; returns the graph that calls it.
fn shop(address: SocketAddr, key: &str) -> (Process, Value) {
    let mut command = Command::new("python3");
    command
        .args(["-B", &format!("{ORDER}/shop.py")])
        .args([&format!("http://{address}"), "0"])
        .env("LEASEHOLD_KEY", key);
    let shop = Process::spawn(command);
    let line = shop.wait_for_line(TIMEOUT, |line| line.contains("the shop listens"));
    let address_part = line.split_whitespace().last().unwrap();
    let graph = std::fs::read_to_string(Path::new(ORDER).join("graph.json")).unwrap();
    assert!(graph.contains("127.0.0.1:8099"));
    let graph = graph.replace("127.0.0.1:8099", address_part);
    // The test asserts that no attempt is repeated, also on a slow machine.
    let graph = graph
        .replace("\"timeout_ms\": 5000", "\"timeout_ms\": 120000")
        .replace("\"timeout_ms\": 10000", "\"timeout_ms\": 120000");
    (shop, serde_json::from_str(&graph).unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn order_example_completes() {
    let program = Program::bare()
        .set("http_nodes.allow", "127.0.0.1")
        .set("embedded.lease", "60s");
    let mut serve = program.start();
    let address = crate::first_start::address(&serve);
    let key = crate::first_start::key(&program);
    let (_shop, graph) = shop(address, &key);
    let shop = Shop { address, key };
    let workspace = shop
        .create("/v1/workspaces", json!({ "name": "shop", "plan": "PRO" }))
        .await;
    let at = |below: &str| format!("/v1/workspaces/{workspace}{below}");
    let definition = shop
        .create(&at("/definitions"), json!({ "name": "order" }))
        .await;
    let versions = at(&format!("/definitions/{definition}/versions"));
    shop.create(&versions, json!({ "body": { "graph": graph } }))
        .await;
    let order = json!({ "definition": definition, "params": { "order": 7, "item": "teapot" } });
    let request = shop.create(&at("/requests"), order).await;
    let path = at(&format!("/requests/{request}"));
    let ended = eventually(TIMEOUT, async || {
        let request_state = shop.call("GET", &path, None).await;
        assert_ne!(request_state["status"], "FAILED", "{request_state}");
        request_state["status"] == "COMPLETED"
    });
    assert!(ended.await, "{}", serve.log());
    let request_state = shop.call("GET", &path, None).await;
    let execution = request_state["execution"].as_str().unwrap();
    let graph = at(&format!("/executions/{execution}/graph"));
    let nodes = shop.call("GET", &graph, None).await["nodes"].clone();
    let output_of = |at: usize| {
        (
            nodes[at]["id"].as_str().unwrap(),
            nodes[at]["output"].clone(),
        )
    };
    assert_eq!(nodes[0]["output"]["body"]["price"], 30, "{nodes}");
    assert_eq!(
        output_of(1),
        (
            "charge",
            json!({ "done": "charge", "order": 7, "amount": 30 })
        )
    );
    assert_eq!(
        output_of(2),
        (
            "reserve",
            json!({ "done": "reserve", "item": "teapot", "shelf": "t" })
        )
    );
    assert_eq!(
        output_of(4),
        ("ship", json!({ "done": "ship", "order": 7 }))
    );
    for node in nodes.as_array().unwrap() {
        assert_eq!(
            (&node["state"], &node["attempts"]),
            (&json!("completed"), &json!(1)),
            "{node}"
        );
    }
    program::stop(&mut serve);
}

#[tokio::test(flavor = "multi_thread")]
async fn other_engine_is_refused_while_executions_are_open() {
    let program = Program::bare();
    let mut serve = program.start();
    let shop = Shop {
        address: crate::first_start::address(&serve),
        key: crate::first_start::key(&program),
    };
    let workspace = json!({ "name": "shop", "plan": "FREE" });
    let workspace = shop.create("/v1/workspaces", workspace).await;
    let at = |below: &str| format!("/v1/workspaces/{workspace}{below}");
    let name = json!({ "name": "order" });
    let definition = shop.create(&at("/definitions"), name).await;
    let versions = at(&format!("/definitions/{definition}/versions"));
    let graph = json!({ "nodes": [{ "id": "a", "type": "task", "queue": "nobody" }] });
    let version = json!({ "body": { "graph": graph } });
    shop.create(&versions, version).await;
    let order = json!({ "definition": definition, "params": {} });
    let request = shop.create(&at("/requests"), order).await;
    let path = at(&format!("/requests/{request}"));
    let dispatched = eventually(TIMEOUT, async || {
        shop.call("GET", &path, None).await["status"] == "DISPATCHED"
    });
    assert!(dispatched.await, "{}", serve.log());
    program::stop(&mut serve);
    let mut other = program.clone().flag("--engine=temporal").spawn();
    assert_eq!(crate::blocking(|| other.wait(TIMEOUT)).code(), Some(2));
    let log = other.log();
    assert!(log.contains("is open in the embedded engine"), "{log}");
    assert!(log.contains("--engine embedded"), "{log}");
}

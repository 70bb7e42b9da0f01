//! Large and random graphs: the engine reaches the end that the core's state machine predicts.

use crate::fixture::EngineFixture;
use crate::graphs::{delay, node, task, task_of};
use crate::local_server::LocalServer;
use crate::prediction::Prediction;
use crate::task_workers::TaskWorkers;
use fastrand::Rng;
use futures::future::join_all;
use leasehold_core::graph::{Edge, Graph, Node, NodeKind};
use leasehold_engine::Start;
use serde_json::{Value, json};

/// The environment variable with the number of random graphs to run instead of 20.
pub const GRAPHS_VARIABLE: &str = "LEASEHOLD_TEST_GRAPHS";

async fn check(g: &EngineFixture, start: &Start) {
    let (end, error) = g.wait_ended(start).await;
    let nodes = g.nodes(start).await;
    Prediction::of(start).check(end, error.as_deref(), &nodes);
}

/// A graph of chains, diamonds and a wide fan-out.
pub async fn graph_of_200_nodes(g: EngineFixture) {
    let workers = TaskWorkers::start(&g);
    let server = LocalServer::start().await;
    let graph = LargeGraph::new(&g.queue, &server).graph;
    assert_eq!(graph.nodes.len(), 200);
    let numbers: Vec<usize> = (0..200).collect();
    let start = g.start(graph, json!({"numbers": numbers})).await;
    check(&g, &start).await;
    for node in g.nodes(&start).await {
        assert_eq!(node.attempts.max(1), 1, "{node:?}");
    }
    workers.stop().await;
}

struct LargeGraph<'a> {
    graph: Graph,
    queue: &'a str,
}

impl<'a> LargeGraph<'a> {
    fn new(queue: &'a str, server: &LocalServer) -> Self {
        let graph = Graph::default();
        let mut wide = Self { graph, queue };
        wide.add(
            task_of(queue, "root", "echo", json!({"$from": "/params/numbers/7"})),
            &[],
        );
        let mut ends: Vec<String> = vec![wide.chain()];
        for row in 0..3 {
            ends.push(wide.diamonds(row));
        }
        ends.push(wide.fan(122, server));
        let ends: Vec<&str> = ends.iter().map(String::as_str).collect();
        wide.add(task(queue, "end", "add"), &ends);
        wide
    }

    fn add(&mut self, node: Node, after: &[&str]) {
        let edge = |from: &&str| Edge {
            from: (*from).to_owned(),
            to: node.id.clone(),
        };
        self.graph.edges.extend(after.iter().map(edge));
        self.graph.nodes.push(node);
    }

    fn chain(&mut self) -> String {
        let mut last = "root".to_owned();
        for at in 0..15 {
            let id = format!("chain-{at}");
            let node = match at % 3 {
                0 => delay(&id, 5),
                1 => task(self.queue, &id, "echo"),
                _ => task(self.queue, &id, "add"),
            };
            self.add(node, &[&last]);
            last = id;
        }
        last
    }

    /// Five diamonds in a row, each of four nodes.
    fn diamonds(&mut self, row: usize) -> String {
        let mut last = "root".to_owned();
        for at in 0..5 {
            let id = |name: &str| format!("diamond-{row}-{at}-{name}");
            let [top, left, right, bottom] = ["top", "left", "right", "bottom"].map(id);
            self.add(task(self.queue, &top, "add"), &[&last]);
            let above = json!({"$from": format!("/nodes/{top}")});
            self.add(task_of(self.queue, &left, "echo", above), &[&top]);
            self.add(delay(&right, 1), &[&top]);
            self.add(task(self.queue, &bottom, "add"), &[&left, &right]);
            last = bottom;
        }
        last
    }

    fn fan(&mut self, nodes: usize, server: &LocalServer) -> String {
        let ids: Vec<String> = (0..nodes).map(|at| format!("wide-{at}")).collect();
        for (at, id) in ids.iter().enumerate() {
            let number = json!({"$from": format!("/params/numbers/{at}")});
            let node = if at % 10 == 0 {
                let url = server.url(&format!("/echo/{at}"));
                node(
                    json!({"id": id, "type": "http", "method": "POST", "url": url, "input": number}),
                )
            } else {
                task_of(
                    self.queue,
                    id,
                    "add",
                    json!([number, {"$from": "/nodes/root"}]),
                )
            };
            self.add(node, &["root"]);
        }
        let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
        self.add(task(self.queue, "sum", "add"), &ids);
        "sum".to_owned()
    }
}

/// Random graphs with random nodes end as predicted.
pub async fn random_graphs_end_as_predicted(g: EngineFixture) {
    let workers = TaskWorkers::start(&g);
    let server = LocalServer::start().await;
    let count = std::env::var(GRAPHS_VARIABLE).ok();
    let count = count.and_then(|text| text.parse().ok()).unwrap_or(20_u64);
    let mut all = Vec::new();
    for seed in 0..count {
        let graph = random(seed, &g.queue, &server);
        all.push(
            g.start(graph, json!({"seed": seed, "list": [1, 2, 3]}))
                .await,
        );
    }
    join_all(all.iter().map(|start| check(&g, start))).await;
    workers.stop().await;
}

/// Returns the graph of this seed: up to twelve nodes, each after its predecessors. Graphs of odd seeds have nodes that may fail.
fn random(seed: u64, queue: &str, server: &LocalServer) -> Graph {
    let mut rng = Rng::with_seed(seed);
    let mut graph = Graph::default();
    for at in 0..rng.usize(1..=12) {
        let id = format!("n{at}");
        let before: Vec<String> = (0..at)
            .filter(|_| rng.u8(..4) == 0)
            .map(|before| format!("n{before}"))
            .collect();
        let may_fail = seed % 2 == 1;
        let mut node = random_node(&mut rng, &id, queue, server, may_fail);
        if node.input.is_none() {
            node.input = random_input(&mut rng, &node, &before, may_fail);
        }
        let edge = |from: String| Edge {
            from,
            to: id.clone(),
        };
        graph.edges.extend(before.into_iter().map(edge));
        graph.nodes.push(node);
    }
    graph
}

fn random_node(rng: &mut Rng, id: &str, queue: &str, server: &LocalServer, may_fail: bool) -> Node {
    let http = |path: &str| {
        node(
            json!({"id": id, "type": "http", "method": "POST", "url": server.url(path),
            "retry": {"base_ms": 10}}),
        )
    };
    match rng.u8(..if may_fail { 14 } else { 12 }) {
        0..=3 => task(queue, id, "echo"),
        4 | 5 => task(queue, id, "add"),
        6 => task(queue, id, "nothing"),
        7 => task_of(queue, id, "flaky", json!({"times": rng.u8(1..=2)})),
        8 | 9 => delay(id, rng.u64(0..20)),
        10 | 11 => http("/echo/{/params/seed}"),
        12 => task(queue, id, "fail"),
        _ => http("/status/404"),
    }
}

/// Returns a random input: none, a part of the params or of a predecessor's output, or a missing pointer if the node may fail.
fn random_input(rng: &mut Rng, node: &Node, before: &[String], may_fail: bool) -> Option<Value> {
    if matches!(node.kind, NodeKind::Delay { .. }) {
        return None;
    }
    match rng.u8(..8) {
        0 => Some(json!({"$from": "/params/list/1"})),
        1 | 2 if !before.is_empty() => {
            let pointer = format!("/nodes/{}", before[rng.usize(..before.len())]);
            Some(json!({"chosen": {"$from": pointer}}))
        }
        3 if may_fail && rng.bool() => Some(json!({"$from": "/params/nowhere"})),
        _ => None,
    }
}

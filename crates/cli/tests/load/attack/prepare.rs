//! What each attack needs before it begins: workspaces with versions, requests and failed requests.

use super::worker::WORKER_QUEUE;
use super::{Attack, Attacker, compute, tasks};
use crate::neighbour::short_graph;
use crate::server_process::ServerProcess;
use crate::tenant::{Tenant, document, text};
use futures::future::join_all;
use futures::{StreamExt, stream};
use leasehold_core::limits::CHANGE_SCAN_MAX;
use leasehold_testkit::{eventually, sized};
use serde_json::{Value, json};
use std::time::Duration;

const TIMEOUT: Duration = Duration::from_secs(60);
/// Requests of 10 KB in the workspace that is listed: a page holds 4 MiB.
const LISTED: usize = 500;
/// Failed requests of 100 KB.
const FAILED: usize = 200;
/// Calls at once.
const AT_ONCE: usize = 16;

/// The attackers' workspaces on one server.
pub(crate) struct Attackers<'a> {
    server: &'a ServerProcess,
    worker: Tenant,
    /// Has many large requests, which no dispatcher claims.
    reader: Attacker,
    /// Has thousands of events.
    crowd: Attacker,
    /// Has no requests, and a cursor from before thousands of events.
    empty: Attacker,
}

impl<'a> Attackers<'a> {
    /// Creates the workspaces that several attacks use, and thousands of events.
    pub(crate) async fn create(server: &'a ServerProcess, other: &Tenant) -> Self {
        let worker = server.worker(WORKER_QUEUE).await;
        let mut empty = attacker(server, "empty", &worker).await;
        let now = empty.tenant.call("GET", "/changes", None).await.unwrap();
        empty.cursor = text(&document(&now)["next"]);
        let crowd = attacker(server, "crowd", &worker).await;
        fill(server, &crowd, CHANGE_SCAN_MAX as usize + 1_000, 1).await;
        let mut reader = attacker(server, "reader", &worker).await;
        fill(server, &reader, LISTED, 10_000).await;
        // A page with a successor has a cursor.
        other.define("another").await;
        let page = other
            .call("GET", "/definitions?limit=1", None)
            .await
            .unwrap();
        reader.cursor = text(&document(&page)["next"]);
        Self {
            server,
            worker,
            reader,
            crowd,
            empty,
        }
    }

    /// Returns the attacker of an attack, with what it needs.
    pub(crate) async fn of(&self, attack: Attack) -> Attacker {
        let name = format!("{attack:?}");
        match attack {
            Attack::UnreadResponses
            | Attack::ManyLists
            | Attack::ForgedCursors
            | Attack::Disconnects => self.reader.clone(),
            Attack::OldChanges => self.empty.clone(),
            Attack::DisconnectedWaits => self.crowd.clone(),
            Attack::DoublingSchema
            | Attack::ChainedSchema
            | Attack::Patterns
            | Attack::LargeJobs
            | Attack::LargePublish
            | Attack::EndReports => attacker(self.server, &name, &self.worker).await,
            Attack::CostlyValidation => {
                let version = json!({ "body": compute::binding(), "params_schema": compute::costly_schema() });
                self.with_version(&name, &version).await
            }
            Attack::TinyObjects => {
                self.with_version(&name, &json!({ "body": compute::binding() }))
                    .await
            }
            Attack::Templates => {
                let attacker = attacker(self.server, &name, &self.worker).await;
                for (definition, into_urls) in
                    [(&attacker.definition, true), (&attacker.other, false)]
                {
                    let nodes = compute::copying_nodes(&attacker.tenant, into_urls);
                    let version = json!({ "body": { "graph": { "nodes": nodes } } });
                    attacker.tenant.must_publish(definition, &version).await;
                }
                attacker
            }
            Attack::LargeFinish => self.with_worker(&name).await,
            Attack::FanIn => {
                let attacker = self.with_worker(&name).await;
                let graph = tasks::fan_in(&attacker.tenant);
                let tenant = &attacker.tenant;
                tenant.must_publish(&attacker.definition, &graph).await;
                attacker
            }
            Attack::WideGraph => {
                let attacker = attacker(self.server, &name, &self.worker).await;
                let graph = compute::wide_graph(&attacker.tenant);
                attacker
                    .tenant
                    .must_publish(&attacker.definition, &graph)
                    .await;
                attacker
            }
            Attack::VersionLists => self.with_large_versions(&name).await,
            Attack::BulkRedrive => self.with_failed_requests(&name).await,
            Attack::GraphReads => unreachable!("its server has another engine"),
        }
    }

    async fn with_version(&self, name: &str, version: &Value) -> Attacker {
        let attacker = attacker(self.server, name, &self.worker).await;
        attacker
            .tenant
            .must_publish(&attacker.definition, version)
            .await;
        attacker
    }

    /// An attacker with a worker of its own queue.
    async fn with_worker(&self, name: &str) -> Attacker {
        let mut attacker = attacker(self.server, name, &self.worker).await;
        attacker.worker = self.server.worker(&attacker.tenant.queue()).await;
        attacker
    }

    /// An attacker whose definition has versions of 0.8 MB.
    async fn with_large_versions(&self, name: &str) -> Attacker {
        let attacker = attacker(self.server, name, &self.worker).await;
        let (tenant, queue) = (&attacker.tenant, attacker.tenant.queue());
        let node = |number: usize| {
            let input = "x".repeat(200_000);
            json!({ "id": format!("n{number}"), "type": "task", "queue": queue, "input": input })
        };
        let nodes: Vec<Value> = (0..4).map(node).collect();
        let version = json!({ "body": { "graph": { "nodes": nodes } } });
        let publish =
            (0..sized(8, 40)).map(|_| tenant.must_publish(&attacker.definition, &version));
        join_all(publish).await;
        attacker
    }

    /// An attacker with many failed requests; those that are redriven stay pending.
    async fn with_failed_requests(&self, name: &str) -> Attacker {
        let attacker = attacker(self.server, name, &self.worker).await;
        let requests = fill(self.server, &attacker, FAILED, 100_000).await;
        let cancel = async |id: String| {
            let tail = format!("/requests/{id}/cancel");
            let cancelled = attacker.tenant.call("POST", &tail, None).await.unwrap();
            assert_eq!(cancelled.status, 200, "{}", cancelled.text());
        };
        let cancelled = stream::iter(requests.into_iter().map(cancel));
        cancelled
            .buffer_unordered(AT_ONCE)
            .collect::<Vec<()>>()
            .await;
        attacker
    }
}

impl Attacker {
    /// An attacker whose graph has ended. `other` is the id of its execution.
    pub(crate) async fn with_ended_graph(server: &ServerProcess) -> Self {
        let worker = server.worker(WORKER_QUEUE).await;
        let mut attacker = attacker(server, "reader", &worker).await;
        let tenant = &attacker.tenant;
        tenant
            .must_publish(&attacker.definition, &short_graph())
            .await;
        let request = tenant.must_enqueue(&attacker.definition, "1").await;
        let ended = eventually(TIMEOUT, async || {
            tenant.request(&request).await["status"] == "COMPLETED"
        });
        assert!(ended.await, "the execution does not end");
        attacker.other = text(&attacker.tenant.request(&request).await["execution"]);
        attacker
    }
}

/// Creates a workspace with two definitions.
async fn attacker(server: &ServerProcess, name: &str, worker: &Tenant) -> Attacker {
    let tenant = server.tenant(name, "PRO").await;
    Attacker {
        definition: tenant.define("first").await,
        other: tenant.define("second").await,
        tenant,
        worker: worker.clone(),
        cursor: String::new(),
    }
}

/// Pauses the workspace and enqueues requests with params of so many bytes. Returns their ids.
async fn fill(
    server: &ServerProcess,
    attacker: &Attacker,
    count: usize,
    bytes: usize,
) -> Vec<String> {
    let Attacker {
        tenant, definition, ..
    } = attacker;
    server.change(tenant, json!({ "paused": true })).await;
    let version = json!({ "body": compute::binding() });
    tenant.must_publish(definition, &version).await;
    let request = json!({ "definition": definition, "params": "x".repeat(bytes) });
    let in_a_batch = (10_000_000 / bytes).min(1_000);
    let mut ids = Vec::new();
    while ids.len() < count {
        let requests = vec![request.clone(); in_a_batch.min(count - ids.len())];
        let body = json!({ "requests": requests }).to_string();
        let answer = tenant.call("POST", "/requests/batch", Some(body.as_bytes()));
        let answer = answer.await.unwrap();
        assert_eq!(answer.status, 200, "{}", answer.text());
        let enqueued = document(&answer);
        let enqueued = enqueued["requests"].as_array().unwrap();
        ids.extend(enqueued.iter().map(|request| text(&request["id"])));
    }
    ids
}

//! The server process under load, and the data its clients need.

use crate::tenant::{Tenant, text};
use leasehold_testkit::{HttpConnection, HttpResponse, Process};
use serde_json::{Value, json};
use std::collections::HashSet;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

const TIMEOUT: Duration = Duration::from_secs(60);
/// Marks the address in the greeting.
const LISTENS: &str = "http://127.0.0.1:";

pub(crate) struct ServerProcess {
    process: Process,
    address: SocketAddr,
    admin: String,
}

/// A workspace with a definition, and its key.
pub(crate) struct LoadTarget {
    pub(crate) address: SocketAddr,
    pub(crate) key: String,
    pub(crate) workspace: String,
    pub(crate) definition: String,
}

impl ServerProcess {
    /// Starts a server that only serves the API.
    pub(crate) fn start(store: &str, data: &Path) -> Self {
        Self::start_with(store, data, &[("LEASEHOLD__ENGINE__ENABLED", "false")])
    }

    /// Starts a server with these variables.
    pub(crate) fn start_with(store: &str, data: &Path, variables: &[(&str, &str)]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_leasehold"));
        command
            .args(["serve", "--listen", "127.0.0.1:0", "--store", store])
            .arg("--data-dir")
            .arg(data)
            .env_clear()
            .envs(variables.iter().copied());
        let process = Process::spawn(command);
        let line = process.wait_for_line(TIMEOUT, |line| line.contains(LISTENS));
        let rest = line.split(LISTENS).nth(1).unwrap();
        let port: String = rest.chars().take_while(char::is_ascii_digit).collect();
        let admin = std::fs::read_to_string(data.join("admin.key")).unwrap();
        Self {
            process,
            address: format!("127.0.0.1:{port}").parse().unwrap(),
            admin: admin.trim().to_owned(),
        }
    }

    pub(crate) fn is_running(&mut self) -> bool {
        self.process.is_running()
    }

    pub(crate) fn log(&self) -> String {
        self.process.log()
    }

    /// Sends SIGTERM and asserts a successful exit.
    pub(crate) fn stop(&mut self) {
        self.process.terminate();
        let status = tokio::task::block_in_place(|| self.process.wait(TIMEOUT));
        assert!(status.success(), "{status}\n{}", self.process.log());
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Value {
        let answer = self.call("POST", path, Some(&body.to_string())).await;
        assert_eq!(answer.status, 201, "{path}: {}", answer.text());
        serde_json::from_slice(&answer.body).unwrap()
    }

    /// Calls the server with the administrator key, on a connection of its own.
    pub(crate) async fn call(&self, method: &str, path: &str, body: Option<&str>) -> HttpResponse {
        let mut connection = HttpConnection::open(self.address).await.unwrap();
        let body = body.map(str::as_bytes);
        let answer = connection.call(method, path, &self.admin, body).await;
        answer.unwrap()
    }

    pub(crate) fn admin_key(&self) -> &str {
        &self.admin
    }

    /// Creates a workspace, a definition with a version, and a key.
    pub(crate) async fn target(&self) -> LoadTarget {
        let binding = json!({ "binding": { "workflow_type": "Order", "task_queue": "orders" } });
        self.target_of("load", binding).await
    }

    /// Creates a workspace and a key for it.
    pub(crate) async fn tenant(&self, name: &str, plan: &str) -> Tenant {
        let new = json!({ "name": name, "plan": plan });
        let workspace = text(&self.post("/v1/workspaces", new).await["id"]);
        let scope = json!({ "kind": "workspace", "workspace": workspace });
        let new = json!({ "name": name, "scope": scope });
        let key = text(&self.post("/v1/keys", new).await["secret"]);
        Tenant {
            address: self.address,
            key,
            workspace,
        }
    }

    /// Creates a worker key for a queue. It has no workspace.
    pub(crate) async fn worker(&self, queue: &str) -> Tenant {
        let scope = json!({ "kind": "worker", "queues": [queue] });
        let new = json!({ "name": "worker", "scope": scope });
        Tenant {
            address: self.address,
            key: text(&self.post("/v1/keys", new).await["secret"]),
            workspace: String::new(),
        }
    }

    /// Changes a workspace.
    pub(crate) async fn change(&self, tenant: &Tenant, change: Value) {
        let path = format!("/v1/workspaces/{}", tenant.workspace);
        let answer = self.call("PATCH", &path, Some(&change.to_string())).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Creates a workspace of this name, a definition with this version, and a key.
    pub(crate) async fn target_of(&self, name: &str, body: Value) -> LoadTarget {
        let Tenant {
            address,
            key,
            workspace,
        } = self.tenant(name, "PRO").await;
        let definitions = format!("/v1/workspaces/{workspace}/definitions");
        let made = self.post(&definitions, json!({ "name": "order" })).await;
        let definition = text(&made["id"]);
        let versions = format!("{definitions}/{definition}/versions");
        self.post(&versions, json!({ "body": body })).await;
        LoadTarget {
            address,
            key,
            workspace,
            definition,
        }
    }

    /// The ids of all requests of the workspace.
    pub(crate) async fn all_requests(&self, target: &LoadTarget) -> HashSet<String> {
        let mut connection = HttpConnection::open(self.address).await.unwrap();
        let mut found = HashSet::new();
        let mut after = String::new();
        loop {
            let path = format!("{}?limit=1000{after}", target.requests());
            let answer = connection
                .call("GET", &path, &target.key, None)
                .await
                .unwrap();
            assert_eq!(answer.status, 200, "{}", answer.text());
            let page: Value = serde_json::from_slice(&answer.body).unwrap();
            let items = page["items"].as_array().unwrap();
            found.extend(
                items
                    .iter()
                    .map(|item| item["id"].as_str().unwrap().to_owned()),
            );
            match page["next"].as_str() {
                Some(next) => after = format!("&after={next}"),
                None => return found,
            }
        }
    }

    /// Peak memory of the process in MiB.
    pub(crate) fn peak_memory(&self) -> u64 {
        self.peak_bytes() / (1024 * 1024)
    }

    /// Peak memory of the process in bytes.
    pub(crate) fn peak_bytes(&self) -> u64 {
        self.process.peak_memory().unwrap()
    }
}

impl LoadTarget {
    /// A target without a server, to build calls of the right size.
    pub(crate) fn nowhere() -> Self {
        let id = "00000000-0000-0000-0000-000000000000".to_owned();
        Self {
            address: SocketAddr::from(([127, 0, 0, 1], 1)),
            key: String::new(),
            workspace: id.clone(),
            definition: id,
        }
    }

    pub(crate) fn requests(&self) -> String {
        format!("/v1/workspaces/{}/requests", self.workspace)
    }

    /// A request with an idempotency key.
    pub(crate) fn request(&self, key: &str) -> String {
        json!({ "definition": self.definition, "params": { "order": key }, "idempotency_key": key })
            .to_string()
    }
}

/// The id in an enqueue response.
pub(crate) fn id_in(answer: &HttpResponse) -> String {
    let body: Value = serde_json::from_slice(&answer.body).unwrap();
    body["id"].as_str().unwrap().to_owned()
}

//! Load generators: closed loop (next call after the answer) or open loop (fixed rate), over HTTP or directly on the store.

use super::server::BenchServer;
use crate::backend::BenchWorkspace;
use anyhow::{Result, ensure};
use async_trait::async_trait;
use leasehold_core::WorkspaceId;
use leasehold_store::request::{Enqueue, Enqueued, NewRequest};
use leasehold_store::{Store, fresh_id};
use leasehold_testkit::HttpConnection;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// The load of one measurement.
#[derive(Clone, Copy, Debug)]
pub(super) struct LoadSpec {
    pub(super) requests: u32,
    /// Requests per call.
    pub(super) batch: u32,
    pub(super) connections: u32,
}

impl LoadSpec {
    /// Returns a small load that opens connections and prepares statements.
    pub(super) fn warm_up(self) -> Self {
        Self {
            requests: self.batch * self.connections * 2,
            ..self
        }
    }

    fn count(self) -> u32 {
        self.requests.div_ceil(self.batch)
    }
}

/// What the load is sent to.
#[async_trait]
pub(super) trait Target: Send + Sync {
    /// Creates a caller, with its own connection if it needs one.
    async fn caller(&self) -> Result<Box<dyn Caller>>;
}

/// Enqueues requests.
#[async_trait]
pub(super) trait Caller: Send {
    /// Enqueues `count` requests in one call.
    async fn enqueue(&mut self, number: u32, count: u32) -> Result<()>;
}

/// Runs a closed loop: each caller calls again as soon as it has its answer.
pub(super) async fn run(target: &dyn Target, load: LoadSpec) -> Result<()> {
    let next = Arc::new(AtomicU32::new(0));
    let mut tasks = Vec::new();
    for _ in 0..load.connections {
        let mut caller = target.caller().await?;
        let next = next.clone();
        tasks.push(tokio::spawn(async move {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= load.count() {
                    return anyhow::Ok(());
                }
                caller.enqueue(number, load.batch).await?;
            }
        }));
    }
    for task in tasks {
        task.await??;
    }
    Ok(())
}

/// Runs an open loop: calls start at fixed times, however long earlier calls take. Returns the milliseconds from each scheduled time to the answer.
pub(super) async fn run_open(target: &dyn Target, load: LoadSpec, rate: f64) -> Result<Vec<f64>> {
    let next = Arc::new(AtomicU32::new(0));
    let begun = Instant::now();
    let mut tasks = Vec::new();
    for _ in 0..load.connections {
        let mut caller = target.caller().await?;
        let next = next.clone();
        tasks.push(tokio::spawn(async move {
            let mut delays = Vec::new();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= load.count() {
                    return anyhow::Ok(delays);
                }
                let scheduled = begun + Duration::from_secs_f64(f64::from(number) / rate);
                tokio::time::sleep_until(scheduled.into()).await;
                caller.enqueue(number, load.batch).await?;
                delays.push(scheduled.elapsed().as_secs_f64() * 1_000.0);
            }
        }));
    }
    let mut all = Vec::new();
    for task in tasks {
        all.extend(task.await??);
    }
    Ok(all)
}

/// About 100 bytes of JSON.
fn params(number: u32) -> Value {
    json!({ "order": number, "note": "params as long as those of an ordinary small request: 0123456789" })
}

/// Calls the store directly.
pub(super) struct StoreTarget {
    store: Arc<dyn Store>,
    tenant: BenchWorkspace,
}

impl StoreTarget {
    pub(super) fn new(store: Arc<dyn Store>, tenant: BenchWorkspace) -> Self {
        Self { store, tenant }
    }
}

#[async_trait]
impl Target for StoreTarget {
    async fn caller(&self) -> Result<Box<dyn Caller>> {
        Ok(Box::new(Self::new(self.store.clone(), self.tenant)))
    }
}

#[async_trait]
impl Caller for StoreTarget {
    async fn enqueue(&mut self, number: u32, count: u32) -> Result<()> {
        let request = |_| NewRequest::new(fresh_id(), self.tenant.definition, params(number));
        let call = Enqueue {
            workspace: self.tenant.workspace,
            requests: (0..count).map(request).collect(),
            by: "bench".to_owned(),
        };
        let enqueued = self.store.request_enqueue(&call).await?;
        ensure!(matches!(enqueued, Enqueued::All(_)), "{enqueued:?}");
        Ok(())
    }
}

/// Calls a server on this machine over HTTP.
pub(super) struct HttpTarget {
    address: SocketAddr,
    key: Arc<str>,
    tenant: BenchWorkspace,
}

impl HttpTarget {
    pub(super) fn new(server: &BenchServer, tenant: BenchWorkspace) -> Self {
        Self {
            address: server.address(),
            key: server.key().into(),
            tenant,
        }
    }
}

#[async_trait]
impl Target for HttpTarget {
    async fn caller(&self) -> Result<Box<dyn Caller>> {
        Ok(Box::new(HttpCaller {
            connection: HttpConnection::open(self.address).await?,
            key: self.key.clone(),
            definition: self.tenant.definition.to_string(),
            workspace: self.tenant.workspace,
        }))
    }
}

struct HttpCaller {
    connection: HttpConnection,
    key: Arc<str>,
    definition: String,
    workspace: WorkspaceId,
}

#[async_trait]
impl Caller for HttpCaller {
    async fn enqueue(&mut self, number: u32, count: u32) -> Result<()> {
        let request = || json!({ "definition": self.definition, "params": params(number) });
        let requests = format!("/v1/workspaces/{}/requests", self.workspace);
        let (path, body) = match count {
            1 => (requests, request()),
            _ => {
                let all: Vec<Value> = (0..count).map(|_| request()).collect();
                (format!("{requests}/batch"), json!({ "requests": all }))
            }
        };
        let body = body.to_string();
        let answer = self
            .connection
            .call("POST", &path, &self.key, Some(body.as_bytes()))
            .await?;
        ensure!(answer.status < 300, "{}: {}", answer.status, answer.text());
        Ok(())
    }
}

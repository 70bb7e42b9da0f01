//! Callers that enqueue as fast as they are answered, or at given moments: over HTTP, and on the store itself.

use super::served::Served;
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

/// What is called.
#[derive(Clone, Copy, Debug)]
pub(super) struct Calls {
    pub(super) requests: u32,
    /// Requests a call.
    pub(super) batch: u32,
    pub(super) connections: u32,
}

impl Calls {
    /// The same, a few times: connects, and prepares statements.
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

/// A way to enqueue.
#[async_trait]
pub(super) trait Way: Send + Sync {
    /// A caller of its own, with its own connection where it needs one.
    async fn caller(&self) -> Result<Box<dyn Caller>>;
}

/// Somebody who enqueues.
#[async_trait]
pub(super) trait Caller: Send {
    /// Enqueues so many requests in one call.
    async fn enqueue(&mut self, number: u32, count: u32) -> Result<()>;
}

/// Everybody calls again as soon as the last call was answered.
pub(super) async fn run(way: &dyn Way, calls: Calls) -> Result<()> {
    let next = Arc::new(AtomicU32::new(0));
    let mut tasks = Vec::new();
    for _ in 0..calls.connections {
        let mut caller = way.caller().await?;
        let next = next.clone();
        tasks.push(tokio::spawn(async move {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= calls.count() {
                    return anyhow::Ok(());
                }
                caller.enqueue(number, calls.batch).await?;
            }
        }));
    }
    for task in tasks {
        task.await??;
    }
    Ok(())
}

/// Calls come at their moments, however long those before them take. Returns the milliseconds from each moment to its answer.
pub(super) async fn run_open(way: &dyn Way, calls: Calls, rate: f64) -> Result<Vec<f64>> {
    let next = Arc::new(AtomicU32::new(0));
    let begun = Instant::now();
    let mut tasks = Vec::new();
    for _ in 0..calls.connections {
        let mut caller = way.caller().await?;
        let next = next.clone();
        tasks.push(tokio::spawn(async move {
            let mut delays = Vec::new();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= calls.count() {
                    return anyhow::Ok(delays);
                }
                let moment = begun + Duration::from_secs_f64(f64::from(number) / rate);
                tokio::time::sleep_until(moment.into()).await;
                caller.enqueue(number, calls.batch).await?;
                delays.push(moment.elapsed().as_secs_f64() * 1_000.0);
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

/// The store itself.
pub(super) struct Direct {
    store: Arc<dyn Store>,
    tenant: BenchWorkspace,
}

impl Direct {
    pub(super) fn new(store: Arc<dyn Store>, tenant: BenchWorkspace) -> Self {
        Self { store, tenant }
    }
}

#[async_trait]
impl Way for Direct {
    async fn caller(&self) -> Result<Box<dyn Caller>> {
        Ok(Box::new(Self::new(self.store.clone(), self.tenant)))
    }
}

#[async_trait]
impl Caller for Direct {
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

/// A server on this machine.
pub(super) struct OverHttp {
    address: SocketAddr,
    key: Arc<str>,
    tenant: BenchWorkspace,
}

impl OverHttp {
    pub(super) fn new(served: &Served, tenant: BenchWorkspace) -> Self {
        Self {
            address: served.address(),
            key: served.key().into(),
            tenant,
        }
    }
}

#[async_trait]
impl Way for OverHttp {
    async fn caller(&self) -> Result<Box<dyn Caller>> {
        Ok(Box::new(Connected {
            connection: HttpConnection::open(self.address).await?,
            key: self.key.clone(),
            definition: self.tenant.definition.to_string(),
            workspace: self.tenant.workspace,
        }))
    }
}

struct Connected {
    connection: HttpConnection,
    key: Arc<str>,
    definition: String,
    workspace: WorkspaceId,
}

#[async_trait]
impl Caller for Connected {
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

//! A disk that is full while a node's call ends: the worker keeps the result and writes it when there is space again.

use crate::on;
use leasehold_core::graph::Graph;
use leasehold_store::{LayeredStore, Result, Store, StoreCall, StoreLayer};
use leasehold_testbed::{BackendKind, TestBackend};
use leasehold_testkit::{SmallDisk, eventually};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// Counts the finishes that failed.
#[derive(Clone, Default)]
struct FailedFinishes(Arc<AtomicU32>);

impl StoreLayer for FailedFinishes {
    type Observer = ();

    fn observer(&self) -> &() {
        &()
    }

    async fn call<T: Send>(
        &self,
        call: StoreCall,
        run: impl Future<Output = Result<T>> + Send,
    ) -> Result<T> {
        let answer = run.await;
        if call.name() == "job_finish" && answer.is_err() {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
        answer
    }
}

/// Answers each call after `before_answer`.
async fn serve(listener: TcpListener, before_answer: impl Fn()) {
    while let Ok((mut stream, _)) = listener.accept().await {
        let mut request = [0; 4096];
        let _ = stream.read(&mut request).await;
        before_answer();
        let answer = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}";
        let _ = stream.write_all(answer.as_bytes()).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn result_of_an_http_node_survives_a_full_disk() {
    let test = "disk_full::result_of_an_http_node_survives_a_full_disk";
    let Some(disk) = SmallDisk::of_test(test, 16) else {
        return;
    };
    let disk = Arc::new(disk);
    let backend = TestBackend::new(BackendKind::Sqlite).await;
    let failed = FailedFinishes::default();
    let store: Arc<dyn Store> = Arc::new(LayeredStore::new(backend.store.clone(), failed.clone()));
    let g = on(store, backend);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let calls = Arc::new(AtomicU32::default());
    let (filled, counted) = (disk.clone(), calls.clone());
    tokio::spawn(serve(listener, move || {
        counted.fetch_add(1, Ordering::Relaxed);
        filled.fill();
    }));
    let call = json!({"id": "call", "type": "http", "url": url});
    let graph = Graph {
        nodes: vec![serde_json::from_value(call).unwrap()],
        edges: Vec::new(),
    };
    let start = g.start(graph, json!({})).await;
    let kept = eventually(g.timeout, async || failed.0.load(Ordering::Relaxed) >= 3);
    assert!(kept.await, "the worker did not retry");
    disk.empty();
    g.expect_completed(&start).await;
    assert_eq!(calls.load(Ordering::Relaxed), 1, "the call was repeated");
}

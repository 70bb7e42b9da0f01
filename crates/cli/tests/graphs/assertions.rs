//! Checks the store at the end: everything finished, each node completed once, nothing left open. Knows no process.

use crate::flow::{NODES, QUEUE};
use leasehold_core::graph::{NodeRun, NodeState};
use leasehold_core::queue::{DELAY_NODES, HTTP_NODES};
use leasehold_core::{ExecutionEnd, JobId, JobStatus, RequestStatus, WorkspaceId};
use leasehold_store::job::JobFilter;
use leasehold_store::request::{Request, RequestFilter};
use leasehold_store::{Page, Store};
use leasehold_store_postgres::{PostgresOptions, PostgresStore};
use leasehold_store_sqlite::{SqliteOptions, SqliteStore};
use serde_json::{Value, json};
use std::collections::HashSet;
use std::sync::Arc;

/// Opens the store after the server has stopped.
pub(crate) async fn open(url: &str) -> Arc<dyn Store> {
    match url.strip_prefix("sqlite:") {
        Some(file) => Arc::new(SqliteStore::open(file, &SqliteOptions::default()).unwrap()),
        None => Arc::new(PostgresStore::new(&PostgresOptions::new(url)).unwrap()),
    }
}

pub(crate) async fn assert_all_completed(store: &dyn Store, workspace: WorkspaceId, count: usize) {
    let slots = store.workspace_slots(workspace).await.unwrap().unwrap();
    assert_eq!(slots.in_use, 0, "a slot leaked");
    let filter = RequestFilter {
        workspace: Some(workspace),
        ..RequestFilter::default()
    };
    let page = Page {
        after: None,
        limit: 1_000,
    };
    let requests = store.request_list(&filter, page).await.unwrap();
    assert_eq!(requests.len(), count);
    let mut jobs = HashSet::new();
    for request in &requests {
        assert_completed_once(store, request, &mut jobs).await;
    }
    assert_eq!(jobs.len(), count * NODES, "each node has its own job");
    assert_nothing_open(store, count).await;
}

async fn assert_completed_once(store: &dyn Store, request: &Request, jobs: &mut HashSet<JobId>) {
    assert_eq!(request.status, RequestStatus::Completed, "{request:?}");
    let timeline = store.request_timeline(request.workspace, request.id);
    let timeline = timeline.await.unwrap();
    let ends = timeline
        .iter()
        .filter(|event| event.to == RequestStatus::Completed);
    assert_eq!(ends.count(), 1, "{timeline:?}");
    let execution = request.execution.unwrap();
    let run = store.graph_get(execution).await.unwrap().unwrap();
    assert_eq!(run.state.end(), Some(ExecutionEnd::Completed));
    assert_eq!(run.state.letters(), "c".repeat(NODES));
    let nodes = store.graph_nodes(execution).await.unwrap().unwrap();
    assert_eq!(nodes.len(), NODES);
    for node in &nodes {
        assert_node_completed(node);
        assert!(jobs.insert(node.job.unwrap()), "{node:?}");
    }
}

/// Asserts the state and the output of a node.
fn assert_node_completed(node: &NodeRun) {
    assert_eq!(node.state, NodeState::Completed, "{node:?}");
    assert!(node.attempts > 0, "{node:?}");
    assert!(node.started_at.is_some() && node.started_at <= node.finished_at);
    let output: Value = node.output.as_ref().unwrap().read().unwrap();
    match &*node.id {
        "d" | "g" | "i" => assert_eq!(output, Value::Null),
        "a" | "f" => {
            let path = format!("/echo/{}", node.id);
            assert_eq!(output["status"], 200);
            let sent = json!({"method": "POST", "path": path, "body": node.id});
            assert_eq!(output["body"], sent);
        }
        id => assert_eq!(output, json!({"node": id, "input": id})),
    }
}

async fn assert_nothing_open(store: &dyn Store, count: usize) {
    for (queue, each) in [(QUEUE, 5), (HTTP_NODES, 2), (DELAY_NODES, 3)] {
        let counts = store.queue_counts(queue).await.unwrap();
        let open = counts.ready + counts.scheduled + counts.running;
        assert_eq!((open, counts.failed), (0, 0), "{queue}: {counts:?}");
        assert_eq!(counts.completed, (count * each) as u64, "{queue}");
    }
    for status in [JobStatus::Queued, JobStatus::Running] {
        let filter = JobFilter {
            queue: None,
            status: Some(status),
        };
        let page = Page {
            after: None,
            limit: 10,
        };
        let open = store.job_list(&filter, page).await.unwrap();
        assert_eq!(open, [], "jobs are open");
    }
}

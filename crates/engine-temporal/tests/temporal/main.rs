//! Tests of the Temporal engine against a real Temporal server: starts, descriptions, stops and outages.

#![allow(clippy::unwrap_used)]

mod calls;
mod endings;
mod hints;
mod outage;
mod proxy;
mod starts;
mod stops;
mod tls;
mod worker;

use leasehold_core::{
    DefinitionId, ExecutionId, JsonText, RequestId, Timestamp, Version, VersionBody, VersionId,
    WorkspaceId,
};
use leasehold_engine::Start;
use leasehold_engine_temporal::{TemporalEngine, TemporalOptions};
use leasehold_testkit::TestTemporal;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use uuid::Uuid;

/// Limit on waiting for an expected event; long enough for a slow machine.
const WAIT_TIMEOUT: Duration = Duration::from_secs(180);

fn options() -> TemporalOptions {
    TemporalOptions {
        address: TestTemporal::shared().address().to_owned(),
        ..TemporalOptions::default()
    }
}

fn engine() -> TemporalEngine {
    TemporalEngine::new(options()).unwrap()
}

/// An execution of a binding to `Order` on its own task queue.
fn order() -> Start {
    bound_to("Order", &format!("orders-{}", Uuid::now_v7()))
}

fn bound_to(workflow_type: &str, task_queue: &str) -> Start {
    start_of(VersionBody::Binding {
        workflow_type: workflow_type.to_owned(),
        task_queue: task_queue.to_owned(),
    })
}

fn start_of(body: VersionBody) -> Start {
    let workspace = WorkspaceId(Uuid::now_v7());
    let definition = DefinitionId(Uuid::now_v7());
    Start {
        execution: ExecutionId(Uuid::now_v7()),
        request: RequestId(Uuid::now_v7()),
        workspace,
        definition,
        version: Arc::new(Version {
            id: VersionId(Uuid::now_v7()),
            workspace,
            definition,
            number: 1,
            body,
            params_schema: None,
            execution_timeout: None,
            created_at: Timestamp::UNIX_EPOCH,
        }),
        priority: 0,
        params: JsonText::from(&json!({"amount": 42})),
        crashed: false,
        trace: None,
        trace_context: None,
    }
}

/// Adds an execution timeout to a start.
fn limited(start: Start, limit: Duration) -> Start {
    let version = Version {
        execution_timeout: Some(limit),
        ..(*start.version).clone()
    };
    Start {
        version: Arc::new(version),
        ..start
    }
}

fn workflow_id(start: &Start) -> String {
    format!("execution-{}", start.execution)
}

fn task_queue(start: &Start) -> &str {
    match &start.version.body {
        VersionBody::Binding { task_queue, .. } => task_queue,
        VersionBody::Graph(_) => "leasehold",
    }
}

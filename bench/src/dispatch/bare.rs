//! The baseline for the dispatcher: a bare client that only starts executions in a loop.

use anyhow::{Result, ensure};
use leasehold_core::{JsonText, Timestamp, Version, VersionBody};
use leasehold_engine::{Engine, Start, StartOutcome};
use leasehold_store::fresh_id;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

/// Returns the starts per second with this concurrency; each task starts the next execution when it has its answer.
pub(super) async fn rate(engine: Arc<dyn Engine>, count: u32, concurrency: usize) -> Result<f64> {
    let starts: Arc<Vec<Start>> = Arc::new(starts(count));
    let next = Arc::new(AtomicUsize::new(0));
    let begun = Instant::now();
    let tasks = (0..concurrency).map(|_| {
        let (engine, starts, next) = (engine.clone(), starts.clone(), next.clone());
        tokio::spawn(async move {
            while let Some(start) = starts.get(next.fetch_add(1, Ordering::Relaxed)) {
                let outcome = engine.start(start).await;
                ensure!(
                    outcome == StartOutcome::Started,
                    "the engine rejected a start: {outcome:?}"
                );
            }
            Ok(())
        })
    });
    for task in futures::future::join_all(tasks).await {
        task??;
    }
    Ok(f64::from(count) / begun.elapsed().as_secs_f64())
}

/// Returns starts like those of the requests in the stores.
fn starts(count: u32) -> Vec<Start> {
    let version = Arc::new(Version {
        id: fresh_id(),
        workspace: fresh_id(),
        definition: fresh_id(),
        number: 1,
        body: VersionBody::Binding {
            workflow_type: "order".to_owned(),
            task_queue: "orders".to_owned(),
        },
        params_schema: None,
        execution_timeout: None,
        created_at: Timestamp::UNIX_EPOCH,
    });
    let start = |_| Start {
        execution: fresh_id(),
        request: fresh_id(),
        workspace: fresh_id(),
        definition: fresh_id(),
        version: version.clone(),
        priority: 0,
        params: JsonText::from(
            &json!({"order": 12345, "customer": "abcdefgh", "lines": [1, 2, 3]}),
        ),
        crashed: false,
        trace: None,
        trace_context: None,
    };
    (0..count).map(start).collect()
}

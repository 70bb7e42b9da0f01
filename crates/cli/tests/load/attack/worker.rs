//! Attacks of worker keys, and redrives.

use super::{Answer, Attacker, Record};
use crate::tenant::document;
use futures::future::join_all;
use leasehold_core::ExecutionId;
use leasehold_core::limits::CLAIM_MAX_BYTES;
use leasehold_testkit::sized;
use serde_json::{Value, json};

/// The queue of the worker key.
pub(super) const WORKER_QUEUE: &str = "attacked";
/// Bytes of open jobs that the worker key may have if not the default: 8 MiB, some batches.
pub(crate) const KEY_MAX_OPEN_BYTES: &str = "8388608";

/// Jobs of a batch, 250 KiB each. A claim takes fewer.
fn jobs() -> usize {
    sized(20, 60)
}

/// Returns the number of items in a list of a response; none without a response.
fn count_of(answer: &Answer, list: &str) -> usize {
    let answer = answer.as_ref().ok().filter(|answer| answer.status == 200);
    let document = answer.map(document).unwrap_or_default();
    document[list].as_array().map_or(0, Vec::len)
}

pub(super) async fn redrive_all(attacker: &Attacker, record: &mut Record) {
    let body = json!({ "limit": 10_000 }).to_string();
    let tenant = &attacker.tenant;
    let redriven = tenant.call("POST", "/dead-letters/redrive", Some(body.as_bytes()));
    let redriven = redriven.await;
    match count_of(&redriven, "redriven") {
        0 => record.add("redrive of none", &redriven),
        _ => record.add("redrive of some", &redriven),
    }
}

pub(super) async fn store_and_claim_jobs(attacker: &Attacker, record: &mut Record) {
    let payload = "z".repeat(250 * 1024);
    let jobs = vec![json!({ "kind": "k", "payload": payload }); jobs()];
    let body = json!({ "jobs": jobs }).to_string();
    let path = format!("/v1/queues/{WORKER_QUEUE}/jobs/batch");
    let worker = &attacker.worker;
    let stored = worker.call_path("POST", &path, Some(body.as_bytes()));
    record.add("enqueue", &stored.await);
    let claim = json!({ "worker": "w", "max": 1_000, "lease_ms": 1_000 }).to_string();
    let path = format!("/v1/queues/{WORKER_QUEUE}/claim");
    let claimed = worker
        .call_path("POST", &path, Some(claim.as_bytes()))
        .await;
    match count_of(&claimed, "jobs") {
        0 => record.add("claim", &claimed),
        _ => record.add("claim of some", &claimed),
    }
    if let Some(answer) = claimed.ok().filter(|answer| answer.status == 200) {
        let bytes: usize = document(&answer)["jobs"]
            .as_array()
            .unwrap()
            .iter()
            .map(|job: &Value| job["payload"].to_string().len())
            .sum();
        assert!(bytes <= CLAIM_MAX_BYTES, "a claim of {bytes} bytes");
    }
}

/// Reports a hundred executions that do not exist.
pub(super) async fn report_ends(attacker: &Attacker, record: &mut Record) {
    let report = |_| async {
        let id: ExecutionId = leasehold_store::fresh_id();
        let path = format!("/v1/executions/{id}/ended");
        attacker.worker.call_path("POST", &path, None).await
    };
    for answer in join_all((0..100).map(report)).await {
        record.add("report", &answer);
    }
}

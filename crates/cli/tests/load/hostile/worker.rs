//! A hostile worker: it claims the jobs of hostile graphs, so that their payloads are built, and finishes them with hostile results.

use super::{HostileTarget, Run, Tally, Turn, bodies};
use fastrand::Rng;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Instant;

/// Calls of the worker that the server must answer with 2xx now and then.
pub(super) const ANSWERED: [&str; 3] = ["claimed node", "finish", "progress"];

/// Claims and finishes until the end.
pub(super) async fn work(run: Arc<Run>, target: Arc<HostileTarget>, end: Instant) -> Tally {
    let mut tally = Tally::default();
    while Instant::now() < end {
        let mut turn = run.turn();
        let claim = json!({ "worker": "w", "max": turn.rng.u32(1..200), "wait_ms": 100, "lease_ms": 30_000 });
        let path = format!("/v1/queues/{}/claim", target.queue);
        let (key, claim) = (&target.worker, claim.to_string());
        let claimed = tally
            .send(&turn, "claim", key, &path, claim.as_bytes())
            .await;
        let claimed = claimed.unwrap_or_default();
        let jobs = claimed["jobs"].as_array().cloned().unwrap_or_default();
        if jobs.is_empty() {
            continue;
        }
        // The payload of a node is built from params and outputs when its job is claimed.
        let is_node = |job: &&Value| job["payload"]["node_id"].is_string();
        let nodes = jobs.iter().filter(is_node).count();
        tally.0.entry("claimed node").or_default()[2] += nodes as u64;
        report_progress(&mut turn, &target, &jobs[0], &mut tally).await;
        // Refused results leave their jobs to a second, valid finish.
        for hostile in [true, false] {
            let finishes: Vec<String> = jobs
                .iter()
                .map(|job| finish(&mut turn.rng, job, hostile))
                .collect();
            let body = format!("{{\"worker\":\"w\",\"finishes\":[{}]}}", finishes.join(","));
            let path = "/v1/jobs/finish";
            let finished = tally
                .send(&turn, "finish", key, path, body.as_bytes())
                .await;
            if finished.is_some() {
                break;
            }
        }
    }
    tally
}

async fn report_progress(turn: &mut Turn, target: &HostileTarget, job: &Value, tally: &mut Tally) {
    let progress = match turn.rng.bool() {
        true => bodies::valid_params(&mut turn.rng),
        false => bodies::hostile_params(&mut turn.rng),
    };
    let (id, token) = (&job["id"], &job["token"]);
    let body =
        format!("{{\"worker\":\"w\",\"id\":{id},\"token\":{token},\"progress\":{progress}}}");
    let path = "/v1/jobs/progress";
    tally
        .send(turn, "progress", &target.worker, path, body.as_bytes())
        .await;
}

/// Returns a finish as text: most jobs complete, with results of every shape.
fn finish(rng: &mut Rng, job: &Value, hostile: bool) -> String {
    let (id, token) = (&job["id"], &job["token"]);
    let rest = match rng.u8(0..10) {
        0 if hostile => format!(
            "\"outcome\":\"completed\",\"result\":{}",
            bodies::hostile_params(rng)
        ),
        1 => {
            let error = json!("\u{202e}é\u{7}".repeat(rng.usize(0..5_000)));
            format!("\"outcome\":\"failed\",\"retry\":false,\"error\":{error}")
        }
        2 => "\"outcome\":\"snoozed\",\"after_ms\":10".to_owned(),
        3 => "\"outcome\":\"given_back\"".to_owned(),
        4 => format!(
            "\"outcome\":\"completed\",\"result\":{}",
            bodies::valid_params(rng)
        ),
        _ => format!("\"outcome\":\"completed\",\"result\":{}", rng.u32(..)),
    };
    format!("{{\"id\":{id},\"token\":{token},{rest}}}")
}

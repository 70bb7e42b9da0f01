//! The productions of the grammar: which call is sent where. `schemas`, `graphs` and `bodies` have what they contain. Sends nothing.

use super::{HostileTarget, bodies, graphs, schemas};
use fastrand::Rng;
use serde_json::json;

/// A call to send.
pub(super) struct HostileCall {
    /// The production of the grammar.
    pub(super) what: &'static str,
    pub(super) path: String,
    pub(super) body: Vec<u8>,
    /// Whether it is sent with the key of the worker.
    pub(super) is_of_worker: bool,
}

/// Productions of which the server accepts some calls.
pub(super) const VALID_SOMETIMES: [&str; 8] = [
    "schema",
    "params of a schema",
    "graph",
    "template",
    "params of a graph",
    "params",
    "batch",
    "jobs",
];

/// Productions of which the server refuses some calls.
pub(super) const INVALID_SOMETIMES: [&str; 7] = [
    "schema", "graph", "template", "params", "batch", "jobs", "noise",
];

/// Returns a call. Nothing but the random numbers determines it.
pub(super) fn call(rng: &mut Rng, target: &HostileTarget) -> HostileCall {
    let workspace = format!("/v1/workspaces/{}", target.tenant.workspace);
    let versions = |definition: &str| format!("{workspace}/definitions/{definition}/versions");
    let requests = format!("{workspace}/requests");
    let request = |definition: &str, params: &str| {
        format!("{{\"definition\":\"{definition}\",\"params\":{params}}}").into_bytes()
    };
    let (what, path, body) = match rng.u8(0..16) {
        0 | 1 => {
            let graph = graphs::small(rng);
            let version = json!({"body": {"graph": graph}, "params_schema": schemas::schema(rng)});
            let body = version.to_string().into_bytes();
            ("schema", versions(&target.schemas), body)
        }
        2 | 3 => {
            let body = request(&target.schemas, &schemas::params(rng));
            ("params of a schema", requests, body)
        }
        4 | 5 => {
            let version = json!({"body": {"graph": graphs::graph(rng, &target.queue)}});
            let body = version.to_string().into_bytes();
            ("graph", versions(&target.graphs), body)
        }
        6 => {
            let version = json!({"body": {"graph": graphs::template(rng, &target.queue)}});
            let body = version.to_string().into_bytes();
            ("template", versions(&target.graphs), body)
        }
        7..=9 => {
            let body = request(&target.graphs, &graphs::params(rng));
            ("params of a graph", requests, body)
        }
        10 | 11 => (
            "params",
            requests,
            request(&target.bodies, &bodies::params(rng)),
        ),
        12 => {
            let entry = format!("{{\"definition\":\"{}\",\"params\":", target.bodies);
            let batch = bodies::batch(rng, "requests", [&entry, "}"]);
            ("batch", format!("{requests}/batch"), batch.into_bytes())
        }
        13 => {
            let batch = bodies::batch(rng, "jobs", ["{\"kind\":\"k\",\"payload\":", "}"]);
            let path = format!("/v1/queues/{}/jobs/batch", target.queue);
            ("jobs", path, batch.into_bytes())
        }
        _ => {
            let path = [
                requests,
                versions(&target.bodies),
                format!("{workspace}/definitions"),
            ];
            let path = path[rng.usize(0..3)].clone();
            ("noise", path, bodies::broken(rng, &target.bodies))
        }
    };
    HostileCall {
        what,
        path,
        body,
        is_of_worker: what == "jobs",
    }
}

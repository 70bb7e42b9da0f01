//! Payloads of claimed jobs of graphs: a claim builds them from params and outputs. Reads and writes no database.

use leasehold_core::graph::{Machine, NodeContext, NodeReference};
use leasehold_core::job::{ClaimedJob, JobEnd, JobFinish, JobRef, RetryMode};
use leasehold_core::{ExecutionId, JobId, JsonText, WorkspaceId};
use std::collections::HashMap;
use std::sync::Arc;

/// Bytes from which on payloads are built on a thread for blocking work: below, building takes less than a millisecond.
const BLOCKING_MIN_BYTES: usize = 256 * 1024;

/// The claimed jobs of one execution, and what their payloads are built from.
#[derive(Clone, Debug)]
pub struct ClaimedNodes {
    /// The execution.
    pub execution: ExecutionId,
    /// Its workspace.
    pub workspace: WorkspaceId,
    /// Whether a process crashed while it computed an input of its request.
    pub crashed: bool,
    /// Its graph.
    pub machine: Arc<Machine>,
    /// The params of the request.
    pub params: JsonText,
    /// The outputs that the nodes refer to, by the index of their node.
    pub outputs: HashMap<usize, JsonText>,
    /// The jobs and the indexes of their nodes.
    pub jobs: Vec<(JobId, usize)>,
}

/// Returns the ids of claimed jobs whose payload is a reference. A job that is not of a graph may have such a payload too.
pub fn referring(jobs: &[ClaimedJob]) -> Vec<JobId> {
    let refers = |job: &&ClaimedJob| NodeReference::read(&job.payload).is_some();
    jobs.iter().filter(refers).map(|job| job.id).collect()
}

/// The payloads of the jobs of one execution, or why they cannot be built.
pub type Payloads = Vec<(JobId, Result<JsonText, String>)>;

/// Replaces the references of claimed jobs by their payloads. Removes the jobs whose payload cannot be built, and returns their ends: starting
/// the nodes checked their inputs, so this happens only if stored data was changed. `build` builds the payloads of one execution, by [`payloads`]; a store
/// puts a crash marker around each call.
pub async fn fill(
    jobs: &mut Vec<ClaimedJob>,
    groups: Vec<ClaimedNodes>,
    build: impl Fn(&ClaimedNodes) -> Payloads + Send + 'static,
) -> Vec<JobFinish> {
    let bytes: usize = jobs
        .iter()
        .filter_map(|job| NodeReference::read(&job.payload))
        .map(|reference| reference.bytes)
        .fold(0, usize::saturating_add);
    let build_all = move || -> HashMap<JobId, Result<JsonText, String>> {
        groups.iter().flat_map(build).collect()
    };
    let mut built = if bytes < BLOCKING_MIN_BYTES {
        build_all()
    } else {
        let built = tokio::task::spawn_blocking(build_all).await;
        built.unwrap_or_default()
    };
    let mut failed = Vec::new();
    jobs.retain_mut(|job| match built.remove(&job.id) {
        None => true,
        Some(Ok(payload)) => {
            job.payload = payload;
            true
        }
        Some(Err(error)) => {
            failed.push(JobFinish {
                claim: JobRef {
                    job: job.id,
                    token: job.token,
                },
                end: JobEnd::Failed {
                    error,
                    retry_mode: RetryMode::Never,
                },
            });
            false
        }
    });
    failed
}

/// Builds the payloads of the jobs of one execution.
pub fn payloads(group: &ClaimedNodes) -> Payloads {
    let context = NodeContext {
        execution: group.execution,
        workspace: group.workspace,
        params: &group.params,
        outputs: &group.outputs,
    };
    let nodes: Vec<usize> = group.jobs.iter().map(|(_, node)| *node).collect();
    let payloads = group.machine.payloads(&nodes, &context);
    let payloads = payloads
        .into_iter()
        .map(|payload| payload.map_err(|problem| problem.to_string()));
    let jobs = group.jobs.iter().map(|(job, _)| *job);
    jobs.zip(payloads).collect()
}

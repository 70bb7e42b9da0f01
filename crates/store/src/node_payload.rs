//! Payloads of claimed jobs of graphs: a claim builds them from params and outputs. Reads and writes no database.

use leasehold_core::graph::{Machine, NodeContext, NodeReference};
use leasehold_core::job::{ClaimedJob, JobEnd, JobFinish, JobRef, RetryMode};
use leasehold_core::{ExecutionId, JobId, JsonText, WorkspaceId};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Bytes from which on payloads are built on a thread for blocking work: below, building takes less than a millisecond.
const BLOCKING_MIN_BYTES: usize = 256 * 1024;
/// The error of a job whose payload was not built, because the thread that builds payloads panicked.
const INTERRUPTED: &str = "the server failed to build the payload of the job; it is retried";

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
/// the nodes checked their inputs, so this happens only if stored data was changed. If building panics, the jobs without a payload are retried. `build` builds the payloads of one execution, by [`payloads`]; a store
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
    let of_graphs: HashSet<JobId> = groups
        .iter()
        .flat_map(|group| group.jobs.iter().map(|(job, _)| *job))
        .collect();
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
    jobs.retain_mut(|job| {
        let (error, retry_mode) = match built.remove(&job.id) {
            None if !of_graphs.contains(&job.id) => return true,
            // A worker must never get the reference itself.
            None => (INTERRUPTED.to_owned(), RetryMode::Policy),
            Some(Ok(payload)) => {
                job.payload = payload;
                return true;
            }
            Some(Err(error)) => (error, RetryMode::Never),
        };
        let claim = JobRef {
            job: job.id,
            token: job.token,
        };
        let end = JobEnd::Failed { error, retry_mode };
        failed.push(JobFinish { claim, end });
        false
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use leasehold_core::Timestamp;
    use leasehold_core::graph::{Graph, Node, NodeKind};
    use leasehold_core::job::JobRetry;
    use std::time::Duration;
    use uuid::Uuid;

    fn job(number: i64, payload: JsonText) -> ClaimedJob {
        ClaimedJob {
            id: JobId(number),
            token: 1,
            kind: "a".to_owned(),
            payload,
            priority: 0,
            attempt: 1,
            retry: JobRetry::default(),
            timeout: None,
            progress: None,
            last_error: None,
            trace_context: None,
            created_at: Timestamp::UNIX_EPOCH,
            lease: Duration::from_secs(30),
            lease_expires_at: Timestamp::UNIX_EPOCH,
            group: None,
        }
    }

    fn group(jobs: &[&ClaimedJob]) -> ClaimedNodes {
        let kind = NodeKind::Task {
            queue: "q".to_owned(),
            kind: None,
        };
        let graph = Graph {
            nodes: vec![Node::new("first".to_owned(), kind)],
            edges: Vec::new(),
        };
        ClaimedNodes {
            execution: ExecutionId(Uuid::nil()),
            workspace: WorkspaceId(Uuid::nil()),
            crashed: false,
            machine: Arc::new(Machine::new(graph).unwrap()),
            params: JsonText::default(),
            outputs: HashMap::new(),
            jobs: jobs.iter().map(|job| (job.id, 0)).collect(),
        }
    }

    #[tokio::test]
    async fn worker_gets_no_reference_if_building_panics() {
        let reference = NodeReference {
            node: 0,
            bytes: BLOCKING_MIN_BYTES,
        };
        let text = JsonText::of(&reference).unwrap();
        let (of_graph, plain) = (job(1, text.clone()), job(2, text));
        let groups = vec![group(&[&of_graph])];
        let mut jobs = vec![of_graph, plain];
        let failed = fill(&mut jobs, groups, |_| panic!("a fault of the builder")).await;
        assert_eq!(jobs.len(), 1);
        assert_eq!(jobs[0].id, JobId(2));
        let [failed] = failed.as_slice() else {
            panic!("{failed:?}");
        };
        assert_eq!(failed.claim.job, JobId(1));
        let retry_mode = RetryMode::Policy;
        let error = INTERRUPTED.to_owned();
        assert_eq!(failed.end, JobEnd::Failed { error, retry_mode });
    }
}

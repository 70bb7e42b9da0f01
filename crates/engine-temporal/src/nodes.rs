//! Reads the nodes of an execution from its workflow's history and, for running activities, from its description. Needs no worker.

use crate::TemporalEngine;
use crate::describe::{end, failure_message, info};
use crate::graph_payload::{FAILED_NODE, FailedNode, JobProgress, NodeResult, timeout_message};
use crate::grpc_codes::{engine_error, is_workflow_not_found};
use crate::proto::{
    Attributes, Failure, FailureInfo, GetWorkflowExecutionHistoryRequest, HistoryEvent, Payload,
    Payloads, PendingActivityInfo, TimeoutType, WorkflowExecution,
};
use leasehold_core::graph::{Graph, NodeRun, NodeState};
use leasehold_core::limits::ERROR_MAX_CHARS;
use leasehold_core::text::clip;
use leasehold_core::{ExecutionId, Timestamp, VersionBody};
use leasehold_engine::{Error, Result};
use serde::de::DeserializeOwned;
use std::collections::HashMap;

/// Maximum number of events per page; the server returns fewer if they are large.
const PAGE_SIZE: i32 = 1_000;
/// More pages than the longest history of the largest graph.
const MAX_PAGES: usize = 200;

impl TemporalEngine {
    pub(crate) async fn node_runs(
        &self,
        execution: ExecutionId,
        body: &VersionBody,
    ) -> Result<Option<Vec<NodeRun>>> {
        let seen = match self.describe_run(execution, "").await {
            Ok(seen) => seen,
            Err(rpc_error) if is_workflow_not_found(&rpc_error) => return Ok(None),
            Err(rpc_error) => return Err(engine_error(&rpc_error)),
        };
        let VersionBody::Graph(graph) = body else {
            return Ok(Some(Vec::new()));
        };
        let run = info(&seen).map_err(|rpc_error| engine_error(&rpc_error))?;
        let mut nodes = NodeRuns::new(graph);
        // Pending activities first: the history, read later, overrides those that have ended since.
        for pending in &seen.pending_activities {
            nodes.pending(pending);
        }
        for event in &self.history(execution, run.execution.clone()).await? {
            nodes.event(event);
        }
        let closed = run.close_time.as_ref();
        let closed = closed.and_then(|at| time(at.seconds, at.nanos));
        let ended = end(run.status()).is_some();
        Ok(Some(nodes.runs(ended.then_some(closed))))
    }

    async fn history(
        &self,
        execution: ExecutionId,
        run: Option<WorkflowExecution>,
    ) -> Result<Vec<HistoryEvent>> {
        let mut all = Vec::new();
        let mut page = Vec::new();
        for _ in 0..MAX_PAGES {
            let (events, next) = self.history_page(run.clone(), page).await?;
            all.extend(events);
            if next.is_empty() {
                return Ok(all);
            }
            page = next;
        }
        let id = crate::workflow_id(execution);
        Err(Error::Failed(format!(
            "the history of workflow {id} has more than {MAX_PAGES} pages"
        )))
    }

    async fn history_page(
        &self,
        run: Option<WorkflowExecution>,
        page: Vec<u8>,
    ) -> Result<(Vec<HistoryEvent>, Vec<u8>)> {
        let request = GetWorkflowExecutionHistoryRequest {
            namespace: self.options.namespace.clone(),
            execution: run,
            maximum_page_size: PAGE_SIZE,
            next_page_token: page,
            skip_archival: true,
            ..GetWorkflowExecutionHistoryRequest::default()
        };
        let sent = self.connection.call(self.options.call_timeout, request);
        let answer = sent.await.map_err(|rpc_error| engine_error(&rpc_error))?;
        let events = answer.history.map(|history| history.events);
        Ok((events.unwrap_or_default(), answer.next_page_token))
    }
}

/// The node runs collected so far.
struct NodeRuns {
    runs: Vec<NodeRun>,
    indexes: HashMap<String, usize>,
    /// The node of a scheduled activity, by the event that scheduled it.
    activities: HashMap<i64, usize>,
    /// The node of a timer, by the event that started it.
    timers: HashMap<i64, usize>,
    /// The node that failed the execution.
    failed_node: Option<usize>,
}

impl NodeRuns {
    fn new(graph: &Graph) -> Self {
        let ids = graph.nodes.iter().map(|node| node.id());
        Self {
            runs: ids.clone().map(NodeRun::waiting).collect(),
            indexes: ids
                .enumerate()
                .map(|(at, id)| (id.to_owned(), at))
                .collect(),
            activities: HashMap::new(),
            timers: HashMap::new(),
            failed_node: None,
        }
    }

    fn index_of(&self, id: &str) -> Option<usize> {
        self.indexes.get(id).copied()
    }

    fn pending(&mut self, pending: &PendingActivityInfo) {
        let Some(at) = self.index_of(&pending.activity_id) else {
            return;
        };
        let run = &mut self.runs[at];
        run.attempts = u32::try_from(pending.attempt).unwrap_or_default();
        run.error = pending.last_failure.as_ref().map(failure_text);
        if let Some(seen) = read::<JobProgress>(pending.heartbeat_details.as_ref()) {
            run.job = Some(seen.job);
            run.attempts = seen.attempts;
        }
    }

    fn event(&mut self, event: &HistoryEvent) {
        let at = event.event_time.as_ref();
        let at = at.and_then(|at| time(at.seconds, at.nanos));
        match event.attributes.as_ref() {
            Some(Attributes::ActivityTaskScheduled(scheduled)) => {
                if let Some(index) = self.index_of(&scheduled.activity_id) {
                    self.activities.insert(event.event_id, index);
                    self.mark_running(index, at);
                }
            }
            Some(Attributes::ActivityTaskStarted(started)) => {
                if let Some(run) = self.activity(started.scheduled_event_id) {
                    run.attempts = u32::try_from(started.attempt).unwrap_or_default();
                }
            }
            Some(Attributes::ActivityTaskCompleted(completed)) => {
                if let Some(run) = self.activity(completed.scheduled_event_id) {
                    complete(run, completed.result.as_ref(), at);
                }
            }
            Some(Attributes::ActivityTaskFailed(failed)) => {
                if let Some(run) = self.activity(failed.scheduled_event_id) {
                    fail(run, failed.failure.as_ref(), at);
                }
            }
            Some(Attributes::ActivityTaskTimedOut(timed_out)) => {
                if let Some(run) = self.activity(timed_out.scheduled_event_id) {
                    fail(run, timed_out.failure.as_ref(), at);
                }
            }
            Some(Attributes::TimerStarted(_)) => {
                let metadata = event.user_metadata.as_ref();
                let summary = metadata.and_then(|metadata| metadata.summary.as_ref());
                let id: Option<String> = summary.and_then(value);
                if let Some(index) = id.and_then(|id| self.index_of(&id)) {
                    self.timers.insert(event.event_id, index);
                    self.mark_running(index, at);
                    self.runs[index].attempts = 1;
                }
            }
            Some(Attributes::TimerFired(fired)) => {
                if let Some(index) = self.timers.get(&fired.started_event_id) {
                    let run = &mut self.runs[*index];
                    run.state = NodeState::Completed;
                    run.finished_at = at;
                }
            }
            Some(Attributes::WorkflowExecutionFailed(failed)) => {
                self.record_failed_node(failed.failure.as_ref(), at);
            }
            _ => {}
        }
    }

    fn mark_running(&mut self, index: usize, at: Option<Timestamp>) {
        let run = &mut self.runs[index];
        run.state = NodeState::Running;
        run.started_at = at;
    }

    fn activity(&mut self, scheduled: i64) -> Option<&mut NodeRun> {
        let index = self.activities.get(&scheduled)?;
        self.runs.get_mut(*index)
    }

    /// Records the node that failed the execution. A node whose input could not be built has no event of its own.
    fn record_failed_node(&mut self, failure: Option<&Failure>, at: Option<Timestamp>) {
        let Some(FailureInfo::Application(info)) =
            failure.and_then(|failure| failure.failure_info.as_ref())
        else {
            return;
        };
        if info.r#type != FAILED_NODE {
            return;
        }
        let Some(failed) = read::<FailedNode>(info.details.as_ref()) else {
            return;
        };
        if let Some(index) = self.index_of(&failed.node_id) {
            self.failed_node = Some(index);
            let run = &mut self.runs[index];
            run.state = NodeState::Failed;
            run.error = Some(clip(&failed.error, ERROR_MAX_CHARS));
            run.finished_at = run.finished_at.or(at);
        }
    }

    /// Returns the runs. In an ended execution, open nodes are cancelled, and so are nodes that failed after the one that failed it.
    fn runs(mut self, ended: Option<Option<Timestamp>>) -> Vec<NodeRun> {
        let Some(closed) = ended else {
            return self.runs;
        };
        for (index, run) in self.runs.iter_mut().enumerate() {
            match run.state {
                NodeState::Waiting => run.state = NodeState::Cancelled,
                NodeState::Running => {
                    run.state = NodeState::Cancelled;
                    run.finished_at = closed;
                }
                NodeState::Failed if self.failed_node != Some(index) => {
                    run.state = NodeState::Cancelled;
                }
                NodeState::Failed | NodeState::Completed | NodeState::Cancelled => {}
            }
        }
        self.runs
    }
}

fn complete(run: &mut NodeRun, result: Option<&Payloads>, at: Option<Timestamp>) {
    run.state = NodeState::Completed;
    run.finished_at = at;
    run.error = None;
    if let Some(done) = read::<NodeResult>(result) {
        run.attempts = done.attempts;
        run.job = done.job;
        run.output = done.output;
    }
}

fn fail(run: &mut NodeRun, failure: Option<&Failure>, at: Option<Timestamp>) {
    run.state = NodeState::Failed;
    run.finished_at = at;
    run.error = failure.map(failure_text);
    let details = failure.and_then(|failure| match failure.failure_info.as_ref()? {
        FailureInfo::Application(info) => info.details.as_ref(),
        _ => None,
    });
    if let Some(seen) = read::<JobProgress>(details) {
        run.job = Some(seen.job);
        run.attempts = seen.attempts;
    }
}

/// Returns the error text that the workflow gives for this failure.
fn failure_text(failure: &Failure) -> String {
    let text = match failure.failure_info.as_ref() {
        Some(FailureInfo::Timeout(info)) => {
            timeout_message(info.timeout_type() == TimeoutType::Heartbeat).to_owned()
        }
        _ => failure_message(failure),
    };
    clip(&text, ERROR_MAX_CHARS)
}

fn read<T: DeserializeOwned>(payloads: Option<&Payloads>) -> Option<T> {
    payloads?.payloads.first().and_then(value)
}

fn value<T: DeserializeOwned>(payload: &Payload) -> Option<T> {
    serde_json::from_slice(&payload.data).ok()
}

fn time(seconds: i64, nanos: i32) -> Option<Timestamp> {
    Timestamp::new(seconds, nanos).ok()
}

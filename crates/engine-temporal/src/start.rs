//! Starting a workflow, and finding out whose it is if its id is taken. Which code means what stands in `codes`.

use crate::TemporalEngine;
use crate::codes::{detail, start_outcome};
use crate::connect::Trouble;
use crate::describe::info;
use crate::input;
use crate::proto::{
    DescribeWorkflowExecutionResponse, StartWorkflowExecutionRequest, TaskQueue,
    WorkflowExecutionAlreadyStartedFailure, WorkflowExecutionInfo, WorkflowExecutionStatus,
    WorkflowIdConflictPolicy, WorkflowIdReusePolicy, WorkflowType,
};
use leasehold_core::VersionBody;
use leasehold_engine::{Start, StartOutcome};

impl TemporalEngine {
    pub(crate) async fn start_workflow(&self, start: &Start) -> StartOutcome {
        let request = match self.start_request(start) {
            Ok(request) => request,
            Err(error) => {
                return StartOutcome::Refused {
                    error: error.to_string(),
                };
            }
        };
        let sent = self.link.call(self.options.call_timeout, request);
        match sent.await {
            // A start repeated with the same request id is answered like the first, with what has become of it.
            Ok(answer) if crate::describe::end(answer.status()).is_some() => {
                StartOutcome::AlreadyStarted { ended: true }
            }
            Ok(_answer) => StartOutcome::Started,
            Err(trouble) => match start_outcome(&trouble) {
                Some(outcome) => outcome,
                None => self.whose(start, &trouble).await,
            },
        }
    }

    fn start_request(&self, start: &Start) -> serde_json::Result<StartWorkflowExecutionRequest> {
        let (workflow_type, task_queue) = self.runs_as(&start.version.body);
        Ok(StartWorkflowExecutionRequest {
            namespace: self.options.namespace.clone(),
            identity: self.options.identity.clone(),
            workflow_id: crate::workflow_id(start.execution),
            workflow_type: Some(WorkflowType {
                name: workflow_type.to_owned(),
            }),
            task_queue: Some(TaskQueue {
                name: task_queue.to_owned(),
            }),
            input: Some(input::input(start)?),
            // One too long for Temporal's type is as good as none.
            workflow_execution_timeout: start
                .version
                .execution_timeout
                .and_then(|timeout| timeout.try_into().ok()),
            request_id: start_request_id(start),
            workflow_id_reuse_policy: WorkflowIdReusePolicy::RejectDuplicate.into(),
            workflow_id_conflict_policy: WorkflowIdConflictPolicy::Fail.into(),
            memo: Some(input::memo(start)?),
            header: input::header(start)?,
            priority: Some(input::priority(start)),
        })
    }

    /// The workflow type and task queue of a version.
    pub(crate) fn runs_as<'a>(&'a self, body: &'a VersionBody) -> (&'a str, &'a str) {
        match body {
            VersionBody::Graph(_) => (
                &self.options.graph_workflow_type,
                &self.options.graph_task_queue,
            ),
            VersionBody::Binding {
                workflow_type,
                task_queue,
            } => (workflow_type, task_queue),
        }
    }

    /// Whose workflow has taken the id of a start, and whether it has ended.
    async fn whose(&self, start: &Start, trouble: &Trouble) -> StartOutcome {
        match self.look_for_start(start, trouble).await {
            Ok(Some(latest)) => StartOutcome::AlreadyStarted {
                ended: crate::describe::end(latest).is_some(),
            },
            Ok(None) => StartOutcome::Refused {
                error: "the workflow id is taken by a workflow that Leasehold did not start"
                    .to_owned(),
            },
            Err(trouble) => StartOutcome::Unknown {
                error: format!(
                    "the workflow id is taken, by whom is not known: {}",
                    crate::codes::error(&trouble)
                ),
            },
        }
    }

    /// The latest run's status, if this start began its chain of runs.
    ///
    /// A run that continues or retries another has a request id of its own. It has our memo too if its worker passed it on,
    /// which not every one does. The first run still knows our request id, unless the namespace has forgotten it.
    async fn look_for_start(
        &self,
        start: &Start,
        trouble: &Trouble,
    ) -> Result<Option<WorkflowExecutionStatus>, Trouble> {
        let answer = self.describe_run(start.execution, "").await?;
        let latest = info(&answer)?;
        let ours = |seen: &DescribeWorkflowExecutionResponse| {
            request_ids(seen).any(|id| *id == start_request_id(start))
                || info(seen).is_ok_and(|run| input::is_memo_of(start, run.memo.as_ref()))
        };
        let is_ours = start_request_id_of(trouble) == Some(start_request_id(start))
            || ours(&answer)
            || match first_run(latest) {
                Some(first) => ours(&self.describe_run(start.execution, first).await?),
                None => false,
            };
        Ok(is_ours.then(|| latest.status()))
    }
}

/// The run that began the chain, if it is another one.
fn first_run(latest: &WorkflowExecutionInfo) -> Option<&str> {
    let run = latest.execution.as_ref()?.run_id.as_str();
    Some(latest.first_run_id.as_str()).filter(|first| !first.is_empty() && *first != run)
}

fn request_ids(seen: &DescribeWorkflowExecutionResponse) -> impl Iterator<Item = &String> {
    let extended = seen.workflow_extended_info.iter();
    extended.flat_map(|extended| extended.request_id_infos.keys())
}

/// The same for every repetition of a start: Temporal takes them for one.
fn start_request_id(start: &Start) -> String {
    format!("start-{}", start.execution)
}

fn start_request_id_of(trouble: &Trouble) -> Option<String> {
    let Trouble::Status(status) = trouble else {
        return None;
    };
    detail::<WorkflowExecutionAlreadyStartedFailure>(
        status,
        "WorkflowExecutionAlreadyStartedFailure",
    )
    .map(|failure| failure.start_request_id)
}

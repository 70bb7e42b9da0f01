//! The workflow type that runs graphs: the core's state machine, driven by activities and timers. It must be deterministic: no clock, no
//! randomness, no order but that of the graph.

use crate::activities::Activities;
use crate::policy;
use futures::FutureExt;
use futures::future::{LocalBoxFuture, poll_fn};
use leasehold_core::duration::millis;
use leasehold_core::graph::{GraphEvent, Machine, NodeContext, NodeWork};
use leasehold_core::{ExecutionId, JsonText, WorkspaceId};
use leasehold_engine_temporal::graph_payload::{
    CallInput, EndedInput, FAILED_NODE, FailedNode, MEMO_PRIORITY, MEMO_TRACE, NodeResult,
    TaskInput, WorkflowInput,
};
use std::collections::HashMap;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;
use temporalio_sdk::error::ApplicationFailure;
use temporalio_sdk::{
    TimerOptions, TimerResult, WorkflowCancellationToken, WorkflowContext, WorkflowResult,
    WorkflowTermination,
};
use temporalio_workflow::{workflow, workflow_methods};

/// Temporal rejects timers of length zero.
const MIN_TIMER: Duration = Duration::from_millis(1);

/// Maximum input size of nodes started in one workflow task. Temporal rejects a task response above 4 MiB; a short timer starts the rest in another task.
const TASK_RESPONSE_MAX_BYTES: usize = 2 * 1024 * 1024;

/// Runs a graph.
#[workflow]
#[derive(Default)]
pub(crate) struct LeaseholdGraph;

#[workflow_methods]
impl LeaseholdGraph {
    #[run(name = "LeaseholdGraph")]
    pub(crate) async fn run(
        ctx: &mut WorkflowContext<Self>,
        input: WorkflowInput<'static>,
    ) -> WorkflowResult<()> {
        let execution = input.execution_id;
        let nodes = ctx.cancellation_token().child_token();
        let end = drive(ctx, input, &nodes).await;
        // Cancels the nodes that are still running.
        nodes.cancel();
        report_end(ctx, execution).await;
        end
    }
}

/// A started node and the future of its result.
type RunningNode<'a> = (usize, LocalBoxFuture<'a, Result<NodeResult, String>>);

/// The next event of the graph.
enum Next {
    Cancelled,
    Ended(usize, Result<NodeResult, String>),
}

async fn drive(
    ctx: &WorkflowContext<LeaseholdGraph>,
    input: WorkflowInput<'static>,
    nodes: &WorkflowCancellationToken,
) -> WorkflowResult<()> {
    let graph = input
        .graph
        .ok_or_else(|| failure("the workflow input has no graph"))?;
    let machine =
        Machine::new(graph.into_owned()).map_err(|problem| failure(&problem.to_string()))?;
    let starter = NodeStarter {
        ctx,
        machine: &machine,
        execution: input.execution_id,
        workspace: input.workspace_id,
        priority: ctx.memo().get(MEMO_PRIORITY).ok().flatten().unwrap_or(0),
        trace: ctx.memo().get(MEMO_TRACE).ok().flatten(),
        nodes,
    };
    let mut outputs: HashMap<usize, JsonText> = HashMap::new();
    let mut open: Vec<RunningNode<'_>> = Vec::new();
    let (mut state, mut step) = machine.begin();
    loop {
        let context = NodeContext {
            execution: input.execution_id,
            workspace: input.workspace_id,
            params: &input.params,
            outputs: &outputs,
        };
        let prepared = machine.prepare(&mut state, step, &context);
        if let Some((at, error)) = prepared.failed {
            return Err(node_failure(&machine, at, &error));
        }
        let mut bytes = 0;
        for (at, work) in prepared.begin {
            bytes += work.bytes();
            if bytes > TASK_RESPONSE_MAX_BYTES {
                bytes = work.bytes();
                let _ = ctx.timer(MIN_TIMER).await;
            }
            open.push((at, starter.start(at, work)));
        }
        if prepared.end.is_some() {
            return Ok(());
        }
        let event = match next(ctx, &mut open).await {
            Next::Cancelled => return Err(WorkflowTermination::cancelled()),
            Next::Ended(at, Ok(done)) => {
                outputs.extend(done.output.map(|output| (at, output)));
                GraphEvent::Completed(at)
            }
            Next::Ended(at, Err(error)) => return Err(node_failure(&machine, at, &error)),
        };
        step = machine.apply(&mut state, event).unwrap_or_default();
    }
}

/// Returns the first ended node in start order; a cancellation takes precedence.
async fn next(ctx: &WorkflowContext<LeaseholdGraph>, open: &mut Vec<RunningNode<'_>>) -> Next {
    let mut cancelled = pin!(ctx.cancelled());
    poll_fn(|cx| {
        if cancelled.poll_unpin(cx).is_ready() {
            return Poll::Ready(Next::Cancelled);
        }
        for index in 0..open.len() {
            let (at, node) = &mut open[index];
            if let Poll::Ready(end) = node.poll_unpin(cx) {
                let at = *at;
                drop(open.remove(index));
                return Poll::Ready(Next::Ended(at, end));
            }
        }
        Poll::Pending
    })
    .await
}

/// The data shared by all nodes of an execution.
struct NodeStarter<'a> {
    ctx: &'a WorkflowContext<LeaseholdGraph>,
    machine: &'a Machine,
    execution: ExecutionId,
    workspace: WorkspaceId,
    priority: i16,
    trace: Option<String>,
    nodes: &'a WorkflowCancellationToken,
}

impl<'a> NodeStarter<'a> {
    fn start(&self, at: usize, work: NodeWork) -> LocalBoxFuture<'a, Result<NodeResult, String>> {
        let id = self.machine.node(at).id();
        match work {
            NodeWork::Delay(length) => self.start_timer(id, length),
            NodeWork::Http {
                call,
                retry,
                timeout,
            } => {
                let input = CallInput {
                    call,
                    timeout_ms: millis(timeout),
                    trace: self.trace.clone(),
                };
                let options = policy::call_options(id, timeout, &retry, self.nodes);
                self.ctx
                    .execute_activity(Activities::call, input, options)
                    .map(|end| end.map_err(|error| policy::failure_text(&error)))
                    .boxed_local()
            }
            NodeWork::Task {
                queue,
                kind,
                payload,
                retry,
                timeout,
            } => {
                let input = TaskInput {
                    execution_id: self.execution,
                    workspace_id: Some(self.workspace),
                    node_id: id.to_owned(),
                    queue,
                    kind,
                    payload,
                    priority: self.priority,
                    retry: retry.into(),
                    timeout_ms: timeout.map(millis),
                    trace: self.trace.clone(),
                };
                let options = policy::task_options(id, self.nodes);
                self.ctx
                    .execute_activity(Activities::task, input, options)
                    .map(|end| end.map_err(|error| policy::failure_text(&error)))
                    .boxed_local()
            }
        }
    }

    /// Starts a timer. Its summary identifies the node in the history.
    fn start_timer(
        &self,
        id: &str,
        length: Duration,
    ) -> LocalBoxFuture<'a, Result<NodeResult, String>> {
        let timer = TimerOptions::builder(length.max(MIN_TIMER))
            .summary(id.to_owned())
            .cancellation_token(self.nodes.clone())
            .build();
        let fired = self.ctx.timer(timer);
        fired
            .map(|end| match end {
                TimerResult::Fired => Ok(NodeResult {
                    attempts: 1,
                    job: None,
                    output: None,
                }),
                TimerResult::Cancelled => Err("the timer was cancelled".to_owned()),
            })
            .boxed_local()
    }
}

/// Hints to the server that the execution is about to end. Only a hint, so its result is ignored.
async fn report_end(ctx: &WorkflowContext<LeaseholdGraph>, execution_id: ExecutionId) {
    let input = EndedInput { execution_id };
    let _ = ctx
        .execute_local_activity(Activities::ended, input, policy::end_options())
        .await;
}

fn node_failure(machine: &Machine, at: usize, error: &str) -> WorkflowTermination {
    let details = FailedNode {
        node_id: machine.node(at).id().to_owned(),
        error: error.to_owned(),
    };
    ApplicationFailure::builder(machine.failure(at, error))
        .type_name(FAILED_NODE.to_owned())
        .non_retryable(true)
        .details(details)
        .build()
        .into()
}

fn failure(error: &str) -> WorkflowTermination {
    ApplicationFailure::non_retryable(error).into()
}

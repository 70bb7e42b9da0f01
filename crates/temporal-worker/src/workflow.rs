//! The workflow type that runs graphs: the core's machine, driven by activities and timers. What it does must be the same at every replay: no
//! clock, no randomness, no order but that of the graph.

use crate::activities::Activities;
use crate::policy;
use futures::FutureExt;
use futures::future::{LocalBoxFuture, poll_fn};
use leasehold_core::duration::millis;
use leasehold_core::graph::{Given, GraphEvent, Machine, Work};
use leasehold_core::{ExecutionId, JsonText};
use leasehold_engine_temporal::graph_payload::{
    CallInput, Done, EndedInput, FAILED_NODE, FailedNode, Input, MEMO_PRIORITY, MEMO_TRACE,
    TaskInput,
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

/// Temporal refuses timers of no length.
const SHORTEST_TIMER: Duration = Duration::from_millis(1);

/// What nodes begun together may be given together. Temporal takes no answer of more than 4 MiB; a short pause makes another of the rest.
const ANSWER_MAX_BYTES: usize = 2 * 1024 * 1024;

/// Runs a graph.
#[workflow]
#[derive(Default)]
pub(crate) struct LeaseholdGraph;

#[workflow_methods]
impl LeaseholdGraph {
    #[run(name = "LeaseholdGraph")]
    pub(crate) async fn run(
        ctx: &mut WorkflowContext<Self>,
        input: Input<'static>,
    ) -> WorkflowResult<()> {
        let execution = input.execution_id;
        let nodes = ctx.cancellation_token().child_token();
        let end = drive(ctx, input, &nodes).await;
        // What is still open is no longer wanted.
        nodes.cancel();
        tell_the_end(ctx, execution).await;
        end
    }
}

/// A node that was begun, and what it will have come to.
type Open<'a> = (usize, LocalBoxFuture<'a, Result<Done, String>>);

/// What comes next.
enum Next {
    Cancelled,
    Ended(usize, Result<Done, String>),
}

async fn drive(
    ctx: &WorkflowContext<LeaseholdGraph>,
    input: Input<'static>,
    nodes: &WorkflowCancellationToken,
) -> WorkflowResult<()> {
    let graph = input.graph.ok_or_else(|| failure("there is no graph"))?;
    let machine =
        Machine::new(graph.into_owned()).map_err(|problem| failure(&problem.to_string()))?;
    let begin = Begin {
        ctx,
        machine: &machine,
        execution: input.execution_id,
        priority: ctx.memo().get(MEMO_PRIORITY).ok().flatten().unwrap_or(0),
        trace: ctx.memo().get(MEMO_TRACE).ok().flatten(),
        nodes,
    };
    let mut outputs: HashMap<usize, JsonText> = HashMap::new();
    let mut open: Vec<Open<'_>> = Vec::new();
    let (mut state, mut step) = machine.begin();
    loop {
        let given = Given {
            execution: input.execution_id,
            workspace: input.workspace_id,
            params: &input.params,
            outputs: &outputs,
        };
        let prepared = machine.prepare(&mut state, step, &given);
        if let Some((at, error)) = prepared.failed {
            return Err(node_failure(&machine, at, &error));
        }
        let mut asked = 0;
        for (at, work) in prepared.begin {
            asked += size(&work);
            if asked > ANSWER_MAX_BYTES {
                asked = size(&work);
                let _ = ctx.timer(SHORTEST_TIMER).await;
            }
            open.push((at, begin.node(at, work)));
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

/// The first node to have ended, in the order they were begun; a cancellation goes before all of them.
async fn next(ctx: &WorkflowContext<LeaseholdGraph>, open: &mut Vec<Open<'_>>) -> Next {
    let mut cancelled = pin!(ctx.cancelled());
    poll_fn(|cx| {
        if cancelled.poll_unpin(cx).is_ready() {
            return Poll::Ready(Next::Cancelled);
        }
        for place in 0..open.len() {
            let (at, node) = &mut open[place];
            if let Poll::Ready(end) = node.poll_unpin(cx) {
                let at = *at;
                drop(open.remove(place));
                return Poll::Ready(Next::Ended(at, end));
            }
        }
        Poll::Pending
    })
    .await
}

/// What is the same for every node of an execution.
struct Begin<'a> {
    ctx: &'a WorkflowContext<LeaseholdGraph>,
    machine: &'a Machine,
    execution: ExecutionId,
    priority: i16,
    trace: Option<String>,
    nodes: &'a WorkflowCancellationToken,
}

impl<'a> Begin<'a> {
    fn node(&self, at: usize, work: Work) -> LocalBoxFuture<'a, Result<Done, String>> {
        let id = self.machine.node(at).id();
        match work {
            Work::Delay(length) => self.pause(id, length),
            Work::Http {
                call,
                retry,
                timeout,
            } => {
                let input = CallInput {
                    call,
                    timeout_ms: millis(timeout),
                    trace: self.trace.clone(),
                };
                let options = policy::of_call(id, timeout, &retry, self.nodes);
                self.ctx
                    .execute_activity(Activities::call, input, options)
                    .map(|end| end.map_err(|error| policy::said(&error)))
                    .boxed_local()
            }
            Work::Task {
                queue,
                kind,
                payload,
                retry,
                timeout,
            } => {
                let input = TaskInput {
                    execution_id: self.execution,
                    node_id: id.to_owned(),
                    queue,
                    kind,
                    payload,
                    priority: self.priority,
                    retry: retry.into(),
                    timeout_ms: timeout.map(millis),
                    trace: self.trace.clone(),
                };
                let options = policy::of_task(id, self.nodes);
                self.ctx
                    .execute_activity(Activities::task, input, options)
                    .map(|end| end.map_err(|error| policy::said(&error)))
                    .boxed_local()
            }
        }
    }

    /// The timer's summary tells in the history which node it is.
    fn pause(&self, id: &str, length: Duration) -> LocalBoxFuture<'a, Result<Done, String>> {
        let timer = TimerOptions::builder(length.max(SHORTEST_TIMER))
            .summary(id.to_owned())
            .cancellation_token(self.nodes.clone())
            .build();
        let fired = self.ctx.timer(timer);
        fired
            .map(|end| match end {
                TimerResult::Fired => Ok(Done {
                    attempts: 1,
                    job: None,
                    output: None,
                }),
                TimerResult::Cancelled => Err("the timer was cancelled".to_owned()),
            })
            .boxed_local()
    }
}

/// About how many bytes a node is given.
fn size(work: &Work) -> usize {
    match work {
        Work::Task { payload, .. } => payload.as_str().len(),
        Work::Http { call, .. } => {
            let body = call.body.as_ref().map_or(0, |body| body.as_str().len());
            let headers = call.headers.iter();
            let headers: usize = headers.map(|(name, value)| name.len() + value.len()).sum();
            call.url.len() + headers + body
        }
        Work::Delay(_) => 0,
    }
}

/// Makes whoever waits for the end look sooner. Nothing depends on it, so what becomes of it does not matter.
async fn tell_the_end(ctx: &WorkflowContext<LeaseholdGraph>, execution_id: ExecutionId) {
    let input = EndedInput { execution_id };
    let _ = ctx
        .execute_local_activity(Activities::ended, input, policy::of_the_end())
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

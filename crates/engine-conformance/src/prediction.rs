//! Predicts the outcome of a graph's nodes with the core's state machine alone. Knows no engine and no store.

use crate::fixture::output_of;
use crate::local_server::echo_body;
use crate::task_workers::{self, times};
use leasehold_core::graph::{GraphEvent, Machine, NodeContext, NodeRun, NodeState, NodeWork};
use leasehold_core::{ExecutionEnd, JsonText, VersionBody};
use leasehold_engine::Start;
use serde_json::{Value, json};
use std::collections::HashMap;

/// The outcome of a node if no other node fails first.
#[derive(Debug, PartialEq)]
enum PredictedOutcome {
    Output(Value),
    /// Fails with this error, if it can be predicted.
    Failure(Option<String>),
    /// A predecessor fails.
    Unreached,
}

/// The predicted outcome of every node of an execution.
pub(crate) struct Prediction {
    machine: Machine,
    outcomes: Vec<PredictedOutcome>,
}

impl Prediction {
    /// Predicts an execution. The graph must list each node after its predecessors.
    pub(crate) fn of(start: &Start) -> Self {
        let VersionBody::Graph(graph) = &start.version.body else {
            panic!("a binding cannot be predicted");
        };
        let machine = Machine::new(graph.clone()).expect("the graph is valid");
        let mut outputs: HashMap<usize, JsonText> = HashMap::new();
        let mut outcomes: Vec<PredictedOutcome> = Vec::new();
        for at in 0..graph.nodes.len() {
            let done = |before: &usize| matches!(outcomes[*before], PredictedOutcome::Output(_));
            let outcome = if machine.predecessors(at).iter().all(done) {
                let given = NodeContext {
                    execution: start.execution,
                    workspace: start.workspace,
                    params: &start.params,
                    outputs: &outputs,
                };
                match machine.work(at, &given) {
                    Ok(work) => predict(&work),
                    Err(problem) => PredictedOutcome::Failure(Some(problem.to_string())),
                }
            } else {
                PredictedOutcome::Unreached
            };
            if let PredictedOutcome::Output(output) = &outcome {
                outputs.insert(at, JsonText::from(output));
            }
            outcomes.push(outcome);
        }
        Self { machine, outcomes }
    }

    /// Asserts that the engine's outcome agrees with the prediction.
    pub(crate) fn check(&self, end: ExecutionEnd, error: Option<&str>, nodes: &[NodeRun]) {
        assert_eq!(nodes.len(), self.outcomes.len());
        for (at, node) in nodes.iter().enumerate() {
            assert_eq!(node.id, self.machine.node(at).id);
            if node.state == NodeState::Completed {
                let actual = PredictedOutcome::Output(without_headers(output_of(node)));
                assert_eq!(actual, self.outcomes[at].without_headers(), "{}", node.id);
            }
        }
        let states: Vec<NodeState> = nodes.iter().map(|node| node.state).collect();
        if self
            .outcomes
            .iter()
            .all(|outcome| matches!(outcome, PredictedOutcome::Output(_)))
        {
            assert_eq!((end, error), (ExecutionEnd::Completed, None));
            assert_eq!(states, self.states_after_all());
            return;
        }
        assert_eq!(end, ExecutionEnd::Failed, "{error:?}");
        let failed: Vec<usize> = (0..states.len())
            .filter(|&at| states[at] == NodeState::Failed)
            .collect();
        let [failed] = failed[..] else {
            panic!("exactly one node must fail: {states:?}");
        };
        let PredictedOutcome::Failure(expected) = &self.outcomes[failed] else {
            panic!("{} was not predicted to fail: {error:?}", nodes[failed].id);
        };
        let error = error.unwrap_or_default();
        match expected {
            Some(text) => assert_eq!(error, self.machine.failure(failed, text)),
            None => assert!(
                error.starts_with(&self.machine.failure(failed, "")),
                "{error}"
            ),
        }
        for (at, state) in states.iter().enumerate() {
            let allowed = match &self.outcomes[at] {
                PredictedOutcome::Output(_) => {
                    [NodeState::Completed, NodeState::Cancelled].contains(state)
                }
                PredictedOutcome::Failure(_) => {
                    [NodeState::Failed, NodeState::Cancelled].contains(state)
                }
                PredictedOutcome::Unreached => *state == NodeState::Cancelled,
            };
            assert!(
                allowed,
                "{} is {state}, predicted {:?}",
                nodes[at].id, self.outcomes[at]
            );
        }
    }

    /// The states of the nodes after each has completed in turn.
    fn states_after_all(&self) -> Vec<NodeState> {
        let (mut state, step) = self.machine.begin();
        let mut open = step.begin;
        while let Some(at) = open.pop() {
            let step = self.machine.apply(&mut state, GraphEvent::Completed(at));
            open.extend(step.expect("a started node completes").begin);
        }
        assert_eq!(state.end(), Some(ExecutionEnd::Completed));
        state.nodes().to_vec()
    }
}

impl PredictedOutcome {
    fn without_headers(&self) -> Self {
        match self {
            Self::Output(value) => Self::Output(without_headers(value.clone())),
            Self::Failure(error) => Self::Failure(error.clone()),
            Self::Unreached => Self::Unreached,
        }
    }
}

fn predict(work: &NodeWork) -> PredictedOutcome {
    match work {
        NodeWork::Delay(_) => PredictedOutcome::Output(Value::Null),
        NodeWork::Task { kind, payload, .. } => {
            let payload: Value = payload.read().expect("the payload is JSON");
            let input = &payload["input"];
            let attempt = u32::try_from(times(input)).unwrap_or(u32::MAX - 1) + 1;
            match task_workers::result(kind, input, attempt) {
                Ok(output) => PredictedOutcome::Output(output),
                Err(error) => PredictedOutcome::Failure(Some(error.message().to_owned())),
            }
        }
        NodeWork::Http { call, .. } => {
            let after_scheme = call.url.split_once("//").map_or("", |(_, rest)| rest);
            let path = after_scheme.find('/').map_or("/", |at| &after_scheme[at..]);
            if path.starts_with("/status/") {
                return PredictedOutcome::Failure(None);
            }
            let body = call
                .body
                .as_ref()
                .map_or(Value::Null, |body| body.read().expect("the body is JSON"));
            let body = echo_body(&call.method, path, body);
            PredictedOutcome::Output(json!({"status": 200, "headers": {}, "body": body}))
        }
    }
}

/// Removes the headers of HTTP responses, which the graph does not determine.
fn without_headers(value: Value) -> Value {
    match value {
        Value::Object(fields) => fields
            .into_iter()
            .filter(|(name, _)| name != "headers")
            .map(|(name, value)| (name, without_headers(value)))
            .collect(),
        Value::Array(items) => items.into_iter().map(without_headers).collect(),
        plain => plain,
    }
}

//! What the nodes of a graph come to, worked out by the core's machine alone: no engine, no store.

use crate::crew::{self, times};
use crate::fixture::output_of;
use crate::local_server::echoed;
use leasehold_core::graph::{Given, GraphEvent, Machine, NodeRun, NodeState, Work};
use leasehold_core::{ExecutionEnd, JsonText, VersionBody};
use leasehold_engine::Start;
use serde_json::{Value, json};
use std::collections::HashMap;

/// What becomes of a node that is left to itself.
#[derive(Debug, PartialEq)]
enum Fate {
    Output(Value),
    /// With this error, where it can be foretold.
    Failure(Option<String>),
    /// Something before it fails.
    Unreached,
}

/// What becomes of every node of an execution.
pub(crate) struct Prediction {
    machine: Machine,
    fates: Vec<Fate>,
}

impl Prediction {
    /// Works it out. The graph lists each node after those before it.
    pub(crate) fn of(start: &Start) -> Self {
        let VersionBody::Graph(graph) = &start.version.body else {
            panic!("a binding cannot be foretold");
        };
        let machine = Machine::new(graph.clone()).expect("the graph can run");
        let mut outputs: HashMap<usize, JsonText> = HashMap::new();
        let mut fates: Vec<Fate> = Vec::new();
        for at in 0..graph.nodes.len() {
            let done = |before: &usize| matches!(fates[*before], Fate::Output(_));
            let fate = if machine.predecessors(at).iter().all(done) {
                let given = Given {
                    execution: start.execution,
                    workspace: start.workspace,
                    params: &start.params,
                    outputs: &outputs,
                };
                match machine.work(at, &given) {
                    Ok(work) => fate(&work),
                    Err(problem) => Fate::Failure(Some(problem.to_string())),
                }
            } else {
                Fate::Unreached
            };
            if let Fate::Output(output) = &fate {
                outputs.insert(at, JsonText::from(output));
            }
            fates.push(fate);
        }
        Self { machine, fates }
    }

    /// Whether the engine came to the same end.
    pub(crate) fn check(&self, end: ExecutionEnd, error: Option<&str>, nodes: &[NodeRun]) {
        assert_eq!(nodes.len(), self.fates.len());
        for (at, node) in nodes.iter().enumerate() {
            assert_eq!(node.id, self.machine.node(at).id);
            if node.state == NodeState::Completed {
                let seen = Fate::Output(without_headers(output_of(node)));
                assert_eq!(seen, self.fates[at].without_headers(), "{}", node.id);
            }
        }
        let states: Vec<NodeState> = nodes.iter().map(|node| node.state).collect();
        if self
            .fates
            .iter()
            .all(|fate| matches!(fate, Fate::Output(_)))
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
            panic!("one node fails the execution: {states:?}");
        };
        let Fate::Failure(expected) = &self.fates[failed] else {
            panic!("{} was not to fail: {error:?}", nodes[failed].id);
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
            let may_be = match &self.fates[at] {
                Fate::Output(_) => [NodeState::Completed, NodeState::Cancelled].contains(state),
                Fate::Failure(_) => [NodeState::Failed, NodeState::Cancelled].contains(state),
                Fate::Unreached => *state == NodeState::Cancelled,
            };
            assert!(may_be, "{} is {state}, {:?}", nodes[at].id, self.fates[at]);
        }
    }

    /// Where the machine's nodes are when each has completed in turn.
    fn states_after_all(&self) -> Vec<NodeState> {
        let (mut state, step) = self.machine.begin();
        let mut open = step.begin;
        while let Some(at) = open.pop() {
            let step = self.machine.apply(&mut state, GraphEvent::Completed(at));
            open.extend(step.expect("what was begun completes").begin);
        }
        assert_eq!(state.end(), Some(ExecutionEnd::Completed));
        state.nodes().to_vec()
    }
}

impl Fate {
    fn without_headers(&self) -> Self {
        match self {
            Self::Output(value) => Self::Output(without_headers(value.clone())),
            Self::Failure(error) => Self::Failure(error.clone()),
            Self::Unreached => Self::Unreached,
        }
    }
}

fn fate(work: &Work) -> Fate {
    match work {
        Work::Delay(_) => Fate::Output(Value::Null),
        Work::Task { kind, payload, .. } => {
            let payload: Value = payload.read().expect("a payload is JSON");
            let input = &payload["input"];
            let attempt = u32::try_from(times(input)).unwrap_or(u32::MAX - 1) + 1;
            match crew::result(kind, input, attempt) {
                Ok(output) => Fate::Output(output),
                Err(error) => Fate::Failure(Some(error.message().to_owned())),
            }
        }
        Work::Http { call, .. } => {
            let after_scheme = call.url.split_once("//").map_or("", |(_, rest)| rest);
            let path = after_scheme.find('/').map_or("/", |at| &after_scheme[at..]);
            if path.starts_with("/status/") {
                return Fate::Failure(None);
            }
            let body = call
                .body
                .as_ref()
                .map_or(Value::Null, |body| body.read().expect("a body is JSON"));
            let body = echoed(&call.method, path, body);
            Fate::Output(json!({"status": 200, "headers": {}, "body": body}))
        }
    }
}

/// What servers and clients put into headers is no matter of the graph's.
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

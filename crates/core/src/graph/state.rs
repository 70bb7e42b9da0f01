//! Where each node of a running graph is, as one table, and as one letter a node to be kept.

use crate::ExecutionEnd;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Where a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NodeState {
    /// Not all it waits for has completed.
    Waiting,
    /// Begun and not ended, whether or not anybody works on it.
    Running,
    /// Done.
    Completed,
    /// Given up after its last attempt.
    Failed,
    /// Not done, because the execution has ended.
    Cancelled,
}

/// What happens to a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NodeEvent {
    /// All it waits for has completed.
    Begin,
    /// It is done.
    Complete,
    /// It is given up.
    Fail,
    /// The execution has ended without it.
    Cancel,
}

/// A node that cannot do that.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("a {state:?} node does not allow {event:?}")]
pub struct IllegalNodeTransition {
    /// Where the node is.
    pub state: NodeState,
    /// What was to happen.
    pub event: NodeEvent,
}

impl NodeState {
    /// Every state.
    pub const ALL: [Self; 5] = [
        Self::Waiting,
        Self::Running,
        Self::Completed,
        Self::Failed,
        Self::Cancelled,
    ];

    /// Where the event leads.
    pub const fn after(self, event: NodeEvent) -> Result<Self, IllegalNodeTransition> {
        use NodeEvent as E;
        use NodeState as S;
        match (self, event) {
            (S::Waiting, E::Begin) => Ok(S::Running),
            (S::Running, E::Complete) => Ok(S::Completed),
            (S::Running, E::Fail) => Ok(S::Failed),
            (S::Waiting | S::Running, E::Cancel) => Ok(S::Cancelled),
            (S::Waiting, E::Complete | E::Fail)
            | (S::Running, E::Begin)
            | (
                S::Completed | S::Failed | S::Cancelled,
                E::Begin | E::Complete | E::Fail | E::Cancel,
            ) => Err(IllegalNodeTransition { state: self, event }),
        }
    }

    /// Its name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Running => "running",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    /// The letter it is kept as.
    const fn letter(self) -> char {
        match self {
            Self::Waiting => 'w',
            Self::Running => 'r',
            Self::Completed => 'c',
            Self::Failed => 'f',
            Self::Cancelled => 'x',
        }
    }
}

impl std::fmt::Display for NodeState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Where a running graph is. Only [`Machine`](super::Machine) changes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GraphState {
    /// Where each node is, in the order the graph lists them.
    pub(super) nodes: Vec<NodeState>,
    /// How it ended.
    pub(super) end: Option<ExecutionEnd>,
}

impl GraphState {
    /// From what was kept: [`GraphState::letters`] and how it ended. None if that is no state.
    pub fn read(letters: &str, end: Option<ExecutionEnd>) -> Option<Self> {
        let node = |letter| {
            NodeState::ALL
                .into_iter()
                .find(|state| state.letter() == letter)
        };
        let nodes = letters.chars().map(node).collect::<Option<Vec<_>>>()?;
        Some(Self { nodes, end })
    }

    /// One letter a node, in the order the graph lists them.
    pub fn letters(&self) -> String {
        self.nodes.iter().map(|state| state.letter()).collect()
    }

    /// Where each node is, in the order the graph lists them.
    pub fn nodes(&self) -> &[NodeState] {
        &self.nodes
    }

    /// How it ended; none while it runs.
    pub fn end(&self) -> Option<ExecutionEnd> {
        self.end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVENTS: [NodeEvent; 4] = [
        NodeEvent::Begin,
        NodeEvent::Complete,
        NodeEvent::Fail,
        NodeEvent::Cancel,
    ];

    #[test]
    fn a_state_is_read_back_from_its_letters() {
        let state = GraphState {
            nodes: NodeState::ALL.to_vec(),
            end: Some(ExecutionEnd::Failed),
        };
        assert_eq!(state.letters(), "wrcfx");
        assert_eq!(GraphState::read("wrcfx", state.end), Some(state));
        assert_eq!(GraphState::read("w?", None), None);
    }

    #[test]
    fn the_diagram_in_the_documentation_is_this_table() {
        let mut diagram = String::from("stateDiagram-v2\n    [*] --> waiting: Start\n");
        for from in NodeState::ALL {
            for event in EVENTS {
                if let Ok(to) = from.after(event) {
                    diagram.push_str(&format!("    {from} --> {to}: {event:?}\n"));
                }
            }
        }
        let page = include_str!("../../../../docs/states.md");
        assert!(
            page.contains(&diagram),
            "docs/states.md must contain:\n{diagram}"
        );
    }

    #[test]
    fn what_has_ended_stays_as_it_is() {
        for state in [
            NodeState::Completed,
            NodeState::Failed,
            NodeState::Cancelled,
        ] {
            for event in EVENTS {
                assert_eq!(
                    state.after(event),
                    Err(IllegalNodeTransition { state, event })
                );
            }
        }
    }
}

//! The state machine of a node, and the state of a graph in stored form: one letter per node.

use crate::ExecutionEnd;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The state of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NodeState {
    /// Not all of its predecessors have completed.
    Waiting,
    /// Started and not ended, whether or not a worker runs it now.
    Running,
    /// It completed.
    Completed,
    /// It failed permanently.
    Failed,
    /// The execution ended before it did.
    Cancelled,
}

/// An event of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NodeEvent {
    /// All of its predecessors have completed.
    Begin,
    /// It completed.
    Complete,
    /// It failed permanently.
    Fail,
    /// The execution ended before it did.
    Cancel,
}

/// An event that the state does not allow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("a {state:?} node does not allow {event:?}")]
pub struct IllegalNodeTransition {
    /// The state of the node.
    pub state: NodeState,
    /// The rejected event.
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

    /// Returns the state after `event`, or an error if the state does not allow it.
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

    /// Returns the name, as shown.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Running => "running",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    /// Returns the letter it is stored as.
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

/// The state of a graph. Only [`Machine`](super::Machine) changes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GraphState {
    /// The state of each node, in the order of the graph's node list.
    pub(super) nodes: Vec<NodeState>,
    /// How it ended; none while it runs.
    pub(super) end: Option<ExecutionEnd>,
}

impl GraphState {
    /// Parses the stored form: [`GraphState::letters`] and how it ended. None if a letter is unknown.
    pub fn read(letters: &str, end: Option<ExecutionEnd>) -> Option<Self> {
        let node = |letter| {
            NodeState::ALL
                .into_iter()
                .find(|state| state.letter() == letter)
        };
        let nodes = letters.chars().map(node).collect::<Option<Vec<_>>>()?;
        Some(Self { nodes, end })
    }

    /// Returns the stored form: one letter per node, in the order of the graph's node list.
    pub fn letters(&self) -> String {
        self.nodes.iter().map(|state| state.letter()).collect()
    }

    /// Returns the state of each node, in the order of the graph's node list.
    pub fn nodes(&self) -> &[NodeState] {
        &self.nodes
    }

    /// Returns how it ended; none while it runs.
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
    fn state_parses_back_from_its_letters() {
        let state = GraphState {
            nodes: NodeState::ALL.to_vec(),
            end: Some(ExecutionEnd::Failed),
        };
        assert_eq!(state.letters(), "wrcfx");
        assert_eq!(GraphState::read("wrcfx", state.end), Some(state));
        assert_eq!(GraphState::read("w?", None), None);
    }

    #[test]
    fn documented_state_diagram_matches_the_code() {
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
    fn final_states_allow_no_event() {
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

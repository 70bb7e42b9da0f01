//! The state of one node of an execution, for either engine.

use super::Graph;
use super::state::{GraphState, NodeState};
use crate::limits::NODE_OUTPUTS_MAX_BYTES;
use crate::{JobId, JsonText, Timestamp};

/// A node of an execution.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeRun {
    /// Its id.
    pub id: String,
    /// Its state.
    pub state: NodeState,
    /// The job that runs it; none if the engine uses none or does not know it.
    pub job: Option<JobId>,
    /// The number of attempts.
    pub attempts: u32,
    /// Its output.
    pub output: Option<JsonText>,
    /// Whether its output is omitted here, because all outputs together are too large.
    pub output_omitted: bool,
    /// The last error.
    pub error: Option<String>,
    /// When it was started.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub finished_at: Option<Timestamp>,
}

impl NodeRun {
    /// Omits the first output with which the total exceeds [`NODE_OUTPUTS_MAX_BYTES`], and all after it.
    pub fn omit_large_outputs(nodes: &mut [Self]) {
        let max = NODE_OUTPUTS_MAX_BYTES as usize;
        let mut bytes = 0;
        for node in nodes {
            bytes += node
                .output
                .as_ref()
                .map_or(0, |output| output.as_str().len());
            if bytes > max {
                node.output_omitted = node.output.take().is_some();
            }
        }
    }

    /// Fills in the end of nodes that were cancelled before their job was claimed: they end with the graph, and their jobs are deleted.
    pub fn end_cancelled(nodes: &mut [Self], graph_finished_at: Option<Timestamp>) {
        for node in nodes {
            let is_started = node.started_at.is_some() && node.finished_at.is_none();
            if node.state == NodeState::Cancelled && is_started {
                node.job = None;
                node.finished_at = graph_finished_at;
            }
        }
    }

    /// Returns the nodes of a graph in this state.
    pub fn all(graph: &Graph, state: &GraphState) -> Vec<Self> {
        let nodes = graph.nodes.iter().zip(state.nodes());
        nodes
            .map(|(node, state)| Self {
                state: *state,
                ..Self::waiting(node.id())
            })
            .collect()
    }

    /// Creates a waiting node.
    pub fn waiting(id: &str) -> Self {
        Self {
            id: id.to_owned(),
            state: NodeState::Waiting,
            job: None,
            attempts: 0,
            output: None,
            output_omitted: false,
            error: None,
            started_at: None,
            finished_at: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outputs_beyond_the_total_limit_are_omitted() {
        let mebibyte = JsonText::of(&"x".repeat(1024 * 1024)).unwrap();
        let mut nodes = vec![NodeRun::waiting("n"); 6];
        for at in [0, 1, 2, 4, 5] {
            nodes[at].output = Some(mebibyte.clone());
        }
        NodeRun::omit_large_outputs(&mut nodes);
        let omitted: Vec<bool> = nodes.iter().map(|node| node.output_omitted).collect();
        assert_eq!(omitted, [false, false, false, false, true, true]);
        let kept = nodes.iter().filter(|node| node.output.is_some()).count();
        assert_eq!(kept, 3);
    }
}

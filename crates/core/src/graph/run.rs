//! What is known of a node while its graph runs and after, whoever runs it.

use super::Graph;
use super::state::{GraphState, NodeState};
use crate::limits::NODE_OUTPUTS_MAX_BYTES;
use crate::{JobId, JsonText, Timestamp};

/// A node of an execution.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeRun {
    /// Its id.
    pub id: String,
    /// Where it is.
    pub state: NodeState,
    /// The job that does it, where one does and the engine knows which.
    pub job: Option<JobId>,
    /// How often somebody began to work on it.
    pub attempts: u32,
    /// What it came to.
    pub output: Option<JsonText>,
    /// Whether it came to something that is left out here, because all outputs together are too large.
    pub output_omitted: bool,
    /// What went wrong last.
    pub error: Option<String>,
    /// When it was begun.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub finished_at: Option<Timestamp>,
}

impl NodeRun {
    /// Leaves outputs out from the first on with which they would have more than [`NODE_OUTPUTS_MAX_BYTES`] together.
    pub fn bound_outputs(nodes: &mut [Self]) {
        let most = NODE_OUTPUTS_MAX_BYTES as usize;
        let mut bytes = 0;
        for node in nodes {
            bytes += node
                .output
                .as_ref()
                .map_or(0, |output| output.as_str().len());
            if bytes > most {
                node.output_omitted = node.output.take().is_some();
            }
        }
    }

    /// The nodes of a graph, each where the state says it is.
    pub fn all(graph: &Graph, state: &GraphState) -> Vec<Self> {
        let nodes = graph.nodes.iter().zip(state.nodes());
        nodes
            .map(|(node, state)| Self {
                state: *state,
                ..Self::waiting(node.id())
            })
            .collect()
    }

    /// A node that nothing has happened to.
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
    fn outputs_are_left_out_from_where_they_are_too_large_together() {
        let mebibyte = JsonText::of(&"x".repeat(1024 * 1024)).unwrap();
        let mut nodes = vec![NodeRun::waiting("n"); 6];
        for at in [0, 1, 2, 4, 5] {
            nodes[at].output = Some(mebibyte.clone());
        }
        NodeRun::bound_outputs(&mut nodes);
        let omitted: Vec<bool> = nodes.iter().map(|node| node.output_omitted).collect();
        assert_eq!(omitted, [false, false, false, false, true, true]);
        let kept = nodes.iter().filter(|node| node.output.is_some()).count();
        assert_eq!(kept, 3);
    }
}

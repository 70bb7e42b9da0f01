//! Validation of a graph: unique ids, edges between existing nodes, no cycle, bounded size; and the topological order.

use super::{Graph, GraphProblem};
use crate::limits::{GRAPH_MAX_EDGES, GRAPH_MAX_NODES};
use std::collections::{BTreeSet, HashMap, HashSet};

mod node;
mod pointers;

impl Graph {
    /// Checks that the graph can run.
    pub fn validate(&self) -> Result<(), GraphProblem> {
        self.check_nodes()?;
        self.check_edges()?;
        self.topological_order()?;
        self.check_inputs()
    }

    fn check_nodes(&self) -> Result<(), GraphProblem> {
        match self.nodes.len() {
            0 => return Err(GraphProblem::Empty),
            n if n > GRAPH_MAX_NODES => return Err(GraphProblem::TooManyNodes(n)),
            _ => {}
        }
        let mut seen = HashSet::new();
        for (index, node) in self.nodes.iter().enumerate() {
            node::check(index, node)?;
            if !seen.insert(node.id()) {
                return Err(GraphProblem::DuplicateNode {
                    index,
                    id: node.id().to_owned(),
                });
            }
        }
        Ok(())
    }

    fn check_edges(&self) -> Result<(), GraphProblem> {
        if self.edges.len() > GRAPH_MAX_EDGES {
            return Err(GraphProblem::TooManyEdges(self.edges.len()));
        }
        let known: HashSet<&str> = self.nodes.iter().map(|node| node.id()).collect();
        let mut seen = HashSet::new();
        for (index, edge) in self.edges.iter().enumerate() {
            for (end, id) in [("from", &edge.from), ("to", &edge.to)] {
                if !known.contains(id.as_str()) {
                    return Err(GraphProblem::UnknownNode {
                        index,
                        end,
                        id: id.clone(),
                    });
                }
            }
            if !seen.insert((&edge.from, &edge.to)) {
                let (from, to) = (edge.from.clone(), edge.to.clone());
                return Err(GraphProblem::DuplicateEdge { index, from, to });
            }
        }
        Ok(())
    }

    /// Checks that inputs and URLs refer only to params and to outputs of direct predecessors.
    fn check_inputs(&self) -> Result<(), GraphProblem> {
        let mut before: HashMap<&str, HashSet<&str>> = HashMap::new();
        for edge in &self.edges {
            before.entry(&edge.to).or_default().insert(&edge.from);
        }
        let (none, mut parts) = (HashSet::new(), 0);
        for (index, node) in self.nodes.iter().enumerate() {
            let before = before.get(node.id()).unwrap_or(&none);
            pointers::check(index, node, before, &mut parts)?;
        }
        Ok(())
    }

    /// Returns the index of each node by id.
    pub(super) fn positions(&self) -> HashMap<&str, usize> {
        let nodes = self.nodes.iter().enumerate();
        nodes.map(|(at, node)| (node.id(), at)).collect()
    }

    /// Returns the ids of all nodes, each after all its predecessors.
    ///
    /// Nodes that could run at the same time keep the order in which the graph lists them, so the result is
    /// deterministic. Edges to unknown nodes are ignored; [`Graph::validate`] rejects them.
    pub fn topological_order(&self) -> Result<Vec<&str>, GraphProblem> {
        let position = self.positions();
        let mut waits_for = vec![0usize; self.nodes.len()];
        let mut successors = vec![Vec::new(); self.nodes.len()];
        for edge in &self.edges {
            if let (Some(&from), Some(&to)) = (
                position.get(edge.from.as_str()),
                position.get(edge.to.as_str()),
            ) {
                successors[from].push(to);
                waits_for[to] += 1;
            }
        }
        let mut ready: BTreeSet<usize> = (0..self.nodes.len())
            .filter(|&at| waits_for[at] == 0)
            .collect();
        let mut order = Vec::with_capacity(self.nodes.len());
        while let Some(at) = ready.pop_first() {
            order.push(self.nodes[at].id());
            for &next in &successors[at] {
                waits_for[next] -= 1;
                if waits_for[next] == 0 {
                    ready.insert(next);
                }
            }
        }
        if order.len() == self.nodes.len() {
            Ok(order)
        } else {
            Err(GraphProblem::Cycle(self.cycle(&successors, &waits_for)))
        }
    }

    /// Finds a cycle among the nodes that are left: each of them has a predecessor among them, so walking back must repeat a node.
    fn cycle(&self, successors: &[Vec<usize>], waits_for: &[usize]) -> Vec<String> {
        let mut predecessor = vec![None; self.nodes.len()];
        for (from, targets) in successors
            .iter()
            .enumerate()
            .filter(|(at, _)| waits_for[*at] > 0)
        {
            for &to in targets {
                predecessor[to] = Some(from);
            }
        }
        let mut walk = Vec::new();
        let mut at = waits_for.iter().position(|&n| n > 0);
        while let Some(node) = at {
            if let Some(start) = walk.iter().position(|&seen| seen == node) {
                walk.drain(..start);
                break;
            }
            walk.push(node);
            at = predecessor[node];
        }
        walk.push(walk[0]);
        walk.iter()
            .rev()
            .map(|&node| self.nodes[node].id().to_owned())
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Edge, Node, NodeKind};
    use super::*;
    use proptest::prelude::*;

    fn graph(ids: &[&str], edges: &[(&str, &str)]) -> Graph {
        Graph {
            nodes: ids
                .iter()
                .map(|id| Node::new(*id, NodeKind::Delay { milliseconds: 1 }))
                .collect(),
            edges: edges
                .iter()
                .map(|(f, t)| Edge {
                    from: (*f).into(),
                    to: (*t).into(),
                })
                .collect(),
        }
    }

    #[test]
    fn diamond_runs_in_listed_order() {
        let diamond = graph(
            &["d", "b", "c", "a"],
            &[("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")],
        );
        assert_eq!(diamond.validate(), Ok(()));
        assert_eq!(diamond.topological_order().unwrap(), ["a", "b", "c", "d"]);
    }

    #[test]
    fn each_problem_is_reported_with_its_pointer() {
        let cases = [
            (graph(&[], &[]), "a graph needs at least one node", "/nodes"),
            (
                graph(&["a", "a"], &[]),
                "nodes[1].id `a` is used by an earlier node",
                "/nodes/1/id",
            ),
            (
                graph(&[""], &[]),
                "nodes[0].id must not be empty",
                "/nodes/0/id",
            ),
            (
                graph(&["a"], &[("a", "x")]),
                "edges[0].to names the node `x`, which is not in the graph",
                "/edges/0/to",
            ),
            (
                graph(&["a"], &[("x", "a")]),
                "edges[0].from names the node `x`, which is not in the graph",
                "/edges/0/from",
            ),
            (
                graph(&["a", "b"], &[("a", "b"), ("a", "b")]),
                "edges[1] repeats the edge from `a` to `b`",
                "/edges/1",
            ),
            (
                graph(&["a"], &[("a", "a")]),
                "the graph has a cycle through a → a",
                "/edges",
            ),
            (
                graph(
                    &["s", "a", "b", "c"],
                    &[("s", "a"), ("a", "b"), ("b", "c"), ("c", "a")],
                ),
                "the graph has a cycle through a → b → c → a",
                "/edges",
            ),
        ];
        for (graph, expected, pointer) in cases {
            let problem = graph.validate().unwrap_err();
            assert_eq!(problem.to_string(), expected);
            assert_eq!(problem.pointer(), pointer, "{problem}");
        }
    }

    #[test]
    fn size_is_bounded() {
        let ids: Vec<String> = (0..=GRAPH_MAX_NODES).map(|n| n.to_string()).collect();
        let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
        assert_eq!(graph(&ids[1..], &[]).validate(), Ok(()));
        assert_eq!(
            graph(&ids, &[]).validate(),
            Err(GraphProblem::TooManyNodes(GRAPH_MAX_NODES + 1))
        );
        let edges = vec![("0", "1"); GRAPH_MAX_EDGES + 1];
        assert_eq!(
            graph(&["0", "1"], &edges).validate(),
            Err(GraphProblem::TooManyEdges(GRAPH_MAX_EDGES + 1))
        );
    }

    proptest! {
        #[test]
        fn forward_edges_never_form_a_cycle(
            n in 1usize..40,
            pairs in proptest::collection::hash_set((0usize..40, 0usize..40), 0..100),
        ) {
            let ids: Vec<String> = (0..n).map(|i| format!("n{i}")).collect();
            let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
            let edges: Vec<_> =
                pairs.iter().filter(|(f, t)| f < t && *t < n).map(|(f, t)| (ids[*f], ids[*t])).collect();
            let forward = graph(&ids, &edges);
            prop_assert_eq!(forward.validate(), Ok(()));
            let order = forward.topological_order().unwrap();
            let at = |id: &str| order.iter().position(|x| *x == id).unwrap();
            prop_assert!(edges.iter().all(|(f, t)| at(f) < at(t)));
            if let Some((f, t)) = edges.first() {
                let mut closed = edges.clone();
                closed.push((t, f));
                let is_cycle = matches!(graph(&ids, &closed).validate(), Err(GraphProblem::Cycle(_)));
                prop_assert!(is_cycle);
            }
        }
    }
}

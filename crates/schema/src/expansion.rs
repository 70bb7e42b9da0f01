//! Bounds what a schema can cost before it is accepted: loops of references, their depth, and the size with all references expanded.

use crate::document::Document;
use crate::error::{SchemaError, SchemaLimit, SchemaProblem};
use crate::program::{Keyword, Node, NodeId, Program};
use leasehold_core::limits::{SCHEMA_MAX_EXPANDED, SCHEMA_MAX_REF_DEPTH};

/// Refuses a schema that breaks a limit. Walks the graph of references without recursion.
pub(crate) fn check(program: &Program, document: &Document<'_>) -> Result<(), SchemaError> {
    let refuse = |node, problem: SchemaProblem| Err(document.error(node, problem));
    let depths = Walk::new(program.nodes.len());
    let depth = |node: &Node, costs: &Costs| {
        let mut deepest = 0;
        in_place(node, &mut |child| deepest = costs.of(child).max(deepest));
        deepest + 1
    };
    let depths = depths.run(
        program,
        |node, list| in_place(node, &mut |child| list.push(child)),
        depth,
    );
    let depths = match depths {
        Ok(depths) => depths,
        Err(node) => return refuse(node, SchemaProblem::Loop),
    };
    if let Some(node) = depths.least_above(SCHEMA_MAX_REF_DEPTH as u64) {
        return refuse(node, SchemaLimit::RefDepth.into());
    }
    let sizes = Walk::new(program.nodes.len()).tolerating_loops();
    let sizes = sizes.run(
        program,
        |node, list| every(program, node, &mut |child| list.push(child)),
        |node, costs| expanded(program, node, costs),
    );
    match sizes.map(|sizes| sizes.least_above(SCHEMA_MAX_EXPANDED)) {
        Ok(Some(node)) | Err(node) => refuse(node, SchemaLimit::Expanded.into()),
        Ok(None) => Ok(()),
    }
}

/// The costs that are known so far.
struct Costs(Vec<Option<u64>>);

impl Costs {
    /// The cost of a node. One that is being computed leads back to itself by way of a property or an item: the value
    /// ends that loop, and the steps of the validation are counted.
    fn of(&self, node: NodeId) -> u64 {
        self.0[node.index()].unwrap_or(1)
    }

    /// The innermost node that costs more than a limit.
    fn least_above(&self, limit: u64) -> Option<NodeId> {
        let costs = self.0.iter().enumerate();
        let above =
            costs.filter_map(|(index, cost)| Some((cost.filter(|cost| *cost > limit)?, index)));
        above.min().map(|(_, index)| NodeId::new(index))
    }
}

/// Visits every node after the nodes that it leads to.
struct Walk {
    costs: Costs,
    is_open: Vec<bool>,
    tolerates_loops: bool,
}

impl Walk {
    fn new(nodes: usize) -> Self {
        Self {
            costs: Costs(vec![None; nodes]),
            is_open: vec![false; nodes],
            tolerates_loops: false,
        }
    }

    fn tolerating_loops(mut self) -> Self {
        self.tolerates_loops = true;
        self
    }

    /// Computes the cost of every node, or returns a node of a loop.
    fn run(
        mut self,
        program: &Program,
        children: impl Fn(&Node, &mut Vec<NodeId>),
        cost: impl Fn(&Node, &Costs) -> u64,
    ) -> Result<Costs, NodeId> {
        let mut stack: Vec<(NodeId, Vec<NodeId>)> = Vec::new();
        for start in 0..program.nodes.len() {
            let mut next = Some(NodeId::new(start));
            loop {
                if let Some(node) = next.take()
                    && self.costs.0[node.index()].is_none()
                {
                    if self.is_open[node.index()] {
                        if !self.tolerates_loops {
                            return Err(node);
                        }
                    } else {
                        self.is_open[node.index()] = true;
                        let mut list = Vec::new();
                        children(&program.nodes[node.index()], &mut list);
                        stack.push((node, list));
                    }
                }
                let Some((node, list)) = stack.last_mut() else {
                    break;
                };
                next = list.pop();
                if next.is_none() {
                    let index = node.index();
                    let cost = cost(&program.nodes[index], &self.costs);
                    self.costs.0[index] = Some(cost);
                    self.is_open[index] = false;
                    stack.pop();
                }
            }
        }
        Ok(self.costs)
    }
}

/// The subschemas that apply to the same value. What a dynamic reference finds is known only during validation.
fn in_place(node: &Node, visit: &mut impl FnMut(NodeId)) {
    for keyword in &node.keywords {
        match keyword {
            Keyword::AllOf(list) | Keyword::AnyOf(list) | Keyword::OneOf(list) => {
                list.iter().copied().for_each(&mut *visit);
            }
            Keyword::Not(child) | Keyword::Ref(child) => visit(*child),
            Keyword::If(rules) => {
                visit(rules.condition);
                rules.then.into_iter().for_each(&mut *visit);
                rules.otherwise.into_iter().for_each(&mut *visit);
            }
            Keyword::DependentSchemas(list) => {
                list.iter().for_each(|(_, child)| visit(*child));
            }
            _ => {}
        }
    }
}

/// The subschemas that apply to properties, items and names.
fn below(node: &Node, visit: &mut impl FnMut(NodeId)) {
    for keyword in &node.keywords {
        match keyword {
            Keyword::Object(rules) => {
                rules.properties.iter().for_each(|(_, child)| visit(*child));
                rules.patterns.iter().for_each(|(_, child)| visit(*child));
                rules.additional.into_iter().for_each(&mut *visit);
            }
            Keyword::Array(rules) => {
                rules.prefix.iter().copied().for_each(&mut *visit);
                rules.rest.into_iter().for_each(&mut *visit);
            }
            Keyword::PropertyNames(child) => visit(*child),
            Keyword::Contains(rules) => visit(rules.schema),
            _ => {}
        }
    }
    if let Some(rules) = &node.unevaluated {
        let children = [rules.properties, rules.items].into_iter().flatten();
        children.for_each(&mut *visit);
    }
}

/// The nodes that a dynamic reference can find.
fn dynamic(program: &Program, node: &Node, visit: &mut impl FnMut(NodeId)) {
    for keyword in &node.keywords {
        if let Keyword::DynamicRef(reference) = keyword {
            visit(reference.default);
            for ((_, name), target) in &program.dynamic_anchors {
                if *name == reference.name {
                    visit(*target);
                }
            }
        }
    }
}

fn every(program: &Program, node: &Node, visit: &mut impl FnMut(NodeId)) {
    in_place(node, visit);
    below(node, visit);
    dynamic(program, node, visit);
}

/// The keywords that one path into a value can be compared with: all that apply in place, and of those that apply to
/// properties and items the largest that one of them can get.
fn expanded(program: &Program, node: &Node, costs: &Costs) -> u64 {
    let mut total = 1 + node.keywords.len() as u64;
    let mut add = |more: u64| total = total.saturating_add(more);
    in_place(node, &mut |child| add(costs.of(child)));
    let mut largest = 0;
    dynamic(program, node, &mut |child| {
        largest = costs.of(child).max(largest)
    });
    add(largest);
    for keyword in &node.keywords {
        match keyword {
            Keyword::Object(rules) => {
                let named = rules.properties.iter().map(|(_, child)| *child);
                let one_of = named.chain(rules.additional);
                add(one_of.map(|child| costs.of(child)).max().unwrap_or(0));
                rules
                    .patterns
                    .iter()
                    .for_each(|(_, child)| add(costs.of(*child)));
            }
            Keyword::Array(rules) => {
                let one_of = rules.prefix.iter().copied().chain(rules.rest);
                add(one_of.map(|child| costs.of(child)).max().unwrap_or(0));
            }
            Keyword::PropertyNames(child) => add(costs.of(*child)),
            Keyword::Contains(rules) => add(costs.of(rules.schema)),
            _ => {}
        }
    }
    if let Some(rules) = &node.unevaluated {
        let children = [rules.properties, rules.items].into_iter().flatten();
        children.for_each(|child| add(costs.of(child)));
    }
    total
}

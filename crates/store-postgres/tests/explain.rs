//! Reads rows and buffers from the output of EXPLAIN. Knows no particular plan.

use serde_json::Value;
use std::collections::HashSet;

/// The cost of one run of a statement.
pub(crate) struct Explained {
    /// Rows it returned.
    pub(crate) rows: u64,
    /// Shared buffers, hit or read.
    pub(crate) buffers: u64,
}

/// Reads the answer to `EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON)`.
///
/// The buffers of a plan node include those of its children, and of the CTEs that it is the first to read. So the root's
/// are the whole query's, except for writing CTEs that no node reads: these run after the root, and are added here.
/// Buffers of AFTER triggers, such as foreign key checks, are not included.
pub(crate) fn read(answer: &Value) -> Explained {
    let root = &answer[0]["Plan"];
    let mut nodes = Vec::new();
    gather(root, &mut nodes);
    let read: HashSet<&str> = nodes
        .iter()
        .filter_map(|node| node["CTE Name"].as_str())
        .collect();
    let unread = nodes.iter().filter(|node| {
        let cte = node["Subplan Name"]
            .as_str()
            .and_then(|name| name.strip_prefix("CTE "));
        node["Node Type"] == "ModifyTable" && cte.is_some_and(|name| !read.contains(name))
    });
    Explained {
        rows: root["Actual Rows"].as_f64().unwrap().round() as u64,
        buffers: touched(root) + unread.map(|node| touched(node)).sum::<u64>(),
    }
}

fn gather<'a>(node: &'a Value, nodes: &mut Vec<&'a Value>) {
    nodes.push(node);
    for child in node["Plans"].as_array().into_iter().flatten() {
        gather(child, nodes);
    }
}

fn touched(node: &Value) -> u64 {
    ["Shared Hit Blocks", "Shared Read Blocks"]
        .iter()
        .map(|name| node[*name].as_u64().unwrap())
        .sum()
}

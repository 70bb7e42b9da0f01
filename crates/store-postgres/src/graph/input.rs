//! Reads the input of nodes that start: the params of the execution and the outputs of earlier nodes.

use super::lock::node_index;
use crate::job::row::Json;
use crate::store::sql;
use crate::transaction::OpenTransaction;
use leasehold_core::ExecutionId;
use leasehold_core::graph::{EndPreview, NodeSource};
use leasehold_core::limits::PARAMS_MAX_BYTES;
use leasehold_store::Result;
use std::collections::HashMap;

/// Reads the params and outputs that the starting nodes need; reads nothing if none starts.
pub(super) async fn source(
    transaction: &OpenTransaction<'_>,
    execution: ExecutionId,
    preview: &EndPreview,
) -> Result<NodeSource> {
    if !preview.begins {
        return Ok(NodeSource::default());
    }
    let params = transaction
        .one(sql!("graph/params"), &[&execution.0])
        .await?;
    let params = params.get::<_, Json>("params").0;
    let mut source = NodeSource {
        // The same form as the claim gives to the first nodes.
        params: params.compacted_above(PARAMS_MAX_BYTES),
        outputs: HashMap::new(),
    };
    if preview.needs.is_empty() {
        return Ok(source);
    }
    let needs: Vec<i16> = preview
        .needs
        .iter()
        .map(|&node| node_number(node))
        .collect();
    let rows = transaction
        .many(sql!("node/outputs"), &[&execution.0, &needs])
        .await?;
    for row in rows {
        let output = row.get::<_, Json>("output").0;
        source.outputs.insert(node_index(row.get("node")), output);
    }
    Ok(source)
}

/// Converts a node's index to the column's type; graphs have far fewer nodes than `i16::MAX`.
pub(super) fn node_number(node: usize) -> i16 {
    i16::try_from(node).unwrap_or(i16::MAX)
}

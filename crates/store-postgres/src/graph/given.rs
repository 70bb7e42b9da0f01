//! Reads what new nodes are made of: the params of the execution and the outputs of earlier nodes.

use super::hold::place;
use crate::job::row::Json;
use crate::store::sql;
use crate::transaction::Open;
use leasehold_core::ExecutionId;
use leasehold_core::graph::{Foresight, NodeSource};
use leasehold_core::limits::PARAMS_MAX_BYTES;
use leasehold_store::Result;
use std::collections::HashMap;

/// What the nodes that begin are made of; nothing is read if none do.
pub(super) async fn source(
    transaction: &Open<'_>,
    execution: ExecutionId,
    foresight: &Foresight,
) -> Result<NodeSource> {
    if !foresight.begins {
        return Ok(NodeSource::default());
    }
    let params = transaction
        .one(sql!("graph/params"), &[&execution.0])
        .await?;
    let params = params.get::<_, Json>("params").0;
    let mut source = NodeSource {
        // As the claim hands them to the first nodes.
        params: params.compacted_above(PARAMS_MAX_BYTES),
        outputs: HashMap::new(),
    };
    if foresight.needs.is_empty() {
        return Ok(source);
    }
    let needs: Vec<i16> = foresight.needs.iter().map(|&node| number(node)).collect();
    let rows = transaction
        .many(sql!("node/outputs"), &[&execution.0, &needs])
        .await?;
    for row in rows {
        let output = row.get::<_, Json>("output").0;
        source.outputs.insert(place(row.get("node")), output);
    }
    Ok(source)
}

/// A node's place as it is kept; a graph has far fewer nodes than that.
pub(super) fn number(node: usize) -> i16 {
    i16::try_from(node).unwrap_or(i16::MAX)
}

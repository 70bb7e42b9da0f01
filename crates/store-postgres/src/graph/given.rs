//! Reads what new nodes are made of: the params of the execution and the outputs of earlier nodes.

use super::change::{Foresight, Source};
use super::hold::place;
use crate::job::row::Json;
use crate::store::sql;
use crate::transaction::Open;
use leasehold_core::ExecutionId;
use leasehold_store::Result;
use std::collections::HashMap;

/// What is needed of an execution; none if nothing begins.
pub(super) async fn source(
    transaction: &Open<'_>,
    execution: ExecutionId,
    foresight: &Foresight,
) -> Result<Option<Source>> {
    if !foresight.begins {
        return Ok(None);
    }
    let params = transaction
        .one(sql!("graph/params"), &[&execution.0])
        .await?;
    let mut source = Source {
        params: params.get::<_, Json>("params").0,
        outputs: HashMap::new(),
    };
    if foresight.needs.is_empty() {
        return Ok(Some(source));
    }
    let needs: Vec<i16> = foresight.needs.iter().map(|&node| number(node)).collect();
    let rows = transaction
        .many(sql!("node/outputs"), &[&execution.0, &needs])
        .await?;
    for row in rows {
        let output = row.get::<_, Json>("output").0;
        source.outputs.insert(place(row.get("node")), output);
    }
    Ok(Some(source))
}

/// A node's place as it is kept; a graph has far fewer nodes than that.
pub(super) fn number(node: usize) -> i16 {
    i16::try_from(node).unwrap_or(i16::MAX)
}

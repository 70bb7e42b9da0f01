//! Reads what new nodes are made of: params of executions and outputs of earlier nodes.

use super::change::{Foresight, Source};
use super::hold::place;
use crate::job::row::Json;
use crate::row;
use crate::store::sql;
use crate::transaction::Open;
use leasehold_core::ExecutionId;
use leasehold_store::Result;
use std::collections::HashMap;
use uuid::Uuid;

/// What is needed of each execution, in one go.
pub(super) async fn sources(
    transaction: &Open<'_>,
    foreseen: &[(ExecutionId, Foresight)],
) -> Result<HashMap<ExecutionId, Source>> {
    let mut sources: HashMap<ExecutionId, Source> = HashMap::new();
    let begin: Vec<Uuid> = foreseen
        .iter()
        .filter(|(_, foresight)| foresight.begins)
        .map(|(execution, _)| execution.0)
        .collect();
    if begin.is_empty() {
        return Ok(sources);
    }
    for row in transaction.many(sql!("graph/params"), &[&begin]).await? {
        let source = Source {
            params: row.get::<_, Json>("params").0,
            outputs: HashMap::new(),
        };
        sources.insert(row::id(&row, "id"), source);
    }
    let needs = foreseen.iter().flat_map(|(execution, foresight)| {
        let needs = foresight.needs.iter();
        needs.map(|&node| (execution.0, number(node)))
    });
    let (executions, nodes): (Vec<Uuid>, Vec<i16>) = needs.unzip();
    if executions.is_empty() {
        return Ok(sources);
    }
    let rows = transaction
        .many(sql!("node/outputs"), &[&executions, &nodes])
        .await?;
    for row in rows {
        let source = sources.entry(row::id(&row, "execution_id")).or_default();
        let output = row.get::<_, Json>("output").0;
        source.outputs.insert(place(row.get("node")), output);
    }
    Ok(sources)
}

/// A node's place as it is kept; a graph has far fewer nodes than that.
pub(super) fn number(node: usize) -> i16 {
    i16::try_from(node).unwrap_or(i16::MAX)
}

//! Publishing a version: its body and its params schema are validated before anything is stored.

use crate::definition::CATALOG_QUOTA;
use crate::schema::{self, ParamsSchemas, SchemaWorkError, VersionSchema};
use leasehold_core::VersionBody;
use leasehold_core::graph::{GraphProblem, Node};
use leasehold_core::json::{self, JsonProblem};
use leasehold_core::limits::{
    EXECUTION_TIMEOUT_MAX_DAYS, GRAPH_MAX_MEMORY_BYTES, QUEUES_OWNED_MAX, SCHEMA_MAX_BYTES,
};
use leasehold_core::text::TextProblem;
use leasehold_core::version::VersionProblem;
use leasehold_schema::SchemaError;
use leasehold_store::definition::{NewVersion, QueueRefusal, Version, VersionPublished};
use leasehold_store::{Actor, Store, run_off_thread};
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;

/// Why a version was not published.
#[derive(Debug, Error)]
pub enum PublishError {
    /// No such definition exists in the workspace.
    #[error("definition not found")]
    DefinitionNotFound,
    /// Its graph or binding is invalid.
    #[error(transparent)]
    Body(#[from] VersionProblem),
    /// Its params schema is not valid JSON for storage.
    #[error("params_schema: {0}")]
    SchemaDocument(JsonProblem),
    /// Its params schema is not a valid JSON Schema, or breaks a limit.
    #[error("params_schema is not accepted: {0}")]
    Schema(SchemaError),
    /// Its params schema could not be compiled now.
    #[error(transparent)]
    SchemaWork(#[from] SchemaWorkError),
    /// Its timeout is out of range.
    #[error("execution_timeout must be between 1 ms and {EXECUTION_TIMEOUT_MAX_DAYS} days")]
    Timeout,
    /// The workspace owns as many queues as it may.
    #[error(
        "nodes[{index}].queue names a new queue, and the workspace owns {QUEUES_OWNED_MAX} queues already; use one of them"
    )]
    TooManyQueues {
        /// Position in `nodes` of the first node that names the new queue.
        index: usize,
    },
    /// The definitions and versions of the workspace would have too many bytes.
    #[error("{CATALOG_QUOTA}")]
    QuotaExceeded,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] leasehold_store::Error),
}

/// Publishes a version and makes it the definition's current one.
pub async fn publish(
    store: &dyn Store,
    schemas: &ParamsSchemas,
    new: NewVersion,
    by: &Actor,
) -> Result<Version, PublishError> {
    // Both are trees of up to 16 MiB here, which take too long for a serving thread.
    let check = move || Ok(check(&new).map(|()| new));
    let new = run_off_thread("version_publish", GRAPH_MAX_MEMORY_BYTES, check).await??;
    let (epoch, schema) = (store.epoch(), compile(schemas, &new).await?);
    let published = match store.version_publish(&new, by).await? {
        VersionPublished::Published(published) => *published,
        VersionPublished::DefinitionNotFound => return Err(PublishError::DefinitionNotFound),
        VersionPublished::QueueRefused(refusal) => return Err(refused(&new, &refusal)),
        VersionPublished::QuotaExceeded => return Err(PublishError::QuotaExceeded),
    };
    schemas.cache(epoch, published.id, schema);
    Ok(published)
}

/// Checks the body, the timeout, and the size of the schema.
fn check(new: &NewVersion) -> Result<(), PublishError> {
    new.body.validate()?;
    let longest = Duration::from_secs(u64::from(EXECUTION_TIMEOUT_MAX_DAYS) * 86_400);
    let allowed = Duration::from_millis(1)..=longest;
    if new
        .execution_timeout
        .is_some_and(|timeout| !allowed.contains(&timeout))
    {
        return Err(PublishError::Timeout);
    }
    new.params_schema.as_ref().map_or(Ok(()), |document| {
        json::check(document, SCHEMA_MAX_BYTES).map_err(PublishError::SchemaDocument)
    })
}

/// Returns the error of a graph that names a queue which the workspace may not use or create. Another workspace's queue is reported like a reserved name.
fn refused(new: &NewVersion, refusal: &QueueRefusal) -> PublishError {
    let nodes = match &new.body {
        VersionBody::Graph(graph) => graph.nodes.as_slice(),
        VersionBody::Binding { .. } => &[],
    };
    let named = |node: &Node| node.kind.task_queue() == Some(refusal.queue());
    let index = nodes.iter().position(named).unwrap_or_default();
    match refusal {
        QueueRefusal::NotPermitted(_) => {
            let problem = GraphProblem::BadText {
                index,
                field: "queue",
                problem: TextProblem::Reserved,
            };
            PublishError::Body(problem.into())
        }
        QueueRefusal::TooMany(_) => PublishError::TooManyQueues { index },
    }
}

async fn compile(schemas: &ParamsSchemas, new: &NewVersion) -> Result<VersionSchema, PublishError> {
    let Some(document) = &new.params_schema else {
        return Ok(VersionSchema::Absent);
    };
    let compiled = schemas.compile(new.workspace, document.clone(), schema::deadline());
    let schema = compiled.await?.map_err(PublishError::Schema)?;
    Ok(VersionSchema::Compiled(Arc::new(schema)))
}

//! Enqueueing requests: sizes, ranges and the version's params schema are validated, then the store inserts all or none.

use crate::current_versions::CurrentVersions;
use crate::quota::{self, QuotaError, Quotas};
use crate::replay;
use crate::schema::{self, FirstMismatch, ParamsSchemas, SchemaWorkError, VersionSchema};
use leasehold_core::json::{self, JsonProblem};
use leasehold_core::limits::{
    DEDUPE_WINDOW_MAX_DAYS, ENQUEUE_MAX_REQUESTS, IDEMPOTENCY_KEY_MAX_CHARS, NAME_MAX_CHARS,
    PARAMS_MAX_BYTES, PRIORITY_RANGE, TRACE_CONTEXT_MAX_CHARS, VALIDATION_MAX_SECONDS,
};
use leasehold_core::text::{self, TextProblem};
use leasehold_core::{DefinitionId, RequestId, TraceContext, VersionId, WorkspaceId};
use leasehold_schema::{Schema, SchemaError, ValidationError, ValidationLimit};
use leasehold_store::request::{Enqueue, Enqueued, EnqueuedRequest, NewRequest};
use leasehold_store::{Store, Turns};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::time::{Duration, Instant};
use thiserror::Error;

/// Why nothing was enqueued.
#[derive(Debug, Error)]
pub enum EnqueueError {
    /// No request, or too many.
    #[error("an enqueue call takes 1 to {ENQUEUE_MAX_REQUESTS} requests, not {0}")]
    Count(usize),
    /// Params are invalid JSON for storage.
    #[error("requests[{index}].params: {problem}")]
    Params {
        /// Position in the call.
        index: usize,
        /// The problem and its location.
        problem: JsonProblem,
    },
    /// Params that do not match the version's declared schema.
    #[error("requests[{index}].params{path}: {problem}")]
    Schema {
        /// Position in the call.
        index: usize,
        /// JSON pointer into the params.
        path: String,
        /// The problem.
        problem: String,
    },
    /// Params that take too much work to validate.
    #[error("requests[{index}].params: {limit}")]
    ValidationLimit {
        /// Position in the call.
        index: usize,
        /// The limit.
        limit: ValidationLimit,
    },
    /// The params of the call together take too long to validate; the request at this position was being validated.
    #[error(
        "validating the params of this call took longer than {VALIDATION_MAX_SECONDS} s; send fewer requests in one call, or simplify the params_schema"
    )]
    ValidationTime(usize),
    /// The version's params schema was published when other rules held.
    #[error(
        "the params_schema of version {version} is not accepted: {error}; publish a corrected version"
    )]
    VersionSchema {
        /// Position in the call.
        index: usize,
        /// The version.
        version: VersionId,
        /// The rule or limit that the schema breaks.
        error: SchemaError,
    },
    /// The params could not be validated now.
    #[error(transparent)]
    SchemaWork(#[from] SchemaWorkError),
    /// A priority is out of range.
    #[error("requests[{index}].priority must be between {} and {}, not {priority}", PRIORITY_RANGE.start(), PRIORITY_RANGE.end())]
    Priority {
        /// Position in the call.
        index: usize,
        /// The given value.
        priority: i16,
    },
    /// A text is invalid.
    #[error("{field} {problem}")]
    Text {
        /// The field.
        field: String,
        /// The problem.
        problem: TextProblem,
    },
    /// A deduplication window is out of range.
    #[error("requests[{0}].dedupe_window must be between 1 ms and {DEDUPE_WINDOW_MAX_DAYS} days")]
    Window(usize),
    /// No such workspace exists.
    #[error("workspace not found")]
    WorkspaceNotFound,
    /// No such definition exists.
    #[error("definition {0} not found")]
    DefinitionNotFound(DefinitionId),
    /// The definition belongs to another workspace.
    #[error("definition {0} belongs to another workspace")]
    DefinitionForbidden(DefinitionId),
    /// The definition has no version yet.
    #[error("definition {0} has no published version")]
    NotPublished(DefinitionId),
    /// A request with other params holds the idempotency key.
    #[error("idempotency key `{key}` is already used by request {held_by} with other params")]
    KeyConflict {
        /// The key.
        key: String,
        /// The holder.
        held_by: RequestId,
    },
    /// A quota of the workspace is exceeded.
    #[error(transparent)]
    Quota(#[from] QuotaError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] leasehold_store::Error),
}

/// Enqueues requests. Reuse one: it remembers current versions and caches compiled schemas.
#[derive(Debug, Default)]
pub struct Enqueuer {
    versions: CurrentVersions,
    schemas: ParamsSchemas,
}

impl Enqueuer {
    /// Returns the schemas that requests are validated with, for publishing.
    pub fn schemas(&self) -> &ParamsSchemas {
        &self.schemas
    }

    /// Enqueues like [`Enqueuer::enqueue`], if the quotas of the workspace allow all new requests of the call. A request whose idempotency key is
    /// held needs no room; the keys are looked up only if the call does not fit with all its requests.
    pub async fn enqueue_within(
        &self,
        store: &dyn Store,
        quotas: &Quotas,
        call: Enqueue,
    ) -> Result<Vec<EnqueuedRequest>, EnqueueError> {
        let added = quota::usage_of(&call.requests);
        match quotas.admit(store, call.workspace, added).await {
            Ok(_admission) => self.enqueue(store, call).await,
            Err(refused) => self.replay(store, quotas, call, refused).await,
        }
    }

    /// Answers the requests of a refused call whose keys are held, and enqueues the others if they fit. The store does not see the former again: if a
    /// key is released meanwhile, nothing is inserted without room.
    async fn replay(
        &self,
        store: &dyn Store,
        quotas: &Quotas,
        mut call: Enqueue,
        refused: QuotaError,
    ) -> Result<Vec<EnqueuedRequest>, EnqueueError> {
        let mut keys = call.requests.iter().filter_map(replay::idempotency_key);
        if !refused.is_exceeded() || keys.next().is_none() {
            return Err(refused.into());
        }
        check(&mut call).await?;
        let holders = store.request_key_holders(&call).await?;
        let replay = replay::of_requests(&call.requests, &holders)?;
        let positions = replay.new_positions();
        if positions.is_empty() {
            let answers = replay.with(Vec::new());
            log_enqueued(&call, &answers);
            return Ok(answers);
        }
        call.requests = replay::only(call.requests, &positions);
        let new = replay::first_uses(&call.requests, replay::idempotency_key);
        let added = quota::usage_of(new);
        if replay.is_empty() && added.requests == call.requests.len() as u64 {
            return Err(refused.into());
        }
        let _admission = quotas.admit(store, call.workspace, added).await?;
        let enqueued = self.enqueue(store, call).await;
        let enqueued = enqueued.map_err(|error| error.at_positions(&positions))?;
        Ok(replay.with(enqueued))
    }

    /// Validates and inserts all requests of the call, or none. Params are validated against the version that each request
    /// is pinned to; if another version is published meanwhile, they are validated again. So a remembered version is as good as one that is read now.
    pub async fn enqueue(
        &self,
        store: &dyn Store,
        mut call: Enqueue,
    ) -> Result<Vec<EnqueuedRequest>, EnqueueError> {
        check(&mut call).await?;
        log_enqueueing(&call);
        let deadline = schema::deadline();
        let mut versions = Versions::Remembered;
        loop {
            let checked = self.check_schemas(store, &mut call, versions, deadline);
            if let Err(error) = checked.await {
                // A remembered version accepts params only if the store confirms it; so it must not reject them alone either.
                if versions == Versions::Remembered && self.is_outdated(store, &call).await? {
                    versions = Versions::Read;
                    continue;
                }
                return Err(error);
            }
            return match store.request_enqueue(&call).await? {
                Enqueued::VersionMoved(_) => {
                    versions = Versions::Read;
                    continue;
                }
                Enqueued::All(requests) => {
                    log_enqueued(&call, &requests);
                    Ok(requests)
                }
                Enqueued::WorkspaceNotFound => Err(EnqueueError::WorkspaceNotFound),
                Enqueued::DefinitionNotFound(id) => Err(EnqueueError::DefinitionNotFound(id)),
                Enqueued::DefinitionForbidden(id) => Err(EnqueueError::DefinitionForbidden(id)),
                Enqueued::NotPublished(id) => Err(EnqueueError::NotPublished(id)),
                Enqueued::KeyConflict { key, held_by } => {
                    Err(EnqueueError::KeyConflict { key, held_by })
                }
            };
        }
    }

    async fn check_schemas(
        &self,
        store: &dyn Store,
        call: &mut Enqueue,
        versions: Versions,
        deadline: Instant,
    ) -> Result<(), EnqueueError> {
        let mut known = HashMap::new();
        let mut schemas = Vec::with_capacity(call.requests.len());
        for (index, new) in call.requests.iter_mut().enumerate() {
            let (version, schema) = match known.entry(new.definition) {
                Entry::Occupied(seen) => seen.into_mut(),
                Entry::Vacant(unseen) => {
                    let id = (call.workspace, new.definition);
                    let found = self.current(store, id, versions, deadline);
                    unseen.insert(found.await?)
                }
            };
            new.checked_against = *version;
            schemas.push(usable(index, *version, schema)?);
        }
        let requests = std::mem::take(&mut call.requests);
        let validated = self
            .schemas
            .validate(call.workspace, requests, schemas, deadline);
        let (requests, mismatch) = validated.await?;
        call.requests = requests;
        mismatch.map_or(Ok(()), |mismatch| Err(mismatch.into()))
    }

    /// Returns the definition's current version and its schema. A definition that cannot be enqueued has none; the
    /// store returns the reason.
    async fn current(
        &self,
        store: &dyn Store,
        (workspace, definition): (WorkspaceId, DefinitionId),
        versions: Versions,
        deadline: Instant,
    ) -> Result<(Option<VersionId>, VersionSchema), EnqueueError> {
        let remembered = match versions {
            Versions::Remembered => self.versions.get(workspace, definition),
            Versions::Read => None,
        };
        let version = match remembered {
            Some(version) => version,
            None => match current_version(store, workspace, definition).await? {
                Some(version) => {
                    self.versions.set(workspace, definition, version);
                    version
                }
                None => return Ok((None, VersionSchema::Absent)),
            },
        };
        let epoch = store.epoch();
        if let Some(known) = self.schemas.cached(epoch, version) {
            return Ok((Some(version), known));
        }
        let document = store
            .version_get(workspace, version)
            .await?
            .and_then(|version| version.params_schema.clone());
        let schema = match document {
            None => VersionSchema::Absent,
            Some(document) => {
                let compiled = self.schemas.compile(workspace, document, deadline);
                match compiled.await? {
                    Ok(schema) => VersionSchema::Compiled(Arc::new(schema)),
                    Err(error) => VersionSchema::Refused(Arc::new(error)),
                }
            }
        };
        self.schemas.cache(epoch, version, schema.clone());
        Ok((Some(version), schema))
    }

    /// Whether params were validated against a version that is not the current one.
    async fn is_outdated(&self, store: &dyn Store, call: &Enqueue) -> Result<bool, EnqueueError> {
        let checked = call.requests.iter();
        let checked = checked.filter_map(|new| Some((new.definition, new.checked_against?)));
        let checked: HashMap<DefinitionId, VersionId> = checked.collect();
        for (definition, version) in checked {
            if current_version(store, call.workspace, definition).await? != Some(version) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Where the current versions of a call's definitions come from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Versions {
    /// From memory, if they are known.
    Remembered,
    /// From the store.
    Read,
}

async fn current_version(
    store: &dyn Store,
    workspace: WorkspaceId,
    definition: DefinitionId,
) -> Result<Option<VersionId>, leasehold_store::Error> {
    let found = store.definition_get(workspace, definition).await?;
    Ok(found.and_then(|definition| definition.current_version))
}

/// Returns the schema to validate a request with, if there is one.
fn usable(
    index: usize,
    version: Option<VersionId>,
    schema: &VersionSchema,
) -> Result<Option<Arc<Schema>>, EnqueueError> {
    match (schema, version) {
        (VersionSchema::Compiled(schema), _) => Ok(Some(Arc::clone(schema))),
        (VersionSchema::Refused(error), Some(version)) => Err(EnqueueError::VersionSchema {
            index,
            version,
            error: SchemaError::clone(error),
        }),
        (VersionSchema::Absent, _) | (VersionSchema::Refused(_), None) => Ok(None),
    }
}

impl From<FirstMismatch> for EnqueueError {
    fn from(FirstMismatch { index, error }: FirstMismatch) -> Self {
        match error {
            ValidationError::Mismatch(mismatch) => Self::Schema {
                index,
                path: mismatch.path,
                problem: mismatch.message,
            },
            ValidationError::LimitExceeded(ValidationLimit::Deadline) => {
                Self::ValidationTime(index)
            }
            ValidationError::LimitExceeded(limit) => Self::ValidationLimit { index, limit },
        }
    }
}

impl EnqueueError {
    /// Returns the error of a call of some requests as the error of the whole call, in which they have these positions.
    fn at_positions(mut self, positions: &[usize]) -> Self {
        match &mut self {
            Self::Params { index, .. }
            | Self::Schema { index, .. }
            | Self::ValidationLimit { index, .. }
            | Self::ValidationTime(index)
            | Self::VersionSchema { index, .. }
            | Self::Priority { index, .. }
            | Self::Window(index) => *index = positions.get(*index).copied().unwrap_or(*index),
            // Texts are checked in the whole call.
            Self::Text { .. }
            | Self::Count(_)
            | Self::SchemaWork(_)
            | Self::WorkspaceNotFound
            | Self::DefinitionNotFound(_)
            | Self::DefinitionForbidden(_)
            | Self::NotPublished(_)
            | Self::KeyConflict { .. }
            | Self::Quota(_)
            | Self::Store(_) => {}
        }
        self
    }
}

/// Logs a single request before and after the insert; a batch only after it, in one line.
fn log_enqueueing(call: &Enqueue) {
    if let [new] = call.requests.as_slice() {
        tracing::info!(definition = %new.definition, workspace = %call.workspace, trace_id = trace(new),
            "Enqueueing workflow");
    }
}

fn log_enqueued(call: &Enqueue, requests: &[EnqueuedRequest]) {
    match (call.requests.as_slice(), requests) {
        ([new], [one]) if one.inserted => {
            tracing::info!(request = %one.id, workspace = %call.workspace, trace_id = trace(new), "Enqueued execution");
        }
        ([_], [one]) => {
            tracing::info!(request = %one.id, workspace = %call.workspace,
                "idempotency key already used; existing request returned");
        }
        _ => {
            let count = requests.iter().filter(|one| one.inserted).count();
            tracing::info!(count, workspace = %call.workspace, "Enqueued {count} executions");
        }
    }
}

fn trace(new: &NewRequest) -> Option<String> {
    TraceContext::trace_id_of(new.trace_context.as_deref())
}

/// Checks sizes, ranges and texts of all requests, and strips whitespace from params, because SQLite stores the text as it is.
async fn check(call: &mut Enqueue) -> Result<(), EnqueueError> {
    check_call(call)?;
    let mut turns = Turns::default();
    for (index, new) in call.requests.iter_mut().enumerate() {
        check_one(index, new)?;
        new.params.strip_whitespace();
        turns.count(new.params.as_str().len()).await;
    }
    Ok(())
}

fn check_call(call: &Enqueue) -> Result<(), EnqueueError> {
    if !(1..=ENQUEUE_MAX_REQUESTS).contains(&call.requests.len()) {
        return Err(EnqueueError::Count(call.requests.len()));
    }
    check_text("by".to_owned(), &call.by, NAME_MAX_CHARS)
}

fn check_one(index: usize, new: &NewRequest) -> Result<(), EnqueueError> {
    json::check_written_out(new.params.as_str(), PARAMS_MAX_BYTES)
        .map_err(|problem| EnqueueError::Params { index, problem })?;
    if !PRIORITY_RANGE.contains(&new.priority) {
        return Err(EnqueueError::Priority {
            index,
            priority: new.priority,
        });
    }
    if let Some(trace) = &new.trace_context {
        check_text(
            format!("requests[{index}].trace_context"),
            trace,
            TRACE_CONTEXT_MAX_CHARS,
        )?;
    }
    if let Some(idempotency) = &new.idempotency {
        let field = format!("requests[{index}].idempotency_key");
        check_text(field, &idempotency.key, IDEMPOTENCY_KEY_MAX_CHARS)?;
        let longest = Duration::from_secs(u64::from(DEDUPE_WINDOW_MAX_DAYS) * 86_400);
        let range = Duration::from_millis(1)..=longest;
        if idempotency
            .window
            .is_some_and(|window| !range.contains(&window))
        {
            return Err(EnqueueError::Window(index));
        }
    }
    Ok(())
}

fn check_text(field: String, value: &str, max: usize) -> Result<(), EnqueueError> {
    text::check(value, max).map_err(|problem| EnqueueError::Text { field, problem })
}

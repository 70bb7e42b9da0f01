//! Error responses: the only module that turns errors and unsuccessful outcomes into problems.

use crate::access::Caller;
use crate::claim_wait::ClaimError;
use crate::load_shed::overloaded;
use crate::log_throttle::LogThrottle;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use leasehold_api::{Code, Problem};
use leasehold_core::json::{JsonProblem, JsonProblemKind};
use leasehold_ops::{
    CancelError, DefinitionError, EnqueueError, InvalidField, JobOperationError, JobQuotaError,
    KeyError, PublishError, QuotaError, RedriveError, SchemaWorkError, ShareError, WorkspaceError,
};
use leasehold_store::{Error, ErrorKind};
use std::time::Instant;

/// An error response: a problem document with status and headers.
#[derive(Debug)]
pub(crate) struct ApiError(Box<Problem>);

pub(crate) type ApiResult<T> = Result<T, ApiError>;

/// `Retry-After` in seconds while the store or the engine is unavailable.
const STORE_RETRY_AFTER: u64 = 1;
/// `Retry-After` in seconds while all threads for schema work are busy.
const SCHEMA_RETRY_AFTER: u64 = 1;
/// `Retry-After` in seconds while a quota of the workspace is used up.
const QUOTA_RETRY_AFTER: u64 = 5;

static STORE_UNAVAILABLE: LogThrottle = LogThrottle::new();
static ENGINE_UNAVAILABLE: LogThrottle = LogThrottle::new();

impl ApiError {
    pub(crate) fn new(code: Code, detail: impl Into<String>) -> Self {
        Self(Box::new(Problem::new(code, detail)))
    }

    /// An object that does not exist or is hidden from the key; `what` is its kind.
    pub(crate) fn not_found(what: &str) -> Self {
        Self::new(
            Code::NotFound,
            format!("{what} not found, or this key has no access to it"),
        )
    }

    /// An invalid value in the body, named by its JSON pointer.
    pub(crate) fn invalid(path: impl Into<String>, detail: impl Into<String>) -> Self {
        Self(Box::new(Problem::new(Code::Invalid, detail).at(path)))
    }

    /// An invalid path or query parameter or header, named by its name.
    pub(crate) fn parameter(name: impl Into<String>, detail: impl Into<String>) -> Self {
        Self(Box::new(
            Problem::new(Code::InvalidParameter, detail).at(name),
        ))
    }

    /// Removes `prefix` from the path, for a body that is the object usually found there.
    pub(crate) fn strip_path_prefix(mut self, prefix: &str) -> Self {
        if let Some(path) = &mut self.0.path
            && let Some(rest) = path.strip_prefix(prefix)
        {
            *path = rest.to_owned();
        }
        self
    }

    /// The error of a call that a quota refuses. `Retry-After` tells clients to repeat the call, so it is set only if the call may fit later.
    fn quota(code: Code, text: String, may_fit_later: bool) -> Self {
        let error = Self::new(code, text);
        if may_fit_later {
            error.retry_after(QUOTA_RETRY_AFTER)
        } else {
            error
        }
    }

    pub(crate) fn retry_after(self, seconds: u64) -> Self {
        Self(Box::new(self.0.retry_after(seconds)))
    }

    /// Rewrites the path for a body that is the item itself and not a list: `/requests/0/params` becomes `/params`.
    #[must_use]
    pub(crate) fn for_single_item(mut self, many: &str) -> Self {
        let (path, field) = (format!("/{many}/0"), format!("{many}[0]."));
        let own = self.0.path.as_deref().and_then(|at| at.strip_prefix(&path));
        if let Some(own) = own.map(str::to_owned) {
            self.0.path = Some(own);
        }
        if let Some(own) = self.0.detail.strip_prefix(&field).map(str::to_owned) {
            self.0.detail = own;
        }
        self
    }

    /// Names the header instead of `path` if the invalid value came in a header.
    #[must_use]
    pub(crate) fn in_header(self, path: &str, name: &'static str) -> Self {
        if self.0.path.as_deref() == Some(path) {
            return Self::parameter(name, self.0.detail);
        }
        self
    }

    pub(crate) fn held_by(mut self, request: impl ToString) -> Self {
        self.0.held_by = Some(request.to_string());
        self
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let problem = *self.0;
        let status =
            StatusCode::from_u16(problem.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = (status, axum::Json(&problem)).into_response();
        let headers = response.headers_mut();
        headers.insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/problem+json"),
        );
        if let Some(seconds) = problem.retry_after {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if problem.code == Code::Unauthenticated {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

impl From<Error> for ApiError {
    fn from(error: Error) -> Self {
        match &error.kind {
            ErrorKind::Unavailable(_) | ErrorKind::Contended(_) => {
                if let Some(times) = STORE_UNAVAILABLE.record(Instant::now()) {
                    tracing::warn!(%error, times, "store unavailable; calls rejected");
                }
                Self::new(
                    Code::StoreUnavailable,
                    "the store is unavailable; it is unknown whether the change was made",
                )
                .retry_after(STORE_RETRY_AFTER)
            }
            ErrorKind::Value(what) => Self::new(Code::Invalid, what.clone()),
            ErrorKind::Gone(what) => Self::new(Code::CursorGone, what.clone()),
            ErrorKind::Constraint(_)
            | ErrorKind::Owned(_)
            | ErrorKind::Schema(_)
            | ErrorKind::Broken(_) => {
                // Without its source: PostgreSQL puts whole rows into the details of an error.
                tracing::error!(%error, "call failed");
                Self::new(Code::Internal, "internal error; see the server's log")
            }
        }
    }
}

impl ApiError {
    /// The engine did not answer within so many seconds.
    pub(crate) fn engine_timeout(seconds: u64) -> Self {
        if let Some(times) = ENGINE_UNAVAILABLE.record(Instant::now()) {
            tracing::warn!(
                seconds,
                times,
                "engine did not answer in time; calls rejected"
            );
        }
        let detail = format!("the engine did not answer within {seconds} s");
        Self::new(Code::EngineUnavailable, detail).retry_after(STORE_RETRY_AFTER)
    }
}

impl From<leasehold_engine::Error> for ApiError {
    fn from(error: leasehold_engine::Error) -> Self {
        if let Some(times) = ENGINE_UNAVAILABLE.record(Instant::now()) {
            tracing::warn!(%error, times, "engine unavailable; calls rejected");
        }
        Self::new(Code::EngineUnavailable, "the engine is unavailable")
            .retry_after(STORE_RETRY_AFTER)
    }
}

impl From<EnqueueError> for ApiError {
    fn from(error: EnqueueError) -> Self {
        let text = error.to_string();
        match error {
            EnqueueError::Count(_) => Self::invalid("/requests", text),
            EnqueueError::Params { index, problem } => Self::invalid(
                format!("/requests/{index}/params{}", problem.path),
                message(&problem),
            ),
            EnqueueError::Schema {
                index,
                path,
                problem,
            } => Self::invalid(format!("/requests/{index}/params{path}"), problem),
            EnqueueError::ValidationLimit { index, limit } => {
                Self::invalid(format!("/requests/{index}/params"), limit.to_string())
            }
            EnqueueError::ValidationTime(index) => {
                Self::invalid(format!("/requests/{index}/params"), text)
            }
            EnqueueError::VersionSchema { index, .. } => {
                Self::invalid(format!("/requests/{index}/definition"), text)
            }
            EnqueueError::SchemaWork(error) => error.into(),
            EnqueueError::Priority { index, .. } => {
                Self::invalid(format!("/requests/{index}/priority"), text)
            }
            EnqueueError::Text { field, problem } => {
                Self::invalid(pointer(&field), problem.to_string())
            }
            EnqueueError::Window(index) => {
                Self::invalid(format!("/requests/{index}/dedupe_window_ms"), text)
            }
            EnqueueError::WorkspaceNotFound | EnqueueError::DefinitionNotFound(_) => {
                Self::new(Code::NotFound, text)
            }
            EnqueueError::DefinitionForbidden(_) => Self::new(Code::Forbidden, text),
            EnqueueError::NotPublished(_) => Self::new(Code::NotPublished, text),
            EnqueueError::KeyConflict { held_by, .. } => {
                Self::new(Code::IdempotencyConflict, text).held_by(held_by)
            }
            EnqueueError::Quota(error) => error.into(),
            EnqueueError::Store(error) => error.into(),
        }
    }
}

impl ApiError {
    /// The error of a rejected enqueue. Only an administrator learns that a definition belongs to another workspace.
    pub(crate) fn from_enqueue(error: EnqueueError, caller: &Caller) -> Self {
        match error {
            EnqueueError::DefinitionForbidden(id) if !caller.is_admin() => {
                EnqueueError::DefinitionNotFound(id).into()
            }
            error => error.into(),
        }
    }
}

impl ApiError {
    /// The error of a change stream whose start position, in the parameter `name`, is invalid.
    pub(crate) fn from_cursor(error: Error, name: &'static str) -> Self {
        match error.kind {
            ErrorKind::Value(what) => Self::parameter(name, what),
            _ => error.into(),
        }
    }
}

impl From<ClaimError> for ApiError {
    fn from(error: ClaimError) -> Self {
        match error {
            ClaimError::Store(error) => error.into(),
            ClaimError::PollsFull(full) => {
                let detail = full.detail("claims that wait for jobs", "half of server.calls_max");
                overloaded(&detail)
            }
        }
    }
}

impl From<SchemaWorkError> for ApiError {
    fn from(error: SchemaWorkError) -> Self {
        match error {
            SchemaWorkError::Overloaded => {
                Self::new(Code::Overloaded, error.to_string()).retry_after(SCHEMA_RETRY_AFTER)
            }
            SchemaWorkError::Crashed => {
                Self::new(Code::Internal, "internal error; see the server's log")
            }
        }
    }
}

impl From<QuotaError> for ApiError {
    fn from(error: QuotaError) -> Self {
        let (text, may_fit_later) = (error.to_string(), error.may_fit_later());
        match error {
            QuotaError::Pending { .. } => Self::quota(Code::BacklogFull, text, may_fit_later),
            QuotaError::Bytes { .. } => Self::quota(Code::QuotaExceeded, text, may_fit_later),
            QuotaError::Store(error) => error.into(),
        }
    }
}

impl From<RedriveError> for ApiError {
    fn from(error: RedriveError) -> Self {
        let text = error.to_string();
        match error {
            RedriveError::Invalid(invalid) => invalid.into(),
            RedriveError::Quota(error) => error.into(),
            RedriveError::NotFound => Self::not_found("request"),
            RedriveError::NotFailed => Self::new(Code::NotFailed, text),
            RedriveError::AlreadyRedriven(request) => {
                Self::new(Code::AlreadyRedriven, text).held_by(request)
            }
            RedriveError::DefinitionNotFound => Self::new(Code::NotFound, text),
            RedriveError::Store(error) => error.into(),
        }
    }
}

impl From<CancelError> for ApiError {
    fn from(error: CancelError) -> Self {
        let text = error.to_string();
        match error {
            CancelError::NotFound => Self::not_found("request or job"),
            CancelError::RequestFinished | CancelError::JobFinished => {
                Self::new(Code::AlreadyFinished, text)
            }
            CancelError::JobRunning => Self::new(Code::JobRunning, text),
            CancelError::JobOfGraph => Self::new(Code::JobOfGraph, text),
            CancelError::Store(error) => error.into(),
        }
    }
}

impl From<PublishError> for ApiError {
    fn from(error: PublishError) -> Self {
        let text = error.to_string();
        match error {
            PublishError::DefinitionNotFound => Self::not_found("definition"),
            PublishError::Body(problem) => {
                Self::invalid(format!("/body{}", problem.pointer()), text)
            }
            PublishError::SchemaDocument(problem) => {
                Self::invalid(format!("/params_schema{}", problem.path), message(&problem))
            }
            PublishError::Schema(error) => Self::invalid(
                format!("/params_schema{}", error.path),
                error.problem.to_string(),
            ),
            PublishError::SchemaWork(error) => error.into(),
            PublishError::TooManyQueues { index } => {
                Self::invalid(format!("/body/graph/nodes/{index}/queue"), text)
            }
            // Nothing releases these bytes.
            PublishError::QuotaExceeded => Self::quota(Code::QuotaExceeded, text, false),
            PublishError::Timeout => Self::invalid("/execution_timeout_ms", text),
            PublishError::Store(error) => error.into(),
        }
    }
}

impl From<JobOperationError> for ApiError {
    fn from(error: JobOperationError) -> Self {
        let text = error.to_string();
        match error {
            JobOperationError::Count(_) => Self::invalid("/jobs", text),
            // Queues are named in the path or in the query.
            JobOperationError::Text { field, problem }
                if field == "queue" || field.ends_with(".queue") =>
            {
                Self::parameter("queue", problem.to_string())
            }
            JobOperationError::Text { field, problem } => {
                Self::invalid(body_pointer(&field), problem.to_string())
            }
            JobOperationError::Json { field, problem } => Self::invalid(
                format!("{}{}", body_pointer(&field), problem.path),
                message(&problem),
            ),
            JobOperationError::Number { ref field, .. }
            | JobOperationError::Time { ref field, .. } => Self::invalid(body_pointer(field), text),
            JobOperationError::QueueNotShared { .. } => Self::new(Code::QueueNotShared, text),
            JobOperationError::Quota(JobQuotaError::Store(error))
            | JobOperationError::Store(error) => error.into(),
            JobOperationError::Quota(full) => {
                Self::quota(Code::QuotaExceeded, text, full.may_fit_later())
            }
        }
    }
}

impl From<ShareError> for ApiError {
    fn from(error: ShareError) -> Self {
        let text = error.to_string();
        match error {
            ShareError::Queue(problem) => Self::parameter("queue", problem.to_string()),
            ShareError::Invalid(invalid) => invalid.into(),
            ShareError::Count(_) => Self::invalid("/shared_with", text),
            ShareError::WorkspaceNotFound(_) => Self::new(Code::NotFound, text),
            ShareError::Store(error) => error.into(),
        }
    }
}

impl From<InvalidField> for ApiError {
    fn from(invalid: InvalidField) -> Self {
        Self::invalid(pointer(invalid.field()), invalid.to_string())
    }
}

impl From<WorkspaceError> for ApiError {
    fn from(error: WorkspaceError) -> Self {
        let text = error.to_string();
        match error {
            WorkspaceError::Invalid(invalid) => invalid.into(),
            WorkspaceError::NameTaken(_) => Self::new(Code::NameTaken, text),
            WorkspaceError::NotFound => Self::not_found("workspace"),
            WorkspaceError::Store(error) => error.into(),
        }
    }
}

impl From<DefinitionError> for ApiError {
    fn from(error: DefinitionError) -> Self {
        let text = error.to_string();
        match error {
            DefinitionError::Invalid(invalid) => invalid.into(),
            DefinitionError::NameTaken(_) => Self::new(Code::NameTaken, text),
            DefinitionError::WorkspaceNotFound => Self::not_found("workspace"),
            DefinitionError::NotFound => Self::not_found("definition"),
            DefinitionError::QuotaExceeded => Self::quota(Code::QuotaExceeded, text, false),
            DefinitionError::Store(error) => error.into(),
        }
    }
}

impl From<KeyError> for ApiError {
    fn from(error: KeyError) -> Self {
        match error {
            KeyError::Invalid(invalid) => invalid.into(),
            KeyError::WorkspaceNotFound => Self::new(Code::NotFound, "workspace not found"),
            KeyError::NotFound => Self::not_found("key"),
            KeyError::LastAdmin => Self::new(Code::LastAdminKey, error.to_string()),
            KeyError::ExceedsRights => Self::new(Code::Forbidden, error.to_string()),
            KeyError::RotationOfInvalidKey
            | KeyError::AlreadyRotated(_)
            | KeyError::LastAdminExpires => Self::new(Code::RotationRefused, error.to_string()),
            KeyError::Random(text) => {
                tracing::error!(error = text, "failed to generate a key");
                Self::new(Code::Internal, "internal error; see the server's log")
            }
            KeyError::Store(error) => error.into(),
        }
    }
}

/// Returns the message without the location, which the path gives.
fn message(problem: &JsonProblem) -> String {
    problem.kind.to_string()
}

/// The error of an invalid JSON document; `at` is its JSON pointer in the body.
pub(crate) fn from_json(at: &str, problem: &JsonProblem) -> ApiError {
    match problem.kind {
        JsonProblemKind::Malformed(_) => ApiError::new(Code::MalformedJson, message(problem)),
        _ => ApiError::invalid(format!("{at}{}", problem.path), message(problem)),
    }
}

/// Converts a field of a job, a queue or a claim to its JSON pointer in the API, where durations end in `_ms` and the dedup fields are flat.
fn body_pointer(field: &str) -> String {
    let pointer = pointer(field);
    for (ours, name) in [
        ("/dedup/key", "/dedup_key"),
        ("/dedup/window", "/dedup_window_ms"),
        ("/backoff/base", "/backoff/base_ms"),
        ("/backoff/max", "/backoff/max_ms"),
        ("/start", "/run_in_ms"),
        ("/timeout", "/timeout_ms"),
        ("/lease", "/lease_ms"),
        ("/wait", "/wait_ms"),
        ("/after", "/after_ms"),
    ] {
        if let Some(before) = pointer.strip_suffix(ours) {
            return format!("{before}{name}");
        }
    }
    pointer
}

/// Converts `jobs[3].backoff.base` to `/jobs/3/backoff/base`.
pub(crate) fn pointer(field: &str) -> String {
    let mut pointer = String::from("/");
    for c in field.chars() {
        match c {
            '.' | '[' => pointer.push('/'),
            ']' => {}
            c => pointer.push(c),
        }
    }
    pointer
}

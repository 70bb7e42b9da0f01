//! How a call is refused: every outcome and every error that is no success becomes a problem here, and only here.

use crate::access::Caller;
use crate::unserved::Unserved;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use leasehold_api::{Code, Problem};
use leasehold_core::json::{JsonProblem, JsonProblemKind};
use leasehold_ops::{
    BacklogError, CancelError, DefinitionError, EnqueueError, JobError, KeyError, PublishError,
    RedriveError, Refused, WorkspaceError,
};
use leasehold_store::{Error, ErrorKind};
use std::time::Instant;

/// A call that is not served.
#[derive(Debug)]
pub(crate) struct Refusal(Box<Problem>);

pub(crate) type Outcome<T> = Result<T, Refusal>;

/// Seconds after which a store that did not answer is worth another try.
const STORE_RETRY_AFTER: u64 = 1;
/// Seconds after which a full backlog may have become shorter.
const BACKLOG_RETRY_AFTER: u64 = 5;

static NO_STORE: Unserved = Unserved::new();
static NO_ENGINE: Unserved = Unserved::new();

impl Refusal {
    pub(crate) fn of(code: Code, detail: impl Into<String>) -> Self {
        Self(Box::new(Problem::new(code, detail)))
    }

    pub(crate) fn not_found() -> Self {
        Self::of(
            Code::NotFound,
            "there is no such thing, or it is not this key's to see",
        )
    }

    /// Something in the body, by its JSON pointer.
    pub(crate) fn invalid(path: impl Into<String>, detail: impl Into<String>) -> Self {
        Self(Box::new(Problem::new(Code::Invalid, detail).at(path)))
    }

    /// A parameter of the path, the query or a header, by its name.
    pub(crate) fn parameter(name: impl Into<String>, detail: impl Into<String>) -> Self {
        Self(Box::new(
            Problem::new(Code::InvalidParameter, detail).at(name),
        ))
    }

    /// Where the body is only what usually stands at `prefix` of one.
    pub(crate) fn within(mut self, prefix: &str) -> Self {
        if let Some(path) = &mut self.0.path
            && let Some(rest) = path.strip_prefix(prefix)
        {
            *path = rest.to_owned();
        }
        self
    }

    pub(crate) fn retry_after(self, seconds: u64) -> Self {
        Self(Box::new(self.0.retry_after(seconds)))
    }

    /// The same where the body is not one of many but the thing itself: `/requests/0/params` is `/params`.
    #[must_use]
    pub(crate) fn of_one(mut self, many: &str) -> Self {
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

    /// The same where what is wrong at `path` came in a header.
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

impl IntoResponse for Refusal {
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

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        match &error.kind {
            ErrorKind::Unavailable(_) | ErrorKind::Contended(_) => {
                if let Some(times) = NO_STORE.one_more(Instant::now()) {
                    tracing::warn!(%error, times, "calls cannot be served: the store does not answer");
                }
                Self::of(
                    Code::StoreUnavailable,
                    "the store does not answer; whether a change was made is not known",
                )
                .retry_after(STORE_RETRY_AFTER)
            }
            ErrorKind::Value(what) => Self::of(Code::Invalid, what.clone()),
            ErrorKind::Constraint(_)
            | ErrorKind::Owned(_)
            | ErrorKind::Schema(_)
            | ErrorKind::Broken(_) => {
                // Not its source: PostgreSQL puts whole rows into the details of an error.
                tracing::error!(%error, "a call failed");
                Self::of(Code::Internal, "the server failed; its log says why")
            }
        }
    }
}

impl From<leasehold_engine::Error> for Refusal {
    fn from(error: leasehold_engine::Error) -> Self {
        if let Some(times) = NO_ENGINE.one_more(Instant::now()) {
            tracing::warn!(%error, times, "calls cannot be served: the engine does not answer");
        }
        Self::of(Code::EngineUnavailable, "the engine does not answer")
            .retry_after(STORE_RETRY_AFTER)
    }
}

impl From<EnqueueError> for Refusal {
    fn from(error: EnqueueError) -> Self {
        let text = error.to_string();
        match error {
            EnqueueError::Count(_) => Self::invalid("/requests", text),
            EnqueueError::Params { index, problem } => Self::invalid(
                format!("/requests/{index}/params{}", problem.path),
                said(&problem),
            ),
            EnqueueError::Schema {
                index,
                path,
                problem,
            } => Self::invalid(format!("/requests/{index}/params{path}"), problem),
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
                Self::of(Code::NotFound, text)
            }
            EnqueueError::DefinitionForbidden(_) => Self::of(Code::Forbidden, text),
            EnqueueError::NotPublished(_) => Self::of(Code::NotPublished, text),
            EnqueueError::KeyConflict { held_by, .. } => {
                Self::of(Code::IdempotencyConflict, text).held_by(held_by)
            }
            EnqueueError::Backlog(error) => error.into(),
            EnqueueError::Store(error) => error.into(),
        }
    }
}

impl Refusal {
    /// An enqueue that was refused, as this caller may know it: whose a definition is that is not its own, only an administrator hears.
    pub(crate) fn of_enqueue(error: EnqueueError, caller: &Caller) -> Self {
        match error {
            EnqueueError::DefinitionForbidden(id) if !caller.is_admin() => {
                EnqueueError::DefinitionNotFound(id).into()
            }
            error => error.into(),
        }
    }
}

impl Refusal {
    /// A stream of changes that cannot begin where the parameter of this name says.
    pub(crate) fn of_cursor(error: Error, name: &'static str) -> Self {
        match error.kind {
            ErrorKind::Value(what) => Self::parameter(name, what),
            _ => error.into(),
        }
    }
}

impl From<BacklogError> for Refusal {
    fn from(error: BacklogError) -> Self {
        let text = error.to_string();
        match error {
            BacklogError::Full { .. } => {
                Self::of(Code::BacklogFull, text).retry_after(BACKLOG_RETRY_AFTER)
            }
            BacklogError::Store(error) => error.into(),
        }
    }
}

impl From<RedriveError> for Refusal {
    fn from(error: RedriveError) -> Self {
        let text = error.to_string();
        match error {
            RedriveError::Refused(refused) => refused.into(),
            RedriveError::Backlog(error) => error.into(),
            RedriveError::NotFound => Self::not_found(),
            RedriveError::NotFailed => Self::of(Code::NotFailed, text),
            RedriveError::AlreadyRedriven(request) => {
                Self::of(Code::AlreadyRedriven, text).held_by(request)
            }
            RedriveError::DefinitionNotFound => Self::of(Code::NotFound, text),
            RedriveError::Store(error) => error.into(),
        }
    }
}

impl From<CancelError> for Refusal {
    fn from(error: CancelError) -> Self {
        let text = error.to_string();
        match error {
            CancelError::NotFound => Self::not_found(),
            CancelError::RequestFinished | CancelError::JobFinished => {
                Self::of(Code::AlreadyFinished, text)
            }
            CancelError::JobRunning => Self::of(Code::JobRunning, text),
            CancelError::JobOfGraph => Self::of(Code::JobOfGraph, text),
            CancelError::Store(error) => error.into(),
        }
    }
}

impl From<PublishError> for Refusal {
    fn from(error: PublishError) -> Self {
        let text = error.to_string();
        match error {
            PublishError::DefinitionNotFound => Self::not_found(),
            PublishError::Body(problem) => {
                Self::invalid(format!("/body{}", problem.pointer()), text)
            }
            PublishError::SchemaDocument(problem) => {
                Self::invalid(format!("/params_schema{}", problem.path), said(&problem))
            }
            PublishError::Schema(_) => Self::invalid("/params_schema", text),
            PublishError::Timeout => Self::invalid("/execution_timeout_ms", text),
            PublishError::Store(error) => error.into(),
        }
    }
}

impl From<JobError> for Refusal {
    fn from(error: JobError) -> Self {
        let text = error.to_string();
        match error {
            JobError::Count(_) => Self::invalid("/jobs", text),
            // Every queue is named in the path or in the query.
            JobError::Text { field, problem } if field == "queue" || field.ends_with(".queue") => {
                Self::parameter("queue", problem.to_string())
            }
            JobError::Text { field, problem } => {
                Self::invalid(in_body(&field), problem.to_string())
            }
            JobError::Json { field, problem } => Self::invalid(
                format!("{}{}", in_body(&field), problem.path),
                said(&problem),
            ),
            JobError::Number { ref field, .. } | JobError::Time { ref field, .. } => {
                Self::invalid(in_body(field), text)
            }
            JobError::Store(error) => error.into(),
        }
    }
}

impl From<Refused> for Refusal {
    fn from(refused: Refused) -> Self {
        Self::invalid(pointer(refused.field()), refused.to_string())
    }
}

impl From<WorkspaceError> for Refusal {
    fn from(error: WorkspaceError) -> Self {
        let text = error.to_string();
        match error {
            WorkspaceError::Refused(refused) => refused.into(),
            WorkspaceError::NameTaken(_) => Self::of(Code::NameTaken, text),
            WorkspaceError::NotFound => Self::not_found(),
            WorkspaceError::Store(error) => error.into(),
        }
    }
}

impl From<DefinitionError> for Refusal {
    fn from(error: DefinitionError) -> Self {
        let text = error.to_string();
        match error {
            DefinitionError::Refused(refused) => refused.into(),
            DefinitionError::NameTaken(_) => Self::of(Code::NameTaken, text),
            DefinitionError::WorkspaceNotFound | DefinitionError::NotFound => Self::not_found(),
            DefinitionError::Store(error) => error.into(),
        }
    }
}

impl From<KeyError> for Refusal {
    fn from(error: KeyError) -> Self {
        match error {
            KeyError::Refused(refused) => refused.into(),
            KeyError::WorkspaceNotFound => Self::of(Code::NotFound, "there is no such workspace"),
            KeyError::NotFound => Self::not_found(),
            KeyError::Random(text) => {
                tracing::error!(error = text, "no key could be made");
                Self::of(Code::Internal, "the server failed; its log says why")
            }
            KeyError::Store(error) => error.into(),
        }
    }
}

/// What is wrong, without the place: the path says that.
fn said(problem: &JsonProblem) -> String {
    problem.kind.to_string()
}

/// A document's own problem, as the body's or a part's.
pub(crate) fn of_json(at: &str, problem: &JsonProblem) -> Refusal {
    match problem.kind {
        JsonProblemKind::Malformed(_) => Refusal::of(Code::MalformedJson, said(problem)),
        _ => Refusal::invalid(format!("{at}{}", problem.path), said(problem)),
    }
}

/// A field of a job, a queue or a claim by its name in the API, which says the unit of a time and has no key within a key.
fn in_body(field: &str) -> String {
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

/// `jobs[3].backoff.base` as `/jobs/3/backoff/base`.
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

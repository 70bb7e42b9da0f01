//! Operations on jobs and queues: validate names, sizes and ranges, then run one store operation. Knows ports only, no database and no HTTP.

use crate::job_quota::{JobQuotaError, JobQuotas};
use crate::replay;
use leasehold_core::job::JobRetry;
use leasehold_core::json::{self, JsonProblem};
use leasehold_core::lease::{LEASE_MAX, LEASE_MIN};
use leasehold_core::limits::{
    DEDUP_KEY_MAX_CHARS, DEDUPE_WINDOW_MAX_DAYS, ENQUEUE_MAX_JOBS, JOB_WAIT_MAX_DAYS,
    MAX_ATTEMPTS_MAX, PAYLOAD_MAX_BYTES, PRIORITY_RANGE, QUEUE_NAME_MAX_CHARS, RUNNING_MAX,
    TRACE_CONTEXT_MAX_CHARS,
};
use leasehold_core::queue::check_user_queue;
use leasehold_core::retry::Backoff;
use leasehold_core::text::{self, TextProblem};
use leasehold_core::{JsonText, WorkspaceId};
use leasehold_store::job::{EnqueuedJob, JobStart, NewJob};
use leasehold_store::key::Key;
use leasehold_store::queue::{Queue, QueueChange};
use leasehold_store::{Actor, Store, Turns};
use std::time::Duration;
use thiserror::Error;

/// Why an operation on a job or queue failed.
#[derive(Debug, Error)]
pub enum JobOperationError {
    /// No job, or too many.
    #[error("an enqueue call takes 1 to {ENQUEUE_MAX_JOBS} jobs, not {0}")]
    Count(usize),
    /// A payload is invalid.
    #[error("{field}: {problem}")]
    Json {
        /// The field.
        field: String,
        /// The problem and its location.
        problem: JsonProblem,
    },
    /// A text is invalid.
    #[error("{field} {problem}")]
    Text {
        /// The field.
        field: String,
        /// The problem.
        problem: TextProblem,
    },
    /// A number is out of range.
    #[error("{field} must be between {min} and {max}, not {given}")]
    Number {
        /// The field.
        field: String,
        /// The lowest allowed.
        min: String,
        /// The highest allowed.
        max: String,
        /// The given value.
        given: String,
    },
    /// A duration is out of range.
    #[error("{field} must be between {} and {}", format_duration(*.min), format_duration(*.max))]
    Time {
        /// The field.
        field: String,
        /// The shortest allowed.
        min: Duration,
        /// The longest allowed.
        max: Duration,
    },
    /// The quota of the key is exceeded.
    #[error(transparent)]
    Quota(#[from] JobQuotaError),
    /// The graphs of the workspace may not use the queue.
    #[error(
        "queue `{queue}` is not shared with workspace {workspace}; ask an administrator to share it"
    )]
    QueueNotShared {
        /// The queue.
        queue: String,
        /// The workspace.
        workspace: WorkspaceId,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] leasehold_store::Error),
}

const MILLISECOND: Duration = Duration::from_millis(1);

/// The largest factor of a backoff.
const FACTOR_MAX: f64 = 1_000.0;

/// Validates and enqueues all jobs of the call, or none. Results are in the order of `jobs`.
pub async fn enqueue(
    store: &dyn Store,
    jobs: &[NewJob],
) -> Result<Vec<EnqueuedJob>, JobOperationError> {
    check_jobs(jobs).await?;
    Ok(store.job_enqueue(jobs).await?)
}

/// Enqueues like [`enqueue`], if the quota of the key allows all new jobs of the call. A job whose deduplication key is held needs no room; the keys
/// are looked up only if the call does not fit with all its jobs. Jobs that belong to nodes of graphs name their workspaces; the call
/// fails if one of these may not use the queue of the jobs.
pub async fn enqueue_within(
    store: &dyn Store,
    quotas: &JobQuotas,
    key: &Key,
    workspaces: &[WorkspaceId],
    jobs: Vec<NewJob>,
) -> Result<Vec<EnqueuedJob>, JobOperationError> {
    check_shared(store, workspaces, &jobs).await?;
    let admitted = quotas.admit(store, key.id, &key.rights.scope, &jobs);
    match admitted.await {
        Ok(_admission) => enqueue(store, &jobs).await,
        Err(refused @ JobQuotaError::Bytes { .. })
            if jobs.iter().any(|job| job.dedup.is_some()) =>
        {
            replay(store, quotas, key, jobs, refused).await
        }
        Err(error) => Err(error.into()),
    }
}

/// Answers the jobs of a refused call whose deduplication keys are held, and enqueues the others if they fit. The store does not see the former again:
/// if a key is released meanwhile, nothing is inserted without room.
async fn replay(
    store: &dyn Store,
    quotas: &JobQuotas,
    key: &Key,
    jobs: Vec<NewJob>,
    refused: JobQuotaError,
) -> Result<Vec<EnqueuedJob>, JobOperationError> {
    check_jobs(&jobs).await?;
    let replay = replay::of_jobs(&store.job_key_holders(&jobs).await?);
    let jobs = replay::only(jobs, &replay.new_positions());
    if jobs.is_empty() {
        return Ok(replay.with(Vec::new()));
    }
    let added: Vec<&NewJob> = replay::first_uses(&jobs, replay::dedup_key).collect();
    if replay.is_empty() && added.len() == jobs.len() {
        return Err(refused.into());
    }
    let admitted = quotas.admit(store, key.id, &key.rights.scope, added);
    let _admission = admitted.await?;
    Ok(replay.with(store.job_enqueue(&jobs).await?))
}

async fn check_jobs(jobs: &[NewJob]) -> Result<(), JobOperationError> {
    if !(1..=ENQUEUE_MAX_JOBS).contains(&jobs.len()) {
        return Err(JobOperationError::Count(jobs.len()));
    }
    let mut turns = Turns::default();
    for (index, job) in jobs.iter().enumerate() {
        check_job(&Field::of("jobs", index), job)?;
        turns.count(job.payload.as_str().len()).await;
    }
    Ok(())
}

/// Fails if one of these workspaces may not use the queue of the jobs.
async fn check_shared(
    store: &dyn Store,
    workspaces: &[WorkspaceId],
    jobs: &[NewJob],
) -> Result<(), JobOperationError> {
    if let (Some(job), false) = (jobs.first(), workspaces.is_empty()) {
        check_queue_field(&Field::of("jobs", 0), &job.queue)?;
        if let Some(workspace) = store.queue_refused(&job.queue, workspaces).await? {
            return Err(JobOperationError::QueueNotShared {
                queue: job.queue.clone(),
                workspace,
            });
        }
    }
    Ok(())
}

/// Validates and applies a change of a queue, which is created if it does not exist.
pub async fn update_queue(
    store: &dyn Store,
    name: &str,
    change: &QueueChange,
    by: &Actor,
) -> Result<Queue, JobOperationError> {
    let field = Field::default();
    field.name("name", name)?;
    if let Some(Some(limit)) = change.limit {
        field.running("limit", limit)?;
    }
    if let Some(lease) = change.lease {
        field.time("lease", lease, LEASE_MIN, LEASE_MAX)?;
    }
    if let Some(retry) = &change.retry {
        check_retry(&field, retry)?;
    }
    if let Some(Some(timeout)) = change.timeout {
        field.wait("timeout", timeout)?;
    }
    Ok(store.queue_update(name, change, by).await?)
}

/// Returns the retry policy of a queue with these changes applied; none if nothing changes.
pub(crate) async fn changed_retry(
    store: &dyn Store,
    queue: &str,
    max_attempts: Option<u32>,
    backoff: Option<Backoff>,
) -> Result<Option<JobRetry>, JobOperationError> {
    if max_attempts.is_none() && backoff.is_none() {
        return Ok(None);
    }
    let settings = store.queue_get(queue).await?;
    let settings = settings.map(|queue| queue.settings).unwrap_or_default();
    Ok(Some(settings.retry_of(max_attempts, backoff)))
}

/// Validates the name of a queue.
pub fn check_queue(name: &str) -> Result<(), JobOperationError> {
    Field::default().name("queue", name)
}

/// Validates the name of a queue that users may create and claim from.
pub(crate) fn check_queue_field(field: &Field, name: &str) -> Result<(), JobOperationError> {
    check_user_queue(name).map_err(|problem| JobOperationError::Text {
        field: field.named("queue"),
        problem,
    })
}

/// Validates and sets how many jobs of all queues together may run at once.
pub async fn set_limit(
    store: &dyn Store,
    limit: Option<u32>,
    by: &Actor,
) -> Result<(), JobOperationError> {
    if let Some(limit) = limit {
        Field::default().running("limit", limit)?;
    }
    Ok(store.job_limit_set(limit, by).await?)
}

fn check_job(field: &Field, job: &NewJob) -> Result<(), JobOperationError> {
    check_queue_field(field, &job.queue)?;
    field.name("kind", &job.kind)?;
    field.json("payload", &job.payload)?;
    field.number(
        "priority",
        job.priority,
        *PRIORITY_RANGE.start(),
        *PRIORITY_RANGE.end(),
    )?;
    if let JobStart::In(wait) = job.start {
        field.time("start", wait, Duration::ZERO, days(JOB_WAIT_MAX_DAYS))?;
    }
    if let Some(max_attempts) = job.max_attempts {
        field.number("max_attempts", max_attempts, 1, MAX_ATTEMPTS_MAX)?;
    }
    if let Some(backoff) = &job.backoff {
        check_backoff(field, backoff)?;
    }
    if let Some(timeout) = job.timeout {
        field.wait("timeout", timeout)?;
    }
    if let Some(dedup) = &job.dedup {
        field.text("dedup.key", &dedup.key, DEDUP_KEY_MAX_CHARS)?;
        if let Some(window) = dedup.window {
            let longest = days(DEDUPE_WINDOW_MAX_DAYS);
            field.time("dedup.window", window, MILLISECOND, longest)?;
        }
    }
    if let Some(trace) = &job.trace_context {
        field.text("trace_context", trace, TRACE_CONTEXT_MAX_CHARS)?;
    }
    Ok(())
}

fn check_retry(field: &Field, retry: &JobRetry) -> Result<(), JobOperationError> {
    field.number("max_attempts", retry.max_attempts, 1, MAX_ATTEMPTS_MAX)?;
    check_backoff(field, &retry.backoff)
}

fn check_backoff(field: &Field, backoff: &Backoff) -> Result<(), JobOperationError> {
    field.number("backoff.factor", backoff.factor, 1.0, FACTOR_MAX)?;
    field.number("backoff.jitter", backoff.jitter, 0.0, 1.0)?;
    let longest = days(JOB_WAIT_MAX_DAYS);
    field.time("backoff.base", backoff.base, Duration::ZERO, longest)?;
    field.time("backoff.max", backoff.max, backoff.base, longest)
}

fn days(n: u32) -> Duration {
    Duration::from_secs(u64::from(n) * 86_400)
}

/// Formats a duration for an error message.
fn format_duration(time: Duration) -> String {
    match time.as_secs() / 86_400 {
        0 if time.is_zero() => "0s".to_owned(),
        0 => format!("{time:?}"),
        1 => "1 day".to_owned(),
        days => format!("{days} days"),
    }
}

/// The location of a value in a call, for error messages.
#[derive(Default)]
pub(crate) struct Field {
    entry: Option<(&'static str, usize)>,
}

impl Field {
    /// Creates the location of an entry of a list.
    pub(crate) fn of(list: &'static str, index: usize) -> Self {
        Self {
            entry: Some((list, index)),
        }
    }

    fn named(&self, name: &str) -> String {
        match self.entry {
            Some((list, index)) => format!("{list}[{index}].{name}"),
            None => name.to_owned(),
        }
    }

    fn name(&self, field: &str, value: &str) -> Result<(), JobOperationError> {
        self.text(field, value, QUEUE_NAME_MAX_CHARS)
    }

    pub(crate) fn json(&self, field: &str, value: &JsonText) -> Result<(), JobOperationError> {
        let checked = json::check_text(value.as_str(), PAYLOAD_MAX_BYTES);
        checked.map_err(|problem| JobOperationError::Json {
            field: self.named(field),
            problem,
        })
    }

    pub(crate) fn text(
        &self,
        field: &str,
        value: &str,
        max: usize,
    ) -> Result<(), JobOperationError> {
        text::check(value, max).map_err(|problem| JobOperationError::Text {
            field: self.named(field),
            problem,
        })
    }

    /// Checks only the length of a text.
    pub(crate) fn long_text(
        &self,
        field: &str,
        value: &str,
        max: usize,
    ) -> Result<(), JobOperationError> {
        let actual = value.chars().count();
        if actual <= max {
            return Ok(());
        }
        Err(JobOperationError::Text {
            field: self.named(field),
            problem: TextProblem::TooLong { max, actual },
        })
    }

    fn running(&self, field: &str, limit: u32) -> Result<(), JobOperationError> {
        self.number(field, limit, 0, RUNNING_MAX)
    }

    pub(crate) fn number<T: PartialOrd + ToString>(
        &self,
        field: &str,
        given: T,
        min: T,
        max: T,
    ) -> Result<(), JobOperationError> {
        // Written so that NaN is rejected too.
        if given >= min && given <= max {
            return Ok(());
        }
        Err(JobOperationError::Number {
            field: self.named(field),
            min: min.to_string(),
            max: max.to_string(),
            given: given.to_string(),
        })
    }

    fn wait(&self, field: &str, given: Duration) -> Result<(), JobOperationError> {
        self.time(field, given, MILLISECOND, days(JOB_WAIT_MAX_DAYS))
    }

    pub(crate) fn time(
        &self,
        field: &str,
        given: Duration,
        min: Duration,
        max: Duration,
    ) -> Result<(), JobOperationError> {
        if (min..=max).contains(&given) {
            return Ok(());
        }
        Err(JobOperationError::Time {
            field: self.named(field),
            min,
            max,
        })
    }
}

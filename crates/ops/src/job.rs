//! Jobs and queues: names, sizes and ranges are checked, then one store operation. Knows ports only, no database and no HTTP.

use leasehold_core::JsonText;
use leasehold_core::job::JobRetry;
use leasehold_core::json::{self, JsonProblem};
use leasehold_core::lease::{LEASE_MAX, LEASE_MIN};
use leasehold_core::limits::{
    DEDUP_KEY_MAX_CHARS, DEDUPE_WINDOW_MAX_DAYS, ENQUEUE_MAX_JOBS, JOB_WAIT_MAX_DAYS,
    MAX_ATTEMPTS_MAX, PAYLOAD_MAX_BYTES, PRIORITY_RANGE, QUEUE_NAME_MAX_CHARS, RUNNING_MAX,
    TRACE_CONTEXT_MAX_CHARS,
};
use leasehold_core::queue::check_open;
use leasehold_core::retry::Backoff;
use leasehold_core::text::{self, TextProblem};
use leasehold_store::Store;
use leasehold_store::job::{EnqueuedJob, JobStart, NewJob};
use leasehold_store::queue::{Queue, QueueChange};
use std::time::Duration;
use thiserror::Error;

/// What is wrong with a job or a queue that someone asked for.
#[derive(Debug, Error)]
pub enum JobError {
    /// No job, or too many.
    #[error("an enqueue call takes 1 to {ENQUEUE_MAX_JOBS} jobs, not {0}")]
    Count(usize),
    /// A payload that cannot be kept.
    #[error("{field}: {problem}")]
    Json {
        /// Which one.
        field: String,
        /// What is wrong, and where in it.
        problem: JsonProblem,
    },
    /// A text that is not acceptable.
    #[error("{field} {problem}")]
    Text {
        /// Which one.
        field: String,
        /// What is wrong with it.
        problem: TextProblem,
    },
    /// A number out of range.
    #[error("{field} must be between {min} and {max}, not {given}")]
    Number {
        /// Which one.
        field: String,
        /// The lowest allowed.
        min: String,
        /// The highest allowed.
        max: String,
        /// What was given.
        given: String,
    },
    /// A time that is too short or too long.
    #[error("{field} must be between {} and {}", shown(*.min), shown(*.max))]
    Time {
        /// Which one.
        field: String,
        /// The shortest allowed.
        min: Duration,
        /// The longest allowed.
        max: Duration,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] leasehold_store::Error),
}

const MILLISECOND: Duration = Duration::from_millis(1);

/// How much a backoff may grow with each failure.
const FACTOR_MAX: f64 = 1_000.0;

/// Checks and puts in all jobs of the call, or none. Answers are in the order asked.
pub async fn enqueue(store: &dyn Store, jobs: &[NewJob]) -> Result<Vec<EnqueuedJob>, JobError> {
    if !(1..=ENQUEUE_MAX_JOBS).contains(&jobs.len()) {
        return Err(JobError::Count(jobs.len()));
    }
    for (index, job) in jobs.iter().enumerate() {
        check_job(&Field::of("jobs", index), job)?;
    }
    Ok(store.job_enqueue(jobs).await?)
}

/// Checks and makes a change of a queue, which is made if it is not there.
pub async fn update_queue(
    store: &dyn Store,
    name: &str,
    change: &QueueChange,
) -> Result<Queue, JobError> {
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
    Ok(store.queue_update(name, change).await?)
}

/// How a queue's jobs are tried again if only this much of it is to change; none if nothing is.
pub(crate) async fn changed_retry(
    store: &dyn Store,
    queue: &str,
    max_attempts: Option<u32>,
    backoff: Option<Backoff>,
) -> Result<Option<JobRetry>, JobError> {
    if max_attempts.is_none() && backoff.is_none() {
        return Ok(None);
    }
    let settings = store.queue_get(queue).await?;
    let settings = settings.map(|queue| queue.settings).unwrap_or_default();
    Ok(Some(settings.retry_of(max_attempts, backoff)))
}

/// Checks the name of a queue.
pub fn check_queue(name: &str) -> Result<(), JobError> {
    Field::default().name("queue", name)
}

/// Checks the name of a queue that somebody else than Leasehold works with.
pub(crate) fn check_open_queue(field: &Field, name: &str) -> Result<(), JobError> {
    check_open(name).map_err(|problem| JobError::Text {
        field: field.named("queue"),
        problem,
    })
}

/// Checks and sets how many jobs of all queues together may run at once.
pub async fn set_limit(store: &dyn Store, limit: Option<u32>) -> Result<(), JobError> {
    if let Some(limit) = limit {
        Field::default().running("limit", limit)?;
    }
    Ok(store.job_limit_set(limit).await?)
}

fn check_job(field: &Field, job: &NewJob) -> Result<(), JobError> {
    check_open_queue(field, &job.queue)?;
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

fn check_retry(field: &Field, retry: &JobRetry) -> Result<(), JobError> {
    field.number("max_attempts", retry.max_attempts, 1, MAX_ATTEMPTS_MAX)?;
    check_backoff(field, &retry.backoff)
}

fn check_backoff(field: &Field, backoff: &Backoff) -> Result<(), JobError> {
    field.number("backoff.factor", backoff.factor, 1.0, FACTOR_MAX)?;
    field.number("backoff.jitter", backoff.jitter, 0.0, 1.0)?;
    let longest = days(JOB_WAIT_MAX_DAYS);
    field.time("backoff.base", backoff.base, Duration::ZERO, longest)?;
    field.time("backoff.max", backoff.max, backoff.base, longest)
}

fn days(n: u32) -> Duration {
    Duration::from_secs(u64::from(n) * 86_400)
}

/// A time as people read it.
fn shown(time: Duration) -> String {
    match time.as_secs() / 86_400 {
        0 if time.is_zero() => "0s".to_owned(),
        0 => format!("{time:?}"),
        1 => "1 day".to_owned(),
        days => format!("{days} days"),
    }
}

/// Where in a call a value stands, to be named when it is refused.
#[derive(Default)]
pub(crate) struct Field {
    entry: Option<(&'static str, usize)>,
}

impl Field {
    /// In an entry of a list.
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

    fn name(&self, field: &str, value: &str) -> Result<(), JobError> {
        self.text(field, value, QUEUE_NAME_MAX_CHARS)
    }

    pub(crate) fn json(&self, field: &str, value: &JsonText) -> Result<(), JobError> {
        let read = json::parse(value.as_str().as_bytes(), PAYLOAD_MAX_BYTES);
        read.map(drop).map_err(|problem| JobError::Json {
            field: self.named(field),
            problem,
        })
    }

    pub(crate) fn text(&self, field: &str, value: &str, max: usize) -> Result<(), JobError> {
        text::check(value, max).map_err(|problem| JobError::Text {
            field: self.named(field),
            problem,
        })
    }

    /// A text of which only the length matters.
    pub(crate) fn long_text(&self, field: &str, value: &str, max: usize) -> Result<(), JobError> {
        let actual = value.chars().count();
        if actual <= max {
            return Ok(());
        }
        Err(JobError::Text {
            field: self.named(field),
            problem: TextProblem::TooLong { max, actual },
        })
    }

    fn running(&self, field: &str, limit: u32) -> Result<(), JobError> {
        self.number(field, limit, 0, RUNNING_MAX)
    }

    pub(crate) fn number<T: PartialOrd + ToString>(
        &self,
        field: &str,
        given: T,
        min: T,
        max: T,
    ) -> Result<(), JobError> {
        // Written so that a number that is none is refused too.
        if given >= min && given <= max {
            return Ok(());
        }
        Err(JobError::Number {
            field: self.named(field),
            min: min.to_string(),
            max: max.to_string(),
            given: given.to_string(),
        })
    }

    fn wait(&self, field: &str, given: Duration) -> Result<(), JobError> {
        self.time(field, given, MILLISECOND, days(JOB_WAIT_MAX_DAYS))
    }

    pub(crate) fn time(
        &self,
        field: &str,
        given: Duration,
        min: Duration,
        max: Duration,
    ) -> Result<(), JobError> {
        if (min..=max).contains(&given) {
            return Ok(());
        }
        Err(JobError::Time {
            field: self.named(field),
            min,
            max,
        })
    }
}

//! What a handler returns: a result, a snooze, or an error with its retry policy. Knows no job and no store.

use leasehold_core::JsonText;
use leasehold_core::job::{JobEnd, RetryMode, bounded_wait};
use leasehold_core::limits::PAYLOAD_MAX_BYTES;
use serde::Serialize;
use std::error::Error;
use std::fmt;
use std::time::Duration;

/// The outcome of a handler that did not fail.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// The job is completed.
    Done {
        /// The result, if any.
        result: Option<JsonText>,
    },
    /// The job runs again after this wait; this run does not count as an attempt.
    Snooze(Duration),
}

impl Outcome {
    /// Completes the job with this result.
    ///
    /// # Errors
    /// Fails if the result does not serialize to JSON.
    pub fn done<T: Serialize + ?Sized>(result: &T) -> Result<Self, JobError> {
        let text = JsonText::of(result).map_err(|error| {
            JobError::permanent(format!("failed to serialize the result to JSON: {error}"))
        })?;
        Ok(Self::Done {
            // A handler without a result returns null.
            result: (text.as_str() != "null").then_some(text),
        })
    }

    /// Runs the job again after this wait.
    pub fn snooze(wait: Duration) -> Self {
        Self::Snooze(wait)
    }
}

/// What a handler may return: an [`Outcome`], or a value that serializes to JSON and becomes the result.
pub trait IntoOutcome {
    /// Converts the value.
    ///
    /// # Errors
    /// Fails if the result does not serialize to JSON.
    fn into_outcome(self) -> Result<Outcome, JobError>;
}

impl IntoOutcome for Outcome {
    fn into_outcome(self) -> Result<Outcome, JobError> {
        Ok(self)
    }
}

impl<T: Serialize> IntoOutcome for T {
    fn into_outcome(self) -> Result<Outcome, JobError> {
        Outcome::done(&self)
    }
}

/// Why an attempt failed, and whether the job is retried.
///
/// `?` converts every error into one; the job's retry policy then decides.
#[derive(Clone, PartialEq, Eq)]
pub struct JobError {
    message: String,
    retry_mode: RetryMode,
}

impl JobError {
    /// Creates an error that is retried by the job's retry policy.
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            retry_mode: RetryMode::Policy,
        }
    }

    /// Creates an error that fails the job permanently.
    pub fn permanent(message: impl Into<String>) -> Self {
        Self::new(message).permanently()
    }

    /// Creates an error that is retried after this wait, unless no attempts are left.
    pub fn retry_after(wait: Duration, message: impl Into<String>) -> Self {
        Self {
            retry_mode: RetryMode::After(bounded_wait(wait)),
            ..Self::new(message)
        }
    }

    /// Makes the error permanent.
    #[must_use]
    pub fn permanently(self) -> Self {
        Self {
            retry_mode: RetryMode::Never,
            ..self
        }
    }

    /// Returns the error's text.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Returns whether and when the job is retried.
    pub fn retry_mode(&self) -> RetryMode {
        self.retry_mode
    }
}

impl fmt::Debug for JobError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (retry: {:?})", self.message, self.retry_mode)
    }
}

impl<E: Into<Box<dyn Error + Send + Sync>>> From<E> for JobError {
    /// Joins the texts of the error and its causes.
    fn from(error: E) -> Self {
        let error = error.into();
        let mut message = error.to_string();
        let mut cause = error.source();
        while let Some(error) = cause {
            let text = error.to_string();
            // Some errors repeat their cause in their own text.
            if !message.contains(&text) {
                message.push_str(": ");
                message.push_str(&text);
            }
            cause = error.source();
        }
        Self::new(message)
    }
}

/// Converts a handler's return value to the end of its claim.
pub(crate) fn end(returned: Result<Outcome, JobError>) -> JobEnd {
    match returned {
        Ok(Outcome::Done { result: Some(text) }) if text.as_str().len() > PAYLOAD_MAX_BYTES => {
            let bytes = text.as_str().len();
            let message =
                format!("the result has {bytes} bytes of JSON, the limit is {PAYLOAD_MAX_BYTES}");
            // A retry would return the same result.
            failed(JobError::permanent(message))
        }
        Ok(Outcome::Done { result }) => JobEnd::Completed { result },
        Ok(Outcome::Snooze(wait)) => JobEnd::Snoozed(bounded_wait(wait)),
        Err(error) => failed(error),
    }
}

/// Converts an error to the end of a claim.
pub(crate) fn failed(error: JobError) -> JobEnd {
    JobEnd::Failed {
        error: error.message,
        retry_mode: error.retry_mode,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unit_is_no_result_and_other_values_are() {
        assert_eq!(().into_outcome().unwrap(), Outcome::Done { result: None });
        let Outcome::Done { result: Some(text) } = vec![1, 2].into_outcome().unwrap() else {
            panic!("no result");
        };
        assert_eq!(text.as_str(), "[1,2]");
    }

    #[test]
    fn error_text_contains_each_cause_once() {
        #[derive(Debug, thiserror::Error)]
        #[error("the letter was not sent")]
        struct SendError(#[source] std::io::Error);
        let error = JobError::from(SendError(std::io::Error::other("no stamp")));
        assert_eq!(error.message(), "the letter was not sent: no stamp");
        assert_eq!(error.retry_mode(), RetryMode::Policy);
        assert_eq!(
            JobError::from("no").permanently().retry_mode(),
            RetryMode::Never
        );
    }

    #[test]
    fn too_large_result_fails_permanently() {
        let end = end("x".repeat(PAYLOAD_MAX_BYTES).into_outcome());
        let JobEnd::Failed { error, retry_mode } = end else {
            panic!("accepted");
        };
        assert!(error.contains("bytes of JSON"), "{error}");
        assert_eq!(retry_mode, RetryMode::Never);
    }
}

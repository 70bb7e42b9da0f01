//! What a handler answers: done with a result, later, or an error that says whether to try again. Knows no job and no store.

use leasehold_core::JsonText;
use leasehold_core::job::{Again, JobEnd, bounded_wait};
use leasehold_core::limits::PAYLOAD_MAX_BYTES;
use serde::Serialize;
use std::error::Error;
use std::fmt;
use std::time::Duration;

/// How a handler ended without an error.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// The job is completed.
    Done {
        /// What it came to, if anything.
        result: Option<JsonText>,
    },
    /// Not now: again after so long, and this was no attempt.
    Snooze(Duration),
}

impl Outcome {
    /// Completed, with this result.
    ///
    /// # Errors
    /// If the result cannot be written as JSON.
    pub fn done<T: Serialize + ?Sized>(result: &T) -> Result<Self, JobError> {
        let text = JsonText::of(result)
            .map_err(|error| JobError::permanent(format!("the result is no JSON: {error}")))?;
        Ok(Self::Done {
            // Null is what a handler without a result answers.
            result: (text.as_str() != "null").then_some(text),
        })
    }

    /// Not now, but after so long.
    pub fn snooze(wait: Duration) -> Self {
        Self::Snooze(wait)
    }
}

/// What a handler may answer: an [`Outcome`], or anything that can be written as JSON, which is the result then.
pub trait IntoOutcome {
    /// What it means.
    ///
    /// # Errors
    /// If the result cannot be written as JSON.
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

/// Why an attempt failed, and whether the job is tried again.
///
/// Every error can become one by `?`; it is then tried again as the job's retry policy says.
#[derive(Clone, PartialEq, Eq)]
pub struct JobError {
    message: String,
    again: Again,
}

impl JobError {
    /// Tried again as the job's retry policy says.
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            again: Again::Policy,
        }
    }

    /// Not tried again.
    pub fn permanent(message: impl Into<String>) -> Self {
        Self::new(message).permanently()
    }

    /// Tried again after so long, unless its attempts are used up.
    pub fn retry_after(wait: Duration, message: impl Into<String>) -> Self {
        Self {
            again: Again::After(bounded_wait(wait)),
            ..Self::new(message)
        }
    }

    /// The same, but not tried again.
    #[must_use]
    pub fn permanently(self) -> Self {
        Self {
            again: Again::Never,
            ..self
        }
    }

    /// What went wrong.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Whether the job is tried again.
    pub fn again(&self) -> Again {
        self.again
    }
}

impl fmt::Debug for JobError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (again: {:?})", self.message, self.again)
    }
}

impl<E: Into<Box<dyn Error + Send + Sync>>> From<E> for JobError {
    /// The error and all that caused it.
    fn from(error: E) -> Self {
        let error = error.into();
        let mut message = error.to_string();
        let mut cause = error.source();
        while let Some(error) = cause {
            let said = error.to_string();
            // Some errors repeat their cause in their own text.
            if !message.contains(&said) {
                message.push_str(": ");
                message.push_str(&said);
            }
            cause = error.source();
        }
        Self::new(message)
    }
}

/// How a claim ended whose handler answered this.
pub(crate) fn end(answer: Result<Outcome, JobError>) -> JobEnd {
    match answer {
        Ok(Outcome::Done { result: Some(text) }) if text.as_str().len() > PAYLOAD_MAX_BYTES => {
            let bytes = text.as_str().len();
            let message = format!(
                "the result has {bytes} bytes of JSON, more than {PAYLOAD_MAX_BYTES} are not kept"
            );
            // The work is done; doing it again would bring the same.
            failed(JobError::permanent(message))
        }
        Ok(Outcome::Done { result }) => JobEnd::Completed { result },
        Ok(Outcome::Snooze(wait)) => JobEnd::Snoozed(bounded_wait(wait)),
        Err(error) => failed(error),
    }
}

/// A failed attempt.
pub(crate) fn failed(error: JobError) -> JobEnd {
    JobEnd::Failed {
        error: error.message,
        again: error.again,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_no_result_and_anything_else_is_one() {
        assert_eq!(().into_outcome().unwrap(), Outcome::Done { result: None });
        let Outcome::Done { result: Some(text) } = vec![1, 2].into_outcome().unwrap() else {
            panic!("no result");
        };
        assert_eq!(text.as_str(), "[1,2]");
    }

    #[test]
    fn an_error_tells_its_causes_once() {
        #[derive(Debug, thiserror::Error)]
        #[error("the letter was not sent")]
        struct Unsent(#[source] std::io::Error);
        let error = JobError::from(Unsent(std::io::Error::other("no stamp")));
        assert_eq!(error.message(), "the letter was not sent: no stamp");
        assert_eq!(error.again(), Again::Policy);
        assert_eq!(JobError::from("no").permanently().again(), Again::Never);
    }

    #[test]
    fn a_result_that_is_too_large_fails_for_good() {
        let end = end("x".repeat(PAYLOAD_MAX_BYTES).into_outcome());
        let JobEnd::Failed { error, again } = end else {
            panic!("kept");
        };
        assert!(error.contains("bytes of JSON"), "{error}");
        assert_eq!(again, Again::Never);
    }
}

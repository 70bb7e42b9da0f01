//! The errors of a call, and whether a retry may succeed.

use leasehold_api::{Code, Problem};
use std::time::Duration;
use thiserror::Error;

/// The result of a call.
pub type Result<T, E = ClientError> = std::result::Result<T, E>;

/// Why a call failed.
#[derive(Debug, Error)]
pub enum ClientError {
    /// The server rejected the call with a problem document.
    #[error("{0}")]
    Problem(Box<Problem>),
    /// The connection failed, broke or timed out. The call may have taken effect.
    #[error("failed to reach the server: {0}")]
    Unreachable(String),
    /// The response is not from a Leasehold server, or from one with another API version.
    #[error("unexpected response: {0}")]
    Unexpected(String),
    /// The address, the key or the certificate is invalid.
    #[error("{0}")]
    Setup(String),
}

impl ClientError {
    /// Whether the same call may succeed later.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Problem(problem) => match problem.code {
                Code::BodyTooSlow
                | Code::RateLimited
                | Code::TooManyStreams
                | Code::StoreUnavailable
                | Code::EngineUnavailable
                | Code::Overloaded
                | Code::DeadlineExceeded => true,
                // Waiting frees some quotas only; the server then says how long to wait.
                Code::BacklogFull | Code::QuotaExceeded => problem.retry_after.is_some(),
                _ => false,
            },
            Self::Unreachable(_) => true,
            Self::Unexpected(_) | Self::Setup(_) => false,
        }
    }

    /// Returns the problem code, if the server sent one.
    pub fn code(&self) -> Option<Code> {
        match self {
            Self::Problem(problem) => Some(problem.code),
            Self::Unreachable(_) | Self::Unexpected(_) | Self::Setup(_) => None,
        }
    }

    /// Returns how long the server asks to wait before a retry.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Problem(problem) => problem.retry_after.map(Duration::from_secs),
            Self::Unreachable(_) | Self::Unexpected(_) | Self::Setup(_) => None,
        }
    }
}

/// Converts an error of the HTTP library. Omits the URL, which may contain secrets.
pub(crate) fn unreachable(error: reqwest::Error) -> ClientError {
    use std::error::Error as _;
    let error = error.without_url();
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        text = format!("{text}: {inner}");
        cause = inner.source();
    }
    if error.is_decode() {
        ClientError::Unexpected(text)
    } else {
        ClientError::Unreachable(text)
    }
}

//! What can go wrong with a call, and whether the same call may succeed later.

use leasehold_api::{Code, Problem};
use std::time::Duration;
use thiserror::Error;

/// The result of a call.
pub type Result<T, E = ClientError> = std::result::Result<T, E>;

/// Why a call did not succeed.
#[derive(Debug, Error)]
pub enum ClientError {
    /// The server refused it, and said why.
    #[error("{0}")]
    Problem(Box<Problem>),
    /// There was no connection, or it was lost, or the answer did not come in time. Whether the call was carried out is not known.
    #[error("the server cannot be reached: {0}")]
    Unreachable(String),
    /// Something answered that is not Leasehold, or speaks another version of its API.
    #[error("unexpected answer: {0}")]
    Unexpected(String),
    /// The address, the key or the certificate cannot be used.
    #[error("{0}")]
    Setup(String),
}

impl ClientError {
    /// Whether the same call may succeed later without anybody changing it.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Problem(problem) => matches!(
                problem.code,
                Code::BodyTooSlow
                    | Code::RateLimited
                    | Code::BacklogFull
                    | Code::TooManyStreams
                    | Code::StoreUnavailable
                    | Code::EngineUnavailable
                    | Code::Overloaded
                    | Code::DeadlineExceeded
            ),
            Self::Unreachable(_) => true,
            Self::Unexpected(_) | Self::Setup(_) => false,
        }
    }

    /// The code of the problem, if the server named one.
    pub fn code(&self) -> Option<Code> {
        match self {
            Self::Problem(problem) => Some(problem.code),
            Self::Unreachable(_) | Self::Unexpected(_) | Self::Setup(_) => None,
        }
    }

    /// How long the server asks to wait before the next try.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Problem(problem) => problem.retry_after.map(Duration::from_secs),
            Self::Unreachable(_) | Self::Unexpected(_) | Self::Setup(_) => None,
        }
    }
}

/// An error of the HTTP library, without the address: it may hold what is nobody's business.
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

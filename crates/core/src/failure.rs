//! Why a request ended FAILED.

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The closed list of reasons a FAILED request carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureReason {
    /// The engine refused the start as often as is tried.
    DispatchExhausted,
    /// The workspace was gone when the request's turn came.
    WorkspaceNotFound,
    /// The definition was gone when the request's turn came.
    DefinitionNotFound,
    /// The pinned version was gone when the request's turn came.
    VersionNotFound,
    /// The execution itself failed.
    ExecutionFailed,
    /// The engine timed the execution out.
    TimedOut,
    /// Someone terminated the execution.
    Terminated,
    /// Someone cancelled the request or its execution.
    Cancelled,
    /// The engine no longer knows the execution.
    EngineLost,
}

/// A name that is no reason's.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("unknown failure reason `{0}`")]
pub struct UnknownFailureReason(pub String);

impl FailureReason {
    /// Every reason.
    pub const ALL: [FailureReason; 9] = [
        Self::DispatchExhausted,
        Self::WorkspaceNotFound,
        Self::DefinitionNotFound,
        Self::VersionNotFound,
        Self::ExecutionFailed,
        Self::TimedOut,
        Self::Terminated,
        Self::Cancelled,
        Self::EngineLost,
    ];

    /// The reason's name, as stored and shown.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::DispatchExhausted => "dispatch_exhausted",
            Self::WorkspaceNotFound => "workspace_not_found",
            Self::DefinitionNotFound => "definition_not_found",
            Self::VersionNotFound => "version_not_found",
            Self::ExecutionFailed => "execution_failed",
            Self::TimedOut => "timed_out",
            Self::Terminated => "terminated",
            Self::Cancelled => "cancelled",
            Self::EngineLost => "engine_lost",
        }
    }
}

impl std::str::FromStr for FailureReason {
    type Err = UnknownFailureReason;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|reason| reason.as_str() == text)
            .ok_or_else(|| UnknownFailureReason(text.to_owned()))
    }
}

impl std::fmt::Display for FailureReason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back_and_agree_with_json() {
        for reason in FailureReason::ALL {
            assert_eq!(reason.as_str().parse(), Ok(reason));
            assert_eq!(serde_json::to_value(reason).unwrap(), reason.as_str());
        }
        assert!("gone".parse::<FailureReason>().is_err());
    }
}

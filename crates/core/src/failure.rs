//! The reasons why a request ended FAILED.

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The failure reason of a FAILED request. A new one needs a variant, an entry in `ALL` and a name in `as_str`. If a PENDING request can fail with it, it also
/// needs a migration in each store: a trigger lists the allowed transitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureReason {
    /// The engine rejected the start `max_attempts` times.
    DispatchExhausted,
    /// The workspace was deleted before the request was admitted.
    WorkspaceNotFound,
    /// The definition was deleted before the request was admitted.
    DefinitionNotFound,
    /// The pinned version was deleted before the request was admitted.
    VersionNotFound,
    /// The execution itself failed.
    ExecutionFailed,
    /// The execution timed out.
    TimedOut,
    /// The execution was terminated.
    Terminated,
    /// The request or its execution was cancelled.
    Cancelled,
    /// The engine no longer knows the execution.
    EngineLost,
    /// Computing the input of the request crashed the server again and again.
    Poisoned,
}

/// A name that no reason has.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("unknown failure reason `{0}`")]
pub struct UnknownFailureReason(pub String);

impl FailureReason {
    /// Every reason.
    pub const ALL: [FailureReason; 10] = [
        Self::DispatchExhausted,
        Self::WorkspaceNotFound,
        Self::DefinitionNotFound,
        Self::VersionNotFound,
        Self::ExecutionFailed,
        Self::TimedOut,
        Self::Terminated,
        Self::Cancelled,
        Self::EngineLost,
        Self::Poisoned,
    ];

    /// Returns the name, as stored and shown.
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
            Self::Poisoned => "poisoned",
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
    fn names_parse_back_and_match_json() {
        for reason in FailureReason::ALL {
            assert_eq!(reason.as_str().parse(), Ok(reason));
            assert_eq!(serde_json::to_value(reason).unwrap(), reason.as_str());
        }
        assert!("gone".parse::<FailureReason>().is_err());
    }
}

//! The status of an execution, and what its end means for its request.

use crate::crash::Crashes;
use crate::failure::FailureReason;
use crate::request::RequestEvent;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The status of an execution. A RUNNING execution holds a slot of its workspace; no other execution does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum ExecutionStatus {
    /// Admitted: being started, or running in the engine.
    Running,
    /// It ended successfully.
    Completed,
    /// It failed, timed out, was terminated or got lost.
    Failed,
    /// It was cancelled.
    Cancelled,
}

/// How an execution ended, as the engine reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExecutionEnd {
    /// It completed.
    Completed,
    /// It failed.
    Failed,
    /// Its timeout passed.
    TimedOut,
    /// It was cancelled.
    Cancelled,
    /// It was terminated.
    Terminated,
    /// The engine no longer knows it.
    Lost,
}

/// A name that no status has.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("unknown execution status `{0}`")]
pub struct UnknownExecutionStatus(pub String);

impl ExecutionStatus {
    /// Every status.
    pub const ALL: [ExecutionStatus; 4] = [
        Self::Running,
        Self::Completed,
        Self::Failed,
        Self::Cancelled,
    ];

    /// Returns the status after `end`; a final status does not change.
    pub const fn after(self, end: ExecutionEnd) -> ExecutionStatus {
        match (self, end) {
            (Self::Running, ExecutionEnd::Completed) => Self::Completed,
            (
                Self::Running,
                ExecutionEnd::Failed
                | ExecutionEnd::TimedOut
                | ExecutionEnd::Terminated
                | ExecutionEnd::Lost,
            ) => Self::Failed,
            (Self::Running, ExecutionEnd::Cancelled) => Self::Cancelled,
            (Self::Completed | Self::Failed | Self::Cancelled, _ended_already) => self,
        }
    }

    /// Returns the name, as stored and shown.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Running => "RUNNING",
            Self::Completed => "COMPLETED",
            Self::Failed => "FAILED",
            Self::Cancelled => "CANCELLED",
        }
    }
}

impl ExecutionEnd {
    /// Every way to end.
    pub const ALL: [ExecutionEnd; 6] = [
        Self::Completed,
        Self::Failed,
        Self::TimedOut,
        Self::Cancelled,
        Self::Terminated,
        Self::Lost,
    ];

    /// Returns the event of the request whose execution ended so.
    pub const fn request_event(self) -> RequestEvent {
        match self {
            Self::Completed => RequestEvent::Complete,
            Self::Failed | Self::TimedOut | Self::Cancelled | Self::Terminated | Self::Lost => {
                RequestEvent::EndFailed
            }
        }
    }

    /// Returns the failure reason of the request, or none if it completed. Leasehold terminates the execution of a poisoned request, and that of a
    /// cancelled one whose start is unknown.
    pub const fn failure_reason_for(
        self,
        crashes: Crashes,
        cancel_requested: bool,
    ) -> Option<FailureReason> {
        match (self, crashes.is_poisoned(), cancel_requested) {
            (Self::Terminated, true, _) => Some(FailureReason::Poisoned),
            (Self::Terminated, false, true) => Some(FailureReason::Cancelled),
            (end, _, _) => end.failure_reason(),
        }
    }

    /// Returns the failure reason of the request, or none if it completed.
    pub const fn failure_reason(self) -> Option<FailureReason> {
        match self {
            Self::Completed => None,
            Self::Failed => Some(FailureReason::ExecutionFailed),
            Self::TimedOut => Some(FailureReason::TimedOut),
            Self::Cancelled => Some(FailureReason::Cancelled),
            Self::Terminated => Some(FailureReason::Terminated),
            Self::Lost => Some(FailureReason::EngineLost),
        }
    }
}

impl ExecutionEnd {
    /// Returns the name, as stored and shown.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::TimedOut => "timed_out",
            Self::Cancelled => "cancelled",
            Self::Terminated => "terminated",
            Self::Lost => "lost",
        }
    }
}

/// A name that no end has.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("unknown end of an execution `{0}`")]
pub struct UnknownExecutionEnd(pub String);

impl std::str::FromStr for ExecutionEnd {
    type Err = UnknownExecutionEnd;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|end| end.as_str() == text)
            .ok_or_else(|| UnknownExecutionEnd(text.to_owned()))
    }
}

impl std::str::FromStr for ExecutionStatus {
    type Err = UnknownExecutionStatus;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|status| status.as_str() == text)
            .ok_or_else(|| UnknownExecutionStatus(text.to_owned()))
    }
}

impl std::fmt::Display for ExecutionStatus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::RequestStatus;

    #[test]
    fn every_end_frees_the_slot_and_finishes_a_dispatched_request() {
        for end in ExecutionEnd::ALL {
            assert_ne!(
                ExecutionStatus::Running.after(end),
                ExecutionStatus::Running
            );
            let request = RequestStatus::Dispatched
                .after(end.request_event())
                .unwrap();
            assert!(request.is_finished());
            assert_eq!(
                request == RequestStatus::Failed,
                end.failure_reason().is_some()
            );
        }
    }

    #[test]
    fn terminated_execution_of_a_poisoned_or_cancelled_request_has_that_reason() {
        let (none, once) = (Crashes::default(), Crashes::default().after(true));
        let poisoned = once.after(true).after(true);
        let end = ExecutionEnd::Terminated;
        let reason = |crashes, cancelled| end.failure_reason_for(crashes, cancelled);
        assert_eq!(reason(none, false), Some(FailureReason::Terminated));
        assert_eq!(reason(once, false), Some(FailureReason::Terminated));
        assert_eq!(reason(once, true), Some(FailureReason::Cancelled));
        assert_eq!(reason(poisoned, false), Some(FailureReason::Poisoned));
        assert_eq!(reason(poisoned, true), Some(FailureReason::Poisoned));
        let completed = ExecutionEnd::Completed.failure_reason_for(poisoned, true);
        assert_eq!(completed, None);
    }

    #[test]
    fn final_status_does_not_change() {
        for status in [
            ExecutionStatus::Completed,
            ExecutionStatus::Failed,
            ExecutionStatus::Cancelled,
        ] {
            for end in ExecutionEnd::ALL {
                assert_eq!(status.after(end), status);
            }
        }
    }

    #[test]
    fn names_parse_back() {
        for status in ExecutionStatus::ALL {
            assert_eq!(status.as_str().parse(), Ok(status));
        }
        for end in ExecutionEnd::ALL {
            assert_eq!(end.as_str().parse(), Ok(end));
            assert_eq!(serde_json::to_value(end).unwrap(), end.as_str());
        }
    }
}

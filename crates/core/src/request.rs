//! The state machine of a request: which event leads from which status to which. No other code decides it.

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The status of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum RequestStatus {
    /// Waits for admission.
    Pending,
    /// Admitted; a dispatcher is starting its execution.
    Claimed,
    /// Its execution runs in the engine.
    Dispatched,
    /// Its execution completed.
    Completed,
    /// It ended otherwise; the failure reason says why.
    Failed,
}

/// An event in the life of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RequestEvent {
    /// A dispatcher admits it.
    Claim,
    /// Its workspace, definition or version was deleted before it was admitted.
    Reject,
    /// A caller cancels it before it is admitted.
    Cancel,
    /// The engine has started its execution.
    Dispatch,
    /// The dispatcher releases the claim.
    Release,
    /// Its lease expired.
    Recover,
    /// The dispatcher fails it.
    Fail,
    /// Its execution completed.
    Complete,
    /// Its execution ended in any other way.
    EndFailed,
}

/// An event that the status does not allow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("a {status} request does not allow {event:?}")]
pub struct IllegalTransition {
    /// The status of the request.
    pub status: RequestStatus,
    /// The rejected event.
    pub event: RequestEvent,
}

/// A name that no status has.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("unknown request status `{0}`")]
pub struct UnknownStatus(pub String);

impl RequestEvent {
    /// Every event.
    pub const ALL: [RequestEvent; 9] = [
        Self::Claim,
        Self::Reject,
        Self::Cancel,
        Self::Dispatch,
        Self::Release,
        Self::Recover,
        Self::Fail,
        Self::Complete,
        Self::EndFailed,
    ];
}

impl RequestStatus {
    /// Every status, in the order of a request's life.
    pub const ALL: [RequestStatus; 5] = [
        Self::Pending,
        Self::Claimed,
        Self::Dispatched,
        Self::Completed,
        Self::Failed,
    ];

    /// Returns the status after `event`, or an error if the status does not allow it.
    pub const fn after(self, event: RequestEvent) -> Result<RequestStatus, IllegalTransition> {
        use RequestEvent as E;
        use RequestStatus as S;
        match (self, event) {
            (S::Pending, E::Claim) => Ok(S::Claimed),
            (S::Pending, E::Reject | E::Cancel) => Ok(S::Failed),
            (S::Claimed, E::Dispatch) => Ok(S::Dispatched),
            (S::Claimed, E::Release | E::Recover) => Ok(S::Pending),
            (S::Claimed, E::Fail) => Ok(S::Failed),
            (S::Dispatched, E::Complete) => Ok(S::Completed),
            (S::Dispatched, E::EndFailed) => Ok(S::Failed),
            (
                S::Pending,
                E::Dispatch | E::Release | E::Recover | E::Fail | E::Complete | E::EndFailed,
            )
            | (S::Claimed, E::Claim | E::Reject | E::Cancel | E::Complete | E::EndFailed)
            | (
                S::Dispatched,
                E::Claim | E::Reject | E::Cancel | E::Dispatch | E::Release | E::Recover | E::Fail,
            )
            | (
                S::Completed | S::Failed,
                E::Claim
                | E::Reject
                | E::Cancel
                | E::Dispatch
                | E::Release
                | E::Recover
                | E::Fail
                | E::Complete
                | E::EndFailed,
            ) => Err(IllegalTransition {
                status: self,
                event,
            }),
        }
    }

    /// Returns whether some event leads from `self` to `to`.
    pub fn may_become(self, to: RequestStatus) -> bool {
        RequestEvent::ALL
            .into_iter()
            .any(|event| self.after(event) == Ok(to))
    }

    /// Returns whether the status is final.
    pub const fn is_finished(self) -> bool {
        match self {
            Self::Completed | Self::Failed => true,
            Self::Pending | Self::Claimed | Self::Dispatched => false,
        }
    }

    /// Returns the name, as stored and shown.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "PENDING",
            Self::Claimed => "CLAIMED",
            Self::Dispatched => "DISPATCHED",
            Self::Completed => "COMPLETED",
            Self::Failed => "FAILED",
        }
    }
}

impl std::str::FromStr for RequestStatus {
    type Err = UnknownStatus;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|status| status.as_str() == text)
            .ok_or_else(|| UnknownStatus(text.to_owned()))
    }
}

impl std::fmt::Display for RequestStatus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use RequestStatus::*;

    #[test]
    fn the_allowed_transitions_are_exactly_these() {
        let mut allowed = Vec::new();
        for from in RequestStatus::ALL {
            for to in RequestStatus::ALL {
                if from.may_become(to) {
                    allowed.push((from, to));
                }
            }
        }
        assert_eq!(
            allowed,
            [
                (Pending, Claimed),
                (Pending, Failed),
                (Claimed, Pending),
                (Claimed, Dispatched),
                (Claimed, Failed),
                (Dispatched, Completed),
                (Dispatched, Failed),
            ]
        );
    }

    #[test]
    fn finished_request_allows_no_event() {
        for status in RequestStatus::ALL.into_iter().filter(|s| s.is_finished()) {
            for event in RequestEvent::ALL {
                assert_eq!(
                    status.after(event),
                    Err(IllegalTransition { status, event })
                );
            }
        }
    }

    #[test]
    fn every_event_is_allowed_in_some_status() {
        for event in RequestEvent::ALL {
            assert!(
                RequestStatus::ALL
                    .into_iter()
                    .any(|s| s.after(event).is_ok()),
                "{event:?}"
            );
        }
    }

    #[test]
    fn documented_state_diagram_matches_the_code() {
        let mut diagram = String::from("stateDiagram-v2\n    [*] --> PENDING: Enqueue\n");
        for from in RequestStatus::ALL {
            for event in RequestEvent::ALL {
                if let Ok(to) = from.after(event) {
                    diagram.push_str(&format!("    {from} --> {to}: {event:?}\n"));
                }
            }
        }
        let page = include_str!("../../../docs/states.md");
        assert!(
            page.contains(&diagram),
            "docs/states.md must contain:\n{diagram}"
        );
    }

    #[test]
    fn names_parse_back() {
        for status in RequestStatus::ALL {
            assert_eq!(status.as_str().parse(), Ok(status));
        }
    }
}

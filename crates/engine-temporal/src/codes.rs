//! What each gRPC code means: the one table, for a start and for every other call. Knows no request, only answers to one.

use crate::connect::{Trouble, explain};
use crate::proto::{NotFoundFailure, RpcStatus};
use leasehold_engine::{Error, StartOutcome};
use prost::Message;
use tonic::{Code, Status};

/// What a code says about a start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StartSays {
    /// It runs.
    Started,
    /// A workflow with its id exists: whose must be found out.
    Exists,
    /// Not started, because of what was asked.
    Refused,
    /// Nobody knows.
    Unknown,
    /// The engine's trouble; something may have been started all the same.
    Unavailable,
    /// The engine's trouble, and the frontend answers so before it does anything.
    UnavailableUntouched,
}

/// What a code says about any other call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallSays {
    /// The engine's trouble.
    Unavailable,
    /// An answer nobody can act on.
    Failed,
}

/// The table. A row is what the code means for a start, then for another call.
pub(crate) const fn says(code: Code) -> (StartSays, CallSays) {
    use CallSays::{Failed, Unavailable as Away};
    use StartSays::{Exists, Refused, Started, Unavailable, UnavailableUntouched, Unknown};
    match code {
        // It was done. No other call brings it here.
        Code::Ok => (Started, Failed),
        // Our own deadline passed, as tonic puts it, or the connection closed with the call on it.
        Code::Cancelled => (Unknown, Away),
        // What tonic makes of a connection that broke, and servers of an error they cannot name.
        Code::Unknown => (Unknown, Away),
        // The frontend checked what was asked and did not pass it on; asking again brings the same.
        Code::InvalidArgument => (Refused, Failed),
        // The server's deadline or ours; history may have written the start before it.
        Code::DeadlineExceeded => (Unknown, Away),
        // Of a start: no such namespace. The frontend looks it up first. Of others: see `is_workflow_not_found`.
        Code::NotFound => (UnavailableUntouched, Away),
        // The id is taken.
        Code::AlreadyExists => (Exists, Failed),
        // The frontend's authoriser answers before anything else does.
        Code::PermissionDenied => (UnavailableUntouched, Away),
        // A limiter; the frontend retries history by itself, and an earlier try may have been the one that worked.
        Code::ResourceExhausted => (Unavailable, Away),
        // The namespace is active elsewhere or being changed; history says so too, perhaps after a try that worked.
        Code::FailedPrecondition => (Unavailable, Away),
        // A conflict inside the server that it gave up on, at a moment we do not know.
        Code::Aborted => (Unknown, Away),
        // No message we send is limited: this is an answer too large to read, so the server acted.
        Code::OutOfRange => (Unknown, Failed),
        // The frontend or a proxy does not know the call: wrong address, or a server too old.
        Code::Unimplemented => (UnavailableUntouched, Away),
        // A server's error at a moment we do not know.
        Code::Internal => (Unknown, Failed),
        // A shard moves, or a part of the server is down; the call was passed on. Without a connection: `NotConnected`.
        Code::Unavailable => (Unavailable, Away),
        // The server cannot read what it wrote, perhaps this start.
        Code::DataLoss => (Unknown, Failed),
        // The key or certificate is not accepted; nothing was looked at.
        Code::Unauthenticated => (UnavailableUntouched, Away),
    }
}

/// What became of a start that brought no answer, or none if its id is taken.
pub(crate) fn start_outcome(trouble: &Trouble) -> Option<StartOutcome> {
    let status = match trouble {
        Trouble::NotConnected(error) => {
            return Some(StartOutcome::Unavailable {
                error: error.clone(),
                reached: false,
            });
        }
        Trouble::Status(status) => status,
    };
    let error = explain(status);
    let outcome = match says(status.code()).0 {
        // Also of a server that does not read a message of this size: waiting would not make it smaller.
        _ if is_too_large(status) => StartOutcome::Refused { error },
        StartSays::Started => StartOutcome::Started,
        StartSays::Exists => return None,
        StartSays::Refused => StartOutcome::Refused { error },
        StartSays::Unknown => StartOutcome::Unknown { error },
        StartSays::Unavailable => StartOutcome::Unavailable {
            error,
            reached: true,
        },
        StartSays::UnavailableUntouched => StartOutcome::Unavailable {
            error,
            reached: false,
        },
    };
    Some(outcome)
}

/// What is wrong when any other call brought no answer.
pub(crate) fn error(trouble: &Trouble) -> Error {
    match trouble {
        Trouble::NotConnected(text) => Error::Unavailable(text.clone()),
        Trouble::Status(status) => match says(status.code()).1 {
            CallSays::Unavailable => Error::Unavailable(explain(status)),
            CallSays::Failed => Error::Failed(explain(status)),
        },
    }
}

/// Whether the engine says for certain that it has no such workflow.
///
/// A missing namespace is NotFound too, with other details, and so is whatever a standby cluster has not heard of yet.
pub(crate) fn is_workflow_not_found(trouble: &Trouble) -> bool {
    let Trouble::Status(status) = trouble else {
        return false;
    };
    status.code() == Code::NotFound
        && detail::<NotFoundFailure>(status, "NotFoundFailure")
            .is_some_and(|found| found.current_cluster == found.active_cluster)
}

/// A detail of that type, if the status carries one.
pub(crate) fn detail<D: Message + Default>(status: &Status, name: &str) -> Option<D> {
    let details = RpcStatus::decode(status.details()).ok()?.details;
    let wanted = format!("temporal.api.errordetails.v1.{name}");
    let found = details.iter().find(|any| {
        let type_name = any.type_url.rsplit('/').next();
        type_name == Some(wanted.as_str())
    })?;
    D::decode(found.value.as_slice()).ok()
}

fn is_too_large(status: &Status) -> bool {
    status.code() == Code::ResourceExhausted
        && status.message().starts_with("grpc: ")
        && status.message().contains("larger than max")
}

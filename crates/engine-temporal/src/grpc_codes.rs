//! The table that classifies every gRPC status code, for a start and for all other calls. Knows no requests, only responses.

use crate::connection::{RpcError, explain};
use crate::proto::{NotFoundFailure, RpcStatus};
use leasehold_engine::{Error, StartOutcome};
use prost::Message;
use tonic::{Code, Status};

/// What a status code means for a start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StartClass {
    /// The workflow runs.
    Started,
    /// A workflow with this id exists; the caller must find out who started it.
    Exists,
    /// Not started, because the request is invalid.
    Rejected,
    /// The workflow may or may not have been started.
    Unknown,
    /// The engine is unavailable; the workflow may have been started.
    Unavailable,
    /// The engine is unavailable; the frontend returned this before it acted, so the workflow was not started.
    NotReached,
}

/// What a status code means for any other call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallClass {
    /// The engine is unavailable.
    Unavailable,
    /// The call failed for another reason; a retry does not help.
    Failed,
}

/// Classifies a status code: its meaning for a start, then for another call.
pub(crate) const fn classify(code: Code) -> (StartClass, CallClass) {
    use CallClass::{Failed, Unavailable as Down};
    use StartClass::{Exists, NotReached, Rejected, Started, Unavailable, Unknown};
    match code {
        // Success. Other calls do not get here with it.
        Code::Ok => (Started, Failed),
        // Our own deadline as tonic reports it, or the connection closed during the call.
        Code::Cancelled => (Unknown, Down),
        // tonic reports a broken connection so, and servers an unclassified error.
        Code::Unknown => (Unknown, Down),
        // The frontend validated the request and did not forward it; a retry fails the same way.
        Code::InvalidArgument => (Rejected, Failed),
        // The server's deadline or ours; the history service may have written the start before.
        Code::DeadlineExceeded => (Unknown, Down),
        // Start: no such namespace, which the frontend checks first. Other calls: see `is_workflow_not_found`.
        Code::NotFound => (NotReached, Down),
        // The workflow id is taken.
        Code::AlreadyExists => (Exists, Failed),
        // The frontend's authorizer runs first.
        Code::PermissionDenied => (NotReached, Down),
        // A rate limiter. The frontend retries the history service, and an earlier attempt may have succeeded.
        Code::ResourceExhausted => (Unavailable, Down),
        // The namespace is active in another cluster or being changed. The history service returns this too, perhaps after an attempt that succeeded.
        Code::FailedPrecondition => (Unavailable, Down),
        // A conflict inside the server, at an unknown step.
        Code::Aborted => (Unknown, Down),
        // The response was too large to read, so the server has acted.
        Code::OutOfRange => (Unknown, Failed),
        // The frontend or a proxy does not know the call: wrong address, or a server that is too old.
        Code::Unimplemented => (NotReached, Down),
        // A server error at an unknown step.
        Code::Internal => (Unknown, Failed),
        // A shard moves or a service is down; the call was forwarded. Without a connection: `NotConnected`.
        Code::Unavailable => (Unavailable, Down),
        // The server cannot read its own data, perhaps this start.
        Code::DataLoss => (Unknown, Failed),
        // The key or certificate is not accepted; the request was not processed.
        Code::Unauthenticated => (NotReached, Down),
    }
}

/// Converts the error of a start to its outcome; `None` if the workflow id is taken.
pub(crate) fn start_outcome(rpc_error: &RpcError) -> Option<StartOutcome> {
    let status = match rpc_error {
        RpcError::NotConnected(error) => {
            return Some(StartOutcome::Unavailable {
                error: error.clone(),
                reached: false,
            });
        }
        RpcError::Status(status) => status,
    };
    let error = explain(status);
    let outcome = match classify(status.code()).0 {
        // The server does not accept a message of this size; a retry would fail too.
        _ if is_too_large(status) => StartOutcome::Refused { error },
        StartClass::Started => StartOutcome::Started,
        StartClass::Exists => return None,
        StartClass::Rejected => StartOutcome::Refused { error },
        StartClass::Unknown => StartOutcome::Unknown { error },
        StartClass::Unavailable => StartOutcome::Unavailable {
            error,
            reached: true,
        },
        StartClass::NotReached => StartOutcome::Unavailable {
            error,
            reached: false,
        },
    };
    Some(outcome)
}

/// Converts the error of any other call.
pub(crate) fn engine_error(rpc_error: &RpcError) -> Error {
    match rpc_error {
        RpcError::NotConnected(text) => Error::Unavailable(text.clone()),
        RpcError::Status(status) => match classify(status.code()).1 {
            CallClass::Unavailable => Error::Unavailable(explain(status)),
            CallClass::Failed => Error::Failed(explain(status)),
        },
    }
}

/// Whether the engine is certain that it has no such workflow.
///
/// A missing namespace is also NotFound, with other details; so is a workflow that a standby cluster has not replicated yet.
pub(crate) fn is_workflow_not_found(rpc_error: &RpcError) -> bool {
    let RpcError::Status(status) = rpc_error else {
        return false;
    };
    status.code() == Code::NotFound
        && detail::<NotFoundFailure>(status, "NotFoundFailure")
            .is_some_and(|found| found.current_cluster == found.active_cluster)
}

/// Returns the status's detail of this type.
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

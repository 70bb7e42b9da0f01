//! The pure domain: requests, executions, jobs and graphs, and their state machines. Knows no IO, no async, no clock, no randomness, no SQL, no HTTP.

pub mod breaker;
pub mod crash;
pub mod cursor;
pub mod doctor;
pub mod duration;
pub mod engine_identity;
pub mod execution;
pub mod failure;
pub mod fair_pool;
#[cfg(test)]
mod fuzz_tests;
pub mod graph;
mod hmac;
pub mod ids;
pub mod job;
pub mod json;
pub mod key;
pub mod lease;
pub mod limits;
pub mod named;
pub mod payload;
pub mod plan;
pub mod queue;
pub mod queue_access;
pub mod quota;
pub mod request;
pub mod retry;
pub mod spurious_wakeup;
pub mod text;
pub mod trace;
pub mod version;
pub mod why;

pub use crash::Crashes;
pub use engine_identity::EngineIdentity;
pub use execution::{ExecutionEnd, ExecutionStatus};
pub use failure::FailureReason;
pub use ids::{AuditId, DefinitionId, ExecutionId, KeyId, RequestId, VersionId, WorkspaceId};
pub use jiff::Timestamp;
pub use job::{JobEvent, JobId, JobStatus};
pub use named::Named;
pub use payload::JsonText;
pub use plan::Plan;
pub use quota::{Usage, WorkspaceQuota};
pub use request::{RequestEvent, RequestStatus};
pub use trace::{InvalidTraceContext, TraceContext};
pub use version::{Version, VersionBody};

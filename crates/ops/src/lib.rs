//! The operations behind the API and the CLI: each validates a call, then runs one store operation. Knows ports only, no database and no HTTP.

pub mod cancel;
pub mod checks;
pub mod claim;
mod current_versions;
pub mod definition;
pub mod doctor;
pub mod enqueue;
pub mod execution;
pub mod installation;
pub mod job;
pub mod job_quota;
pub mod key;
pub mod publish;
pub mod queue;
pub mod quota;
pub mod redrive;
mod replay;
mod schema;
pub mod why;
pub mod workspace;

pub use cancel::{CancelError, CancelOutcome};
pub use checks::InvalidField;
pub use claim::LeaseOwner;
pub use definition::DefinitionError;
pub use enqueue::{EnqueueError, Enqueuer};
pub use execution::EndReports;
pub use job::JobOperationError;
pub use job_quota::{JobQuotaError, JobQuotas};
pub use key::KeyError;
pub use publish::{PublishError, publish};
pub use queue::{QueueUpdate, ShareError};
pub use quota::{Admission, QuotaError, Quotas};
pub use redrive::RedriveError;
pub use schema::{ParamsSchemas, SchemaWorkError};
pub use workspace::WorkspaceError;

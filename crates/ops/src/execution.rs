//! Reports of workers about executions.

use leasehold_core::ExecutionId;
use leasehold_store::notification::Notification;
use leasehold_store::{Result, Store};

/// Accepts the report that an execution has ended in the engine. It only notifies the reconciler, which asks the engine: the report itself ends nothing,
/// so a wrong execution id does no harm.
pub async fn report_ended(store: &dyn Store, _execution: ExecutionId) -> Result<()> {
    store.notify(Notification::Ended).await
}

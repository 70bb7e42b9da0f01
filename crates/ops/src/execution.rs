//! What a worker reports of an execution.

use leasehold_core::ExecutionId;
use leasehold_store::wake::Wake;
use leasehold_store::{Result, Store};

/// Takes the report that an execution has ended in the engine. It only wakes the services that ask the engine: the report itself ends nothing, so any
/// execution may be named.
pub async fn report_ended(store: &dyn Store, _execution: ExecutionId) -> Result<()> {
    store.wake_ring(Wake::Ended).await
}

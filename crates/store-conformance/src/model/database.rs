//! The database methods of the model, which has no schema and a manual clock.

use super::Model;
use crate::factory::known;
use async_trait::async_trait;
use leasehold_core::{EngineIdentity, ExecutionStatus, Timestamp};
use leasehold_store::diagnosis::Diagnosis;
use leasehold_store::execution::Execution;
use leasehold_store::installation::{ENGINE_REPLACEMENT_GRACE, InstallationStore, RecordedEngine};
use leasehold_store::{Capabilities, DatabaseStore, EpochId, MigrationStatus, Result, SchemaStore};

#[async_trait]
impl DatabaseStore for Model {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            name: "model",
            shared: false,
            connections: 1,
            changes_use_connections: false,
        }
    }

    fn epoch(&self) -> Option<EpochId> {
        Some(EpochId(1))
    }

    async fn now(&self) -> Result<Timestamp> {
        Ok(self.clock.now())
    }

    async fn diagnose(&self) -> Result<Diagnosis> {
        Ok(Diagnosis::Memory)
    }
}

#[async_trait]
impl InstallationStore for Model {
    async fn installation_secret(&self, fresh: &[u8; 32]) -> Result<[u8; 32]> {
        Ok(*self.state().secret.get_or_insert(*fresh))
    }

    async fn engine_record(&self, engine: &EngineIdentity) -> Result<RecordedEngine> {
        let (mut state, now) = (self.state(), self.now());
        let is_running = |one: &Execution| known(&one.status) == ExecutionStatus::Running;
        let any_running = state.executions.values().any(is_running);
        let new = |certain_from| RecordedEngine {
            identity: engine.clone(),
            recorded_at: now,
            certain_from,
        };
        match &mut state.engine {
            None => state.engine = Some(new(now)),
            Some(recorded) if recorded.identity.has_same_executions(engine) => {
                recorded.identity = engine.clone();
            }
            Some(_) if any_running => {}
            Some(recorded) => *recorded = new(now + ENGINE_REPLACEMENT_GRACE),
        }
        Ok(state.engine.clone().unwrap_or_else(|| new(now)))
    }

    async fn engine_recorded(&self) -> Result<Option<RecordedEngine>> {
        Ok(self.state().engine.clone())
    }
}

#[async_trait]
impl SchemaStore for Model {
    async fn schema_migrate(&self) -> Result<Vec<MigrationStatus>> {
        Ok(Vec::new())
    }

    async fn schema_status(&self) -> Result<Vec<MigrationStatus>> {
        Ok(Vec::new())
    }
}

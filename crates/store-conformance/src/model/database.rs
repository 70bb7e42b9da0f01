//! The database methods of the model, which has no schema and a manual clock.

use super::Model;
use async_trait::async_trait;
use leasehold_core::Timestamp;
use leasehold_store::diagnosis::Diagnosis;
use leasehold_store::installation::InstallationStore;
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

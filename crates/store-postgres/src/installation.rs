//! The installation's secret and its recorded engine in PostgreSQL.

use crate::param::Params;
use crate::row;
use crate::store::{PostgresStore, sql};
use async_trait::async_trait;
use leasehold_core::EngineIdentity;
use leasehold_store::installation::{ENGINE_REPLACEMENT_GRACE, InstallationStore, RecordedEngine};
use leasehold_store::{Error, ErrorKind, Result};
use tokio_postgres::Row;

const CONTEXT: &str = "installation_secret";

#[async_trait]
impl InstallationStore for PostgresStore {
    async fn installation_secret(&self, fresh: &[u8; 32]) -> Result<[u8; 32]> {
        let find = async || self.maybe(CONTEXT, sql!("installation/secret"), &[]).await;
        if let Some(row) = find().await? {
            return secret(&row);
        }
        let create = sql!("installation/create_secret");
        self.execute(CONTEXT, create, &[&fresh.as_slice()]).await?;
        // A new statement: it sees the secret of a concurrent call for which this one waited.
        let row = find().await?.ok_or_else(|| broken("was deleted"))?;
        secret(&row)
    }

    async fn engine_record(&self, engine: &EngineIdentity) -> Result<RecordedEngine> {
        const CONTEXT: &str = "engine_record";
        let params: &Params<'_> = &[
            &self.given_now(),
            &engine.kind,
            &engine.namespace,
            &engine.namespace_id,
            &engine.cluster_id,
            &row::micros(ENGINE_REPLACEMENT_GRACE),
        ];
        self.execute(CONTEXT, sql!("installation/engine_record"), params)
            .await?;
        // A new statement: it sees the engine of a concurrent call for which this one waited.
        let recorded = find_engine(self, CONTEXT).await?;
        let deleted = "the recorded engine was deleted";
        recorded.ok_or_else(|| Error::new(CONTEXT, ErrorKind::Broken(deleted.to_owned())))
    }

    async fn engine_recorded(&self) -> Result<Option<RecordedEngine>> {
        find_engine(self, "engine_recorded").await
    }
}

async fn find_engine(
    store: &PostgresStore,
    context: &'static str,
) -> Result<Option<RecordedEngine>> {
    let row = store.maybe(context, sql!("installation/engine_recorded"), &[]);
    let read = |row: Row| {
        Ok(RecordedEngine {
            identity: EngineIdentity {
                kind: row.get("kind"),
                namespace: row.get("namespace"),
                namespace_id: row.get("namespace_id"),
                cluster_id: row.get("cluster_id"),
            },
            recorded_at: row::time(&row, "recorded_at")?,
            certain_from: row::time(&row, "certain_from")?,
        })
    };
    row.await?.map(read).transpose()
}

fn secret(row: &Row) -> Result<[u8; 32]> {
    let bytes: &[u8] = row.get("secret");
    bytes.try_into().map_err(|_| broken("must have 32 bytes"))
}

fn broken(problem: &str) -> Error {
    let text = format!("the secret of the installation {problem}");
    Error::new(CONTEXT, ErrorKind::Broken(text))
}

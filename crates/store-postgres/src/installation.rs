//! The installation's secret in PostgreSQL.

use crate::store::{PostgresStore, sql};
use async_trait::async_trait;
use leasehold_store::installation::InstallationStore;
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
}

fn secret(row: &Row) -> Result<[u8; 32]> {
    let bytes: &[u8] = row.get("secret");
    bytes.try_into().map_err(|_| broken("must have 32 bytes"))
}

fn broken(problem: &str) -> Error {
    let text = format!("the secret of the installation {problem}");
    Error::new(CONTEXT, ErrorKind::Broken(text))
}

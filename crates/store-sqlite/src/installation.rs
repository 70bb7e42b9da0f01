//! The installation's secret in SQLite.

use crate::SqliteStore;
use async_trait::async_trait;
use leasehold_store::installation::InstallationStore;
use leasehold_store::{Result, sql};
use rusqlite::params;

const SECRET: &str = sql!("installation/secret");
const CREATE_SECRET: &str = sql!("installation/create_secret");

#[async_trait]
impl InstallationStore for SqliteStore {
    async fn installation_secret(&self, fresh: &[u8; 32]) -> Result<[u8; 32]> {
        let fresh = *fresh;
        self.write("installation_secret", move |s| {
            s.run(CREATE_SECRET, params![fresh])?;
            s.one(SECRET, [], |row| Ok(row.get(0)?))
        })
        .await
    }
}

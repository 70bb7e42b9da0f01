//! Reuses databases across tests: restoring the rows of a used database is ten times faster than copying the template.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio_postgres::{Client, Error};

use crate::database::{TestDatabase, with_database};
use crate::postgres::{TestPostgres, connect, try_connect};
use crate::statement::{
    CONTENT_GET, CONTENT_READ, CONTENT_RESTORE, CONTENT_SET, IDLE_ADD, IDLE_TAKE, SCHEMA_HASH,
};

/// The state of a template's copy before its first test.
pub(crate) struct Baseline {
    template: String,
    schema: String,
    content: String,
}

/// Baselines by template.
static BASELINES: Mutex<Option<HashMap<String, Arc<Baseline>>>> = Mutex::new(None);

impl TestPostgres {
    /// Returns a database with the template's schema and rows, which other tests may have used before. Only for tests that
    /// leave no task behind that still writes. A database is dropped instead of reused if the test failed or changed the
    /// schema.
    ///
    /// # Panics
    /// When the server is unreachable or rejects a statement.
    pub async fn reused_database(&self, template: &str) -> TestDatabase {
        let client = connect(self.url()).await;
        let idle = client
            .query_opt(IDLE_TAKE, &[&template])
            .await
            .unwrap_or_else(|error| panic!("failed to take an idle database: {error:?}"));
        let mut database = match idle {
            Some(row) => TestDatabase::new(self.url(), row.get(0)),
            None => self.fresh_database(Some(template)).await,
        };
        let baseline = baseline(template, database.url())
            .await
            .unwrap_or_else(|error| panic!("failed to read {}: {error:?}", database.name()));
        database.reuse_as(baseline);
        database
    }
}

async fn baseline(template: &str, url: &str) -> Result<Arc<Baseline>, Error> {
    let known = || BASELINES.lock().unwrap_or_else(PoisonError::into_inner);
    let found = known().as_ref().and_then(|all| all.get(template).cloned());
    if let Some(found) = found {
        return Ok(found);
    }
    let client = try_connect(url).await?;
    client.batch_execute(CONTENT_READ).await?;
    let read = Arc::new(Baseline {
        template: template.to_owned(),
        schema: schema_hash(&client).await?,
        content: client.query_one(CONTENT_GET, &[]).await?.get(0),
    });
    known()
        .get_or_insert_default()
        .insert(template.to_owned(), read.clone());
    Ok(read)
}

async fn schema_hash(client: &Client) -> Result<String, Error> {
    Ok(client.query_one(SCHEMA_HASH, &[]).await?.get(0))
}

/// Restores the database, which nobody is connected to, and adds it to the idle ones. Returns false if the schema changed, and the database must be dropped.
pub(crate) async fn recycle(
    server: &Client,
    server_url: &str,
    name: &str,
    baseline: &Baseline,
) -> Result<bool, Error> {
    let client = try_connect(&with_database(server_url, name)).await?;
    if schema_hash(&client).await? != baseline.schema {
        return Ok(false);
    }
    client.query_one(CONTENT_SET, &[&baseline.content]).await?;
    client.batch_execute(CONTENT_RESTORE).await?;
    server
        .execute(IDLE_ADD, &[&name, &baseline.template])
        .await?;
    Ok(true)
}

//! Databases that tests use one after the other: copying a template costs ten times as much as giving a used copy its rows back.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio_postgres::{Client, Error};

use crate::database::{TestDatabase, with_database};
use crate::postgres::{TestPostgres, connect, try_connect};
use crate::statement::{
    CONTENT_GET, CONTENT_READ, CONTENT_RESTORE, CONTENT_SET, DATABASE_DISCONNECT, IDLE_ADD,
    IDLE_TAKE, SCHEMA_HASH,
};

/// What a copy of a template is like before its first test.
pub(crate) struct Baseline {
    template: String,
    schema: String,
    content: String,
}

/// By template; the same in every copy.
static KNOWN: Mutex<Option<HashMap<String, Arc<Baseline>>>> = Mutex::new(None);

impl TestPostgres {
    /// A database like a fresh copy of the template, which may have served other tests: it has the template's rows again. Only for tests that leave no
    /// task behind that still writes. It is dropped instead of used again when a test failed or changed more than rows.
    ///
    /// # Panics
    /// When the server cannot be reached or refuses.
    pub async fn reused_database(&self, template: &str) -> TestDatabase {
        let client = connect(self.url()).await;
        let idle = client
            .query_opt(IDLE_TAKE, &[&template])
            .await
            .unwrap_or_else(|error| panic!("no idle database could be taken: {error:?}"));
        let mut database = match idle {
            Some(row) => TestDatabase::new(self.url(), row.get(0)),
            None => self.fresh_database(Some(template)).await,
        };
        let baseline = baseline(template, database.url())
            .await
            .unwrap_or_else(|error| panic!("{} could not be read: {error:?}", database.name()));
        database.reuse_as(baseline);
        database
    }
}

async fn baseline(template: &str, url: &str) -> Result<Arc<Baseline>, Error> {
    let known = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
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

/// Makes the database ready for its next test. Returns false when only dropping it is safe.
pub(crate) async fn give_back(
    server_url: &str,
    name: &str,
    baseline: &Baseline,
) -> Result<bool, Error> {
    let server = try_connect(server_url).await?;
    server.execute(DATABASE_DISCONNECT, &[&name]).await?;
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

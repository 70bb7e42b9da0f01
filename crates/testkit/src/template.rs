//! Template databases: built once per server and copied for every test. Does not know their content.

use tokio_postgres::Client;

use crate::database::with_database;
use crate::postgres::{TestPostgres, connect};
use crate::statement::{
    DATABASE_CREATE, DATABASE_DISCONNECT, DATABASE_DROP, DATABASE_EXISTS, DATABASE_LOCK,
    DATABASE_RENAME, IDLE_TABLE, fill,
};

impl TestPostgres {
    /// Builds the template `name` unless the server has it already, and returns its name for
    /// [`fresh_database`](Self::fresh_database).
    ///
    /// `build` gets the address of an empty database and fills it. If several tests or processes call at once, one builds and
    /// the others wait. The template lives as long as the server: put a hash of what `build` does into the name, so that a
    /// changed migration builds a new template. Connections that `build` leaves open are terminated.
    ///
    /// # Panics
    /// When the server is unreachable or rejects a statement, or the name has special characters or more than 54 bytes.
    pub async fn template_database<F, Fut>(&self, name: &str, build: F) -> String
    where
        F: FnOnce(String) -> Fut,
        Fut: Future<Output = ()>,
    {
        let client = connect(self.url()).await;
        if !exists(&client, name).await {
            client
                .execute(DATABASE_LOCK, &[&name])
                .await
                .unwrap_or_else(|error| panic!("failed to lock template {name}: {error:?}"));
            run(&client, IDLE_TABLE).await;
            // Another process may have built it while this one waited for the lock.
            if !exists(&client, name).await {
                self.build_template(&client, name, build).await;
            }
        }
        name.to_owned()
    }

    /// Builds a template; the caller holds the lock. A leftover `_building` database is from an interrupted process.
    async fn build_template<F, Fut>(&self, client: &Client, name: &str, build: F)
    where
        F: FnOnce(String) -> Fut,
        Fut: Future<Output = ()>,
    {
        let building = format!("{name}_building");
        let names = [("name", building.as_str()), ("template", "template0")];
        run(client, &fill(DATABASE_DROP, &names)).await;
        run(client, &fill(DATABASE_CREATE, &names)).await;
        build(with_database(self.url(), &building)).await;
        client
            .execute(DATABASE_DISCONNECT, &[&building])
            .await
            .unwrap_or_else(|error| panic!("failed to disconnect template {name}: {error:?}"));
        let names = [("building", building.as_str()), ("name", name)];
        run(client, &fill(DATABASE_RENAME, &names)).await;
    }
}

async fn exists(client: &Client, name: &str) -> bool {
    client
        .query_one(DATABASE_EXISTS, &[&name])
        .await
        .unwrap_or_else(|error| panic!("failed to look up template {name}: {error:?}"))
        .get(0)
}

async fn run(client: &Client, statement: &str) {
    client
        .batch_execute(statement)
        .await
        .unwrap_or_else(|error| panic!("{statement}\n{error:?}"));
}

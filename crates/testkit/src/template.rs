//! Templates: databases made ready once a server and copied for every test. Does not know how one is filled.

use tokio_postgres::Client;

use crate::database::with_database;
use crate::postgres::{TestPostgres, connect};
use crate::statement::{
    DATABASE_CREATE, DATABASE_DISCONNECT, DATABASE_DROP, DATABASE_EXISTS, DATABASE_LOCK,
    DATABASE_RENAME, IDLE_TABLE, fill,
};

impl TestPostgres {
    /// Makes the template `name` unless the server has it already, and returns its name for
    /// [`fresh_database`](Self::fresh_database).
    ///
    /// `build` gets the address of an empty database and fills it. However many tests and processes ask at once, one
    /// builds and the others wait. The template lives as long as the server: put a hash of what `build` does into the
    /// name, so that a changed migration makes a new one. Connections that `build` leaves open are ended.
    ///
    /// # Panics
    /// When the server cannot be reached or refuses, or the name is not plain or longer than 54 bytes.
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
                .unwrap_or_else(|error| panic!("template {name} could not be locked: {error:?}"));
            run(&client, IDLE_TABLE).await;
            // Another process may have built it while we waited.
            if !exists(&client, name).await {
                self.build_template(&client, name, build).await;
            }
        }
        name.to_owned()
    }

    /// Called with the lock held. A database still called "building" is what an interrupted process left.
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
            .unwrap_or_else(|error| panic!("template {name} is still in use: {error:?}"));
        let names = [("building", building.as_str()), ("name", name)];
        run(client, &fill(DATABASE_RENAME, &names)).await;
    }
}

async fn exists(client: &Client, name: &str) -> bool {
    client
        .query_one(DATABASE_EXISTS, &[&name])
        .await
        .unwrap_or_else(|error| panic!("template {name} could not be looked up: {error:?}"))
        .get(0)
}

async fn run(client: &Client, statement: &str) {
    client
        .batch_execute(statement)
        .await
        .unwrap_or_else(|error| panic!("{statement}\n{error:?}"));
}

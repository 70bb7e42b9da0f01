//! The PostgreSQL server that tests share, and databases on it. Does not know their content.

use std::sync::OnceLock;

use tokio_postgres::{Client, Config, NoTls};

use crate::cluster::{Cluster, SERVER_VARIABLE, fresh_cluster};
use crate::database::TestDatabase;
use crate::statement::{DATABASE_CREATE, fill};
use crate::unique::unique_name;

/// A PostgreSQL server on which tests create databases.
pub struct TestPostgres {
    url: String,
    /// Owns the watchdog, if this process started the server.
    own: Option<Cluster>,
}

impl TestPostgres {
    /// Returns the server that all tests of this process share: the one at [`SERVER_VARIABLE`], or else a throwaway cluster
    /// that the first call starts and that ends with the process.
    ///
    /// # Panics
    /// When the variable is not set and PostgreSQL is not installed: `cargo xtask setup` installs it.
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<TestPostgres> = OnceLock::new();
        SHARED.get_or_init(|| match std::env::var(SERVER_VARIABLE) {
            Ok(url) => Self { url, own: None },
            Err(_) => {
                let cluster = fresh_cluster(&[]).without_deadlock_check();
                Self {
                    url: cluster.url(),
                    own: Some(cluster),
                }
            }
        })
    }

    /// The server at this address, such as a private [`Cluster`].
    #[must_use]
    pub fn at(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            own: None,
        }
    }

    /// The address of the server's maintenance database.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The cluster, if this process started it.
    #[must_use]
    pub fn own_cluster(&self) -> Option<&Cluster> {
        self.own.as_ref()
    }

    /// Creates a database with a unique name, empty or as a copy of a template. Dropping the handle drops it.
    ///
    /// # Panics
    /// When the server is unreachable or rejects the statement.
    pub async fn fresh_database(&self, template: Option<&str>) -> TestDatabase {
        let name = unique_name();
        let names = [
            ("name", name.as_str()),
            ("template", template.unwrap_or("template0")),
        ];
        connect(&self.url)
            .await
            .batch_execute(&fill(DATABASE_CREATE, &names))
            .await
            .unwrap_or_else(|error| panic!("failed to create database {name}: {error:?}"));
        TestDatabase::new(&self.url, name)
    }
}

/// Connects without TLS. A task of the current runtime drives the connection until the client is dropped.
pub(crate) async fn connect(url: &str) -> Client {
    try_connect(url)
        .await
        .unwrap_or_else(|error| panic!("failed to connect to {url}: {error:?}"))
}

/// Like [`connect`], but returns the error.
pub(crate) async fn try_connect(url: &str) -> Result<Client, tokio_postgres::Error> {
    let (client, connection) = url.parse::<Config>()?.connect(NoTls).await?;
    // A broken connection fails the client's calls.
    tokio::spawn(connection);
    Ok(client)
}

//! The PostgreSQL server that tests share, and databases on it. Does not know what is in a database.

use std::sync::OnceLock;

use tokio_postgres::{Client, Config, NoTls};

use crate::cluster::{Cluster, fresh_cluster};
use crate::database::TestDatabase;
use crate::statement::{DATABASE_CREATE, fill};
use crate::unique::unique_name;

/// Holds the address of the server to test on; `cargo xtask test` sets it.
pub const SERVER_VARIABLE: &str = "LEASEHOLD_TEST_PG";

/// A PostgreSQL server that tests may make databases on.
pub struct TestPostgres {
    url: String,
    /// Kept for its watchdog when we started the server ourselves.
    own: Option<Cluster>,
}

impl TestPostgres {
    /// The server all tests of this process share: that of [`SERVER_VARIABLE`], or else a throwaway cluster that is
    /// started at the first call and ends with the process.
    ///
    /// # Panics
    /// When the variable is not set and PostgreSQL is not installed: `cargo xtask setup` installs it.
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<TestPostgres> = OnceLock::new();
        SHARED.get_or_init(|| match std::env::var(SERVER_VARIABLE) {
            Ok(url) => Self { url, own: None },
            Err(_) => {
                let cluster = fresh_cluster(&[]);
                Self {
                    url: cluster.url(),
                    own: Some(cluster),
                }
            }
        })
    }

    /// A server at a known address, such as that of a private [`Cluster`].
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

    /// The cluster behind it, when this process started it.
    #[must_use]
    pub fn own_cluster(&self) -> Option<&Cluster> {
        self.own.as_ref()
    }

    /// Makes a database with a name of its own, empty or as a copy of a template, and drops it with the handle.
    ///
    /// # Panics
    /// When the server cannot be reached or refuses.
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
            .unwrap_or_else(|error| panic!("database {name} could not be made: {error:?}"));
        TestDatabase::new(&self.url, name)
    }
}

/// Connects without TLS; the connection is driven by a task of the current runtime and ends with the client.
pub(crate) async fn connect(url: &str) -> Client {
    try_connect(url)
        .await
        .unwrap_or_else(|error| panic!("no connection to {url}: {error:?}"))
}

/// As [`connect`], where a server may be gone.
pub(crate) async fn try_connect(url: &str) -> Result<Client, tokio_postgres::Error> {
    let (client, connection) = url.parse::<Config>()?.connect(NoTls).await?;
    // A broken connection shows in the client's own calls.
    tokio::spawn(connection);
    Ok(client)
}

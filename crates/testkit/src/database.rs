//! The database of one test: its name, its address, its removal, and the check that no transactions deadlocked. Does not know its content.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use tokio_postgres::error::SqlState;

use crate::postgres::{connect, try_connect};
use crate::reuse::{Baseline, recycle};
use crate::statement::{
    DATABASE_DEADLOCKS, DATABASE_DISCONNECT, DATABASE_DROP, DATABASE_ISOLATION, fill,
};

const DROP_TIMEOUT: Duration = Duration::from_secs(120);

/// A database that belongs to one test. Dropping the handle drops the database, or restores it for the next test, and panics if PostgreSQL
/// detected a deadlock in it.
pub struct TestDatabase {
    server_url: String,
    name: String,
    url: String,
    /// The state to restore for the next test; none if the database is dropped instead.
    baseline: Option<Arc<Baseline>>,
}

impl TestDatabase {
    pub(crate) fn new(server_url: &str, name: String) -> Self {
        Self {
            url: with_database(server_url, &name),
            server_url: server_url.to_owned(),
            name,
            baseline: None,
        }
    }

    pub(crate) fn reuse_as(&mut self, baseline: Arc<Baseline>) {
        self.baseline = Some(baseline);
    }

    /// The address to connect to.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The address for a connection that finds the tables of this schema by their plain names.
    #[must_use]
    pub fn url_in(&self, schema: &str) -> String {
        in_schema(&self.url, schema)
    }

    /// Sets the default isolation level of later connections.
    ///
    /// # Panics
    /// When the server is unreachable or the level is unknown.
    pub async fn set_default_isolation(&self, isolation: &str) {
        let set = fill(DATABASE_ISOLATION, &[("name", &self.name)]);
        let set = set.replace("{isolation}", isolation);
        let done = connect(&self.server_url).await.batch_execute(&set).await;
        done.unwrap_or_else(|error| panic!("failed to set the isolation level: {error:?}"));
    }

    /// The database's name on its server.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl Drop for TestDatabase {
    /// Waits, so that databases do not accumulate. Runs on its own thread because a runtime cannot be entered from inside another. A server that a
    /// test has stopped cannot be asked; the log of its cluster tells of deadlocks when the cluster is dropped.
    fn drop(&mut self) {
        let name = std::mem::take(&mut self.name);
        let server_url = std::mem::take(&mut self.server_url);
        let baseline = self.baseline.take().filter(|_| !thread::panicking());
        let dropping = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build();
            let runtime = runtime.map_err(|error| error.to_string())?;
            runtime.block_on(async {
                let removing = remove(&server_url, &name, baseline);
                match tokio::time::timeout(DROP_TIMEOUT, removing).await {
                    Ok(Err(error)) if is_gone(&error) => Ok(0),
                    Ok(removed) => removed.map_err(|error| format!("{error:?}")),
                    Err(_) => Err(format!("no answer in {DROP_TIMEOUT:?}")),
                }
            })
        });
        let removed = dropping.join();
        if thread::panicking() {
            return;
        }
        let removed = removed.unwrap_or_else(|_| Err("the thread panicked".to_owned()));
        let deadlocks = removed.unwrap_or_else(|error| {
            panic!("failed to check and remove the database of this test: {error}")
        });
        assert!(
            deadlocks == 0,
            "PostgreSQL detected {deadlocks} deadlocks in the database of this test"
        );
    }
}

/// Whether the server does not run, or stops.
fn is_gone(error: &tokio_postgres::Error) -> bool {
    match error.code() {
        Some(code) => {
            let stopping = [
                SqlState::ADMIN_SHUTDOWN,
                SqlState::CRASH_SHUTDOWN,
                SqlState::CANNOT_CONNECT_NOW,
            ];
            stopping.contains(code)
        }
        None => true,
    }
}

/// Removes or restores a database, and returns how many deadlocks were detected in it.
async fn remove(
    server_url: &str,
    name: &str,
    baseline: Option<Arc<Baseline>>,
) -> Result<i64, tokio_postgres::Error> {
    let server = try_connect(server_url).await?;
    // A process reports its deadlocks when it ends, at the latest.
    server.execute(DATABASE_DISCONNECT, &[&name]).await?;
    let found = server.query_opt(DATABASE_DEADLOCKS, &[&name]).await?;
    let deadlocks = found.map_or(0, |row| row.get("deadlocks"));
    if let Some(baseline) = baseline
        && deadlocks == 0
        && recycle(&server, server_url, name, &baseline)
            .await
            .unwrap_or(false)
    {
        return Ok(deadlocks);
    }
    let statement = fill(DATABASE_DROP, &[("name", name)]);
    server.batch_execute(&statement).await?;
    Ok(deadlocks)
}

/// Adds the search path to an address.
fn in_schema(url: &str, schema: &str) -> String {
    let separator = if url.contains('?') { '&' } else { '?' };
    format!("{url}{separator}options=-csearch_path%3D{schema}")
}

/// Replaces the database in a server's address; keeps the options after `?`.
pub(crate) fn with_database(server_url: &str, name: &str) -> String {
    let (address, options) = match server_url.split_once('?') {
        Some((address, options)) => (address, format!("?{options}")),
        None => (server_url, String::new()),
    };
    let host_starts = address.find("://").map_or(0, |at| at + 3);
    let host_ends = address[host_starts..]
        .find('/')
        .map_or(address.len(), |at| host_starts + at);
    format!("{}/{name}{options}", &address[..host_ends])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn search_path_is_added_to_the_options_of_an_address() {
        let expected = "postgres://host/t?options=-csearch_path%3Dmain";
        assert_eq!(in_schema("postgres://host/t", "main"), expected);
        let expected = "postgres://host/t?a=b&options=-csearch_path%3Dmain";
        assert_eq!(in_schema("postgres://host/t?a=b", "main"), expected);
    }

    #[test]
    fn with_database_replaces_only_the_database() {
        for (server, expected) in [
            (
                "postgres://postgres@127.0.0.1:5/postgres",
                "postgres://postgres@127.0.0.1:5/t",
            ),
            ("postgres://a:b@host", "postgres://a:b@host/t"),
            (
                "postgres://host/x?sslmode=disable",
                "postgres://host/t?sslmode=disable",
            ),
        ] {
            assert_eq!(with_database(server, "t"), expected);
        }
    }
}

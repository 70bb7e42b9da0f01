//! The database of one test: its name, its address and its removal. Does not know its content.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use crate::postgres::try_connect;
use crate::reuse::{Baseline, recycle};
use crate::statement::{DATABASE_DROP, fill};

const DROP_TIMEOUT: Duration = Duration::from_secs(120);

/// A database that belongs to one test. Dropping the handle drops the database, or restores it for the next test.
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

    /// The database's name on its server.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl Drop for TestDatabase {
    /// Ignores errors, since the test may have stopped the server, but waits, so that databases do not accumulate. Runs on
    /// its own thread because a runtime cannot be entered from inside another.
    fn drop(&mut self) {
        let name = std::mem::take(&mut self.name);
        let server_url = std::mem::take(&mut self.server_url);
        let baseline = self.baseline.take().filter(|_| !thread::panicking());
        let dropping = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build();
            if let Ok(runtime) = runtime {
                let _ = runtime.block_on(async {
                    tokio::time::timeout(DROP_TIMEOUT, remove(&server_url, &name, baseline)).await
                });
            }
        });
        let _ = dropping.join();
    }
}

async fn remove(
    server_url: &str,
    name: &str,
    baseline: Option<Arc<Baseline>>,
) -> Result<(), tokio_postgres::Error> {
    if let Some(baseline) = baseline
        && recycle(server_url, name, &baseline).await.unwrap_or(false)
    {
        return Ok(());
    }
    let statement = fill(DATABASE_DROP, &[("name", name)]);
    try_connect(server_url)
        .await?
        .batch_execute(&statement)
        .await
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

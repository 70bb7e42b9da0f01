//! One test's database: its name, its address, its end. Does not know what is in it.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use crate::postgres::try_connect;
use crate::reuse::{Baseline, give_back};
use crate::statement::{DATABASE_DROP, fill};

const DROP_LIMIT: Duration = Duration::from_secs(30);

/// A database that belongs to one test. It is dropped with the handle, or made ready for the next test.
pub struct TestDatabase {
    server_url: String,
    name: String,
    url: String,
    /// What it must be like for the next test; none if it is dropped.
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
    /// Best effort, since the test may have ended the server, but waited for: databases must not pile up. It runs on a
    /// thread of its own because a runtime cannot be entered from inside another.
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
                    tokio::time::timeout(DROP_LIMIT, end(&server_url, &name, baseline)).await
                });
            }
        });
        let _ = dropping.join();
    }
}

async fn end(
    server_url: &str,
    name: &str,
    baseline: Option<Arc<Baseline>>,
) -> Result<(), tokio_postgres::Error> {
    if let Some(baseline) = baseline
        && give_back(server_url, name, &baseline)
            .await
            .unwrap_or(false)
    {
        return Ok(());
    }
    let statement = fill(DATABASE_DROP, &[("name", name)]);
    try_connect(server_url)
        .await?
        .batch_execute(&statement)
        .await
}

/// The same server, another database; options after `?` stay.
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
    fn only_the_database_of_an_address_changes() {
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

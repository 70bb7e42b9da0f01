//! Opens the store that a URL names, and brings its schema up to date.

use anyhow::{Context, Result, bail};
use leasehold_store::Store;
use leasehold_store_postgres::{PostgresOptions, PostgresStore};
use leasehold_store_sqlite::{SqliteOptions, SqliteStore};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::data_folder;
use crate::settings::Settings;

const TRY_EVERY: Duration = Duration::from_secs(1);

/// A store that is ready to be used.
pub(crate) async fn open(settings: &Settings) -> Result<Arc<dyn Store>> {
    let url = settings.store_url();
    let store = prepare(settings, &url)?;
    let begun = Instant::now();
    loop {
        match store.schema_migrate().await {
            Ok(applied) => {
                tracing::debug!(migrations = applied.len(), "schema is up to date");
                return Ok(store);
            }
            Err(error) if error.is_retryable() && begun.elapsed() < settings.store.patience.0 => {
                tracing::warn!(%error, "the store is not ready yet; trying again");
                tokio::time::sleep(TRY_EVERY).await;
            }
            Err(error) => {
                return Err(error)
                    .with_context(|| format!("the store {} cannot be used", shown(&url)));
            }
        }
    }
}

fn prepare(settings: &Settings, url: &str) -> Result<Arc<dyn Store>> {
    if let Some(path) = url.strip_prefix("sqlite:") {
        let path = Path::new(path.strip_prefix("//").unwrap_or(path));
        if let Some(folder) = path
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty())
        {
            data_folder::make(folder).context("store.url")?;
        }
        let store = SqliteStore::open(path, &SqliteOptions::default())
            .with_context(|| format!("store.url: {} cannot be opened", path.display()))?;
        return Ok(Arc::new(store));
    }
    if url.starts_with("postgres://") || url.starts_with("postgresql://") {
        let options = PostgresOptions {
            max_connections: settings.store.max_connections,
            notify: settings.store.notify,
            tls_ca: authority(settings.store.tls_ca_file.as_deref())?,
            ..PostgresOptions::new(url)
        };
        return Ok(Arc::new(PostgresStore::new(&options).context("store.url")?));
    }
    bail!(
        "store.url: must begin with `sqlite:` or `postgres://`, but is {}",
        shown(url)
    );
}

fn authority(file: Option<&Path>) -> Result<Option<Vec<u8>>> {
    let Some(file) = file else { return Ok(None) };
    let read = std::fs::read(file);
    let read =
        read.with_context(|| format!("store.tls_ca_file: {} cannot be read", file.display()));
    read.map(Some)
}

/// The URL without its password.
pub(crate) fn shown(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else {
        return url.to_owned();
    };
    // First the query: it may hold a password, and an `@` too.
    let rest = rest.split('?').next().unwrap_or_default();
    match rest.rsplit_once('@') {
        Some((user, host)) => match user.split_once(':') {
            Some((name, _password)) => format!("{scheme}://{name}:***@{host}"),
            None => format!("{scheme}://{rest}"),
        },
        None => format!("{scheme}://{rest}"),
    }
}

#[cfg(test)]
mod tests {
    use super::shown;

    #[test]
    fn a_shown_url_has_no_password() {
        let cases = [
            (
                "postgres://me:secret@db:5432/x",
                "postgres://me:***@db:5432/x",
            ),
            ("postgres://me:se@cret@db/x", "postgres://me:***@db/x"),
            ("postgres://me@db/x?password=se@cret", "postgres://me@db/x"),
            ("postgres://db/x", "postgres://db/x"),
            ("sqlite:some/file.db", "sqlite:some/file.db"),
        ];
        for (url, expected) in cases {
            assert_eq!(shown(url), expected);
        }
    }
}

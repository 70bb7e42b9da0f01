//! Opens the configured store, migrates its schema, and explains store errors.

mod url;

pub(crate) use url::redacted_url;

use crate::data_dir;
use crate::settings::Settings;
use anyhow::Result;
use leasehold_console::{Exit, Failure};
use leasehold_crash_marker::CrashMarkers;
use leasehold_store::{
    Error, ErrorKind, Migration, MigrationState, MigrationStatus, Store, schema_refusal,
};
use leasehold_store_postgres::{PostgresOptions, PostgresStore};
use leasehold_store_sqlite::{SqliteOptions, SqliteStore};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// Opens the store and migrates its schema, or requires a current schema if `store.migrate` is off. Marks the computation of inputs with `markers`.
pub(crate) async fn open(settings: &Settings, markers: &CrashMarkers) -> Result<Arc<dyn Store>> {
    let store = connect_with(settings, markers, true)?;
    if settings.store.migrate {
        let applied = migrate(&*store, settings).await?;
        tracing::debug!(migrations = applied.len(), "schema is up to date");
    } else {
        require_migrated(&status(&*store, settings).await?, settings)?;
        if sqlite_file(settings).is_some() {
            // Nothing is pending: this begins an epoch of the file.
            migrate(&*store, settings).await?;
        }
    }
    Ok(store)
}

/// Opens the store without checking its schema, for commands that do not take part in the work: they open no epoch. Does not connect to PostgreSQL yet.
pub(crate) fn connect(settings: &Settings) -> Result<Arc<dyn Store>> {
    connect_with(settings, &CrashMarkers::default(), false)
}

fn connect_with(
    settings: &Settings,
    markers: &CrashMarkers,
    opens_epochs: bool,
) -> Result<Arc<dyn Store>> {
    if let Some(file) = sqlite_file(settings) {
        if let Some(dir) = file.parent().filter(|dir| !dir.as_os_str().is_empty()) {
            data_dir::create(dir)?;
        }
        let store = SqliteStore::open(&file, &SqliteOptions::default());
        let store = store.map_err(|error| open_failure(&file, error))?;
        return Ok(Arc::new(store.with_crash_markers(markers.clone())));
    }
    let store = postgres(settings, opens_epochs);
    let store = store.map_err(|(key, message)| Failure::usage(format!("{key}: {message}")))?;
    Ok(Arc::new(store.with_crash_markers(markers.clone())))
}

/// Builds the PostgreSQL store, or returns the invalid setting and why. Connects to nothing.
pub(crate) fn postgres(
    settings: &Settings,
    opens_epochs: bool,
) -> Result<PostgresStore, (&'static str, String)> {
    let url = settings.store_url();
    let mut options = PostgresOptions {
        schema: settings.store.schema.clone(),
        max_connections: settings.store.max_connections,
        pooler: settings.store.pooler(),
        notify: settings.store.notify,
        opens_epochs,
        ..PostgresOptions::new(&url)
    };
    let store = PostgresStore::new(&options).map_err(|error| {
        if let ("sslmode" | "sslrootcert", ErrorKind::Value(text)) = (error.context, &error.kind) {
            return ("store.url", text.clone());
        }
        if let ("schema", ErrorKind::Value(text)) = (error.context, &error.kind) {
            return ("store.schema", text.clone());
        }
        // The driver's error may contain a part of the password.
        let must = "must be a URL such as postgres://user:password@host:5432/database";
        ("store.url", format!("{must}, is {}", redacted_url(&url)))
    })?;
    let Some(file) = &settings.store.tls_ca_file else {
        return Ok(store);
    };
    let wrong = |message| ("store.tls_ca_file", message);
    let authority = std::fs::read(file)
        .map_err(|error| wrong(format!("cannot read {}: {error}", file.display())))?;
    options.tls_ca = Some(authority);
    PostgresStore::new(&options).map_err(|error| match error.kind {
        ErrorKind::Value(text) => wrong(text),
        other => wrong(other.to_string()),
    })
}

/// The SQLite file, if the store is SQLite.
pub(crate) fn sqlite_file(settings: &Settings) -> Option<PathBuf> {
    let url = settings.store_url();
    let path = url.strip_prefix("sqlite:")?;
    Some(PathBuf::from(path.strip_prefix("//").unwrap_or(path)))
}

/// The migrations of this program for the configured store.
pub(crate) fn migrations(settings: &Settings) -> &'static [Migration] {
    match sqlite_file(settings) {
        Some(_) => leasehold_store_sqlite::MIGRATIONS,
        None => leasehold_store_postgres::MIGRATIONS,
    }
}

/// The SQL of the pending migrations; empty if there are none.
pub(crate) fn script(settings: &Settings, status: &[MigrationStatus]) -> Result<String> {
    match sqlite_file(settings) {
        Some(_) => Ok(leasehold_store_sqlite::migration_script(status)),
        None => {
            let script = leasehold_store_postgres::migration_script(&settings.store.schema, status);
            script.map_err(|error| Failure::usage(format!("store.schema: {error}")).into())
        }
    }
}

/// Applies pending migrations and returns them. Waits up to `store.patience` for the database.
pub(crate) async fn migrate(
    store: &dyn Store,
    settings: &Settings,
) -> Result<Vec<MigrationStatus>> {
    let applied = retry_until_timeout(settings, async || store.schema_migrate().await).await;
    match applied {
        Err(error) => Err(unusable_failure(settings, &error).into()),
        Ok(applied) => Ok(applied),
    }
}

/// Every migration that this program or the store knows. Waits up to `store.patience` for the database.
pub(crate) async fn status(store: &dyn Store, settings: &Settings) -> Result<Vec<MigrationStatus>> {
    let status = retry_until_timeout(settings, async || store.schema_status().await).await;
    match status {
        Err(error) => Err(unusable_failure(settings, &error).into()),
        Ok(status) => Ok(status),
    }
}

async fn retry_until_timeout<T>(
    settings: &Settings,
    operation: impl AsyncFn() -> Result<T, Error>,
) -> Result<T, Error> {
    let started = Instant::now();
    loop {
        match operation().await {
            Err(error) if error.is_retryable() && started.elapsed() < settings.store.patience.0 => {
                tracing::warn!(%error, "store is not ready; retrying");
                tokio::time::sleep(RETRY_INTERVAL).await;
            }
            other => return other,
        }
    }
}

/// Fails if this program may not use the schema, or if a step is pending.
fn require_migrated(status: &[MigrationStatus], settings: &Settings) -> Result<(), Failure> {
    if let Some(reason) = schema_refusal(status) {
        return Err(refused(settings, &reason));
    }
    let pending = |one: &&MigrationStatus| one.state == MigrationState::Pending;
    let url = redacted_url(&settings.store_url());
    match status.iter().find(pending) {
        Some(pending) => Err(Failure::usage(format!(
            "cannot use the store {url}: {pending} is pending and store.migrate is false; run `leasehold migrate up` first"
        ))),
        None => Ok(()),
    }
}

fn refused(settings: &Settings, reason: &str) -> Failure {
    let url = redacted_url(&settings.store_url());
    Failure::new(
        Exit::Schema,
        format!("cannot use the store {url}: {reason}"),
    )
}

/// Replaces the error of an unreachable store by a message with advice.
pub(crate) fn explain_error(error: anyhow::Error, settings: &Settings) -> anyhow::Error {
    let store = error.chain().find_map(|one| one.downcast_ref::<Error>());
    match store.map(|error| &error.kind) {
        Some(ErrorKind::Unavailable(reason) | ErrorKind::Contended(reason)) => {
            unavailable(settings, reason).into()
        }
        _ => error,
    }
}

fn unavailable(settings: &Settings, reason: &str) -> Failure {
    let url = redacted_url(&settings.store_url());
    Failure::new(
        Exit::Unavailable,
        format!("cannot reach the store {url}: {reason}; start it, or check --store"),
    )
}

/// Explains why an open store cannot be used.
fn unusable_failure(settings: &Settings, error: &Error) -> Failure {
    let url = redacted_url(&settings.store_url());
    match &error.kind {
        ErrorKind::Unavailable(reason) | ErrorKind::Contended(reason) => {
            unavailable(settings, reason)
        }
        ErrorKind::Schema(reason) => refused(settings, reason),
        other => Failure::new(
            Exit::Failed,
            format!("cannot use the store {url}: {}: {other}", error.context),
        ),
    }
}

/// Explains why a SQLite file cannot be opened.
fn open_failure(file: &Path, error: Error) -> Failure {
    let file = file.display();
    match error.kind {
        ErrorKind::Owned(reason) => Failure::new(Exit::InUse, reason),
        ErrorKind::Unavailable(reason) => Failure::usage(format!(
            "cannot open the SQLite file {file}: {reason}; check --store or --data-dir"
        )),
        other => Failure::new(
            Exit::Failed,
            format!(
                "cannot open the SQLite file {file}: {other}; check --store, or restore a backup"
            ),
        ),
    }
}

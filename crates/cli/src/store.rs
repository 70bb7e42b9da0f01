//! Opens the store that a URL names, brings its schema up to date, and says what is wrong with it in a line with what to do.

mod url;

pub(crate) use url::shown;

use crate::data_folder;
use crate::settings::Settings;
use anyhow::Result;
use leasehold_console::{Exit, Failure};
use leasehold_store::{
    Error, ErrorKind, Migration, MigrationState, MigrationStatus, StepKind, Store,
};
use leasehold_store_postgres::{PostgresOptions, PostgresStore};
use leasehold_store_sqlite::{SqliteOptions, SqliteStore};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

const TRY_EVERY: Duration = Duration::from_secs(1);

/// A store that is ready to be used: its schema is this program's, or becomes it unless the settings forbid that.
pub(crate) async fn open(settings: &Settings) -> Result<Arc<dyn Store>> {
    let store = connect(settings)?;
    if settings.store.migrate {
        let applied = migrate(&*store, settings).await?;
        tracing::debug!(migrations = applied.len(), "schema is up to date");
    } else {
        refuse_pending(&status(&*store, settings).await?, settings)?;
    }
    Ok(store)
}

/// The store, whatever its schema is. A database is not asked for anything yet.
pub(crate) fn connect(settings: &Settings) -> Result<Arc<dyn Store>> {
    if let Some(file) = sqlite_file(settings) {
        if let Some(folder) = file
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty())
        {
            data_folder::make(folder)?;
        }
        let store = SqliteStore::open(&file, &SqliteOptions::default());
        return Ok(Arc::new(store.map_err(|error| unopened(&file, error))?));
    }
    let store = postgres(settings);
    let store = store.map_err(|(key, message)| Failure::usage(format!("{key}: {message}")))?;
    Ok(Arc::new(store))
}

/// The pool of a PostgreSQL store, or the setting that is wrong and what it must be. Connects to nothing.
pub(crate) fn postgres(settings: &Settings) -> Result<PostgresStore, (&'static str, String)> {
    let url = settings.store_url();
    let mut options = PostgresOptions {
        max_connections: settings.store.max_connections,
        notify: settings.store.notify,
        ..PostgresOptions::new(&url)
    };
    // What the driver says of the URL may have a part of its password in it.
    let store = PostgresStore::new(&options).map_err(|_| {
        let must = "must be a URL such as postgres://user:password@host:5432/database";
        ("store.url", format!("{must}, is {}", shown(&url)))
    })?;
    let Some(file) = &settings.store.tls_ca_file else {
        return Ok(store);
    };
    let wrong = |message| ("store.tls_ca_file", message);
    let authority = std::fs::read(file)
        .map_err(|error| wrong(format!("{} cannot be read: {error}", file.display())))?;
    options.tls_ca = Some(authority);
    PostgresStore::new(&options).map_err(|error| match error.kind {
        ErrorKind::Value(text) => wrong(text),
        other => wrong(other.to_string()),
    })
}

/// The SQLite file that the settings name, if they do.
pub(crate) fn sqlite_file(settings: &Settings) -> Option<PathBuf> {
    let url = settings.store_url();
    let path = url.strip_prefix("sqlite:")?;
    Some(PathBuf::from(path.strip_prefix("//").unwrap_or(path)))
}

/// Every migration that this program knows for this store.
pub(crate) fn migrations(settings: &Settings) -> &'static [Migration] {
    match sqlite_file(settings) {
        Some(_) => leasehold_store_sqlite::MIGRATIONS,
        None => leasehold_store_postgres::MIGRATIONS,
    }
}

/// The SQL of what is not applied yet, to be run by hand; nothing if all is.
pub(crate) fn script(settings: &Settings, status: &[MigrationStatus]) -> String {
    match sqlite_file(settings) {
        Some(_) => leasehold_store_sqlite::migration_script(status),
        None => leasehold_store_postgres::migration_script(status),
    }
}

/// Brings the schema up to date and says what was applied. Waits for a database that is not up yet, as long as the settings say.
pub(crate) async fn migrate(
    store: &dyn Store,
    settings: &Settings,
) -> Result<Vec<MigrationStatus>> {
    let applied = patiently(settings, async || store.schema_migrate().await).await;
    match applied {
        Err(error) => Err(unusable(store, settings, error).await.into()),
        Ok(applied) => Ok(applied),
    }
}

/// Every migration that this program or the store knows.
pub(crate) async fn status(store: &dyn Store, settings: &Settings) -> Result<Vec<MigrationStatus>> {
    let status = patiently(settings, async || store.schema_status().await).await;
    match status {
        Err(error) => Err(unusable(store, settings, error).await.into()),
        Ok(status) => Ok(status),
    }
}

async fn patiently<T>(
    settings: &Settings,
    ask: impl AsyncFn() -> Result<T, Error>,
) -> Result<T, Error> {
    let begun = Instant::now();
    loop {
        match ask().await {
            Err(error) if error.is_retryable() && begun.elapsed() < settings.store.patience.0 => {
                tracing::warn!(%error, "the store is not ready yet; trying again");
                tokio::time::sleep(TRY_EVERY).await;
            }
            other => return other,
        }
    }
}

/// With `store.migrate` off: a schema that is not this program's is not used.
fn refuse_pending(status: &[MigrationStatus], settings: &Settings) -> Result<(), Failure> {
    if let Some(newer) = newer(status) {
        return Err(newer);
    }
    let wrong = |state| status.iter().find(move |one| one.state == state);
    let shown = shown(&settings.store_url());
    if let Some(changed) = wrong(MigrationState::Changed) {
        return Err(Failure::new(
            Exit::Schema,
            format!(
                "the store {shown} belongs to another build: its {changed} has another text than this program's; run the program that applied it"
            ),
        ));
    }
    match wrong(MigrationState::Pending) {
        Some(pending) => Err(Failure::usage(format!(
            "the store {shown} lacks {pending}, and store.migrate is false: run `leasehold migrate up` first"
        ))),
        None => Ok(()),
    }
}

/// What to say if a newer program has been here.
fn newer(status: &[MigrationStatus]) -> Option<Failure> {
    let unknown = |one: &&MigrationStatus| one.state == MigrationState::Unknown;
    let found = status.iter().filter(unknown).map(|one| one.number).max()?;
    let known = status
        .iter()
        .filter(|one| one.kind == StepKind::Migration && !unknown(one));
    let known = known.map(|one| one.number).max().unwrap_or_default();
    Some(Failure::new(
        Exit::Schema,
        format!(
            "the store's schema is newer than this program: it has migration {found}, this knows {known}; run the newer leasehold, or restore a backup from before"
        ),
    ))
}

/// An error of something that used the store: one that the store does not answer is told as such.
pub(crate) fn told(error: anyhow::Error, settings: &Settings) -> anyhow::Error {
    let store = error.chain().find_map(|one| one.downcast_ref::<Error>());
    match store.map(|error| &error.kind) {
        Some(ErrorKind::Unavailable(reason) | ErrorKind::Contended(reason)) => {
            silent(settings, reason).into()
        }
        _ => error,
    }
}

fn silent(settings: &Settings, reason: &str) -> Failure {
    let shown = shown(&settings.store_url());
    Failure::new(
        Exit::Unavailable,
        format!(
            "the store {shown} does not answer: {reason}; start it, or name another with --store"
        ),
    )
}

/// Why a store that was opened cannot be used.
async fn unusable(store: &dyn Store, settings: &Settings, error: Error) -> Failure {
    let shown = shown(&settings.store_url());
    match &error.kind {
        ErrorKind::Unavailable(reason) | ErrorKind::Contended(reason) => silent(settings, reason),
        ErrorKind::Schema(reason) => {
            let status = store.schema_status().await.unwrap_or_default();
            newer(&status).unwrap_or_else(|| {
                Failure::new(Exit::Schema, format!("the store {shown}: {reason}"))
            })
        }
        other => Failure::new(
            Exit::Failed,
            format!(
                "the store {shown} cannot be used: {}: {other}",
                error.context
            ),
        ),
    }
}

/// Why a file cannot be opened.
fn unopened(file: &Path, error: Error) -> Failure {
    let file = file.display();
    match error.kind {
        ErrorKind::Owned(reason) => Failure::new(Exit::InUse, reason),
        ErrorKind::Unavailable(reason) => Failure::usage(format!(
            "the SQLite file {file} cannot be opened: {reason}; name another with --store or --data-dir"
        )),
        other => Failure::new(
            Exit::Failed,
            format!(
                "the SQLite file {file} cannot be opened: {other}; name another with --store, or restore a backup"
            ),
        ),
    }
}

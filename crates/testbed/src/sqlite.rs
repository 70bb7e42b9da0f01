//! SQLite stores for tests: on a file in a temporary directory, or in memory.

use crate::backend::{BackendOptions, Storage};
use leasehold_store::Store;
use leasehold_store_sqlite::{SqliteOptions, SqliteStore};
use leasehold_testkit::{TempDir, temp_dir};
use std::path::PathBuf;
use std::sync::Arc;

pub(crate) fn database_file(directory: &TempDir) -> PathBuf {
    directory.path().join("leasehold.db")
}

pub(crate) async fn open_file(options: &BackendOptions) -> (Arc<dyn Store>, Storage) {
    let directory = temp_dir();
    let store = SqliteStore::open(database_file(&directory), &sqlite_options(options)).unwrap();
    (migrate(store).await, Storage::Directory(directory))
}

pub(crate) async fn open_memory(options: &BackendOptions) -> (Arc<dyn Store>, Storage) {
    let store = SqliteStore::open_in_memory(&sqlite_options(options)).unwrap();
    (migrate(store).await, Storage::Memory)
}

fn sqlite_options(options: &BackendOptions) -> SqliteOptions {
    SqliteOptions {
        clock: options.store_clock(),
        readers: options.readers,
        ..SqliteOptions::default()
    }
}

async fn migrate(store: SqliteStore) -> Arc<dyn Store> {
    let store: Arc<dyn Store> = Arc::new(store);
    store.schema_migrate().await.unwrap();
    store
}

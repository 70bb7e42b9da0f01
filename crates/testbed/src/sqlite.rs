//! SQLite for tests: a store on a file in a temporary folder, or in memory.

use crate::backend::{BackendOptions, Storage};
use leasehold_store::Store;
use leasehold_store_sqlite::{SqliteOptions, SqliteStore};
use leasehold_testkit::{TempDir, temp_dir};
use std::path::PathBuf;
use std::sync::Arc;

pub(crate) fn file_in(folder: &TempDir) -> PathBuf {
    folder.path().join("leasehold.db")
}

pub(crate) async fn open_file(options: &BackendOptions) -> (Arc<dyn Store>, Storage) {
    let folder = temp_dir();
    let store = SqliteStore::open(file_in(&folder), &sqlite_options(options)).unwrap();
    (migrated(store).await, Storage::Folder(folder))
}

pub(crate) async fn open_memory(options: &BackendOptions) -> (Arc<dyn Store>, Storage) {
    let store = SqliteStore::open_in_memory(&sqlite_options(options)).unwrap();
    (migrated(store).await, Storage::Memory)
}

fn sqlite_options(options: &BackendOptions) -> SqliteOptions {
    SqliteOptions {
        clock: options.judge(),
        readers: options.readers,
        ..SqliteOptions::default()
    }
}

async fn migrated(store: SqliteStore) -> Arc<dyn Store> {
    let store: Arc<dyn Store> = Arc::new(store);
    store.schema_migrate().await.unwrap();
    store
}

//! Every statement under `sql/` is accepted by a migrated database.
#![allow(clippy::unwrap_used)]

use crate::support;

use leasehold_store::sql::expand;
use leasehold_store_postgres::INCLUDES;
use std::path::{Path, PathBuf};

fn files(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, found);
        } else {
            found.push(path);
        }
    }
}

#[tokio::test]
async fn every_statement_prepares() {
    let database = support::database().await;
    let client = support::raw::connect(&database).await;
    let mut found = Vec::new();
    files(
        Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/sql")),
        &mut found,
    );
    assert!(found.len() > 50, "only {} statements", found.len());
    for path in found {
        let text = std::fs::read_to_string(&path).unwrap();
        if INCLUDES.iter().any(|include| include.text == text) {
            continue;
        }
        let text = expand(&text, INCLUDES);
        if let Err(error) = client.prepare(&text).await {
            panic!("{}: {error:?}", path.display());
        }
    }
}

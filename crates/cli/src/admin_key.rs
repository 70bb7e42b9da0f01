//! The administrator's key in the data folder, and `leasehold admin-key`.
//!
//! The key is on the disk before the store knows it, under another name; once the store knows it, it gets its own. Whatever moment a crash picks, the next
//! start finds either no key in the store and makes one, or the key on the disk under one of the two names.

use crate::data_folder::SafeFile;
use crate::place::Place;
use crate::store;
use anyhow::{Context, Result};
use clap::Args;
use leasehold_core::key::{KeyScope, Secret};
use leasehold_ops::key::{AdminDraft, has_admin};
use leasehold_store::Store;
use std::path::{Path, PathBuf};

const FILE: &str = "admin.key";

/// Where an administrator's key is to be had.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum AdminKey {
    /// It was made just now, and is in this file.
    Made(PathBuf),
    /// It was made before, and is in this file.
    Kept(PathBuf),
    /// What is in this file opens nothing, or not everything.
    Stale(PathBuf),
    /// Not in this data folder.
    Elsewhere,
}

/// Sees to it that there is an administrator's key, and says where.
pub(crate) async fn ensure(store: &dyn Store, folder: &Path) -> Result<AdminKey> {
    let file = SafeFile::new(folder, FILE);
    settle(store, &file).await?;
    if !has_admin(store).await? {
        let draft = AdminDraft::new("first start")?;
        file.write_draft(&line(draft.secret()))?;
        if draft.create_first(store).await? {
            file.keep_draft()?;
            return Ok(AdminKey::Made(file.path().to_owned()));
        }
        // Another instance was first.
        file.drop_draft()?;
    }
    let path = file.path().to_owned();
    Ok(match file.read() {
        Ok(Some(text)) if opens_all(store, &text).await? => AdminKey::Kept(path),
        Ok(Some(_)) => AdminKey::Stale(path),
        Ok(None) => AdminKey::Elsewhere,
        // Whoever put it there did not mean it for this process, which serves all the same.
        Err(error) => {
            tracing::warn!(
                error = format!("{error:#}"),
                "the administrator's key is there and cannot be read"
            );
            AdminKey::Stale(path)
        }
    })
}

/// Finishes what a crash has left: a key that the store knows gets its place, one that it does not know goes.
async fn settle(store: &dyn Store, file: &SafeFile) -> Result<()> {
    match file.read_draft()? {
        None => Ok(()),
        Some(text) if opens_all(store, &text).await? => file.keep_draft(),
        Some(_) => file.drop_draft(),
    }
}

async fn opens_all(store: &dyn Store, text: &str) -> Result<bool> {
    let Some(secret) = Secret::parse(text.trim()) else {
        return Ok(false);
    };
    let found = store.key_find(&secret.hash()).await?;
    Ok(found.is_some_and(|key| key.scope == KeyScope::Admin && key.revoked_at.is_none()))
}

fn line(secret: &Secret) -> String {
    format!("{}\n", secret.reveal())
}

/// The flags of `leasehold admin-key`.
#[derive(Args)]
pub(crate) struct MakeAdminKey {
    #[command(flatten)]
    place: Place,
}

impl MakeAdminKey {
    /// Makes another key and puts it in the data folder.
    pub(crate) fn run(&self) -> Result<()> {
        let settings = self.place.settings(Vec::new())?;
        let made = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .context("the async runtime cannot be started")?
            .block_on(async {
                let store = store::open(&settings).await?;
                let made = make(&*store, &settings.data_dir).await;
                made.map_err(|error| store::told(error, &settings))
            })?;
        print(&made);
        Ok(())
    }
}

async fn make(store: &dyn Store, folder: &Path) -> Result<PathBuf> {
    let file = SafeFile::new(folder, FILE);
    settle(store, &file).await?;
    let draft = AdminDraft::new("made by `leasehold admin-key`")?;
    file.write_draft(&line(draft.secret()))?;
    draft.create(store).await?;
    file.keep_draft()?;
    Ok(file.path().to_owned())
}

#[allow(clippy::print_stdout, reason = "this is what was asked for")]
fn print(made: &Path) {
    println!("a new administrator's key is in {}", made.display());
    println!(
        "earlier keys still open everything: `leasehold key list` shows them, `leasehold key revoke ID` ends one"
    );
}

#[cfg(test)]
mod tests;

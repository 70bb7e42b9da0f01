//! The administrator key in the data directory, and `leasehold admin-key`.
//!
//! The key is written to a draft file before the store knows it, and renamed afterwards. After a crash at any point, the next start finds either
//! no key in the store and creates one, or the key on disk under one of the two names.

use crate::data_dir::AtomicFile;
use crate::settings_flags::StoreFlags;
use crate::store;
use anyhow::{Context, Result, bail};
use clap::Args;
use leasehold_console::{Exit, Failure};
use leasehold_core::key::Secret;
use leasehold_crash_marker::CrashMarkers;
use leasehold_ops::key::{AdminDraft, has_admin};
use leasehold_store::Store;
use std::path::{Path, PathBuf};

const FILE: &str = "admin.key";

/// The location of the administrator key.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum AdminKey {
    /// Created by this start, in this file.
    Created(PathBuf),
    /// Created earlier, in this file.
    Existing(PathBuf),
    /// This file contains no valid administrator key.
    Invalid(PathBuf),
    /// Not in this data directory.
    Missing,
}

/// Ensures that an administrator key exists, and returns its location.
pub(crate) async fn ensure(store: &dyn Store, dir: &Path) -> Result<AdminKey> {
    let file = AtomicFile::new(dir, FILE);
    recover_draft(store, &file).await?;
    if !has_admin(store).await? {
        refuse_foreign_key(store, &file).await?;
        let draft = AdminDraft::new("first start")?;
        file.write_draft(&line(draft.secret()))?;
        if draft.create_first(store).await? {
            file.commit_draft()?;
            return Ok(AdminKey::Created(file.path().to_owned()));
        }
        // Another instance created the key first.
        file.discard_draft()?;
    }
    let path = file.path().to_owned();
    Ok(match file.read() {
        Ok(Some(text)) if is_admin_key(store, &text).await? => AdminKey::Existing(path),
        Ok(Some(_)) => AdminKey::Invalid(path),
        Ok(None) => AdminKey::Missing,
        // The server starts without access to the file.
        Err(error) => {
            tracing::warn!(
                error = format!("{error:#}"),
                "failed to read the administrator key"
            );
            AdminKey::Invalid(path)
        }
    })
}

/// Completes an interrupted creation: commits a draft that the store knows, discards any other.
async fn recover_draft(store: &dyn Store, file: &AtomicFile) -> Result<()> {
    match file.read_draft()? {
        None => Ok(()),
        Some(text) if is_admin_key(store, &text).await? => file.commit_draft(),
        Some(_) => file.discard_draft(),
    }
}

/// Fails if the file holds a key that this store does not know: it belongs to another store and must not be overwritten.
async fn refuse_foreign_key(store: &dyn Store, file: &AtomicFile) -> Result<()> {
    let text = file.read()?.unwrap_or_default();
    let Some(secret) = Secret::parse(text.trim()) else {
        return Ok(());
    };
    if store.key_find(&secret.hash()).await?.is_some() {
        return Ok(());
    }
    let file = file.path().display();
    bail!(Failure::usage(format!(
        "refusing to overwrite {file}: its key is not a key of this store; choose another --data-dir, check --store, or move the \
         file away if its store no longer exists"
    )))
}

async fn is_admin_key(store: &dyn Store, text: &str) -> Result<bool> {
    let Some(secret) = Secret::parse(text.trim()) else {
        return Ok(false);
    };
    let found = store.key_find(&secret.hash()).await?;
    Ok(found.is_some_and(|key| key.is_valid_admin()))
}

fn line(secret: &Secret) -> String {
    format!("{}\n", secret.reveal())
}

/// Flags of `leasehold admin-key`.
#[derive(Args)]
pub(crate) struct AdminKeyCommand {
    #[command(flatten)]
    flags: StoreFlags,
}

impl AdminKeyCommand {
    /// Creates a new key in the data directory.
    pub(crate) fn run(&self) -> Result<()> {
        let settings = self.flags.settings(Vec::new())?;
        let created = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .context("cannot start the async runtime")?
            .block_on(async {
                let store = store::open(&settings, &CrashMarkers::default())
                    .await
                    .map_err(explain_in_use)?;
                let created = create(&*store, &settings.data_dir).await;
                created.map_err(|error| store::explain_error(error, &settings))
            })?;
        print(&created);
        Ok(())
    }
}

/// Adds to the failure of a store in use how the running server creates a key.
fn explain_in_use(error: anyhow::Error) -> anyhow::Error {
    match error.downcast_ref::<Failure>() {
        Some(failure) if failure.exit == Exit::InUse => Failure::new(
            Exit::InUse,
            format!(
                "{}; if it is a server and you have an administrator key, create another with `leasehold key create NAME --admin`",
                failure.message
            ),
        )
        .into(),
        _ => error,
    }
}

async fn create(store: &dyn Store, dir: &Path) -> Result<PathBuf> {
    let file = AtomicFile::new(dir, FILE);
    recover_draft(store, &file).await?;
    refuse_foreign_key(store, &file).await?;
    let draft = AdminDraft::new("created by `leasehold admin-key`")?;
    file.write_draft(&line(draft.secret()))?;
    draft.create(store).await?;
    file.commit_draft()?;
    Ok(file.path().to_owned())
}

#[allow(clippy::print_stdout, reason = "output of the command")]
fn print(created: &Path) {
    println!("created administrator key in {}", created.display());
    println!(
        "earlier administrator keys stay valid; list them with `leasehold key list`, revoke one with `leasehold key revoke ID`"
    );
}

#[cfg(test)]
mod tests;

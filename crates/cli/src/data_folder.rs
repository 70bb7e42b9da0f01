//! The folder that an instance keeps its own things in, for its owner only. What is written is there after a crash, whole or not at all.

use anyhow::{Context, Result};
use leasehold_console::Failure;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, fchown};
use std::path::{Path, PathBuf};

/// Makes a folder that only its owner can enter, unless it is there.
pub(crate) fn make(folder: &Path) -> Result<()> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)
        .map_err(|error| {
            let folder = folder.display();
            Failure::usage(format!(
                "the folder {folder} cannot be made: {error}; name another"
            ))
        })?;
    Ok(())
}

/// A file in the folder that is written beside its place first, and put there when the time has come.
pub(crate) struct SafeFile {
    path: PathBuf,
    draft: PathBuf,
}

impl SafeFile {
    pub(crate) fn new(folder: &Path, name: &str) -> Self {
        Self {
            path: folder.join(name),
            draft: folder.join(format!("{name}.new")),
        }
    }

    /// Where it is, or will be.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// What it holds, if it is there.
    pub(crate) fn read(&self) -> Result<Option<String>> {
        read(&self.path)
    }

    /// What was written beside it and not put in its place.
    pub(crate) fn read_draft(&self) -> Result<Option<String>> {
        read(&self.draft)
    }

    /// Writes beside its place, readable by its owner only, and to the disk.
    pub(crate) fn write_draft(&self, text: &str) -> Result<()> {
        let folder = self.path.parent().unwrap_or(Path::new("."));
        make(folder)?;
        self.drop_draft()?;
        let write = || {
            let mut options = OpenOptions::new();
            let mut file = options
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(&self.draft)?;
            give_to_owner(&file, folder)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            File::open(folder)?.sync_all()
        };
        write().with_context(|| format!("{} cannot be written", self.draft.display()))
    }

    /// Puts what was written in its place.
    pub(crate) fn keep_draft(&self) -> Result<()> {
        let folder = self.path.parent().unwrap_or(Path::new("."));
        let keep = || {
            fs::rename(&self.draft, &self.path)?;
            File::open(folder)?.sync_all()
        };
        keep().with_context(|| format!("{} cannot be written", self.path.display()))
    }

    /// Throws away what was written beside its place.
    pub(crate) fn drop_draft(&self) -> Result<()> {
        match fs::remove_file(&self.draft) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(error).with_context(|| format!("{} cannot be removed", self.draft.display()))
            }
            _ => Ok(()),
        }
    }
}

/// What root writes for a service belongs to whoever the folder belongs to, or the service could not read it.
fn give_to_owner(file: &File, folder: &Path) -> std::io::Result<()> {
    let (owner, is) = (fs::metadata(folder)?, file.metadata()?);
    if owner.uid() == is.uid() {
        return Ok(());
    }
    fchown(file, Some(owner.uid()), Some(owner.gid()))
}

fn read(file: &Path) -> Result<Option<String>> {
    match fs::read_to_string(file) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("{} cannot be read", file.display())),
    }
}

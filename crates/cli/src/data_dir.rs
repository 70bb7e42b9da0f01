//! The data directory of an instance, accessible by its owner only. Files are written atomically.

use anyhow::{Context, Result};
use leasehold_console::Failure;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, fchown};
use std::path::{Path, PathBuf};

const ROOT: u32 = 0;

/// Creates a directory that only its owner can enter, unless it exists.
pub(crate) fn create(dir: &Path) -> Result<()> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(dir)
        .map_err(|error| {
            let dir = dir.display();
            Failure::usage(format!(
                "cannot create the directory {dir}: {error}; choose another"
            ))
        })?;
    Ok(())
}

/// A file that is written as a draft beside its final path and then renamed.
pub(crate) struct AtomicFile {
    path: PathBuf,
    draft: PathBuf,
}

impl AtomicFile {
    pub(crate) fn new(dir: &Path, name: &str) -> Self {
        Self {
            path: dir.join(name),
            draft: dir.join(format!("{name}.new")),
        }
    }

    /// The final path.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Reads the file, if it exists.
    pub(crate) fn read(&self) -> Result<Option<String>> {
        read(&self.path)
    }

    /// Reads an uncommitted draft, if it exists.
    pub(crate) fn read_draft(&self) -> Result<Option<String>> {
        read(&self.draft)
    }

    /// Writes and syncs the draft, readable by its owner only.
    pub(crate) fn write_draft(&self, text: &str) -> Result<()> {
        let dir = self.path.parent().unwrap_or(Path::new("."));
        create(dir)?;
        self.discard_draft()?;
        let write = || {
            let mut options = OpenOptions::new();
            let mut file = options
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(&self.draft)?;
            chown_to_dir_owner(&file, dir)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            File::open(dir)?.sync_all()
        };
        write().with_context(|| format!("cannot write {}", self.draft.display()))
    }

    /// Renames the draft to the final path.
    pub(crate) fn commit_draft(&self) -> Result<()> {
        let dir = self.path.parent().unwrap_or(Path::new("."));
        let commit = || {
            fs::rename(&self.draft, &self.path)?;
            File::open(dir)?.sync_all()
        };
        commit().with_context(|| format!("cannot write {}", self.path.display()))
    }

    /// Removes the draft.
    pub(crate) fn discard_draft(&self) -> Result<()> {
        match fs::remove_file(&self.draft) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(error).with_context(|| format!("cannot remove {}", self.draft.display()))
            }
            _ => Ok(()),
        }
    }
}

/// Gives a file that root writes to the owner of the directory, so that the service can read it. Other users cannot give files away.
fn chown_to_dir_owner(file: &File, dir: &Path) -> std::io::Result<()> {
    let (owner, is) = (fs::metadata(dir)?, file.metadata()?);
    if is.uid() != ROOT || owner.uid() == ROOT {
        return Ok(());
    }
    fchown(file, Some(owner.uid()), Some(owner.gid()))
}

fn read(file: &Path) -> Result<Option<String>> {
    match fs::read_to_string(file) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("cannot read {}", file.display())),
    }
}

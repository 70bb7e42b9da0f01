//! One process owns a SQLite file. The owner holds an operating system lock, which ends with the process, even after a crash.

use leasehold_store::{Error, ErrorKind, Result};
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};

const CONTEXT: &str = "open";

/// An exclusive lock on a SQLite file; released on drop.
#[derive(Debug)]
pub(crate) struct FileLock {
    /// The lock file is never removed: another process may already have it open to lock it.
    lock: File,
}

impl Drop for FileLock {
    fn drop(&mut self) {
        // Closing is not enough: between fork and exec a child process shares the open file and keeps the lock. If
        // unlocking fails, closing the file releases the lock.
        let _ = self.lock.unlock();
    }
}

impl FileLock {
    /// Locks `file`. The error names the process that holds the lock.
    pub(crate) fn acquire(file: &Path) -> Result<Self> {
        let path = lock_path(file);
        let mut lock = open_private(&path).map_err(|error| unavailable(&path, &error))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(owned_error(file, &mut lock)),
            Err(TryLockError::Error(error)) => return Err(unavailable(&path, &error)),
        }
        write_pid(&mut lock).map_err(|error| unavailable(&path, &error))?;
        Ok(Self { lock })
    }
}

/// Opens a file, or creates it with mode 0600. An existing file keeps its mode.
fn open_private(path: &Path) -> std::io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Creates the file with mode 0600 unless it exists. SQLite would create it readable by others; the WAL and the other
/// side files get the mode of the database file.
pub(crate) fn create_private(file: &Path) -> Result<()> {
    let created = match file.try_exists() {
        // Not opened: closing it would release the POSIX locks that this process holds on it.
        Ok(true) => Ok(()),
        Ok(false) => open_private(file).map(drop),
        Err(error) => Err(error),
    };
    created.map_err(|error| unavailable(file, &error))
}

fn lock_path(file: &Path) -> PathBuf {
    let mut path = file.as_os_str().to_owned();
    path.push(".lock");
    path.into()
}

fn write_pid(lock: &mut File) -> std::io::Result<()> {
    lock.set_len(0)?;
    lock.rewind()?;
    writeln!(lock, "{}", std::process::id())?;
    lock.flush()
}

fn owned_error(file: &Path, lock: &mut File) -> Error {
    let mut text = String::new();
    let holder = match lock.read_to_string(&mut text) {
        Ok(_) if !text.trim().is_empty() => format!("process {}", text.trim()),
        _ => "another process".to_owned(),
    };
    Error::new(
        CONTEXT,
        ErrorKind::Owned(format!(
            "{} is in use by {holder}; only one process at a time can open a SQLite file: stop that process, use \
             another file, or use PostgreSQL, which several processes can share",
            file.display()
        )),
    )
}

fn unavailable(path: &Path, error: &std::io::Error) -> Error {
    Error::new(
        CONTEXT,
        ErrorKind::Unavailable(format!("{}: {error}", path.display())),
    )
}

/// Returns the canonical path, so that two links to one file share one lock.
pub(crate) fn canonical_path(file: &Path) -> Result<PathBuf> {
    if let Ok(path) = file.canonicalize() {
        return Ok(path);
    }
    let dir = match file.parent() {
        Some(dir) if !dir.as_os_str().is_empty() => dir,
        _ => Path::new("."),
    };
    let name = file.file_name().ok_or_else(|| {
        let text = format!("{} is not a file name", file.display());
        Error::new(CONTEXT, ErrorKind::Unavailable(text))
    })?;
    dir.canonicalize()
        .map(|dir| dir.join(name))
        .map_err(|error| unavailable(dir, &error))
}

//! One process owns a SQLite file. The claim is a lock of the operating system, so it ends with its owner, however that ends.

use leasehold_store::{Error, ErrorKind, Result};
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};

const CONTEXT: &str = "open";

/// The ownership of a file; given back when dropped.
#[derive(Debug)]
pub(crate) struct Owner {
    /// The file itself stays when the lock is given back: removing it could take a lock from under a newcomer.
    lock: File,
}

impl Drop for Owner {
    fn drop(&mut self) {
        // Closing alone is not enough: a child that is just being started shares the open file until it runs its own
        // program, and would keep the lock for that long. Where unlocking fails, closing remains.
        let _ = self.lock.unlock();
    }
}

impl Owner {
    /// Takes the ownership of `file`, or says who has it.
    pub(crate) fn take(file: &Path) -> Result<Self> {
        let path = lock_path(file);
        let mut lock = open_private(&path).map_err(|error| unavailable(&path, &error))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(owned(file, &mut lock)),
            Err(TryLockError::Error(error)) => return Err(unavailable(&path, &error)),
        }
        write_pid(&mut lock).map_err(|error| unavailable(&path, &error))?;
        Ok(Self { lock })
    }
}

/// Opens a file, which is made readable by nobody else if it is not there. The mode of one that is there stays.
fn open_private(path: &Path) -> std::io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Makes the file, empty and for its owner only, unless it is there. SQLite itself would let others read it; what it keeps
/// beside a file has that file's mode.
pub(crate) fn make(file: &Path) -> Result<()> {
    let made = match file.try_exists() {
        // Not even opened: closing it would end the locks that this process may have on it.
        Ok(true) => Ok(()),
        Ok(false) => open_private(file).map(drop),
        Err(error) => Err(error),
    };
    made.map_err(|error| unavailable(file, &error))
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

fn owned(file: &Path, lock: &mut File) -> Error {
    let mut text = String::new();
    let who = match lock.read_to_string(&mut text) {
        Ok(_) if !text.trim().is_empty() => format!("process {}", text.trim()),
        _ => "another process".to_owned(),
    };
    Error::new(
        CONTEXT,
        ErrorKind::Owned(format!(
            "{} is in use by {who}; a SQLite file belongs to one process at a time: stop that process, or give \
             this one a file of its own, or use PostgreSQL, which several processes can share",
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

/// The file's one true path, so that a link to it is not mistaken for another file.
pub(crate) fn true_path(file: &Path) -> Result<PathBuf> {
    if let Ok(path) = file.canonicalize() {
        return Ok(path);
    }
    let folder = match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let name = file.file_name().ok_or_else(|| {
        let text = format!("{} is not the name of a file", file.display());
        Error::new(CONTEXT, ErrorKind::Unavailable(text))
    })?;
    folder
        .canonicalize()
        .map(|folder| folder.join(name))
        .map_err(|error| unavailable(folder, &error))
}

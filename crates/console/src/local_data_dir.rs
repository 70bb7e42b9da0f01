//! The data directory of a server on this machine: which one is trusted, its socket and its administrator key.
//!
//! The key in the directory goes only over the socket in the same directory. A cloned repository may contain a directory with an address and a key, but
//! it cannot contain a socket; and only its owner can create one there. So neither a planted directory nor another process on the server's port gets a key.
//! The directory stays open from the check on, and the key and the socket are used through it: on Linux, another directory under the same path gets nothing.

use crate::exit::{Exit, Failure};
use leasehold_client::{Client, ClientError, ClientOptions, directory_path};
use leasehold_core::key::Secret;
use std::fs::{self, File, Metadata};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

const NAME: &str = "leasehold-data";
/// The data directory of the packaged systemd service.
const SYSTEM_DIR: &str = "/var/lib/leasehold";
/// The name of the server's socket in its data directory.
pub const SOCKET_FILE: &str = "leasehold.sock";
const KEY_FILE: &str = "admin.key";
/// Permission bits: writable by group or others.
const WRITABLE: u32 = 0o022;

/// A trusted data directory.
#[derive(Clone, Debug)]
pub(crate) struct LocalDataDir {
    /// The path to show.
    path: PathBuf,
    /// The directory that was checked.
    handle: Arc<File>,
}

/// Creates a client of the server that runs on this data directory, with the administrator key in it.
///
/// # Errors
/// Fails if the directory is not trusted, no server runs on it, or it has no valid key.
pub fn local_client(dir: &Path, options: ClientOptions) -> Result<Client, Failure> {
    let (client, _) = LocalDataDir::named(dir)?.client(options)?;
    Ok(client)
}

impl LocalDataDir {
    /// Finds the named directory, else `leasehold-data` in this directory or a parent, else the system's.
    pub(crate) fn find(named: Option<&Path>) -> Result<Option<Self>, Failure> {
        if let Some(dir) = named {
            return Self::named(dir).map(Some);
        }
        let here = std::env::current_dir().unwrap_or_default();
        let mut above = here.ancestors().map(|dir| dir.join(NAME));
        let found = above.find(|dir| is_trusted(dir));
        let system = || Some(PathBuf::from(SYSTEM_DIR)).filter(|dir| is_trusted_system_dir(dir));
        // Skips a directory that this user cannot read, unless --data-dir names it.
        Ok(found.or_else(system).and_then(Self::opened))
    }

    /// Opens a directory that was found trusted; none if this user cannot read it, or its path leads to another one meanwhile.
    fn opened(path: PathBuf) -> Option<Self> {
        let found = fs::symlink_metadata(&path).ok()?;
        let handle = File::open(&path).ok()?;
        let opened = handle.metadata().ok()?;
        let is_found = (opened.dev(), opened.ino()) == (found.dev(), found.ino());
        (is_found && is_safe(&opened, &[found.uid()])).then_some(Self {
            path,
            handle: Arc::new(handle),
        })
    }

    /// Root may name the directory of any user, others only their own and root's.
    fn named(dir: &Path) -> Result<Self, Failure> {
        let is_dir = fs::metadata(dir).map(|metadata| metadata.is_dir());
        let shown = dir.display();
        if !is_dir.map_err(|error| unreadable(dir, &error))? {
            return Err(Failure::usage(format!(
                "--data-dir: {shown} is not a directory"
            )));
        }
        let handle = File::open(dir).map_err(|error| unreadable(dir, &error))?;
        let metadata = handle.metadata();
        let metadata = metadata.map_err(|error| unreadable(dir, &error))?;
        let (owner, user) = (metadata.uid(), current_uid());
        if owner != user && owner != 0 && user != 0 {
            return Err(denied(format!(
                "refusing to use the data directory {shown}: it belongs to another user; run the command as its owner, or \
                 set --server and LEASEHOLD_KEY"
            )));
        }
        if metadata.mode() & WRITABLE != 0 {
            return Err(denied(format!(
                "refusing to use the data directory {shown}: other users can write to it; run `chmod go-w {shown}`, or set \
                 --server and LEASEHOLD_KEY"
            )));
        }
        Ok(Self {
            path: dir.to_owned(),
            handle: Arc::new(handle),
        })
    }

    /// The path of the directory.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The path of a file in the directory that was checked; where the system has no such paths, in the directory that has its path now.
    fn file(&self, name: &str) -> PathBuf {
        let directory = directory_path(&self.handle);
        directory.unwrap_or_else(|| self.path.clone()).join(name)
    }

    /// The path of the server's socket.
    pub(crate) fn socket(&self) -> PathBuf {
        self.path.join(SOCKET_FILE)
    }

    /// Creates a client over the socket of the directory with its key; also returns the file of the key.
    pub(crate) fn client(&self, options: ClientOptions) -> Result<(Client, PathBuf), Failure> {
        self.metadata(SOCKET_FILE, |metadata| metadata.file_type().is_socket())?
            .ok_or_else(|| self.not_running("it has no socket"))?;
        let file = self.path.join(KEY_FILE);
        let key = self.key(&file)?;
        let client = self.connect(&key, options);
        let client = client.map_err(|error| match error {
            ClientError::Setup(why) => Failure::usage(format!(
                "{why}; set --data-dir to a shorter path, or --server and LEASEHOLD_KEY"
            )),
            other => Failure::new(Exit::Failed, other.to_string()),
        })?;
        Ok((client, file))
    }

    fn connect(&self, key: &str, options: ClientOptions) -> Result<Client, ClientError> {
        if let Ok(directory) = self.handle.try_clone()
            && let Some(client) =
                Client::over_socket_within(directory, SOCKET_FILE, key, options.clone())?
        {
            return Ok(client);
        }
        Client::over_socket(&self.socket(), key, options)
    }

    /// The failure that no server runs on the directory; `why` is how this was noticed.
    pub(crate) fn not_running(&self, why: &str) -> Failure {
        let dir = self.path.display();
        Failure::new(
            Exit::Unavailable,
            format!(
                "no server runs on the data directory {dir} ({why}); start it with `leasehold serve --data-dir {dir}`, or set \
                 --server and LEASEHOLD_KEY to use another server"
            ),
        )
    }

    fn key(&self, file: &Path) -> Result<String, Failure> {
        let regular = self.metadata(KEY_FILE, Metadata::is_file)?;
        let text = match regular {
            Some(_) => {
                fs::read_to_string(self.file(KEY_FILE)).map_err(|error| unreadable(file, &error))?
            }
            None => String::new(),
        };
        let text = text.trim();
        if text.is_empty() {
            let dir = self.path.display();
            return Err(denied(format!(
                "no administrator key in the data directory {dir}: {KEY_FILE} is missing or empty; set --server and \
                 LEASEHOLD_KEY, or create a key with `leasehold admin-key --data-dir {dir}`"
            )));
        }
        checked_key(text, &file.display().to_string())
    }

    /// Reads the metadata of a file, if it exists. Fails if another user owns or can write it, or it is not of the expected kind.
    fn metadata(
        &self,
        name: &str,
        is_expected: impl FnOnce(&Metadata) -> bool,
    ) -> Result<Option<Metadata>, Failure> {
        let file = self.path.join(name);
        let metadata = match fs::symlink_metadata(self.file(name)) {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(unreadable(&file, &error)),
        };
        let owner = self.handle.metadata();
        let owner = owner.map_err(|error| unreadable(&self.path, &error))?;
        let owned = [owner.uid(), current_uid(), 0].contains(&metadata.uid());
        if !owned || metadata.mode() & WRITABLE != 0 || !is_expected(&metadata) {
            return Err(denied(format!(
                "refusing to use {}: it is not a file of the server, or another user owns it or can write it; check it with \
                 `ls -l`, or set --server and LEASEHOLD_KEY",
                file.display()
            )));
        }
        Ok(Some(metadata))
    }
}

/// Checks the format of a key; `from` is its source.
pub(crate) fn checked_key(key: &str, from: &str) -> Result<String, Failure> {
    match Secret::parse(key) {
        Some(_) => Ok(key.to_owned()),
        None => Err(denied(format!(
            "invalid API key in {from}: a key starts with lh_ and must be copied completely"
        ))),
    }
}

fn denied(message: String) -> Failure {
    Failure::new(Exit::Denied, message)
}

fn unreadable(path: &Path, error: &io::Error) -> Failure {
    let message = format!(
        "cannot read {}: {error}; set --data-dir to another directory",
        path.display()
    );
    match error.kind() {
        ErrorKind::PermissionDenied => denied(message),
        _ => Failure::usage(message),
    }
}

fn current_uid() -> u32 {
    rustix::process::geteuid().as_raw()
}

fn is_safe(metadata: &Metadata, owners: &[u32]) -> bool {
    metadata.is_dir() && metadata.mode() & WRITABLE == 0 && owners.contains(&metadata.uid())
}

/// In a directory that another user can write, the socket could be another server's.
fn is_trusted(dir: &Path) -> bool {
    fs::symlink_metadata(dir).is_ok_and(|metadata| is_safe(&metadata, &[current_uid(), 0]))
}

/// The system directory may belong to the service user, if root owns its parent.
fn is_trusted_system_dir(dir: &Path) -> bool {
    let parent = dir.parent().map(fs::symlink_metadata);
    let of_root =
        parent.is_some_and(|metadata| metadata.is_ok_and(|metadata| is_safe(&metadata, &[0])));
    let metadata = fs::symlink_metadata(dir);
    of_root && metadata.is_ok_and(|metadata| is_safe(&metadata, &[metadata.uid()]))
}

#[cfg(test)]
mod tests;

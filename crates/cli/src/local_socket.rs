//! The Unix socket in the data directory, over which commands on the same machine reach the server.

use crate::data_dir;
use anyhow::{Context, Result};
use leasehold_client::SocketPath;
use leasehold_console::SOCKET_FILE;
use std::fs::{self, Permissions};
use std::io::ErrorKind;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use tokio::net::{UnixListener, UnixStream};

const MODE: u32 = 0o600;
/// Permission bits: writable by group or others.
const WRITABLE: u32 = 0o022;

/// The file of the socket; dropping it removes the file.
pub(crate) struct LocalSocket {
    path: PathBuf,
    /// Device and inode: another server with the same directory may replace the file.
    id: (u64, u64),
}

impl LocalSocket {
    /// Creates the socket and listens on it. A failure is only logged: then commands need `--server` and a key.
    pub(crate) async fn listen(dir: &Path) -> Option<(UnixListener, Self)> {
        match Self::create(dir).await {
            Ok(listening) => Some(listening),
            Err(error) => {
                let error = format!("{error:#}");
                tracing::warn!(
                    error,
                    "failed to create the local socket; commands on this machine need --server and LEASEHOLD_KEY"
                );
                None
            }
        }
    }

    /// Binds under another name and renames, so that the socket never has another mode, and a socket that a dead server left is replaced.
    async fn create(dir: &Path) -> Result<(UnixListener, Self)> {
        data_dir::create(dir)?;
        let (path, draft) = (dir.join(SOCKET_FILE), draft_path(dir));
        if fs::metadata(dir)?.mode() & WRITABLE != 0 {
            let dir = dir.display();
            tracing::warn!(%dir, "other users can write to the data directory; commands on this machine refuse it");
        }
        if is_alive(&path).await? {
            let socket = path.display();
            tracing::warn!(%socket, "another server runs on this data directory; commands on this machine now reach this one");
        }
        remove(&draft)?;
        let bound = SocketPath::new(&draft)?;
        let listener = UnixListener::bind(bound.as_path());
        let listener =
            listener.with_context(|| format!("cannot create the socket {}", draft.display()))?;
        let publish = || {
            fs::set_permissions(&draft, Permissions::from_mode(MODE))?;
            let metadata = fs::symlink_metadata(&draft)?;
            fs::rename(&draft, &path)?;
            std::io::Result::Ok((metadata.dev(), metadata.ino()))
        };
        let id = publish().with_context(|| format!("cannot create {}", path.display()))?;
        Ok((listener, Self { path, id }))
    }
}

impl Drop for LocalSocket {
    fn drop(&mut self) {
        let current = fs::symlink_metadata(&self.path);
        let unchanged = current.is_ok_and(|current| (current.dev(), current.ino()) == self.id);
        if unchanged && let Err(error) = fs::remove_file(&self.path) {
            tracing::warn!(%error, socket = %self.path.display(), "failed to remove the local socket");
        }
    }
}

/// The path under which the socket is created, before its mode is set. Servers that start at the same time have different ones.
fn draft_path(dir: &Path) -> PathBuf {
    dir.join(format!("{SOCKET_FILE}.{}.new", std::process::id()))
}

/// Whether a process accepts connections on the socket.
async fn is_alive(path: &Path) -> Result<bool> {
    let path = SocketPath::new(path)?;
    Ok(UnixStream::connect(path.as_path()).await.is_ok())
}

fn remove(file: &Path) -> Result<()> {
    match fs::remove_file(file) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", file.display()))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[tokio::test]
    async fn socket_is_private_and_lives_as_long_as_its_server() {
        let dir = leasehold_testkit::temp_dir();
        let path = dir.path().join(SOCKET_FILE);
        let (listener, socket) = LocalSocket::create(dir.path()).await.unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, MODE);
        assert!(is_alive(&path).await.unwrap());
        drop((listener, socket));
        assert!(!path.exists());
        assert!(!draft_path(dir.path()).exists());
    }

    #[tokio::test]
    async fn stale_socket_and_draft_are_replaced() {
        let dir = leasehold_testkit::temp_dir();
        let path = dir.path().join(SOCKET_FILE);
        for stale in [&path, &draft_path(dir.path())] {
            UnixListener::bind(stale).unwrap();
        }
        assert!(!is_alive(&path).await.unwrap());
        let _listening = LocalSocket::create(dir.path()).await.unwrap();
        assert!(is_alive(&path).await.unwrap());
    }

    #[tokio::test]
    async fn later_server_keeps_its_socket_when_the_earlier_one_stops() {
        let dir = leasehold_testkit::temp_dir();
        let path = dir.path().join(SOCKET_FILE);
        let first = LocalSocket::create(dir.path()).await.unwrap();
        let second = LocalSocket::create(dir.path()).await.unwrap();
        drop(first);
        assert!(is_alive(&path).await.unwrap());
        drop(second);
        assert!(!path.exists());
    }

    #[tokio::test]
    async fn directory_with_a_long_path_gets_a_socket() {
        let dir = leasehold_testkit::temp_dir();
        let long = dir.path().join("d".repeat(120));
        let _listening = LocalSocket::create(&long).await.unwrap();
        assert!(is_alive(&long.join(SOCKET_FILE)).await.unwrap());
    }
}

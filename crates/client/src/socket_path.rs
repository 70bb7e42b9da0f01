//! The path of a Unix socket in a form that fits the system's length limit. Knows no protocol.

use leasehold_core::limits::SOCKET_PATH_MAX_BYTES;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// A path that a socket can be bound or connected to.
///
/// If the path is too long for a socket address, or must stay in one directory whatever happens to its path, this is a path through an open handle of the
/// directory (`/proc/self/fd/N/NAME`, Linux only), which is valid as long as this value exists.
#[derive(Debug)]
pub struct SocketPath {
    path: PathBuf,
    _directory: Option<File>,
}

impl SocketPath {
    /// Returns the path itself, or a shorter one to the same file.
    ///
    /// # Errors
    /// Fails if the path is too long and the directory cannot be opened, or the system has no shorter path for it.
    pub fn new(path: &Path) -> io::Result<Self> {
        if path.as_os_str().as_bytes().len() <= SOCKET_PATH_MAX_BYTES {
            return Ok(Self {
                path: path.to_owned(),
                _directory: None,
            });
        }
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(too_long(path));
        };
        let through_handle = Self::within(File::open(parent)?, Path::new(name));
        through_handle.ok_or_else(|| too_long(path))
    }

    /// Returns the path of a file in an open directory, which nobody can exchange for another one; none if the system has no such paths, or the name is too
    /// long.
    pub fn within(directory: File, name: &Path) -> Option<Self> {
        let path = directory_path(&directory)?.join(name);
        let fits = path.as_os_str().as_bytes().len() <= SOCKET_PATH_MAX_BYTES;
        fits.then_some(Self {
            path,
            _directory: Some(directory),
        })
    }

    /// The path for the socket address.
    pub fn as_path(&self) -> &Path {
        &self.path
    }
}

/// Returns a path of an open directory that is valid as long as it is open, whatever happens to its name; none if the system has no such paths (Linux has).
pub fn directory_path(directory: &File) -> Option<PathBuf> {
    let path = PathBuf::from(format!("/proc/self/fd/{}", directory.as_raw_fd()));
    path.is_dir().then_some(path)
}

fn too_long(path: &Path) -> io::Error {
    let (path, max) = (path.display(), SOCKET_PATH_MAX_BYTES);
    let text = format!("{path} is longer than the {max} bytes of a socket address");
    io::Error::new(io::ErrorKind::InvalidInput, text)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use std::os::unix::net::{UnixListener, UnixStream};

    #[test]
    fn short_path_is_unchanged() {
        let path = Path::new("leasehold-data/leasehold.sock");
        assert_eq!(SocketPath::new(path).unwrap().as_path(), path);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn long_path_reaches_the_same_socket() {
        let dir = leasehold_testkit::temp_dir();
        let long = dir.path().join("d".repeat(SOCKET_PATH_MAX_BYTES));
        std::fs::create_dir(&long).unwrap();
        let path = long.join("s");
        assert!(UnixListener::bind(&path).is_err());
        let bound = SocketPath::new(&path).unwrap();
        let listener = UnixListener::bind(bound.as_path()).unwrap();
        assert!(path.exists());
        drop(bound);
        let connected = SocketPath::new(&path).unwrap();
        UnixStream::connect(connected.as_path()).unwrap();
        listener.accept().unwrap();
    }

    #[test]
    fn long_name_is_rejected() {
        let dir = leasehold_testkit::temp_dir();
        let path = dir.path().join("n".repeat(SOCKET_PATH_MAX_BYTES));
        let error = SocketPath::new(&path).unwrap_err();
        assert!(error.to_string().contains("longer than"), "{error}");
    }
}

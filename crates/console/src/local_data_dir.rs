//! The data directory of a server on this machine: its address and administrator key.

use crate::exit::{Exit, Failure};
use std::fs::{self, Metadata};
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

const NAME: &str = "leasehold-data";
/// The data directory of the packaged systemd service.
const SYSTEM_DIR: &str = "/var/lib/leasehold";
const ADDRESS: &str = "address";
const KEY: &str = "admin.key";
/// Permission bits: writable by group or others.
const WRITABLE: u32 = 0o022;

/// The contents of a data directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LocalDataDir {
    pub(crate) dir: PathBuf,
    /// URL of the server, if it runs.
    pub(crate) address: Option<String>,
    /// The administrator key, if the file exists.
    pub(crate) key: Option<String>,
}

impl LocalDataDir {
    /// Reads the named directory, else `leasehold-data` in this directory or a parent, else the system's.
    pub(crate) fn find(named: Option<&Path>) -> Result<Option<Self>, Failure> {
        if let Some(dir) = named {
            let metadata = fs::metadata(dir).map_err(|error| unreadable(dir, &error))?;
            if !metadata.is_dir() {
                let message = format!("--data-dir: {} is not a directory", dir.display());
                return Err(Failure::usage(message));
            }
            return Self::read(dir.to_owned()).map(Some);
        }
        let here = std::env::current_dir().unwrap_or_default();
        let above = here.ancestors().map(|dir| dir.join(NAME));
        let found = above.into_iter().find(|dir| is_trusted(dir));
        let system = || Some(PathBuf::from(SYSTEM_DIR)).filter(|dir| is_trusted_system_dir(dir));
        let Some(dir) = found.or_else(system) else {
            return Ok(None);
        };
        // Skips a directory that this user cannot read, unless --data-dir names it.
        match fs::read_dir(&dir) {
            Ok(_) => Self::read(dir).map(Some),
            Err(_) => Ok(None),
        }
    }

    fn read(dir: PathBuf) -> Result<Self, Failure> {
        Ok(Self {
            address: line(&dir, ADDRESS)?,
            key: line(&dir, KEY)?,
            dir,
        })
    }
}

/// Reads a one-line file of the directory, if it exists. Fails if the owner of the file is not trusted.
fn line(dir: &Path, name: &str) -> Result<Option<String>, Failure> {
    let file = dir.join(name);
    let unreadable_file = |error: io::Error| unreadable(&file, &error);
    let metadata = match fs::symlink_metadata(&file) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(unreadable_file(error)),
    };
    let owner = fs::metadata(dir).map_err(unreadable_file)?.uid();
    if !metadata.is_file() || ![owner, current_uid(), 0].contains(&metadata.uid()) {
        let file = file.display();
        let message = format!(
            "refusing to read {file}: it is not a regular file of the server; remove it, or set --server"
        );
        return Err(Failure::new(Exit::Denied, message));
    }
    let text = fs::read_to_string(&file).map_err(unreadable_file)?;
    let text = text.trim();
    Ok((!text.is_empty()).then(|| text.to_owned()))
}

fn unreadable(path: &Path, error: &io::Error) -> Failure {
    let message = format!(
        "cannot read {}: {error}; set --data-dir to another directory",
        path.display()
    );
    match error.kind() {
        ErrorKind::PermissionDenied => Failure::new(Exit::Denied, message),
        _ => Failure::usage(message),
    }
}

fn current_uid() -> u32 {
    rustix::process::geteuid().as_raw()
}

fn is_safe(metadata: &Metadata, owners: &[u32]) -> bool {
    metadata.is_dir() && metadata.mode() & WRITABLE == 0 && owners.contains(&metadata.uid())
}

/// A directory that another user can write could send this client and its key to another server.
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
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use std::fs::Permissions;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn missing_and_empty_files_are_ignored() {
        let dir = leasehold_testkit::temp_dir();
        let read = || LocalDataDir::find(Some(dir.path())).unwrap().unwrap();
        assert_eq!((read().address, read().key), (None, None));
        fs::write(dir.path().join(KEY), "lh_admin_x\n").unwrap();
        fs::write(dir.path().join(ADDRESS), "\n").unwrap();
        assert_eq!(
            (read().address, read().key),
            (None, Some("lh_admin_x".to_owned()))
        );
        fs::write(dir.path().join(ADDRESS), "http://127.0.0.1:1\n").unwrap();
        assert_eq!(read().address.unwrap(), "http://127.0.0.1:1");
    }

    #[test]
    fn directories_writable_by_others_and_symlinks_are_not_trusted() {
        let dir = leasehold_testkit::temp_dir();
        let real = dir.path().join("real");
        fs::create_dir(&real).unwrap();
        fs::set_permissions(&real, Permissions::from_mode(0o755)).unwrap();
        assert!(is_trusted(&real));
        for mode in [0o777, 0o775, 0o1777] {
            fs::set_permissions(&real, Permissions::from_mode(mode)).unwrap();
            assert!(!is_trusted(&real), "{mode:o}");
        }
        fs::set_permissions(&real, Permissions::from_mode(0o700)).unwrap();
        let link = dir.path().join("link");
        symlink(&real, &link).unwrap();
        assert!(!is_trusted(&link));
    }

    #[test]
    fn special_files_are_refused_and_a_missing_directory_is_named() {
        let dir = leasehold_testkit::temp_dir();
        symlink("/dev/zero", dir.path().join(ADDRESS)).unwrap();
        let error = LocalDataDir::find(Some(dir.path())).unwrap_err();
        assert_eq!(error.exit, Exit::Denied);
        let missing = dir.path().join("none");
        let error = LocalDataDir::find(Some(&missing)).unwrap_err();
        assert_eq!(error.exit, Exit::Usage);
        assert!(error.message.contains("none"), "{error}");
    }
}

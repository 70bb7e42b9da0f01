//! The data folder of a server on this machine: where it listens, and its administrator's key.

use crate::exit::{Exit, Failure};
use std::fs::{self, Metadata};
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

const NAME: &str = "leasehold-data";
/// Where a server that the system starts has it.
const OF_THE_SYSTEM: &str = "/var/lib/leasehold";
const ADDRESS: &str = "address";
const KEY: &str = "admin.key";
/// Others, or a group, may write.
const WRITABLE: u32 = 0o022;

/// A data folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Local {
    pub(crate) folder: PathBuf,
    /// Where its server listens, if it runs.
    pub(crate) address: Option<String>,
    /// The administrator's key, if it is there.
    pub(crate) key: Option<String>,
}

impl Local {
    /// The one that is named; else `leasehold-data` here or in a folder above; else the system's.
    pub(crate) fn find(named: Option<&Path>) -> Result<Option<Self>, Failure> {
        if let Some(folder) = named {
            let about = fs::metadata(folder).map_err(|error| unreadable(folder, &error))?;
            if !about.is_dir() {
                let message = format!("--data-dir: {} is no folder", folder.display());
                return Err(Failure::usage(message));
            }
            return Self::read(folder.to_owned()).map(Some);
        }
        let here = std::env::current_dir().unwrap_or_default();
        let above = here.ancestors().map(|folder| folder.join(NAME));
        let found = above.into_iter().find(|folder| is_ours(folder));
        let system = || Some(PathBuf::from(OF_THE_SYSTEM)).filter(|folder| is_the_systems(folder));
        let Some(folder) = found.or_else(system) else {
            return Ok(None);
        };
        // One that is somebody else's to read was not meant, unless it is named.
        match fs::read_dir(&folder) {
            Ok(_) => Self::read(folder).map(Some),
            Err(_) => Ok(None),
        }
    }

    fn read(folder: PathBuf) -> Result<Self, Failure> {
        Ok(Self {
            address: line(&folder, ADDRESS)?,
            key: line(&folder, KEY)?,
            folder,
        })
    }
}

/// What a file of the folder holds, if it is there and the folder's owner put it there.
fn line(folder: &Path, name: &str) -> Result<Option<String>, Failure> {
    let file = folder.join(name);
    let told = |error: io::Error| unreadable(&file, &error);
    let about = match fs::symlink_metadata(&file) {
        Ok(about) => about,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(told(error)),
    };
    let owner = fs::metadata(folder).map_err(told)?.uid();
    if !about.is_file() || ![owner, me(), 0].contains(&about.uid()) {
        let file = file.display();
        let message = format!(
            "{file} is not the server's own file; remove it, or name the server with --server"
        );
        return Err(Failure::new(Exit::Denied, message));
    }
    let text = fs::read_to_string(&file).map_err(told)?;
    let text = text.trim();
    Ok((!text.is_empty()).then(|| text.to_owned()))
}

fn unreadable(path: &Path, error: &io::Error) -> Failure {
    let message = format!(
        "{} cannot be read: {error}; --data-dir names another folder",
        path.display()
    );
    match error.kind() {
        ErrorKind::PermissionDenied => Failure::new(Exit::Denied, message),
        _ => Failure::usage(message),
    }
}

fn me() -> u32 {
    rustix::process::geteuid().as_raw()
}

fn is_safe(about: &Metadata, owners: &[u32]) -> bool {
    about.is_dir() && about.mode() & WRITABLE == 0 && owners.contains(&about.uid())
}

/// A folder that somebody else put in our way, or could fill, could send us and our key to somebody else's server.
fn is_ours(folder: &Path) -> bool {
    fs::symlink_metadata(folder).is_ok_and(|about| is_safe(&about, &[me(), 0]))
}

/// The system's belongs to whoever serves there; only the system itself can have made it.
fn is_the_systems(folder: &Path) -> bool {
    let parent = folder.parent().map(fs::symlink_metadata);
    let of_root = parent.is_some_and(|about| about.is_ok_and(|about| is_safe(&about, &[0])));
    let about = fs::symlink_metadata(folder);
    of_root && about.is_ok_and(|about| is_safe(&about, &[about.uid()]))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use std::fs::Permissions;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn a_folder_is_read_as_far_as_it_is_there() {
        let folder = leasehold_testkit::temp_dir();
        let read = || Local::find(Some(folder.path())).unwrap().unwrap();
        assert_eq!((read().address, read().key), (None, None));
        fs::write(folder.path().join(KEY), "lh_admin_x\n").unwrap();
        fs::write(folder.path().join(ADDRESS), "\n").unwrap();
        assert_eq!(
            (read().address, read().key),
            (None, Some("lh_admin_x".to_owned()))
        );
        fs::write(folder.path().join(ADDRESS), "http://127.0.0.1:1\n").unwrap();
        assert_eq!(read().address.unwrap(), "http://127.0.0.1:1");
    }

    #[test]
    fn a_folder_that_others_can_fill_and_a_link_are_nobodys() {
        let folder = leasehold_testkit::temp_dir();
        let real = folder.path().join("real");
        fs::create_dir(&real).unwrap();
        fs::set_permissions(&real, Permissions::from_mode(0o755)).unwrap();
        assert!(is_ours(&real));
        for mode in [0o777, 0o775, 0o1777] {
            fs::set_permissions(&real, Permissions::from_mode(mode)).unwrap();
            assert!(!is_ours(&real), "{mode:o}");
        }
        fs::set_permissions(&real, Permissions::from_mode(0o700)).unwrap();
        let link = folder.path().join("link");
        symlink(&real, &link).unwrap();
        assert!(!is_ours(&link));
    }

    #[test]
    fn what_is_no_file_is_refused_and_a_folder_that_is_not_there_is_named() {
        let folder = leasehold_testkit::temp_dir();
        symlink("/dev/zero", folder.path().join(ADDRESS)).unwrap();
        let refused = Local::find(Some(folder.path())).unwrap_err();
        assert_eq!(refused.exit, Exit::Denied);
        let missing = folder.path().join("none");
        let refused = Local::find(Some(&missing)).unwrap_err();
        assert_eq!(refused.exit, Exit::Usage);
        assert!(refused.message.contains("none"), "{refused}");
    }
}

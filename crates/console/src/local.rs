//! The data folder of a server on this machine: where it listens, and its administrator's key.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

const NAME: &str = "leasehold-data";
/// Where a server that the system starts has it.
const OF_THE_SYSTEM: &str = "/var/lib/leasehold";
const ADDRESS: &str = "address";
const KEY: &str = "admin.key";

/// A data folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Local {
    pub(crate) folder: PathBuf,
    /// Where its server listens, if it runs.
    pub(crate) address: Option<String>,
    pub(crate) key: Option<String>,
}

impl Local {
    /// The one that is named; else `leasehold-data` here or in a folder above; else the system's.
    pub(crate) fn find(named: Option<&Path>) -> Option<Self> {
        if let Some(folder) = named {
            return Some(Self::read(folder.to_owned()));
        }
        let here = std::env::current_dir().ok()?;
        let above = here.ancestors().map(|folder| folder.join(NAME));
        above
            .chain([PathBuf::from(OF_THE_SYSTEM)])
            .find(|folder| is_ours(folder))
            .map(Self::read)
    }

    fn read(folder: PathBuf) -> Self {
        let line = |name| {
            let text = fs::read_to_string(folder.join(name)).ok()?;
            let line = text.trim();
            (!line.is_empty()).then(|| line.to_owned())
        };
        Self {
            address: line(ADDRESS),
            key: line(KEY),
            folder,
        }
    }
}

/// A folder that somebody else put in our way could send us to somebody else's server.
fn is_ours(folder: &Path) -> bool {
    let me = rustix::process::geteuid().as_raw();
    fs::metadata(folder).is_ok_and(|about| about.is_dir() && [me, 0].contains(&about.uid()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_folder_is_read_as_far_as_it_is_there() {
        let folder = leasehold_testkit::temp_dir();
        let read = || Local::find(Some(folder.path())).unwrap();
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
}

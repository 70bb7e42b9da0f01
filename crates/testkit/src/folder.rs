//! Temporary folders that go away with their handle. Knows nothing of what is put in them.

use tempfile::TempDir;

/// Makes an empty folder that is removed when the handle is dropped; for SQLite files and the like.
///
/// # Panics
/// When the system's temporary folder cannot be written.
#[must_use]
pub fn temp_dir() -> TempDir {
    tempfile::Builder::new()
        .prefix("leasehold-")
        .tempdir()
        .expect("a temporary folder can be made")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_goes_away_with_its_handle() {
        let folder = temp_dir();
        let path = folder.path().to_owned();
        assert!(path.is_dir());
        drop(folder);
        assert!(!path.exists());
    }
}

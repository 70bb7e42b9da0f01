//! Temporary directories that are removed with their handle. Knows nothing of their content.

use tempfile::TempDir;

/// Creates an empty directory under [`crate::temp_root`], for example for a SQLite file. Dropping the handle removes it.
///
/// # Panics
/// When the directory of temporary files is not writable.
#[must_use]
pub fn temp_dir() -> TempDir {
    tempfile::Builder::new()
        .prefix("leasehold-")
        .tempdir_in(crate::temp_root())
        .expect("failed to create a temporary directory")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dropping_the_handle_removes_the_directory() {
        let directory = temp_dir();
        let path = directory.path().to_owned();
        assert!(path.is_dir());
        drop(directory);
        assert!(!path.exists());
    }
}

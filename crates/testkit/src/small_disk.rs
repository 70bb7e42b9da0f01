//! A small file system that a test fills and empties. Knows nothing of the files that the test keeps there.

use std::fs;
use std::io::{ErrorKind, Write};
use std::path::PathBuf;
use std::process::Command;

/// Mounts the file system and runs the test program: directory, megabytes, program, test.
const MOUNT_AND_RUN: &str =
    r#"mount -t tmpfs -o "size=$2m" tmpfs "$1" && exec "$3" --exact "$4" --nocapture"#;
/// Names the directory of the file system in the inner run.
const DIRECTORY_VARIABLE: &str = "LEASEHOLD_TEST_SMALL_DISK";

/// The file system of all temporary directories of this test.
pub struct SmallDisk {
    directory: PathBuf,
}

impl SmallDisk {
    /// Runs a test again in a process and a mount namespace of its own, in which temporary directories are on a file system of this size.
    /// Returns the disk in that inner run, and none in the outer run after the inner one has passed. `test` is the path of the test, as
    /// the test program lists it.
    ///
    /// # Panics
    /// When the inner run fails. Needs root, or a kernel that allows user namespaces.
    #[must_use]
    pub fn of_test(test: &str, megabytes: u32) -> Option<Self> {
        if let Some(directory) = std::env::var_os(DIRECTORY_VARIABLE) {
            return Some(Self {
                directory: directory.into(),
            });
        }
        let directory = crate::temp_dir();
        let program = std::env::current_exe().expect("the test program has a path");
        let output = Command::new("unshare")
            .args([
                "--map-root-user",
                "--mount",
                "sh",
                "-ec",
                MOUNT_AND_RUN,
                "sh",
            ])
            .arg(directory.path())
            .arg(megabytes.to_string())
            .arg(program)
            .arg(test)
            .env(DIRECTORY_VARIABLE, directory.path())
            .env("TMPDIR", directory.path())
            .output()
            .expect("failed to run unshare (util-linux)");
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(
            output.status.success() && text.contains("1 passed"),
            "{test} failed on a small disk: {}\n{text}\n{}",
            output.status,
            String::from_utf8_lossy(&output.stderr),
        );
        None
    }

    /// Uses up all free space.
    ///
    /// # Panics
    /// When the space cannot be used up.
    pub fn fill(&self) {
        let mut file = fs::File::create(self.filler()).expect("failed to create a file");
        for size in [64 * 1024, 4096] {
            let block = vec![0; size];
            loop {
                match file.write(&block) {
                    Ok(_) => {}
                    Err(error) if error.kind() == ErrorKind::StorageFull => break,
                    Err(error) => panic!("failed to fill the disk: {error}"),
                }
            }
        }
    }

    /// Frees the space that [`fill`](Self::fill) uses.
    ///
    /// # Panics
    /// When the disk was not filled.
    pub fn empty(&self) {
        fs::remove_file(self.filler()).expect("the disk was not filled");
    }

    fn filler(&self) -> PathBuf {
        self.directory.join("filler")
    }
}

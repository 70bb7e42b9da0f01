//! The directory under which tests keep temporary files: in memory where the machine has room for it. Knows nothing of the files.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// Linux's file system in memory.
const MEMORY: &str = "/dev/shm";
/// The free bytes that a whole run of the tests may need.
const MIN_FREE: u64 = 4 << 30;

/// `TMPDIR` if it is set. Otherwise `/dev/shm` if it is in memory and has four gigabytes left, otherwise the system's temporary directory.
///
/// Each test database is some three hundred files. Creating and deleting them on a disk takes more of the processor than the tests of a store.
/// Servers still call `fsync`, and a test that kills a process loses nothing that the process had written.
#[must_use]
pub fn temp_root() -> PathBuf {
    static ROOT: OnceLock<PathBuf> = OnceLock::new();
    ROOT.get_or_init(|| {
        let has_choice = std::env::var_os("TMPDIR").is_none();
        if has_choice && has_room_in_memory(Path::new(MEMORY)) {
            MEMORY.into()
        } else {
            std::env::temp_dir()
        }
    })
    .clone()
}

fn has_room_in_memory(directory: &Path) -> bool {
    let output = Command::new("df")
        .args(["-B1", "--output=fstype,avail"])
        .arg(directory)
        .output();
    output.is_ok_and(|output| {
        output.status.success() && is_roomy_memory(&String::from_utf8_lossy(&output.stdout))
    })
}

/// Reads the answer of `df`: a heading, then type and free bytes.
fn is_roomy_memory(output: &str) -> bool {
    let mut words = output.lines().nth(1).unwrap_or_default().split_whitespace();
    let is_memory = words.next() == Some("tmpfs");
    let free = words.next().and_then(|bytes| bytes.parse::<u64>().ok());
    is_memory && free.is_some_and(|bytes| bytes >= MIN_FREE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_file_system_in_memory_with_room_is_used() {
        let output = |line: &str| format!("Type Avail\n{line}\n");
        assert!(is_roomy_memory(&output("tmpfs 25276518400")));
        assert!(!is_roomy_memory(&output("tmpfs 67108864")));
        assert!(!is_roomy_memory(&output("ext4 25276518400")));
        assert!(!is_roomy_memory(""));
    }
}

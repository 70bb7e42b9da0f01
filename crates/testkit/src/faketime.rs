//! Clock skew for a program under test, with the library of Debian's package `faketime`. Installs nothing.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The Debian package of the library.
pub const FAKETIME_PACKAGE: &str = "faketime";

/// Library directories; Debian has one subdirectory per architecture.
const LIBRARIES: [&str; 3] = ["/usr/lib", "/usr/lib64", "/usr/local/lib"];
/// The library for multi-threaded programs.
const LIBRARY: &str = "faketime/libfaketimeMT.so.1";

/// Returns the path of the library if it is installed.
#[must_use]
pub fn faketime_library() -> Option<PathBuf> {
    LIBRARIES
        .iter()
        .find_map(|directory| library_under(Path::new(directory)))
}

/// Shifts the wall clock that the program reads by `by`, such as `+2h` or `-2h`.
///
/// The monotonic clock stays correct, as on a machine with a wrong wall clock.
///
/// # Panics
/// When the library is not installed: `cargo xtask setup` installs it.
pub fn skew_clock(command: &mut Command, by: &str) {
    let library = faketime_library().unwrap_or_else(|| {
        panic!("Debian's package {FAKETIME_PACKAGE} is not installed; run: cargo xtask setup")
    });
    command
        .env("LD_PRELOAD", library)
        .env("FAKETIME", by)
        .env("FAKETIME_DONT_FAKE_MONOTONIC", "1")
        // The name of the variable in older versions.
        .env("DONT_FAKE_MONOTONIC", "1");
}

fn library_under(directory: &Path) -> Option<PathBuf> {
    let below = fs::read_dir(directory).ok()?.flatten();
    [directory.to_owned()]
        .into_iter()
        .chain(below.map(|entry| entry.path()))
        .map(|directory| directory.join(LIBRARY))
        .find(|library| library.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wall_clock_is_shifted() {
        let mut date = Command::new("date");
        date.args(["-u", "+%s"]);
        skew_clock(&mut date, "+2h");
        let output = date.output().unwrap().stdout;
        let shifted: u64 = String::from_utf8_lossy(&output).trim().parse().unwrap();
        let now = std::time::UNIX_EPOCH.elapsed().unwrap().as_secs();
        assert!(shifted.abs_diff(now + 7_200) < 60, "{shifted} at {now}");
    }
}

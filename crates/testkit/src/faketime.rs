//! A wrong clock for a program under test, by the library of Debian's package `faketime`. Installs nothing.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Debian's package that has the library.
pub const FAKETIME_PACKAGE: &str = "faketime";

/// Where libraries are; Debian has a folder below for each sort of machine.
const LIBRARIES: [&str; 3] = ["/usr/lib", "/usr/lib64", "/usr/local/lib"];
/// The one for programs with threads.
const LIBRARY: &str = "faketime/libfaketimeMT.so.1";

/// Where the library is, if it is installed.
#[must_use]
pub fn faketime_library() -> Option<PathBuf> {
    LIBRARIES
        .iter()
        .find_map(|folder| library_under(Path::new(folder)))
}

/// Has the program believe in a clock that is wrong by so much, such as `+2h` or `-2h`.
///
/// Only what the time is becomes wrong. How it passes (the monotonic clock) stays right, as on a machine whose clock nobody set.
///
/// # Panics
/// When the library is not installed: `cargo xtask setup` installs it.
pub fn set_wrong_clock(command: &mut Command, by: &str) {
    let library = faketime_library().unwrap_or_else(|| {
        panic!("Debian's package {FAKETIME_PACKAGE} is not installed; run: cargo xtask setup")
    });
    command
        .env("LD_PRELOAD", library)
        .env("FAKETIME", by)
        .env("FAKETIME_DONT_FAKE_MONOTONIC", "1")
        // The name of the same in some versions.
        .env("DONT_FAKE_MONOTONIC", "1");
}

fn library_under(folder: &Path) -> Option<PathBuf> {
    let below = fs::read_dir(folder).ok()?.flatten();
    [folder.to_owned()]
        .into_iter()
        .chain(below.map(|entry| entry.path()))
        .map(|folder| folder.join(LIBRARY))
        .find(|library| library.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_time_of_day_is_wrong() {
        let mut date = Command::new("date");
        date.args(["-u", "+%s"]);
        set_wrong_clock(&mut date, "+2h");
        let said = date.output().unwrap().stdout;
        let wrong: u64 = String::from_utf8_lossy(&said).trim().parse().unwrap();
        let right = std::time::UNIX_EPOCH.elapsed().unwrap().as_secs();
        assert!(wrong.abs_diff(right + 7_200) < 60, "{wrong} at {right}");
    }
}

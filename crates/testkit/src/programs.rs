//! Finds PostgreSQL's programs on this machine and their version. Starts no server.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The directory of PostgreSQL's programs, instead of the newest installed version; for example for a version matrix.
pub const POSTGRES_BIN_VARIABLE: &str = "LEASEHOLD_TEST_PG_BIN";

/// Debian installs the server's programs outside PATH, in one directory per major version.
const DEBIAN_VERSIONS: &str = "/usr/lib/postgresql";

/// Returns the directory with `initdb` and `postgres`: the value of [`POSTGRES_BIN_VARIABLE`], else Debian's newest, else
/// the first in PATH.
#[must_use]
pub fn postgres_programs() -> Option<PathBuf> {
    if let Some(named) = env::var_os(POSTGRES_BIN_VARIABLE) {
        return Some(PathBuf::from(named));
    }
    newest_under(Path::new(DEBIAN_VERSIONS)).or_else(|| {
        let path = env::var_os("PATH")?;
        env::split_paths(&path).find(|directory| is_complete(directory))
    })
}

/// Returns the version of the server in `programs`, such as `15.18`.
#[must_use]
pub fn postgres_version(programs: &Path) -> Option<String> {
    let output = Command::new(programs.join("postgres"))
        .arg("--version")
        .output()
        .ok()?;
    parse_version(&String::from_utf8_lossy(&output.stdout))
}

fn newest_under(versions: &Path) -> Option<PathBuf> {
    fs::read_dir(versions)
        .ok()?
        .flatten()
        .filter_map(|entry| {
            let major: u32 = entry.file_name().to_str()?.parse().ok()?;
            let programs = entry.path().join("bin");
            is_complete(&programs).then_some((major, programs))
        })
        .max()
        .map(|(_, programs)| programs)
}

fn is_complete(directory: &Path) -> bool {
    directory.join("initdb").is_file() && directory.join("postgres").is_file()
}

fn parse_version(output: &str) -> Option<String> {
    // "postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)"
    output.split_whitespace().nth(2).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_is_the_third_word_of_the_output() {
        let output = "postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)\n";
        assert_eq!(parse_version(output).as_deref(), Some("15.18"));
        assert_eq!(parse_version(""), None);
    }

    #[test]
    #[cfg(feature = "database")]
    fn newest_complete_version_is_chosen_by_number() {
        let versions = crate::temp_dir();
        for (version, programs) in [
            ("9", &["initdb", "postgres"][..]),
            ("15", &["initdb", "postgres"]),
            ("16", &["psql"]),
        ] {
            let directory = versions.path().join(version).join("bin");
            fs::create_dir_all(&directory).unwrap();
            for program in programs {
                fs::write(directory.join(program), "").unwrap();
            }
        }
        let newest = newest_under(versions.path()).unwrap();
        assert!(newest.ends_with("15/bin"), "{}", newest.display());
    }
}

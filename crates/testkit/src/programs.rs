//! Where PostgreSQL's own programs are on this machine, and which version they are. Starts no server.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Names a folder with PostgreSQL's programs to use instead of the newest installed one (a version matrix, for example).
pub const POSTGRES_BIN_VARIABLE: &str = "LEASEHOLD_TEST_PG_BIN";

/// Debian keeps the server's programs out of the path, one folder a major version.
const DEBIAN_VERSIONS: &str = "/usr/lib/postgresql";

/// The folder that holds `initdb` and `postgres`: the one named by [`POSTGRES_BIN_VARIABLE`], Debian's newest, or the
/// one in the path.
#[must_use]
pub fn postgres_programs() -> Option<PathBuf> {
    if let Some(named) = env::var_os(POSTGRES_BIN_VARIABLE) {
        return Some(PathBuf::from(named));
    }
    newest_under(Path::new(DEBIAN_VERSIONS)).or_else(|| {
        let path = env::var_os("PATH")?;
        env::split_paths(&path).find(|folder| is_complete(folder))
    })
}

/// The version of the server in that folder, such as `15.18`.
#[must_use]
pub fn postgres_version(programs: &Path) -> Option<String> {
    let output = Command::new(programs.join("postgres"))
        .arg("--version")
        .output()
        .ok()?;
    version_in(&String::from_utf8_lossy(&output.stdout))
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

fn is_complete(folder: &Path) -> bool {
    folder.join("initdb").is_file() && folder.join("postgres").is_file()
}

fn version_in(said: &str) -> Option<String> {
    // "postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)"
    said.split_whitespace().nth(2).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_the_third_word() {
        let said = "postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)\n";
        assert_eq!(version_in(said).as_deref(), Some("15.18"));
        assert_eq!(version_in(""), None);
    }

    #[test]
    #[cfg(feature = "database")]
    fn the_newest_version_is_chosen_by_number_and_only_if_complete() {
        let versions = crate::temp_dir();
        for (version, programs) in [
            ("9", &["initdb", "postgres"][..]),
            ("15", &["initdb", "postgres"]),
            ("16", &["psql"]),
        ] {
            let folder = versions.path().join(version).join("bin");
            fs::create_dir_all(&folder).unwrap();
            for program in programs {
                fs::write(folder.join(program), "").unwrap();
            }
        }
        let newest = newest_under(versions.path()).unwrap();
        assert!(newest.ends_with("15/bin"), "{}", newest.display());
    }
}

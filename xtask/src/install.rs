//! Runs the package managers of Debian and Python, and reads program versions. Does not decide what is needed.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use leasehold_testkit::PythonPackage;

/// Installs Debian packages, or fails with the command to run as root.
pub(crate) fn debian_packages(packages: &[&str]) -> Result<()> {
    let list = packages.join(" ");
    let line = format!("apt-get update && apt-get install -y --no-install-recommends {list}");
    if first_line("apt-get", ["--version"]).is_err() {
        bail!(
            "cannot install {list}: not a Debian system; install the equivalent packages by hand"
        );
    }
    if first_line("id", ["-u"])? != "0" {
        bail!("cannot install {list}: root required; run: sudo sh -c '{line}'");
    }
    println!("setup: {line}");
    let shell = Command::new("sh")
        .args(["-c", &line])
        .env("DEBIAN_FRONTEND", "noninteractive")
        .output()?;
    if !shell.status.success() {
        let said = String::from_utf8_lossy(&shell.stderr);
        bail!("apt-get failed ({}):\n{}", shell.status, said.trim());
    }
    Ok(())
}

/// Ensures that pip exists.
pub(crate) fn pip() -> Result<()> {
    if first_line("python3", ["-m", "pip", "--version"]).is_err() {
        println!("setup: python3 with pip is missing; needed for packages from PyPI");
        debian_packages(&["python3", "python3-pip"])?;
    }
    Ok(())
}

/// Installs a PyPI package with its dependencies into its own directory, atomically.
pub(crate) fn python_package(package: PythonPackage, folder: &Path) -> Result<()> {
    let requirement = package.requirement();
    pip()?;
    println!("setup: pip install {requirement} into {}", folder.display());
    if let Some(tools) = folder.parent() {
        fs::create_dir_all(tools)?;
    }
    let partial = folder.with_extension(format!("partial-{}", std::process::id()));
    let pip = Command::new(interpreter()?)
        .args(["-m", "pip", "install", "--quiet", "--no-input"])
        .arg("--disable-pip-version-check")
        // As a variable: older versions of pip do not know the option.
        .env("PIP_ROOT_USER_ACTION", "ignore")
        .args(["--only-binary", ":all:", "--target"])
        .arg(&partial)
        .arg(&requirement)
        .status()?;
    if !pip.success() {
        let _ = fs::remove_dir_all(&partial);
        bail!("pip failed to install {requirement} ({pip})");
    }
    if folder.exists() {
        // The existing directory is incomplete or broken.
        fs::remove_dir_all(folder)?;
    }
    fs::rename(&partial, folder)
        .with_context(|| format!("cannot move the package to {}", folder.display()))
}

/// The path of Python itself. Under pyenv, `python3` is a script that rewrites a shared directory after each pip call: of several calls at once
/// one fails.
fn interpreter() -> Result<String> {
    first_line("python3", ["-c", "import sys; print(sys.executable)"])
}

/// The first line of output of a program, if it succeeds.
pub(crate) fn first_line<I, S>(program: impl AsRef<OsStr>, arguments: I) -> Result<String>
where
    I: IntoIterator<Item = S>,
    S: AsRef<OsStr>,
{
    let program = program.as_ref();
    let name = program.to_string_lossy();
    let output = Command::new(program)
        .args(arguments)
        .output()
        .with_context(|| format!("cannot run {name}"))?;
    if !output.status.success() {
        bail!("{name} failed: {}", output.status);
    }
    let said = String::from_utf8_lossy(&output.stdout);
    Ok(said.lines().next().unwrap_or_default().trim().to_owned())
}

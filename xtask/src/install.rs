//! Runs Debian's and Python's package managers, and asks programs for their version. Does not decide what is needed.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use leasehold_testkit::PythonPackage;

/// Installs Debian packages, or fails with the line that a person with the rights can run.
pub(crate) fn debian_packages(packages: &[&str]) -> Result<()> {
    let list = packages.join(" ");
    let line = format!("apt-get update && apt-get install -y --no-install-recommends {list}");
    if first_line("apt-get", ["--version"]).is_err() {
        bail!(
            "this is not Debian: install its packages {list}, or what they are called here, by hand"
        );
    }
    if first_line("id", ["-u"])? != "0" {
        bail!("{list} must be installed by root; run: sudo sh -c '{line}'");
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

/// Sees to it that there is pip.
pub(crate) fn pip() -> Result<()> {
    if first_line("python3", ["-m", "pip", "--version"]).is_err() {
        println!("setup: python3 with pip is missing, and packages of PyPI come by pip");
        debian_packages(&["python3", "python3-pip"])?;
    }
    Ok(())
}

/// Unpacks one package of PyPI with all it needs into a folder of its own. The folder appears only when it is complete.
pub(crate) fn python_package(package: PythonPackage, folder: &Path) -> Result<()> {
    let requirement = package.requirement();
    pip()?;
    println!("setup: pip install {requirement} into {}", folder.display());
    if let Some(tools) = folder.parent() {
        fs::create_dir_all(tools)?;
    }
    let partial = folder.with_extension(format!("partial-{}", std::process::id()));
    let pip = Command::new("python3")
        .args(["-m", "pip", "install", "--quiet", "--no-input"])
        .arg("--disable-pip-version-check")
        // By variable: older versions of pip do not know the option.
        .env("PIP_ROOT_USER_ACTION", "ignore")
        .args(["--only-binary", ":all:", "--target"])
        .arg(&partial)
        .arg(&requirement)
        .status()?;
    if !pip.success() {
        let _ = fs::remove_dir_all(&partial);
        bail!("pip could not install {requirement} ({pip})");
    }
    if folder.exists() {
        // Incomplete, or its program does not run: it would not be asked for otherwise.
        fs::remove_dir_all(folder)?;
    }
    fs::rename(&partial, folder)
        .with_context(|| format!("{} could not be put in place", folder.display()))
}

/// What a program prints first, if it runs and succeeds.
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
        .with_context(|| format!("{name} could not be run"))?;
    if !output.status.success() {
        bail!("{name} failed: {}", output.status);
    }
    let said = String::from_utf8_lossy(&output.stdout);
    Ok(said.lines().next().unwrap_or_default().trim().to_owned())
}

//! Installs other job queues with npm into a temporary directory, together with our drivers.

use super::peer::Peer;
use anyhow::{Context, Result, ensure};
use leasehold_testkit::{TempDir, temp_dir};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use tokio::process::Command;

const MEASURE: (&str, &str) = ("measure.mjs", include_str!("../../peers/measure.mjs"));
/// The Node.js version that all of them support, installed with npm.
const NODE: &str = "node@22";
const OWN_NODE: &str = "node_modules/node/bin/node";

/// The temporary directory with the installed packages.
pub(super) struct NpmInstall {
    dir: TempDir,
    node: PathBuf,
}

impl NpmInstall {
    pub(super) async fn new(peers: &[Peer]) -> Result<Self> {
        let dir = temp_dir();
        let drivers = peers.iter().map(|peer| peer.driver());
        for (name, text) in drivers.chain([MEASURE]) {
            std::fs::write(dir.path().join(name), text)?;
        }
        let mut npm = Command::new("npm");
        npm.args(["install", "--no-audit", "--no-fund", "--loglevel=error"])
            .arg("--prefix")
            .arg(dir.path())
            .arg(NODE)
            .args(peers.iter().map(|peer| peer.package()))
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        let status = npm
            .status()
            .await
            .context("failed to start npm; is it installed?")?;
        ensure!(status.success(), "npm install failed: {status}");
        let own = dir.path().join(OWN_NODE);
        let node = if own.is_file() {
            own
        } else {
            PathBuf::from("node")
        };
        Ok(Self { dir, node })
    }

    pub(super) fn dir(&self) -> &Path {
        self.dir.path()
    }

    pub(super) fn node(&self) -> &Path {
        &self.node
    }
}

//! Puts other job queues into a private folder by npm, with our drivers beside them. The folder goes when this ends.

use super::peer::Peer;
use anyhow::{Context, Result, ensure};
use leasehold_testkit::{TempDir, temp_dir};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use tokio::process::Command;

const MEASURE: (&str, &str) = ("measure.mjs", include_str!("../../peers/measure.mjs"));
/// Not all of them run on any Node; npm has that too.
const NODE: &str = "node@22";
const OWN_NODE: &str = "node_modules/node/bin/node";

/// The folder.
pub(super) struct Installed {
    folder: TempDir,
    node: PathBuf,
}

impl Installed {
    pub(super) async fn new(peers: &[Peer]) -> Result<Self> {
        let folder = temp_dir();
        let drivers = peers.iter().map(|peer| peer.driver());
        for (name, text) in drivers.chain([MEASURE]) {
            std::fs::write(folder.path().join(name), text)?;
        }
        let mut npm = Command::new("npm");
        npm.args(["install", "--no-audit", "--no-fund", "--loglevel=error"])
            .arg("--prefix")
            .arg(folder.path())
            .arg(NODE)
            .args(peers.iter().map(|peer| peer.package()))
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        let status = npm.status().await.context("npm could not be started")?;
        ensure!(status.success(), "npm could not install: {status}");
        let own = folder.path().join(OWN_NODE);
        let node = if own.is_file() {
            own
        } else {
            PathBuf::from("node")
        };
        Ok(Self { folder, node })
    }

    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(super) fn node(&self) -> &Path {
        &self.node
    }
}

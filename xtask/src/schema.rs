//! Rewrites each store's schema.sql and the list of SQL functions by running the stores' snapshot tests with LEASEHOLD_BLESS.

use anyhow::{Result, bail};
use leasehold_testkit::Cluster;

use crate::interrupt::Interrupt;
use crate::{child, workspace};

/// The test program of a store, and the modules that write the files.
const TESTS: [(&str, &[&str]); 2] = [
    ("postgres", &["schema::", "functions::"]),
    ("sqlite", &["schema::"]),
];

pub(crate) fn run() -> Result<()> {
    let interrupt = Interrupt::install()?;
    let cluster = Cluster::start(&[])?;
    for (program, modules) in TESTS {
        let mut command = workspace::cargo();
        command
            // All packages, so that the features are those of a whole test run and nothing is compiled twice.
            .args(["test", "--workspace", "--locked", "--test", program, "--"])
            .args(modules)
            .env("LEASEHOLD_TEST_PG", cluster.url())
            .env("LEASEHOLD_BLESS", "1");
        let status = child::run(&mut command, &interrupt, |_| {})?;
        if !status.success() {
            bail!("the tests of {program} that write its schema failed ({status})");
        }
    }
    Ok(())
}

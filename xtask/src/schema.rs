//! Rewrites each store's schema.sql and the list of SQL functions by running the stores' snapshot tests with LEASEHOLD_BLESS.

use anyhow::{Result, bail};
use leasehold_testkit::Cluster;

use crate::interrupt::Interrupt;
use crate::{child, workspace};

/// Store and test.
const TESTS: [(&str, &str); 3] = [
    ("leasehold-store-postgres", "schema"),
    ("leasehold-store-postgres", "functions"),
    ("leasehold-store-sqlite", "schema"),
];

pub(crate) fn run() -> Result<()> {
    let interrupt = Interrupt::install()?;
    let cluster = Cluster::start(&[])?;
    for (store, test) in TESTS {
        let mut command = workspace::cargo();
        command
            .args(["test", "--package", store, "--test", test])
            .env("LEASEHOLD_TEST_PG", cluster.url())
            .env("LEASEHOLD_BLESS", "1");
        let status = child::run(&mut command, &interrupt, |_| {})?;
        if !status.success() {
            bail!("the test {test} of {store} failed ({status})");
        }
    }
    Ok(())
}

//! Rewrites each store's schema.sql: the stores' own schema tests do it when told to bless what they find.

use anyhow::{Result, bail};
use leasehold_testkit::Cluster;

use crate::interrupt::Interrupt;
use crate::{child, workspace};

const STORES: [&str; 2] = ["leasehold-store-postgres", "leasehold-store-sqlite"];

pub(crate) fn run() -> Result<()> {
    let interrupt = Interrupt::install()?;
    let cluster = Cluster::start(&[])?;
    for store in STORES {
        let mut command = workspace::cargo();
        command
            .args(["test", "--package", store, "--test", "schema"])
            .env("LEASEHOLD_TEST_PG", cluster.url())
            .env("LEASEHOLD_BLESS", "1");
        let status = child::run(&mut command, &interrupt, |_| {})?;
        if !status.success() {
            bail!("{store} could not write its schema.sql ({status})");
        }
    }
    Ok(())
}

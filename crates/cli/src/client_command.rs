//! Runs a client command: it needs no settings, no store and no more than one thread.

use anyhow::{Context, Result};
use leasehold_console::Command;
use leasehold_process::logging::{self, LogFormat};

/// A worker's troubles are worth a line; what goes well is not.
const LEVEL: &str = "off,leasehold_worker=warn,leasehold_client=warn";

pub(crate) fn run(command: Command) -> Result<()> {
    logging::start(LEVEL, LogFormat::Text)?;
    let done = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("the async runtime cannot be started")?
        .block_on(command.run());
    Ok(done?)
}
